"""Benchmarks in their published order: what a user declares, and examples read from the file's bytes.

Fetching belongs to ``resources``; nothing here reads a network or a disk.
"""

import bz2
import csv
import gzip
import hashlib
import io
import json
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

MOST_CHARACTERS = 4000
MOST_BYTES = 512 * 1024 * 1024
COLUMNS = (
    "benchmark",
    "version",
    "address",
    "format",
    "text",
    "label",
    "licence",
    "published_on",
    "sha256",
)
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
)
FIELD = re.compile(r"\{([^{}]+)\}")

Row = Any


@dataclass(frozen=True)
class BenchmarkSpec:
    """One line of ``data/benchmarks.csv``.

    ``address`` is an https address or a path, with ``#member`` for a file inside a zip or tar archive. ``text`` is one
    column, or a template such as ``{question} {answer}``; ``{a.b}`` goes down into a field and ``{a[].b}`` takes every
    element of a list, one a line. Plain lines and headerless CSV have columns 0, 1, ... ``label`` (optional) is read
    alike and used by the order check only.
    """

    benchmark: str
    version: str
    address: str
    format: str
    text: str
    label: str | None = None
    licence: str | None = None
    published_on: date | None = None
    sha256: str | None = None

    @property
    def location(self) -> str:
        """The address without the member."""
        return self.address.partition("#")[0]

    @property
    def member(self) -> str | None:
        """The file inside the archive, if the address names one."""
        return self.address.partition("#")[2] or None


@dataclass(frozen=True)
class Benchmark:
    """Examples in published order, and what the stated rules did to them.

    Empty examples are dropped; examples of more than 4,000 characters are cut there; exact duplicates stay where they
    are (they make ties, which cost power and never validity). ``sha256`` is the digest of the file as fetched.
    """

    spec: BenchmarkSpec
    texts: tuple[str, ...]
    labels: tuple[str, ...] | None
    sha256: str
    n_empty: int
    n_cut: int
    n_duplicates: int

    @property
    def digest(self) -> str:
        """Digest of the examples in order; permutations are seeded with it."""
        joined = "\x1e".join(self.texts)
        return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()

    def lengths(self) -> list[int]:
        """Characters of each example."""
        return [len(text) for text in self.texts]


def read_specs(text: str) -> list[BenchmarkSpec]:
    """The benchmarks that ``data/benchmarks.csv`` declares.

    Raises:
        ValueError: names every faulty line: a missing column or value, an unknown format, a date that is none, a name
            used twice.
    """
    reader = csv.DictReader(io.StringIO(text))
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or [])]
    if missing:
        raise ValueError(f"the list of benchmarks lacks the column(s) {', '.join(missing)}")
    specs: list[BenchmarkSpec] = []
    faults: list[str] = []
    for number, row in enumerate(reader, start=2):
        try:
            specs.append(_spec(row))
        except ValueError as error:
            faults.append(f"line {number}: {error}")
    names = [spec.benchmark for spec in specs]
    faults += [f"the name {name!r} is used twice" for name in dict.fromkeys(names) if names.count(name) > 1]
    if faults:
        raise ValueError("the list of benchmarks: " + "; ".join(faults))
    return specs


def read_benchmark(spec: BenchmarkSpec, payload: bytes) -> Benchmark:
    """Read a benchmark's file into examples, in published order.

    Raises:
        ValueError: a digest other than the declared one, a broken file, a missing column or member, no example left.
    """
    sha256 = hashlib.sha256(payload).hexdigest()
    if spec.sha256 and spec.sha256 != sha256:
        raise ValueError(f"{spec.benchmark}: the file's sha256 is {sha256}, not the declared {spec.sha256}")
    try:
        rows = FORMATS[spec.format](_member(payload, spec.member))
    except UNREADABLE as error:
        raise ValueError(f"{spec.benchmark}: not readable as {spec.format}: {error}") from error
    texts: list[str] = []
    labels: list[str] = []
    n_empty = n_cut = 0
    for number, row in enumerate(rows):
        whole = _filled(spec.text, row, spec, number).strip()
        if not whole:
            n_empty += 1
            continue
        n_cut += len(whole) > MOST_CHARACTERS
        texts.append(whole[:MOST_CHARACTERS].rstrip())
        if spec.label:
            labels.append(_filled(spec.label, row, spec, number))
    if not texts:
        raise ValueError(f"{spec.benchmark}: no example is left of {len(rows)}")
    return Benchmark(
        spec=spec,
        texts=tuple(texts),
        labels=tuple(labels) if spec.label else None,
        sha256=sha256,
        n_empty=n_empty,
        n_cut=n_cut,
        n_duplicates=len(texts) - len(set(texts)),
    )


