"""From a benchmark file's bytes to its rows: archives, compression, encodings and file formats.

What a row's columns mean, and which rows are examples, belongs to ``benchmarks``. Bytes are believed, not names: what a
file is compressed with and how its text is encoded is seen from how it begins.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_BYTES = 512 * 1024 * 1024
"""Largest file that is read, unpacked: a hundred times the largest listed benchmark, and it still fits in memory."""

ZSTD_PIECE = 4096
"""Bytes unpacked at a time: a piece of zeros may grow by a factor of thousands before its size is looked at."""

UNREADABLE = (
    json.JSONDecodeError,
    UnicodeDecodeError,
    csv.Error,
    zipfile.BadZipFile,
    tarfile.TarError,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    OSError,
    RecursionError,
    NotImplementedError,
    RuntimeError,
)
"""What the standard library raises for broken, encrypted or too deeply nested files; such a file is refused."""

Row = Any
"""A mapping of columns or a list of cells, as a file's format gives it."""


@dataclass(frozen=True)
class Unusable:
    """Stands in a row for a value that must not be taken; ``reason`` goes on "column x: ..."."""

    reason: str


@dataclass(frozen=True)
class FileFormat:
    """A kind of file: the name that the list of benchmarks uses, and how its bytes become rows.

    A row is a mapping of columns, or a list whose columns are 0, 1, ... ``read`` also takes the key that a format
    ``name:key`` names (empty without one), and raises ValueError, or one of ``UNREADABLE``, where it cannot.
    """

    name: str
    read: Callable[[bytes, str], list[Row]]
    takes_key: bool = False


def rows_of(format_name: str, payload: bytes, member: str | None) -> list[Row]:
    """The rows of a file, or of a member of an archive, in order.

    Raises:
        ValueError, or one of ``UNREADABLE``: the bytes are not what the format says.
    """
    name, _, key = format_name.partition(":")
    return _named(name).read(_uncompressed(payload if member is None else _from_archive(payload, member)), key)


def format_fault(format_name: str) -> str | None:
    """What is wrong with the name of a format, or None."""
    name, colon, key = format_name.partition(":")
    known = {kind.name: kind for kind in FORMATS}
    if name not in known:
        return f"format {format_name!r} is not one of {', '.join(known)}"
    if colon and not (key and known[name].takes_key):
        return f"format {format_name!r} names no key" if known[name].takes_key else f"format {name} takes no key"
    return None


def some(names: Sequence[str]) -> str:
    """The first few of many names, for a message."""
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _named(name: str) -> FileFormat:
    return next(kind for kind in FORMATS if kind.name == name)


def _from_archive(payload: bytes, member: str) -> bytes:
    if payload[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(payload)) as archive:
            if member not in archive.namelist():
                raise ValueError(f"the archive holds no {member!r}; it holds {some(archive.namelist())}")
            _refuse_large(archive.getinfo(member).file_size)
            return archive.read(member)
    with tarfile.open(fileobj=io.BytesIO(_uncompressed(payload))) as tar:
        names = tar.getnames()
        packed = tar.extractfile(member) if member in names else None
        if packed is None:
            raise ValueError(f"the archive holds no file {member!r}; it holds {some(names)}")
        _refuse_large(tar.getmember(member).size)
        return packed.read()


def _zstd(raw: io.BytesIO) -> io.BytesIO:
    """All frames of a zstd file. ValueError where one is broken, or cut short (which the library passes over)."""
    import zstandard

    unpacked, frame, left = io.BytesIO(), None, raw.read(ZSTD_PIECE)
    try:
        while left:
            frame = frame or zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
            unpacked.write(frame.decompress(left))
            _refuse_large(unpacked.tell())
            left = frame.unused_data or raw.read(ZSTD_PIECE)
            frame = None if frame.eof else frame
    except zstandard.ZstdError as error:
        raise ValueError(f"not readable as zstd: {error}") from error
    if frame is not None:
        raise ValueError("not readable as zstd: the file ends early")
    return io.BytesIO(unpacked.getvalue())


def _uncompressed(payload: bytes) -> bytes:
    """The bytes as they are, or unpacked, by how they begin."""
    openers: dict[bytes, Callable[[io.BytesIO], Any]] = {
        b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
        b"BZh": bz2.BZ2File,
        b"\xfd7zXZ": lzma.LZMAFile,
        b"\x28\xb5\x2f\xfd": _zstd,
    }
    opener = next((opener for magic, opener in openers.items() if payload.startswith(magic)), None)
    if opener is None:
        return payload
    with opener(io.BytesIO(payload)) as stream:
        content: bytes = stream.read(MOST_BYTES + 1)
    _refuse_large(len(content))
    return content


def _refuse_large(size: int) -> None:
    if size > MOST_BYTES:
        raise ValueError(f"a benchmark file of more than {MOST_BYTES} bytes is refused")


