"""News that lies on this machine: JSON lines or arrays, Parquet, and WARC or ARC archives, plain or packed.

A line, row or record that is no article is an item that names its place and says why; reading goes on after it.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from resources.corpus import streams
from resources.corpus.jsonl import values
from resources.spans.news_pages import REASON, items_in
from resources.spans.sandbox import SandboxedFunction
from strandline.spans import commoncrawl
from strandline.spans.news import NewsItem

FIELDS: Mapping[str, str] = {"text": "text", "date": "date", "url": "url", "title": "title", "id": "id"}
"""What a file calls its fields unless the settings say otherwise."""
JSON, ARCHIVES = frozenset({".jsonl", ".json", ".ndjson"}), frozenset({".warc", ".arc"})
"""Ends of the names of files of JSON and of web archives, packed or not."""


def matching(patterns: Sequence[str], base: Path) -> list[Path]:
    """The files that the patterns name, relative to `base`. ValueError where a pattern names none."""
    files: set[Path] = set()
    for pattern in patterns:
        names = glob.glob(str(base / Path(pattern).expanduser()), recursive=True)
        named = {Path(name) for name in names if Path(name).is_file()}
        if not named:
            raise ValueError(f"no file matches {pattern}")
        files |= named
    return sorted(files)


def read_items(path: Path, fields: Mapping[str, str], extract: SandboxedFunction) -> Iterator[NewsItem]:
    """The articles in one file, and what of it is none. `fields` says what it calls text, date, url, title and id.

    ValueError for a file of another kind.
    """
    names = {**FIELDS, **fields}
    kind = Path(streams.unpacked_name(path.name)).suffix
    if kind == ".parquet":
        yield from _parquet_items(path, names)
    elif kind in JSON:
        with path.open("rb") as file:
            yield from _json_items(file, path.name, names)
    elif kind in ARCHIVES:
        with path.open("rb") as file:
            yield from items_in(file, extract, path.name)
    else:
        raise ValueError(f"{path} is neither JSON lines, Parquet, WARC nor ARC")


def fingerprint(paths: Sequence[Path]) -> str:
    """A text that changes when a file is added, removed or rewritten."""
    return "\n".join(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in paths)


def _json_items(file: BinaryIO, name: str, names: Mapping[str, str]) -> Iterator[NewsItem]:
    """The articles of a file of JSON: a line each, or an element of an array each."""
    start = next((piece for piece in streams.pieces(file) if isinstance(piece, bytes)), b"")
    file.seek(0)
    is_array = start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    for line in values(file) if is_array else streams.lines(file):
        place = f"{name}:{line.number}"
        if line.data.strip() and not (line.fault and line.fault.kind == "long"):
            item = _line_item(line.data, names, place)
            if line.fault is None or item.status == "ok":
                yield item
        if line.fault is not None:
            yield _none(place, "truncated" if line.fault.kind == "truncated" else "unreadable", line.fault.reason)


def _line_item(data: bytes, names: Mapping[str, str], place: str) -> NewsItem:
    """The article of one value's bytes."""
    try:
        row = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return _none(place, "garbled", f"byte {error.start} is not UTF-8")
    except (ValueError, RecursionError) as error:
        return _none(place, "unreadable", f"is not JSON: {error}")
    if not isinstance(row, Mapping):
        return _none(place, "unreadable", "is not an object")
    return _item(row, names, place)


def _parquet_items(path: Path, names: Mapping[str, str]) -> Iterator[NewsItem]:
    try:
        rows = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        yield _none(path.name, "unreadable", f"no readable Parquet file: {str(error).splitlines()[0]}")
        return
    for number, row in enumerate(rows.iter_rows(named=True), 1):
        yield _item(row, names, f"{path.name}:{number}")


def _item(row: Mapping[str, Any], names: Mapping[str, str], place: str) -> NewsItem:
    """The article of a row; a text, title or address that is none is a reason and never turned into one."""
    parts = {name: row.get(names[name]) for name in ("text", "title", "url")}
    for name, part in parts.items():
        if part is not None and not isinstance(part, str):
            return _none(place, "unreadable", f"its {name} is of the type {type(part).__name__}, not a text")
    url, title, text = parts["url"], parts["title"], (parts["text"] or "").strip()
    name = commoncrawl.address_key(url) if url else str(row.get(names["id"]) or place)
    stated = commoncrawl.date_in_address(url) if url else None
    body = f"{title}\n\n{text}" if title and text else text
    return NewsItem(name, _day(row.get(names["date"])), body, url or None, stated_on=stated, place=place)


def _none(place: str, status: str, reason: str) -> NewsItem:
    """What stands at a place and is no article."""
    return NewsItem(place, None, "", status=status, reason=f"{place}: {reason}"[:REASON], place=place)


def _day(value: Any) -> date | None:
    """A day from a date, an instant or their ISO text; anything else is no date, never a guess."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(str(value).strip()[:10])
    except ValueError:
        return None
