"""JSON lines, and JSON arrays: a record a line, or a value an element, plain or packed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from json import JSONDecodeError
from typing import BinaryIO

from resources.corpus.reader import Reader, Record, document
from resources.corpus.streams import LONGEST_LINE, Fault, Line, lines, pieces
from strandline.corpus import BrokenRecord, Location
from strandline.corpus.layouts import Layout, document_parts

_IS_SPREAD_OUT = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\[|\{[ \t]*\r?\n)")
"""How a file begins that is no JSON lines: with a bracket, or a brace alone on its line."""

# What may stand between two records: spaces, commas, brackets of an array and byte order marks.
_BETWEEN = re.compile(rb"(?:[\s,\[\]]|\xef\xbb\xbf)*")
_NEXT_OBJECT = re.compile(rb"\}\s*,?\s*(?=\{)")
"""Where an object seems to end and the next to begin."""

_GAP = 64
"""Bytes that are kept while the next object is sought: a brace, a comma and the white space between."""
# Whole strings, so that brackets inside them do not count, and every bracket or lone quote outside them.
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*"|["{}\[\]]', re.DOTALL)
# A value that is no object or array: a string, a bare word or number, or one stray quote or brace.
_SCALAR = re.compile(rb'"(?:[^"\\]|\\.)*"|[^\s,\[\]{}"]+|[}"]', re.DOTALL)


def jsonl(file: BinaryIO, name: str, layout: Layout, subcorpus: str | None) -> Iterator[Record]:
    """The documents of a file of JSON. Blank lines are none.

    A file that begins with a bracket, or with a brace alone on its line, is read value by value: a JSON array, also one
    on a single line, or objects that are spread over lines. Every other file is read line by line.
    """
    start = next((part for part in pieces(file) if isinstance(part, bytes)), b"")
    file.seek(0)
    unit, found = ("value", values(file)) if _IS_SPREAD_OUT.match(start) else ("line", lines(file))
    for value in found:
        location = Location(name, unit, value.number, value.offset)
        if value.fault is not None:
            if value.fault.kind != "long" and value.data.strip():
                record = _record(value.data, location, layout, subcorpus)
                if not isinstance(record, BrokenRecord):
                    yield record
            yield BrokenRecord(location, value.fault.kind, f"{value.fault.reason} (byte {value.fault.stored_offset})")
        elif value.data.strip():
            yield _record(value.data, location, layout, subcorpus)


def _record(data: bytes, location: Location, layout: Layout, subcorpus: str | None) -> Record:
    """The document of one value's bytes, or why there is none."""
    try:
        return document(document_parts(json.loads(data.decode("utf-8-sig")), layout), location, subcorpus)
    except UnicodeDecodeError as error:
        return BrokenRecord(location, "encoding", f"byte {error.start} of the line is not UTF-8 ({error.reason})")
    except JSONDecodeError as error:
        return BrokenRecord(location, "json", f"no JSON: {error.msg} at character {error.pos}")
    except RecursionError:
        return BrokenRecord(location, "json", "the JSON is nested too deeply")
    except ValueError as error:
        return BrokenRecord(location, "record", str(error))


def values(file: BinaryIO, longest: int = LONGEST_LINE) -> Iterator[Line]:
    """The values of a JSON array, or of a file of JSON objects, as their bytes with number and offset.

    Brackets outside of objects, commas and white space are passed over. Where a value is no JSON, or has no end,
    reading goes on at what looks like the next object. A value longer than `longest` bytes is passed over and reported.
    """
    unread = _Values(longest)
    for piece in pieces(file):
        if isinstance(piece, Fault):
            yield from unread.rest(piece)
        else:
            unread.data += piece
            yield from unread.whole()
    yield from unread.rest(None)


class _Values:
    """What was unpacked and not cut into values yet."""

    def __init__(self, longest: int) -> None:
        self.data = bytearray()
        self._longest, self._number, self._offset, self._wanted = longest, 0, 0, 0
        self._is_passing_over = False

    def whole(self, ended: bool = False) -> Iterator[Line]:
        """The values that are there to their end."""
        while (len(self.data) >= self._wanted or ended) and self._is_past_long_value():
            self._pass_over(_end_of(_BETWEEN.match(self.data)))
            if not self.data:
                return
            end = _value_end(self.data, ended)
            if end is None and len(self.data) <= self._longest and not ended:
                self._wanted = 2 * len(self.data)
                return
            self._wanted = 0
            if end is not None and _is_json(self.data[:end]):
                yield self._line(end)
            else:
                yield from self._damaged(end)

    def rest(self, fault: Fault | None) -> Iterator[Line]:
        """What is left where nothing more comes, or where a fault stands."""
        yield from self.whole(ended=True)
        if fault is not None:
            yield self._line(0, fault)

    def _damaged(self, end: int | None) -> Iterator[Line]:
        """A value that is no JSON, up to what looks like the next object."""
        found = _NEXT_OBJECT.search(self.data, 1, len(self.data) if end is None else end)
        size = found.end() if found else (len(self.data) if end is None else end)
        if size <= self._longest:
            yield self._line(size)
            return
        reason, at = f"the value has {size} bytes or more, more than {self._longest}", self._offset
        yield replace(self._line(size), data=b"", fault=Fault("long", reason, at))
        self._is_passing_over = end is None and found is None

    def _is_past_long_value(self) -> bool:
        """Whether values are read again after one that was too long: from what looks like the next object."""
        if self._is_passing_over:
            found = _NEXT_OBJECT.search(self.data)
            self._pass_over(found.end() if found else max(0, len(self.data) - _GAP))
            self._is_passing_over = found is None
        return not self._is_passing_over

    def _line(self, size: int, fault: Fault | None = None) -> Line:
        self._number += 1
        line = Line(self._number, self._offset, bytes(self.data[:size]).rstrip(b", \t\r\n"), fault)
        self._pass_over(size)
        return line

    def _pass_over(self, size: int) -> None:
        del self.data[:size]
        self._offset += size


def _value_end(data: bytearray, ended: bool) -> int | None:
    """Where the value at the start of `data` ends, None where its end is not there."""
    if data[:1] != b"{":
        end = _end_of(_SCALAR.match(data))
        return end if end < len(data) or ended else None
    depth = 0
    for found in _STRUCTURE.finditer(data):
        token = found[0]
        if token == b'"':
            return None
        depth += (token in (b"{", b"[")) - (token in (b"}", b"]"))
        if depth == 0 and token[:1] != b'"':
            return found.end()
    return None


def _end_of(found: re.Match[bytes] | None) -> int:
    return found.end() if found else 1


def _is_json(data: bytearray) -> bool:
    """Whether these bytes are JSON; a text that is no UTF-8 has its own reason, and its end is known."""
    try:
        json.loads(data)
    except UnicodeDecodeError:
        return True
    except (ValueError, RecursionError):
        return False
    return True


# The entry of this format: its name, the endings of its files and its reading function.
READER = Reader("json", (".jsonl", ".json", ".ndjson"), jsonl)
