"""What the bytes of an archived web page say: the HTTP message in a WARC or ARC record, and whether the page is whole.

Every reader of web archives judges pages here, corpora and news alike; opening files and finding records is done in
`resources`. Heads lie, so bytes are believed: a body is unpacked by what it begins with, whatever its head names, lines
may end in LF alone, and lengths that a head promises count only where the page does not close itself.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

LARGEST_PAGE = 1 << 26
"""Bytes of an unpacked page, beyond which it is refused: 64 MiB is far over every crawl's limit and fits in memory."""

CRAWL_LIMITS = (65_536, 512_000, 1_048_576, 5_242_880)
"""Lengths at which crawlers stop reading: Nutch's default (64 KiB), and those of Common Crawl: 500 KiB in its ARC files
(2008 to 2012), 1 MiB since 2013, 5 MiB since 2025. Before 2019 the cut was not marked. A whole page has one of these
lengths about once in 100,000."""

# The first line of an HTTP answer; old streaming servers say ICY.
_STATUS = re.compile(rb"(?:HTTP/\d(?:\.\d)?|ICY)[ \t]+(\d{3})(?!\d)[^\r\n]*")
# The end of the HTTP head, also with line ends that are not as HTTP wants them.
_BLANK_LINE = re.compile(rb"\r*\n[ \t]*\r*\n|\r\r(?!\n)")
# A line end of any system, also with doubled carriage returns.
_LINE_END = re.compile(rb"\r*\n|\r")
_PAGE_BEGINS = re.compile(rb"<!doctype\s+html|<html[\s>]|<\?xml\s[^>]*>\s*<(?:!doctype\s+html|html)", re.IGNORECASE)
"""How an HTML page begins."""

# The closing tag of a page.
_CLOSES = re.compile(rb"</html\s*>", re.IGNORECASE)
# The line before a chunk of HTTP's chunked transfer: its size in hexadecimal digits.
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9a-fA-F]{1,12})[ \t]*(?:;[^\r\n]*)?\r?\n")
_LIKE_A_SIZE = re.compile(rb"[0-9A-Za-z]{1,8}\r?\n")
"""What stands where the size of a chunk should, and is none."""

_TAIL = 4096
"""Bytes at the end of a page among which its closing tag is looked for: scripts and comments of servers follow it."""


@dataclass(frozen=True, slots=True)
class HttpMessage:
    """A response as it was archived. `body` is unpacked, `cut` says why it is not all that the server sent.

    `status` is None where the archive holds a page without a head. `headers` have lower-case names; of those that occur
    twice the values are joined by commas.
    """

    status: int | None
    headers: Mapping[str, str]
    body: bytes
    cut: str | None = None

    @property
    def content_type(self) -> str:
        """The type that the server told, else the one that the body's first bytes show, else nothing."""
        stated = self.headers.get("content-type", "").split(",")[0].strip().lower()
        return stated or ("text/html" if begins_a_page(self.body) else "")


def http_message(block: bytes, longest: int = LARGEST_PAGE) -> HttpMessage:
    """The HTTP message in a record's block.

    ValueError, in words, where the block holds neither a response nor a page, or where nothing of its body can be
    unpacked, or more than `longest` bytes come of it.
    """
    block = block.lstrip(b"\r\n \t")
    status = _STATUS.match(block)
    if status is None:
        if not begins_a_page(block):
            raise ValueError("the response does not begin with a status")
        return HttpMessage(None, {}, block, _limit_reached(block))
    head, stored = _head_and_rest(block, status.end())
    if stored is None:
        return HttpMessage(int(status[1]), header_fields(head), b"", "the record ends inside the head of the response")
    headers = header_fields(head)
    body, cut = _unpacked(stored, headers, longest)
    cut = cut or _shorter_than_promised(stored, body, headers) or _limit_reached(body)
    return HttpMessage(int(status[1]), headers, body, cut)