def _text(payload: bytes) -> str:
    """The text of UTF-8, UTF-16 or UTF-32, with or without a byte order mark."""
    encoding = json.detect_encoding(payload)
    try:
        return payload.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"not readable: byte {error.start} is not {encoding} text; convert the file to UTF-8"
        ) from error


def _jsonl(payload: bytes, _: str) -> list[Row]:
    rows = []
    for number, line in enumerate(_text(payload).split("\n"), start=1):
        try:
            if line.strip():
                rows.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise ValueError(f"not readable as jsonl: line {number}: {error.msg} at character {error.pos}") from error
    return rows


def _json(payload: bytes, key: str) -> list[Row]:
    """The list that the file is, or holds: under the key that is named, or else under the only key that has one."""
    content = json.loads(_text(payload))
    for part in key.split(".") if key else ():
        if not isinstance(content, Mapping) or part not in content:
            raise ValueError(f"the JSON file has no key {key!r}")
        content = content[part]
    if isinstance(content, list):
        return [_viewed(row) for row in content] if all(map(_is_viewed, content)) else content
    lists = {name: value for name, value in content.items() if _is_examples(value)} if isinstance(content, dict) else {}
    viewed = [value for value in lists.values() if value and all(map(_is_viewed, value))]
    if len(viewed) == 1:
        return [_viewed(row) for row in viewed[0]]
    if len(lists) != 1:
        held = f"it holds {some(list(lists))}; name one as format json:key" if lists else "and holds none under a key"
        raise ValueError(f"the JSON file is not a list of examples, {held}")
    return next(iter(lists.values()))


def _is_examples(value: object) -> bool:
    """Whether a value is a list of objects: keywords and other lists of words are no examples."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _is_viewed(row: object) -> bool:
    """Whether a row is wrapped as the dataset viewer of the Hugging Face hub wraps it."""
    return isinstance(row, Mapping) and {"row_idx", "row"} <= set(row) and isinstance(row["row"], Mapping)


def _viewed(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row inside; cells that the viewer has cut must not be taken."""
    cut = dict.fromkeys(
        row.get("truncated_cells") or (), Unusable("the dataset viewer has cut it; fetch the file itself")
    )
    return {**row["row"], **cut}


def _csv(payload: bytes, _: str) -> list[Row]:
    return _with_header(_cells(_text(payload), ","))


def _csv_without_header(payload: bytes, _: str) -> list[Row]:
    return _cells(_text(payload), ",")


def _tsv(payload: bytes, _: str) -> list[Row]:
    return _with_header(_tabbed(_text(payload)))


def _tsv_without_header(payload: bytes, _: str) -> list[Row]:
    return _tabbed(_text(payload))


def _tabbed(text: str) -> list[list[str]]:
    """Cells between tabs. Quotes are characters, unless cells are only whole when quotes hold them together.

    Programs disagree about quotes in such files. They are removed where that leaves the lines as they are, or where
    the cells do not add up otherwise.
    """
    plain = quoted = None
    try:
        quoted = _cells(text, "\t")
    except (csv.Error, ValueError):
        return _cells(text, "\t", csv.QUOTE_NONE)
    try:
        plain = _cells(text, "\t", csv.QUOTE_NONE)
    except (csv.Error, ValueError):
        return quoted
    return quoted if len(quoted) == len(plain) else plain


def _cells(text: str, delimiter: str, quoting: int = csv.QUOTE_MINIMAL) -> list[list[str]]:
    """The cells of every line that is not empty. ValueError for one that has more or fewer than the first."""
    csv.field_size_limit(MOST_BYTES)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, strict=True)  # type: ignore[arg-type]
    rows: list[list[str]] = []
    for row in reader:
        if rows and row and len(row) != len(rows[0]):
            raise ValueError(
                f"line {reader.line_num} has {len(row)} cell(s) where the first line has {len(rows[0])}: "
                "is a quote missing, or a delimiter not quoted?"
            )
        rows += [row] if row else []
    return rows


def _with_header(cells: list[list[str]]) -> list[Row]:
    """Rows by the names in the first line; a name that stands there twice names no column."""
    if not cells:
        return []
    header = cells[0]
    twice = {name: Unusable("the header names it twice") for name in header if header.count(name) > 1}
    return [dict(zip(header, row, strict=True)) | twice for row in cells[1:]]


def _parquet(payload: bytes, _: str) -> list[Row]:
    import polars as pl

    try:
        return pl.read_parquet(io.BytesIO(payload)).to_dicts()
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"not readable as parquet: {error}") from error


def _lines(payload: bytes, _: str) -> list[Row]:
    return [[line.rstrip("\r")] for line in _text(payload).split("\n")]


FORMATS: tuple[FileFormat, ...] = (
    FileFormat("jsonl", _jsonl),
    FileFormat("json", _json, takes_key=True),
    FileFormat("csv", _csv),
    FileFormat("csv-noheader", _csv_without_header),
    FileFormat("tsv", _tsv),
    FileFormat("tsv-noheader", _tsv_without_header),
    FileFormat("parquet", _parquet),
    FileFormat("lines", _lines),
)
"""All formats; one record adds another."""
