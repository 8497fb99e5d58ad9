"""Benchmarks in their published order: what a user declares, and examples read from the file's bytes.

Fetching belongs to ``resources``; nothing here reads a network or a disk.
"""

import csv
import hashlib
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from strandline.contamination.benchmark_formats import UNREADABLE, Row, Unusable, format_fault, rows_of, some

MOST_CHARACTERS = 4000
"""About a thousand tokens: longer examples would leave a shard of a few in one context window."""

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
"""The columns of ``data/benchmarks.csv``."""

FIELD = re.compile(r"\{([^{}]+)\}")
"""A column, or a path into one, in a template."""


@dataclass(frozen=True)
class BenchmarkSpec:
    """One line of ``data/benchmarks.csv``.

    ``address`` is an https address or a path, with ``#member`` for a file inside a zip or tar archive. ``text`` is one
    column, or a template such as ``{question} {answer}``; ``{a.b}`` goes down into a field and ``{a[].b}`` takes every
    element of a list, one a line. Plain lines and files without a header have columns 0, 1, ... ``label`` (optional) is
    read alike and used by the order check only. ``format`` is a name in ``benchmark_formats.FORMATS``; ``json:key``
    takes the list under a key.
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
        return hashlib.sha256(joined.encode()).hexdigest()

    def lengths(self) -> list[int]:
        """Characters of each example."""
        return [len(text) for text in self.texts]


def read_specs(text: str) -> list[BenchmarkSpec]:
    """The benchmarks that ``data/benchmarks.csv`` declares.

    Raises:
        ValueError: names every faulty line: a missing column or value, an unknown format, a date that is none, a name
            used twice.
    """
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or [])]
    if missing:
        raise ValueError(f"the list of benchmarks lacks the column(s) {', '.join(missing)}")
    specs: list[BenchmarkSpec] = []
    faults: list[str] = []
    try:
        rows = list(enumerate(reader, start=2))
    except csv.Error as error:
        raise ValueError(f"the list of benchmarks is not readable as CSV: {error}") from error
    for number, row in rows:
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
        rows = rows_of(spec.format, payload, spec.member)
    except UNREADABLE as error:
        raise ValueError(f"{spec.benchmark}: not readable as {spec.format}: {error}") from error
    except ValueError as error:
        raise ValueError(f"{spec.benchmark}: {error}") from error
    texts: list[str] = []
    labels: list[str] = []
    n_empty = n_cut = 0
    for number, row in enumerate(rows):
        whole = _filled(spec.text, row, spec, number).strip()
        if not whole:
            n_empty += 1
            continue
        _refuse_half_characters(whole, spec, number)
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
    if more := row.get(None):  # type: ignore[call-overload]
        raise ValueError(f"{len(row) - 1 + len(more)} cells for {len(row) - 1} columns")
    values = {name: (row[name] or "").strip() for name in COLUMNS}
    empty = [name for name in ("benchmark", "version", "address", "format", "text") if not values[name]]
    if empty:
        raise ValueError(f"nothing under {', '.join(empty)}")
    if fault := format_fault(values["format"]):
        raise ValueError(fault)
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


def _refuse_half_characters(text: str, spec: BenchmarkSpec, number: int) -> None:
    """A tokenizer takes no half of a character, as JSON can write one; better said before any model is loaded."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        raise ValueError(
            f"{spec.benchmark}: row {number} holds {half}, half of a character, at {error.start}: repair the file"
        ) from error


def _filled(template: str, row: Row, spec: BenchmarkSpec, number: int) -> str:
    """The template with every field replaced; a bare word is a field itself."""
    whole = template if FIELD.search(template) else "{" + template + "}"
    try:
        return FIELD.sub(lambda match: _text(_value(row, match.group(1)), match.group(1)), whole.replace("\\n", "\n"))
    except LookupError as error:
        raise ValueError(f"{spec.benchmark}: row {number} has no column {error.args[0]!r}; {_columns(row)}") from error
    except ValueError as error:
        raise ValueError(f"{spec.benchmark}: row {number}: {error}") from error


def _value(row: Row, path: str) -> Any:
    """What lies at a path. A column that is itself named with dots or brackets comes before the parts of the name."""
    if isinstance(row, Mapping) and path in row:
        return row[path]
    head, every, rest = path.partition("[]")
    value = _inside(row, head, path)
    if not every:
        return value
    if not isinstance(value, (list, tuple)):
        raise LookupError(path)
    return [_value(item, rest.lstrip(".")) for item in value] if rest else list(value)


def _inside(value: Any, head: str, path: str) -> Any:
    """Down through fields; of names with dots in them the longest that is there."""
    if isinstance(value, Mapping) and head in value:
        return value[head]
    parts = head.split(".")
    for n in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:n])
        if isinstance(value, Mapping) and name in value:
            return _inside(value[name], ".".join(parts[n:]), path)
    if isinstance(value, (list, tuple)) and parts[0].isdecimal() and int(parts[0]) < len(value):
        item = value[int(parts[0])]
        return _inside(item, ".".join(parts[1:]), path) if parts[1:] else item
    raise LookupError(path)


def _text(value: Any, path: str) -> str:
    """A value as text: nothing for null, a line for each element of a list. ValueError for what is no text."""
    if value is None:
        return ""
    if isinstance(value, (list, tuple)):
        return "\n".join(_text(item, path) for item in value)
    if isinstance(value, Unusable):
        raise ValueError(f"column {path!r}: {value.reason}")
    if isinstance(value, Mapping):
        within = some([f"{{{path}.{name}}}" for name in value])
        raise ValueError(f"column {path!r} holds an object; name what to take of it, such as {within}")
    if isinstance(value, (bytes, bytearray)):
        raise ValueError(f"column {path!r} holds bytes, no text")
    return str(value)


def _columns(row: Row) -> str:
    if isinstance(row, Mapping):
        return f"it has {some([str(name) for name in row])}"
    return f"it has {len(row)} column(s)" if isinstance(row, list) else f"it is a {type(row).__name__}"
