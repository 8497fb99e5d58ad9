"""Compressed files as streams of lines that survive damage: what can be read is read, and every fault is located.

Memory holds one chunk, or one line up to a limit. A file is recognised by its first bytes, not by its name; where those
are damaged, by whether what follows reads as text. After a damaged gzip or zstd member the next member is sought, so
that a file of many members loses one of them only.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

CHUNK = 1 << 16
"""Bytes read at a time: large enough that Python costs little, small against memory."""

LONGEST_LINE = 1 << 26
"""Bytes of a line that are held: 64 MiB is a hundred times the longest document of the published corpora."""

_CAREFUL = 256
"""Bytes fed at a time to a damaged member, so that at most so many readable ones are lost before the damage."""

_BLOCK, _MOST_CONTROLS = 4096, 0.05
"""Text has hardly a control byte, packed data has one in ten: half of that tells them apart in a block of 4 KiB."""

_LZ4 = b"\x04\x22\x4d\x18"
"""How an LZ4 frame begins."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What stands in the way at a byte of the stored file; what follows, if anything, is from after the damage."""

    kind: str
    reason: str
    stored_offset: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its end: its number from 1 and its byte offset in the decompressed stream.

    `fault` says why it is not whole; its bytes are then what could be read of it.
    """

    number: int
    offset: int
    data: bytes
    fault: Fault | None = None


def one_line(error: BaseException) -> str:
    """The first line of what an error says, or its name."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _zstd() -> Any:
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()


MEMBERS: dict[bytes, tuple[str, Callable[[], Any]]] = {
    b"\x1f\x8b\x08": ("gzip", lambda: zlib.decompressobj(31)),
    b"\x28\xb5\x2f\xfd": ("zstd", _zstd),
    b"\xfd7zXZ\x00": ("xz", lzma.LZMADecompressor),
    b"BZh": ("bzip2", bz2.BZ2Decompressor),
}
"""By its first bytes, the name of a compression and what unpacks one member of it."""


PACKED_ENDINGS = (".gz", ".gzip", ".zst", ".zstd", ".xz", ".bz2", ".lz4")
"""How names of packed files end. What a file is packed with is told by its first bytes alone."""


def unpacked_name(path: str) -> str:
    """A file's name in lower case without the ending of its packing, and without what an address adds."""
    name = path.lower().split("?")[0].split("#")[0]
    ending = next((ending for ending in PACKED_ENDINGS if name.endswith(ending)), "")
    return name.removesuffix(ending)


def lines(file: BinaryIO, longest: int = LONGEST_LINE) -> Iterator[Line]:
    """The lines of a plain or compressed file, each fault at the line where it struck.

    A line longer than `longest` bytes is passed over and reported. A final line without an end is a line.
    """
    number, start, length, held = 1, 0, 0, bytearray()
    for piece in pieces(file):
        if isinstance(piece, Fault):
            yield Line(number, start, bytes(held), piece)
            number, start, length, held = number + 1, start + length, 0, bytearray()
            continue
        *ended, rest = piece.split(b"\n")
        for part in ended:
            length += len(part)
            yield _line(number, start, length, held + part, longest)
            number, start, length, held = number + 1, start + length + 1, 0, bytearray()
        length += len(rest)
        held += rest[: max(0, longest + 1 - len(held))]
    if length:
        yield _line(number, start, length, held, longest)


def _line(number: int, start: int, length: int, held: bytearray, longest: int) -> Line:
    if length <= longest:
        return Line(number, start, bytes(held))
    return Line(number, start, b"", Fault("long", f"the line has {length} bytes, more than {longest}", start))


def pieces(file: BinaryIO) -> Iterator[bytes | Fault]:
    """The decompressed bytes of a file, piece by piece, with a fault wherever bytes are damaged or missing."""
    return (part for _, part in members(file))


def members(file: BinaryIO) -> Iterator[tuple[int | None, bytes | Fault]]:
    """What `pieces` gives, each with the stored offset at which its member begins; None where nothing is packed."""
    stored = _Stored(file)
    head = stored.peek(64)
    if not head:
        yield None, Fault("empty", "the file is empty", 0)
        return
    if head.startswith(_LZ4):
        yield from ((0, part) for part in _lz4(stored))
        return
    magic = _magic(head)
    if magic is None and _reads_as_text(stored.peek(CHUNK)):
        while data := stored.take():
            yield None, data
        return
    if magic is None:
        magic = stored.seek_member(*MEMBERS)
        rest = f"reading goes on at a {MEMBERS[magic][0]} member" if magic else "nothing in the file can be read"
        yield None, Fault("corrupt", f"the file begins neither with text nor with a known compression; {rest}", 0)
    while magic is not None and stored.peek(1):
        start = stored.offset
        yield from ((start, part) for part in _member(stored, magic))


