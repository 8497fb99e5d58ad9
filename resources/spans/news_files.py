"""News that lies on this machine: JSON lines, Parquet and WARC files, plain or compressed."""

from __future__ import annotations

import glob
import gzip
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from resources.spans.news_pages import items_in
from resources.spans.sandbox import SandboxedFunction
from strandline.spans import commoncrawl
from strandline.spans.news import NewsItem

FIELDS: Mapping[str, str] = {"text": "text", "date": "date", "url": "url", "title": "title", "id": "id"}


def matching(patterns: Sequence[str], base: Path) -> list[Path]:
    """The files that the patterns name, relative to `base`. ValueError where a pattern names none."""
    found: set[Path] = set()
    for pattern in patterns:
        names = glob.glob(str(base / Path(pattern).expanduser()), recursive=True)
        if not names:
            raise ValueError(f"no file matches {pattern}")
        found |= {Path(name) for name in names}
    return sorted(found)


def read_items(path: Path, fields: Mapping[str, str], extract: SandboxedFunction) -> Iterator[NewsItem]:
    """The articles in one file. `fields` says what the file calls text, date, url, title and id.

    ValueError for a file of another kind, or with a line that is no JSON object.
    """
    names = {**FIELDS, **fields}
    kind = path.name.removesuffix(".gz").removesuffix(".zst").rpartition(".")[2]
    if kind in {"jsonl", "json", "ndjson"}:
        yield from (_item(row, names, f"{path.name}:{n}") for n, row in _json_rows(path))
    elif kind == "parquet":
        rows = pl.read_parquet(path).iter_rows(named=True)
        yield from (_item(row, names, f"{path.name}:{n}") for n, row in enumerate(rows, 1))
    elif kind in {"warc", "arc"}:
        with path.open("rb") as archive:
            yield from items_in(archive, extract)
    else:
        raise ValueError(f"{path} is neither JSON lines, Parquet nor WARC")


def fingerprint(paths: Sequence[Path]) -> str:
    """A text that changes when a file is added, removed or rewritten."""
    return "\n".join(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in paths)


def _json_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with _opened(path) as lines:
        for number, line in enumerate(io.TextIOWrapper(lines, "utf-8", errors="replace"), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise ValueError(f"{path}, line {number}, is not JSON: {error}") from error
            if not isinstance(row, Mapping):
                raise ValueError(f"{path}, line {number}, is not an object")
            yield number, row


def _opened(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    if path.suffix == ".zst":
        import zstandard

        return zstandard.open(path, "rb")  # type: ignore[no-any-return]
    return path.open("rb")


def _item(row: Mapping[str, Any], names: Mapping[str, str], place: str) -> NewsItem:
    url, title = row.get(names["url"]), row.get(names["title"])
    text = str(row.get(names["text"]) or "").strip()
    name = commoncrawl.address_key(str(url)) if url else str(row.get(names["id"]) or place)
    stated = commoncrawl.date_in_address(str(url)) if url else None
    body = f"{title}\n\n{text}" if title and text else text
    return NewsItem(name, _day(row.get(names["date"])), body, str(url) if url else None, stated_on=stated)


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