def begins_a_page(body: bytes) -> bool:
    """Whether bytes begin as an HTML page does, byte order mark and white space aside."""
    return bool(_PAGE_BEGINS.match(body[:2048].replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")))


def closes_itself(body: bytes) -> bool:
    """Whether a page has its closing tag at its end, so that nothing of its text is missing."""
    return bool(_CLOSES.search(body[-_TAIL:].replace(b"\0", b"")))


def truncation(flag: str | None) -> str | None:
    """What a record's WARC-Truncated field says in words, None where the record has none."""
    word = (flag or "").strip().lower()
    return f"the capture was cut ({word})" if word else None


def header_fields(head: bytes) -> dict[str, str]:
    """The fields of a head by lower-case name, of HTTP and of WARC; lines without a colon are passed over.

    A line that begins with white space goes on with the one before. Values of a name that occurs twice are joined.
    """
    found: dict[str, str] = {}
    name = ""
    for line in _LINE_END.split(head):
        text = line.decode("utf-8", "replace")
        if text[:1] in (" ", "\t") and name:
            found[name] += " " + text.strip()
        elif ":" in text:
            name, _, value = text.partition(":")
            name = name.strip().lower()
            found[name] = f"{found[name]}, {value.strip()}" if name in found else value.strip()
    return found


def _head_and_rest(block: bytes, start: int) -> tuple[bytes, bytes | None]:
    """The head's lines after the status, and the body; None where the record ends before one begins."""
    blank = _BLANK_LINE.search(block, start)
    if blank is not None:
        return block[start : blank.start()], block[blank.end() :]
    page = _PAGE_BEGINS.search(block, start)
    return (block[start:], None) if page is None else (block[start : page.start()], block[page.start() :])


def _unpacked(stored: bytes, headers: Mapping[str, str], longest: int) -> tuple[bytes, str | None]:
    """The body without its transfer and content codings, and why it is cut, if it is."""
    body, cut = stored, None
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body, cut = _dechunked(body)
    codings = [name.strip().lower() for name in headers.get("content-encoding", "").split(",")]
    for name in reversed([name for name in codings if name not in ("", "identity", "none")] or [""]):
        unpack, packed = _unpacker(name, body)
        if unpack is not None:
            body, ends = _decoded(unpack, packed, longest)
            cut = cut or (None if ends else f"the packed page ends early, after {len(body)} bytes")
    return body, cut


def _dechunked(body: bytes) -> tuple[bytes, str | None]:
    """The joined chunks; the body as it is where it does not begin with one, as archives often store it unpacked."""
    parts: list[bytes] = []
    place = 0
    while size := _CHUNK_SIZE.match(body, place):
        length, start = int(size[1], 16), size.end()
        if not length:
            return b"".join(parts), None
        if not parts and start + length < len(body) and body[start + length : start + length + 1] not in (b"\r", b"\n"):
            return body, None
        parts.append(body[start : start + length])
        if start + length > len(body):
            return b"".join(parts), f"a chunk of {length} bytes ends after {len(parts[-1])}"
        end = _LINE_END.match(body, start + length)
        place = end.end() if end else start + length
    if parts:
        return b"".join(parts), "the last chunk is missing"
    if _LIKE_A_SIZE.match(body):
        raise ValueError("the page cannot be unpacked: it does not begin with the size of a chunk")
    return body, None


def _unpacker(name: str, body: bytes) -> tuple[Callable[[], Any] | None, bytes]:
    """What unpacks a body, by its first bytes where they are a packing's own, else by its name; and the packed bytes.

    Line ends before a packing's first bytes are passed over: Common Crawl's archives of August 2018 have one too many.
    """
    inside = body.lstrip(b"\r\n")
    if inside[:3] == b"\x1f\x8b\x08":
        return (lambda: zlib.decompressobj(31)), inside
    if inside[:4] == b"\x28\xb5\x2f\xfd":
        return _zstd, inside
    if name in ("deflate", "x-deflate") and not _is_text(body):
        is_wrapped = len(body) > 1 and body[0] & 15 == 8 and int.from_bytes(body[:2], "big") % 31 == 0
        return (lambda: zlib.decompressobj(15 if is_wrapped else -15)), body
    return (_Brotli if name == "br" and not _is_text(body) else None), body


def _is_text(body: bytes) -> bool:
    """Whether the first bytes are those of text, so that a head that names a packing lies."""
    start = body[:1024]
    return begins_a_page(start) or not any(byte < 9 or 13 < byte < 32 or byte > 126 for byte in start)


def _decoded(unpack: Callable[[], Any], body: bytes, longest: int) -> tuple[bytes, bool]:
    """What a packed body gives, and whether it has its end. ValueError where it is damaged or too large."""
    member, out, size = unpack(), [], 0
    try:
        for place in range(0, len(body), 1 << 16):
            out.append(member.decompress(body[place : place + (1 << 16)]))
            size += len(out[-1])
            if size > longest:
                raise ValueError(f"the page has more than {longest} bytes once it is unpacked")
            if member.eof:
                return b"".join(out), True
    except ValueError:
        raise
    except Exception as error:  # zlib.error, ZstdError and brotli.error share no base class
        raise ValueError(f"the page cannot be unpacked: {str(error)[:100]}") from None
    return b"".join(out), bool(member.eof)


def _zstd() -> Any:
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()


class _Brotli:
    """Brotli with the two members of zlib's objects that are used here."""

    def __init__(self) -> None:
        import brotli  # type: ignore[import-untyped]

        self._inner = brotli.Decompressor()

    def decompress(self, data: bytes) -> bytes:
        return bytes(self._inner.process(data))

    @property
    def eof(self) -> bool:
        return bool(self._inner.is_finished())


def _shorter_than_promised(stored: bytes, body: bytes, headers: Mapping[str, str]) -> str | None:
    """Why a body is cut by the length that its head promises.

    A promise counts for the bytes as they were sent. Archives that rewrote line ends, or stored a packed body unpacked,
    have fewer or more; a page that closes itself is whole.
    """
    promised = headers.get("content-length", "").split(",")[0].strip()
    if not promised.isascii() or not promised.isdigit() or "chunked" in headers.get("transfer-encoding", "").lower():
        return None
    rewritten = 0 if b"\r\n" in stored else stored.count(b"\n")
    if len(stored) + rewritten >= int(promised) or closes_itself(body):
        return None
    return f"the page ends after {len(stored)} of the {int(promised)} bytes that its head promises"


def _limit_reached(body: bytes) -> str | None:
    """Why a page of just a crawl's limit is cut."""
    if len(body) not in CRAWL_LIMITS or closes_itself(body):
        return None
    return f"the page has {len(body)} bytes, where crawlers stop reading, and does not close itself"