def _magic(head: bytes) -> bytes | None:
    """How the members of a file begin; a zstd file may begin with a frame that holds no data."""
    if head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5:
        return b"\x28\xb5\x2f\xfd"
    return next((magic for magic in MEMBERS if head.startswith(magic)), None)


def _reads_as_text(data: bytes) -> bool:
    """Whether some block has few control bytes; of packed data a tenth are."""
    blocks = (data[start : start + _BLOCK] for start in range(0, max(1, len(data) - _BLOCK + 1), _BLOCK))
    return any(sum(map(_IS_CONTROL.__getitem__, block)) <= _MOST_CONTROLS * len(block) for block in blocks)


# For each byte whether it is a control character of ASCII other than tab, line ends and page ends.
_IS_CONTROL = [byte < 9 or 13 < byte < 32 for byte in range(256)]


class _Stored:
    """The stored bytes of a file with their offset; bytes that a member did not use are given back."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._waiting = b""
        self.offset = 0

    closed = False

    def close(self) -> None:
        """As files do; the file itself is closed by whoever opened it."""

    def read(self, size: int = CHUNK) -> bytes:
        """As files do."""
        return self.take(CHUNK if size < 0 else size)

    def peek(self, size: int) -> bytes:
        while len(self._waiting) < size and (data := self._file.read(CHUNK)):
            self._waiting += data
        return self._waiting[:size]

    def take(self, size: int = CHUNK) -> bytes:
        self.peek(1)
        data, self._waiting = self._waiting[:size], self._waiting[size:]
        self.offset += len(data)
        return data

    def give_back(self, data: bytes) -> None:
        self._waiting = data + self._waiting
        self.offset -= len(data)

    def seek_member(self, *magics: bytes) -> bytes | None:
        """Go to the next start of a member, past at least one byte, and tell which; None at the end of the file."""
        longest = max(map(len, magics))
        self.take(1)
        while self.peek(longest):
            data = self.take()
            places = {data.find(magic): magic for magic in magics if magic in data}
            if places:
                self.give_back(data[min(places) :])
                return places[min(places)]
            if self.peek(1):
                self.give_back(data[1 - longest :])
        return None


def _lz4(stored: _Stored) -> Iterator[bytes | Fault]:
    """The frames of an LZ4 file. What unpacks them cannot go on after damage."""
    import pyarrow as pa

    with pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), "lz4") as frames:
        try:
            while data := frames.read(CHUNK):
                yield data
        except OSError as error:
            kind = "truncated" if "Truncated" in str(error) else "corrupt"
            yield Fault(kind, f"the lz4 data cannot be read on: {one_line(error)}", stored.offset)


def _member(stored: _Stored, magic: bytes) -> Iterator[bytes | Fault]:
    """One member of a compressed file, to its end or to its damage."""
    name, member = MEMBERS[magic]
    unpacker = member()
    while True:
        data = stored.take()
        if not data:
            yield Fault("truncated", f"the {name} data ends in the middle", stored.offset)
            return
        before = unpacker.copy() if hasattr(unpacker, "copy") else None
        try:
            out = unpacker.decompress(data)
        except Exception as error:  # zlib.error, ZstdError, LZMAError and OSError share no base class
            yield from _salvaged(before, data)
            stored.give_back(data)
            at = stored.offset
            more = stored.seek_member(magic)
            rest = "reading goes on at the next member" if more else "the rest of the file cannot be read"
            late = "; records of this member before it may be damaged" if "data check" in str(error) else ""
            yield Fault("corrupt", f"the {name} data is damaged ({error}){late}; {rest}", at)
            return
        if out:
            yield out
        if unpacker.eof:
            stored.give_back(unpacker.unused_data)
            _skip_padding(stored)
            return


def _salvaged(unpacker: Any, data: bytes) -> Iterator[bytes]:
    """What a damaged chunk still gives when it is fed in small portions."""
    if unpacker is None:
        return
    for place in range(0, len(data), _CAREFUL):
        try:
            if out := unpacker.decompress(data[place : place + _CAREFUL]):
                yield out
        except Exception:
            return


def _skip_padding(stored: _Stored) -> None:
    """Pass over zero bytes after a member, which tapes and some writers add."""
    while stored.peek(1) == b"\0":
        stored.take(1)