def _spec(row: Mapping[str, str | None]) -> BenchmarkSpec:
    values = {name: (row[name] or "").strip() for name in COLUMNS}
    empty = [name for name in ("benchmark", "version", "address", "format", "text") if not values[name]]
    if empty:
        raise ValueError(f"nothing under {', '.join(empty)}")
    if values["format"] not in FORMATS:
        raise ValueError(f"format {values['format']!r} is not one of {', '.join(FORMATS)}")
    if values["sha256"] and not re.fullmatch(r"[0-9a-f]{64}", values["sha256"]):
        raise ValueError(f"{values['sha256']!r} is not a sha256")
    try:
        published = date.fromisoformat(values["published_on"]) if values["published_on"] else None
    except ValueError as error:
        raise ValueError(f"published_on {values['published_on']!r} is not a date") from error
    return BenchmarkSpec(
        benchmark=values["benchmark"],
        version=values["version"],
        address=values["address"],
        format=values["format"],
        text=values["text"],
        label=values["label"] or None,
        licence=values["licence"] or None,
        published_on=published,
        sha256=values["sha256"] or None,
    )


def _member(payload: bytes, member: str | None) -> bytes:
    """The file's own bytes: taken out of its archive and uncompressed, by what the bytes are, not by their name."""
    if member is not None:
        return _uncompressed(_from_archive(payload, member))
    return _uncompressed(payload)


def _from_archive(payload: bytes, member: str) -> bytes:
    if payload[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(payload)) as archive:
            if member not in archive.namelist():
                raise ValueError(f"the archive holds no {member!r}; it holds {_some(archive.namelist())}")
            _refuse_large(archive.getinfo(member).file_size)
            return archive.read(member)
    with tarfile.open(fileobj=io.BytesIO(payload)) as tar:
        names = tar.getnames()
        found = tar.extractfile(member) if member in names else None
        if found is None:
            raise ValueError(f"the archive holds no file {member!r}; it holds {_some(names)}")
        _refuse_large(tar.getmember(member).size)
        return found.read()


def _uncompressed(payload: bytes) -> bytes:
    openers: dict[bytes, Callable[[io.BytesIO], Any]] = {
        b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
        b"BZh": bz2.BZ2File,
        b"\xfd7zXZ": lzma.LZMAFile,
    }
    for magic, opener in openers.items():
        if payload.startswith(magic):
            with opener(io.BytesIO(payload)) as stream:
                content: bytes = stream.read(MOST_BYTES + 1)
            _refuse_large(len(content))
            return content
    return payload


def _refuse_large(size: int) -> None:
    if size > MOST_BYTES:
        raise ValueError(f"a benchmark file of more than {MOST_BYTES} bytes is refused")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _jsonl(payload: bytes) -> list[Row]:
    return [json.loads(line) for line in payload.decode("utf-8-sig").split("\n") if line.strip()]


def _json(payload: bytes) -> list[Row]:
    content = json.loads(payload.decode("utf-8-sig"))
    if not isinstance(content, list):
        raise ValueError("the JSON file is not a list of examples")
    return content


def _csv(payload: bytes) -> list[Row]:
    return list(csv.DictReader(io.StringIO(payload.decode("utf-8-sig"), newline="")))


def _csv_without_header(payload: bytes) -> list[Row]:
    return list(csv.reader(io.StringIO(payload.decode("utf-8-sig"), newline="")))


def _parquet(payload: bytes) -> list[Row]:
    import polars as pl

    try:
        return pl.read_parquet(io.BytesIO(payload)).to_dicts()
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"not readable as parquet: {error}") from error


def _lines(payload: bytes) -> list[Row]:
    return [[line.rstrip("\r")] for line in payload.decode("utf-8-sig").split("\n")]


FORMATS: dict[str, Callable[[bytes], list[Row]]] = {
    "jsonl": _jsonl,
    "json": _json,
    "csv": _csv,
    "csv-noheader": _csv_without_header,
    "parquet": _parquet,
    "lines": _lines,
}


def _filled(template: str, row: Row, spec: BenchmarkSpec, number: int) -> str:
    """The template with every field replaced; a bare word is a field itself."""
    whole = template if FIELD.search(template) else "{" + template + "}"
    try:
        return FIELD.sub(lambda match: _text(_value(row, match.group(1))), whole.replace("\\n", "\n"))
    except LookupError as error:
        raise ValueError(f"{spec.benchmark}: row {number} has no column {error.args[0]!r}; {_columns(row)}") from error


def _value(row: Row, path: str) -> Any:
    head, every, rest = path.partition("[]")
    value = row
    for part in head.split("."):
        value = _field(value, part, path)
    if not every:
        return value
    if not isinstance(value, (list, tuple)):
        raise LookupError(path)
    return [_value(item, rest.lstrip(".")) for item in value] if rest else list(value)


def _field(value: Any, part: str, path: str) -> Any:
    if isinstance(value, Mapping) and part in value:
        return value[part]
    if isinstance(value, (list, tuple)) and part.isdigit() and int(part) < len(value):
        return value[int(part)]
    raise LookupError(path)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return "\n".join(_text(item) for item in value)
    return str(value)


def _columns(row: Row) -> str:
    if isinstance(row, Mapping):
        return f"it has {_some([str(name) for name in row])}"
    return f"it has {len(row)} column(s)" if isinstance(row, list) else f"it is a {type(row).__name__}"
