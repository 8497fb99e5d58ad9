"""WARC, the format of web archives since 2009: what its records mean. Finding them is done in `archives`.

Heads are read whether their lines end in CRLF or LF, of every version (ClueWeb09 is 0.18). A block digest is compared
where one is given. A page is a record of type `response`, or `resource` with an address on the web; converted text is
a `conversion`. A page that was cut when it was captured is told of and is no document.
"""

import hashlib
import re
from base64 import b32encode, b64encode
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from resources.corpus.archives import LONGEST, LONGEST_HEAD, Damage, Found, Head
from resources.corpus.archives import records as archive_records
from strandline.web_archives import HttpMessage, begins_a_page, closes_itself, header_fields, http_message, truncation

TYPES = ("warcinfo", "response", "resource", "request", "metadata", "revisit", "conversion", "continuation")
"""The record types of the WARC standard (ISO 28500)."""

# A record's version line, and a header line after it, so that a page that only quotes the version does not match.
_BEGINS = re.compile(rb"WARC/\d{1,3}\.\d{1,3}[ \t]*\r*\n(?=[A-Za-z][A-Za-z0-9-]{0,63}[ \t]*:)")
# The first blank line, also where it holds spaces or extra carriage returns.
_HEAD_END = re.compile(rb"\n[ \t]*\r*\n")
_TEXT_TYPES = ("text/html", "application/xhtml", "text/plain")
"""Types of pages that hold a text."""

_DIGESTS = ("sha1", "md5", "sha256", "sha512")
"""Digests that are compared; crawlers write SHA-1."""


class Warc:
    """The WARC format. Offsets are into the file as stored, so that a record can be fetched by itself."""

    begins = _BEGINS
    begins_later = _BEGINS
    line_ends_after = 2
    has_stored_offsets = True

    def head(self, data: bytearray) -> Head | None:
        """The head up to its blank line."""
        end = _HEAD_END.search(data, 0, LONGEST_HEAD)
        if end is None:
            return None
        fields = header_fields(bytes(data[: end.start()]))
        length = fields.get("content-length", "").split(",")[0].strip()
        return Head(end.end(), int(length) if length.isascii() and length.isdigit() else None, fields)

    def record(self, told: Mapping[str, str], block: bytes, offset: int, in_doubt: bool) -> Found | Damage:
        """The record, compared with its digest."""
        kind = told.get("warc-type", "").lower()
        if kind not in TYPES:
            return Damage(offset, "record", f"there are no records of type {told.get('warc-type')!r}")
        if not _matches(told.get("warc-block-digest", ""), block):
            return Damage(offset, "digest", "the record's bytes do not match its digest")
        try:
            content_type, body, cut = _document(told, kind, block)
        except ValueError as error:
            return Damage(offset, "http", str(error))
        if body is not None and (cut := cut or _doubt(body, in_doubt)):
            return Damage(offset, "cut", cut)
        url = told.get("warc-target-uri", "").strip().strip("<>") or None
        return Found(offset, told.get("warc-record-id"), url, told.get("warc-date"), content_type, body)


def records(file: BinaryIO, longest: int = LONGEST) -> Iterator[Found | Damage]:
    """All records of a WARC file, plain or packed, and every damage between them, in order."""
    return archive_records(file, Warc(), longest)


def page_of(message: HttpMessage) -> tuple[str, bytes | None, str | None]:
    """The type, body and cut of a response; no body where it failed or holds no text."""
    if message.status not in (None, 200):
        return "", None, None
    content_type = message.content_type
    if not content_type.startswith(_TEXT_TYPES) and begins_a_page(message.body):
        content_type = "text/html"
    return content_type, message.body if content_type.startswith(_TEXT_TYPES) else None, message.cut


def _document(told: Mapping[str, str], kind: str, block: bytes) -> tuple[str, bytes | None, str | None]:
    """The type and payload of a record that holds a document, and why it is cut, if it is. ValueError: unreadable."""
    cut = truncation(told.get("warc-truncated"))
    if kind != "conversion" and told.get("warc-segment-number"):
        cut = cut or "the page goes on in another record"
    stated = told.get("content-type", "").lower()
    if kind == "conversion":
        return "text/plain; charset=utf-8", block if stated.startswith(("", "text/")[bool(stated)]) else None, cut
    if kind == "resource":
        is_page = told.get("warc-target-uri", "").strip("< ").lower().startswith("http")
        return stated, block if is_page and stated.startswith(_TEXT_TYPES) else None, cut
    is_http = stated.startswith("application/http") or not stated or block.lstrip()[:5] == b"HTTP/"
    if kind != "response" or not is_http:
        return "", None, None
    content_type, body, shorter = page_of(http_message(block))
    return content_type, body, cut or shorter


def _doubt(body: bytes, in_doubt: bool) -> str | None:
    """Why a page is not taken for whole if no record and no blank line follows it."""
    return "no record follows where this one should end" if in_doubt and not closes_itself(body) else None


def _matches(digest: str, block: bytes) -> bool:
    """Whether a digest is that of these bytes, in base 32, base 64 or hexadecimal; an unknown one says nothing."""
    name, _, value = digest.partition(":")
    name, value = name.strip().lower().replace("-", ""), value.strip()
    if name not in _DIGESTS or not value:
        return True
    found = hashlib.new(name, block, usedforsecurity=False).digest()
    return value.upper().rstrip("=") in (b32encode(found).decode().rstrip("="), found.hex().upper()) or (
        value.rstrip("=") == b64encode(found).decode().rstrip("=")
    )
