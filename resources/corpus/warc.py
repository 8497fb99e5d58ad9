"""WARC records that survive damage: each record, or what is wrong with it, with its byte offset in the stored file.

Parsing is fastwarc's. It stops at the first damage, takes a record that ends early for a whole one and says nothing of
a compressed one that is cut off by the file's end. So here lengths and block digests are compared, the last member is
unpacked to its end and, after damage, the next record is sought by its first bytes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from resources.corpus.streams import CHUNK, MEMBERS

_GZIP, _ZSTD, _PLAIN = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"WARC/1."
_BLOCK = 1 << 20
_TYPES = ("warcinfo", "response", "resource", "request", "metadata", "revisit", "conversion", "continuation")
_TEXT_TYPES = ("text/html", "application/xhtml", "text/plain")


@dataclass(frozen=True, slots=True)
class Found:
    """A whole record. `body` is the decoded payload of a page or converted text, None where it holds no document."""

    offset: int
    record_id: str | None
    url: str | None
    date: str | None
    content_type: str
    body: bytes | None

    @property
    def is_html(self) -> bool:
        """Whether the body is a page whose main text has to be extracted."""
        return "html" in self.content_type or "xml" in self.content_type


@dataclass(frozen=True, slots=True)
class Damage:
    """A record, or a stretch of the file, that cannot be read."""

    offset: int
    kind: str
    reason: str


def records(file: BinaryIO) -> Iterator[Found | Damage]:
    """All records of a WARC file (plain, gzip or zstd, a record a member), and every damage between them, in order."""
    head = file.read(4096)
    if not head:
        yield Damage(0, "empty", "the file is empty")
        return
    magic = _magic(head)
    base: int | None = 0
    in_damage = False
    while base is not None:
        last: int | None = None
        try:
            for record in _archive(file, base):
                last = base + record.stream_pos
                found = _whole(record, last)
                yield found
                in_damage = isinstance(found, Damage)
                if isinstance(found, Damage) and found.kind == "truncated":
                    break
            else:
                damage = None if in_damage else _cut_off(file, magic, base, last)
                if damage is not None:
                    yield damage
                return
        except OSError as error:
            at = _damaged_at(file, magic, base, last)
            if not in_damage:
                yield Damage(at, "corrupt", _reason(error, head))
            in_damage = True
        base = _next_record(file, magic, (base if last is None else last) + 1)


def _magic(head: bytes) -> bytes:
    """How records begin in this file: by its first bytes, or, where those are damaged, by what comes first in them."""
    places = {head.find(magic): magic for magic in (_PLAIN, _GZIP, _ZSTD) if magic in head}
    return places[min(places)] if places else _PLAIN


def _archive(file: BinaryIO, base: int) -> Iterator[Any]:
    from fastwarc.warc import ArchiveIterator

    file.seek(base)
    return iter(ArchiveIterator(file, parse_http=False))


def _whole(record: Any, offset: int) -> Found | Damage:
    """Read a record to its end and compare it with what its header promises. OSError where it cannot be unpacked."""
    promised = record.headers.get("Content-Length") or ""
    record.freeze()
    block = record.reader.read()
    if not promised.strip().isdigit():
        return Damage(offset, "length", f"the record's length is given as {promised!r}")
    if len(block) < int(promised):
        return Damage(offset, "truncated", f"the record ends after {len(block)} of {int(promised)} bytes")
    record.reader.seek(0)
    digest = record.headers.get("WARC-Block-Digest") or ""
    if digest.startswith("sha1:") and not record.verify_block_digest():
        return Damage(offset, "digest", "the record's bytes do not match its digest")
    kind = record.headers.get("WARC-Type")
    if kind not in _TYPES:
        return Damage(offset, "record", f"there are no records of type {kind!r}")
    try:
        content_type, body = _document(record, kind, block)
    except ValueError as error:
        return Damage(offset, "http", str(error))
    return Found(
        offset=offset,
        record_id=record.headers.get("WARC-Record-ID"),
        url=(record.headers.get("WARC-Target-URI") or "").strip("<>") or None,
        date=record.headers.get("WARC-Date"),
        content_type=content_type,
        body=body,
    )


def _document(record: Any, kind: str, block: bytes) -> tuple[str, bytes | None]:
    """The type and payload of a record that holds a document: converted text, or a successful response of text.

    ValueError where a response cannot be read.
    """
    if kind == "conversion":
        return "text/plain; charset=utf-8", block
    if kind != "response" or not record.is_http:
        return "", None
    try:
        record.parse_http("all")
        status = record.http_headers.status_code
        body = record.reader.read() if status == 200 else b""
    except OSError as error:
        raise ValueError(f"the page cannot be unpacked: {str(error)[:100]}") from None
    if status is None:
        raise ValueError("the response does not begin with a status")
    content_type = (record.http_headers.get("Content-Type") or _untold(body)).lower()
    return content_type, body if status == 200 and content_type.startswith(_TEXT_TYPES) else None


def _untold(body: bytes) -> str:
    """The type of a page whose server told none."""
    start = body[:1024].lstrip().lower()
    return "text/html" if start.startswith((b"<!doctype html", b"<html")) else ""


def _cut_off(file: BinaryIO, magic: bytes, base: int, last: int | None) -> Damage | None:
    """What the end of a compressed file cuts off, from the last member that is known; None where all are whole.

    Where many records are one member, that is the one at `base`.
    """
    if magic == _PLAIN:
        return None
    start = last if last is not None and _begins(file, magic, last) else base
    while True:
        file.seek(start)
        head = file.read(len(magic))
        if not head or not magic.startswith(head):
            return None
        end = _member_end(file, magic, start)
        if end is None:
            return Damage(start, "truncated", "the file ends in the middle of this compressed record")
        start = end


def _begins(file: BinaryIO, magic: bytes, place: int) -> bool:
    file.seek(place)
    return file.read(len(magic)) == magic


def _member_end(file: BinaryIO, magic: bytes, start: int) -> int | None:
    """Where a compressed member ends, None where the file ends or its bytes are damaged before that."""
    member = MEMBERS[magic][1]()
    file.seek(start)
    while data := file.read(CHUNK):
        try:
            member.decompress(data)
        except Exception:  # zlib.error and ZstdError share no base class
            return None
        if member.eof:
            return file.tell() - len(member.unused_data)
    return None


def _damaged_at(file: BinaryIO, magic: bytes, base: int, last: int | None) -> int:
    """Where damage begins: the member or record after the last whole one."""
    if last is None:
        return base
    if magic == _PLAIN:
        return last
    end = _member_end(file, magic, last)
    following = _next_record(file, magic, last + 1) if end is None else end
    return last if following is None else following


def _next_record(file: BinaryIO, magic: bytes, start: int) -> int | None:
    """The offset of the next record's first bytes at or after `start`, None at the end of the file."""
    file.seek(start)
    kept = b""
    while block := file.read(_BLOCK):
        data = kept + block
        place = data.find(magic)
        if place >= 0:
            return start - len(kept) + place
        start += len(block)
        kept = data[1 - len(magic) :]
    return None


def _reason(error: OSError, head: bytes) -> str:
    if head.startswith(b"filedesc://"):
        return "this is an ARC file, the format before WARC, which is read where its name ends in .arc"
    return f"the record cannot be read: {error}"
