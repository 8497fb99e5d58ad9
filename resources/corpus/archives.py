"""Records out of web archives, whatever their format: each record, or what is wrong with it, with its place.

A format tells how a record begins and what its bytes mean; here records are found. A head's length is believed only if
a record, the end of a member or of the file, or blank lines come after it. Else a record goes up to the next beginning
if it is a page that closes itself, and is damage if not: a wrong length never costs a neighbour.

Offsets are into the unpacked stream, and, for formats that are told so, into the file as stored: a record that begins
inside a packed member then has the member's offset.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from resources.corpus.streams import Fault, members
from strandline.web_archives import closes_itself

LONGEST = 1 << 26
"""Bytes of a record that are held in memory; a longer one is passed over: no crawl keeps pages of 64 MiB."""

LONGEST_HEAD = 1 << 16
"""Bytes within which a record's head ends: addresses have up to some thousand characters."""

LOOK_AHEAD = 1 << 14
"""Bytes after a record that are waited for to see whether another one begins there: the longest line of an ARC head."""


@dataclass(frozen=True, slots=True)
class Found:
    """A whole record. `body` is the unpacked payload of a page or converted text, None where it holds no document."""

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
    """A record, or a stretch of the file, that cannot be read, or a page that is not all of it."""

    offset: int
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a record: where its block begins, and how long that is by its own word; None where it says nothing.

    `told` is what the format reads in the head.
    """

    end: int
    length: int | None
    told: Any


class ArchiveFormat(Protocol):
    """What has to be known of a format to read its records."""

    begins: re.Pattern[bytes]
    """How a record begins."""
    begins_later: re.Pattern[bytes]
    """The same, where it has to be sought: at the start of a line, if the beginning alone is not telling enough."""
    line_ends_after: int
    """How many line ends show by themselves that a record ended where it should."""
    has_stored_offsets: bool
    """Whether offsets are into the file as stored."""

    def head(self, data: bytearray) -> Head | None:
        """The head at the start of `data`, None where its end is not there yet."""

    def record(self, told: Any, block: bytes, offset: int, in_doubt: bool) -> Found | Damage:
        """The record. `in_doubt` is a block of which nothing shows that it ends where it should."""


def records(file: BinaryIO, form: ArchiveFormat, longest: int = LONGEST) -> Iterator[Found | Damage]:
    """All records of an archive, plain or packed, and every damage between them, in order. Memory holds one record."""
    unread = _Unread(form, longest)
    for start, part in members(file):
        if isinstance(part, Fault):
            yield from unread.broken_off(start, part)
        else:
            unread.add(start, part)
            yield from unread.whole(ended=False)
    yield from unread.whole(ended=True)


class _Unread:
    """What was unpacked and not read yet, and where in it members begin."""

    def __init__(self, form: ArchiveFormat, longest: int) -> None:
        self._form, self._longest = form, longest
        self._data = bytearray()
        self._offset = 0
        self._starts: list[tuple[int, int]] = []
        self._in_damage = False

    def add(self, start: int | None, part: bytes) -> None:
        """Take in what was unpacked of the member that begins at `start`; None is a file that is not packed."""
        if start is not None and (not self._starts or self._starts[-1][1] != start):
            self._starts.append((self._offset + len(self._data), start))
        self._data += part

    def broken_off(self, start: int | None, fault: Fault) -> Iterator[Found | Damage]:
        """What is whole before a fault, and the fault. Of a damaged member nothing is trusted that was not read yet."""
        dropped = b""
        if fault.kind == "corrupt" and self._starts and self._starts[-1][1] == start:
            kept = max(0, self._starts[-1][0] - self._offset)
            dropped = bytes(self._data[kept:])
            del self._data[kept:]
        yield from self.whole(ended=True)
        at = start if start is not None and self._form.has_stored_offsets else self._offset
        yield from self._damaged(fault.kind, f"{fault.reason} (byte {fault.stored_offset})", at)
        self._offset += len(dropped)
        self._in_damage = False

    def whole(self, ended: bool) -> Iterator[Found | Damage]:
        """The records that are there to their end; with `ended` nothing more comes, and what is left is damage."""
        while self._passed_line_ends():
            if not self._form.begins.match(self._data):
                if len(self._data) < LOOK_AHEAD and not ended:
                    return
                yield from self._damaged("corrupt", "here should stand the head of a record")
                if not self._went_to(self._next_beginning(1), ended):
                    return
                continue
            head = self._form.head(self._data)
            if head is None:
                if len(self._data) < LONGEST_HEAD and not ended:
                    return
                yield from self._damaged("truncated" if ended else "corrupt", "the head of the record has no end")
                if not self._went_to(self._next_beginning(1), ended):
                    return
                continue
            outcome = self._judged(head, ended)
            if outcome is None:
                return
            yield from outcome

    def _judged(self, head: Head, ended: bool) -> Iterator[Found | Damage] | None:
        """The record of this head, or what is wrong with it; None while too little of it is there to tell."""
        if head.length is None:
            return self._given_up("length", "the record's head gives no length", self._next_beginning(head.end), head)
        end = head.end + head.length
        if head.length > self._longest:
            return self._given_up("long", f"the record has {head.length} bytes, more than {self._longest}", None, head)
        within = self._member_inside(head.end, end)
        if within is None and len(self._data) < end + LOOK_AHEAD and not ended:
            return None
        if within is None and len(self._data) < end:
            within = self._next_beginning(head.end) or len(self._data)
        elif within is None and not self._ends_well(end):
            within = self._next_beginning(head.end)
            if within is None or (within > end and closes_itself(bytes(self._data[head.end : end]))):
                return self._read(head, end, in_doubt=True)
        if within is None:
            return self._read(head, end, in_doubt=False)
        if closes_itself(bytes(self._data[head.end : within])):
            return self._read(head, within, in_doubt=True)
        reason = f"the record has {within - head.end} bytes, and its head promises {head.length}"
        return self._given_up("truncated" if within < end else "length", reason, within, head)

    def _given_up(self, kind: str, reason: str, going_on: int | None, head: Head) -> Iterator[Damage]:
        """A damage, and reading goes on at `going_on`, or behind the head where no place is known."""
        yield from self._damaged(kind, reason)
        self._pass_over(head.end if going_on is None else going_on)

    def _read(self, head: Head, end: int, in_doubt: bool) -> Iterator[Found | Damage]:
        block = bytes(self._data[head.end : end])
        self._in_damage = False
        yield self._form.record(head.told, block.rstrip(b"\r\n") if in_doubt else block, self._place(), in_doubt)
        self._pass_over(end)

    def _ends_well(self, end: int) -> bool:
        """Whether what follows a block shows that it ends where it should."""
        size = 0
        while end + size < len(self._data) and self._data[end + size] in b"\r\n":
            size += 1
        after = end + size
        if after == len(self._data) or self._form.begins.match(self._data, after):
            return True
        line_ends = self._data[end:after].count(b"\n")
        return line_ends >= self._form.line_ends_after or any(
            end <= at - self._offset <= after for at, _ in self._starts
        )

    def _member_inside(self, start: int, end: int) -> int | None:
        """Where a member begins with a record of its own between two places, so that what stands there is cut."""
        inside = (at - self._offset for at, _ in self._starts)
        return next((at for at in inside if start <= at < end and self._form.begins.match(self._data, at)), None)

    def _next_beginning(self, start: int) -> int | None:
        """Where the next record begins: a member's start counts as the start of a line."""
        found = self._form.begins_later.search(self._data, start)
        places = [found.start()] if found else []
        within = self._member_inside(start, len(self._data))
        return min([*places, *([within] if within is not None else [])], default=None)

    def _went_to(self, place: int | None, ended: bool) -> bool:
        """Go there; without a place keep only what may be the start of a record, and tell that nothing is to read."""
        kept = 0 if ended else LOOK_AHEAD
        self._pass_over(max(0, len(self._data) - kept) if place is None else place)
        return place is not None

    def _passed_line_ends(self) -> bool:
        """Pass over what separates records; whether anything follows."""
        size = 0
        while size < len(self._data) and self._data[size] in b"\r\n":
            size += 1
        self._pass_over(size)
        return bool(self._data)

    def _damaged(self, kind: str, reason: str, at: int | None = None) -> Iterator[Damage]:
        """One damage for a stretch that cannot be read, however often that is noticed."""
        if not self._in_damage:
            yield Damage(self._place() if at is None else at, kind, reason)
        self._in_damage = True

    def _place(self) -> int:
        """The offset of what comes next, as the format counts it."""
        here = [start for at, start in self._starts if at <= self._offset]
        return here[-1] if here and self._form.has_stored_offsets else self._offset

    def _pass_over(self, size: int) -> None:
        del self._data[:size]
        self._offset += size
        while len(self._starts) > 1 and self._starts[1][0] <= self._offset:
            del self._starts[0]
