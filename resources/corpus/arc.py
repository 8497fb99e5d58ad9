"""ARC, the web archive format before WARC (Common Crawl until 2012): each record, or what is wrong, with its offset.

A record is a line (address, host, time, type, …, length) and so many bytes. It is read as the WARC response that says
the same. Offsets are into the unpacked stream. After damage the next line that begins a record is sought.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from typing import BinaryIO

from resources.corpus.streams import Fault, pieces
from resources.corpus.warc import Damage, Found
from resources.corpus.warc import records as warc_records

LONGEST = 1 << 26
_BEGINS = re.compile(rb"(?:https?|ftp|dns|filedesc):[^\s]{1,8192} [^\s]+ \d{14} [^\n]{1,1024}? (\d{1,15})\r?\n")
_BEGINS_LATER = re.compile(rb"(?<=\n)" + _BEGINS.pattern)
_LINE = 1 << 14


def records(file: BinaryIO, longest: int = LONGEST) -> Iterator[Found | Damage]:
    """All records of an ARC file, plain or packed, and every damage between them, in order.

    Memory holds one record; one longer than `longest` bytes is damage.
    """
    unread = _Unread()
    for piece in pieces(file):
        if isinstance(piece, Fault):
            yield from unread.rest()
            yield Damage(unread.offset, piece.kind, f"{piece.reason} (byte {piece.stored_offset})")
        else:
            unread.data += piece
            yield from unread.whole(longest)
    yield from unread.rest()


class _Unread:
    """What was unpacked and not read yet; `offset` is where it begins."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.offset = 0
        self._in_damage = False

    def whole(self, longest: int) -> Iterator[Found | Damage]:
        """The records that are there to their end."""
        while self._passed_line_ends():
            begins = _BEGINS.match(self.data)
            if begins is None:
                if len(self.data) < _LINE and b"\n" not in self.data:
                    return
                yield from self._damaged("corrupt", "here should stand a line that begins a record")
                if not self._seek():
                    return
                continue
            length = int(begins[1])
            if length > longest:
                yield from self._damaged("long", f"the record has {length} bytes, more than {longest}")
                self._pass_over(begins.end())
                continue
            end = begins.end() + length
            if len(self.data) < end:
                return
            self._in_damage = False
            yield _record(bytes(self.data[: begins.end()]), bytes(self.data[begins.end() : end]), self.offset)
            self._pass_over(end)

    def rest(self) -> Iterator[Damage]:
        """What is left once nothing more comes."""
        if self.data.strip():
            yield from self._damaged("truncated", "the record ends early")
        self._pass_over(len(self.data))
        self._in_damage = False

    def _passed_line_ends(self) -> bool:
        """Pass over what separates records; whether anything follows."""
        size = 0
        while size < len(self.data) and self.data[size] in b"\r\n":
            size += 1
        self._pass_over(size)
        return bool(self.data)

    def _damaged(self, kind: str, reason: str) -> Iterator[Damage]:
        if not self._in_damage:
            yield Damage(self.offset, kind, reason)
        self._in_damage = True

    def _seek(self) -> bool:
        """Go to the next line that begins a record; where there is none, keep only what may be the start of one."""
        found = _BEGINS_LATER.search(self.data, 1)
        self._pass_over(found.start() if found else max(0, len(self.data) - _LINE))
        return found is not None

    def _pass_over(self, size: int) -> None:
        del self.data[:size]
        self.offset += size


def _record(line: bytes, body: bytes, offset: int) -> Found | Damage:
    """A record as the WARC response that says the same; what is no page holds no document."""
    fields = line.decode("utf-8", "replace").split(" ")
    if not fields[0].startswith("http"):
        return Found(offset, None, fields[0], fields[2], "", None)
    head = f"WARC/1.0\r\nWARC-Type: response\r\nContent-Type: application/http\r\nContent-Length: {len(body)}\r\n\r\n"
    found = next(iter(warc_records(BytesIO(head.encode() + body + b"\r\n\r\n"))))
    if isinstance(found, Damage):
        return replace(found, offset=offset)
    return replace(found, offset=offset, url=fields[0], date=fields[2])
