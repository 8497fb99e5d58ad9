"""How published corpora name their fields: from a decoded record to the parts of a document.

A layout lists, for each part, the paths at which it may stand; the first that holds something counts. A path such as
`meta.url` goes into nested objects, and into objects that are stored as JSON text. A user's own layout is a mapping of
the same shape in the settings. Opening and decoding files belongs to `resources`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from typing import Any

_CRAWL = re.compile(r"(?:CC-MAIN-|cc/)(\d{4})-(\d{2})(?!\d)")
"""A crawl's name: its year and its week of the year."""

_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})(?:\d{6})?$")
"""A day without dashes, with or without a time, as Common Crawl and RedPajama write it."""


@dataclass(frozen=True)
class Layout:
    """The paths of a document's parts in a record."""

    text: tuple[str, ...] = ("text",)
    source_id: tuple[str, ...] = ("id",)
    url: tuple[str, ...] = ("url",)
    subcorpus: tuple[str, ...] = ()
    crawled_on: tuple[str, ...] = ("timestamp", "date")


LAYOUTS: dict[str, Layout] = {
    "plain": Layout(),
    "c4": Layout(source_id=("url",), crawled_on=("timestamp", "date")),
    "pile": Layout(source_id=("id", "meta.id"), url=("meta.url",), subcorpus=("meta.pile_set_name",), crawled_on=()),
    "redpajama": Layout(
        text=("text", "raw_content"),
        source_id=("id", "doc_id", "meta.digest", "digest"),
        url=("meta.url", "url"),
        subcorpus=("meta.redpajama_set_name", "red_pajama_subset", "meta.source", "source"),
        crawled_on=("meta.timestamp", "date_download", "meta.date_download", "source"),
    ),
    "dolma": Layout(
        url=("metadata.url", "id"),
        subcorpus=("source",),
        crawled_on=("metadata.date_download", "created", "metadata.cc_segment", "metadata.cc_dump"),
    ),
    "fineweb": Layout(subcorpus=("dump",), crawled_on=("date", "dump")),
    "refinedweb": Layout(
        text=("content", "text"), source_id=("url",), subcorpus=("dump",), crawled_on=("timestamp", "dump")
    ),
}
"""Layouts by name. `refinedweb` is the public release of the corpus of the Falcon models."""


@dataclass(frozen=True, slots=True)
class DocumentParts:
    """The parts of a record that make a document."""

    text: str
    source_id: str | None
    url: str | None
    subcorpus: str | None
    crawled_on: date | None


def layout(setting: str | Mapping[str, Any]) -> Layout:
    """A layout by name, or a user's own as a mapping of parts to a path or a list of paths.

    Raises ValueError for an unknown name or part, naming those that exist.
    """
    if isinstance(setting, str):
        if setting not in LAYOUTS:
            raise ValueError(f"no layout named {setting!r}; there are {', '.join(LAYOUTS)}")
        return LAYOUTS[setting]
    if not isinstance(setting, Mapping):
        raise ValueError(f"layout is {setting!r}; it must be a name or a mapping of parts")
    known = {part.name for part in fields(Layout)}
    unknown = sorted(str(part) for part in set(setting) - known)
    if unknown:
        raise ValueError(f"a layout has no part {', '.join(unknown)}; its parts are {', '.join(sorted(known))}")
    return Layout(**{part: _paths(part, paths) for part, paths in setting.items()})


def _paths(part: str, setting: Any) -> tuple[str, ...]:
    """One path or a list of paths. ValueError for anything else."""
    paths = (setting,) if isinstance(setting, str) else tuple(setting) if isinstance(setting, (list, tuple)) else ()
    if not all(isinstance(path, str) and path for path in paths) or (not paths and setting not in ([], ())):
        raise ValueError(f"the part {part} of a layout is {setting!r}; it must be a path or a list of paths")
    return paths


def top_fields(chosen: Layout) -> list[str]:
    """The top-level fields that a layout can touch, so that column stores read no others."""
    paths = [path for part in fields(Layout) for path in getattr(chosen, part.name)]
    return sorted({path.split(".")[0] for path in paths})


def document_parts(record: Any, chosen: Layout) -> DocumentParts:
    """The parts of a decoded record. Raises ValueError, saying why, where it holds no text."""
    if not isinstance(record, Mapping):
        raise ValueError(f"the record is {_kind(record)}, not an object")
    text = _first(record, chosen.text)
    if text is None:
        raise ValueError(f"no field {' or '.join(chosen.text)} with a text")
    if not isinstance(text, str):
        raise ValueError(f"the text is {_kind(text)}, not a string")
    return DocumentParts(
        text=text,
        source_id=_string(_first(record, chosen.source_id)),
        url=_url(record, chosen.url),
        subcorpus=_subcorpus(_string(_first(record, chosen.subcorpus))),
        crawled_on=next((day for path in chosen.crawled_on if (day := as_day(_at(record, path)))), None),
    )


def as_day(value: Any) -> date | None:
    """The day that a value of a date field means, None where it means none between 1990 and 2100.

    Understood are dates and instants, ISO 8601, 20200301 (with or without a time), seconds or milliseconds since 1970,
    and names of crawls (`CC-MAIN-2019-18` is the Monday of that week).
    """
    try:
        day = _day(value)
    except (ValueError, OverflowError, OSError):
        return None
    return day if day is not None and 1990 <= day.year < 2100 else None


def _day(value: Any) -> date | None:
    if isinstance(value, datetime):
        return value.astimezone(UTC).date() if value.tzinfo else value.date()
    if isinstance(value, date):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if 19900000 < value < 21000000:
            return _day(str(int(value)))
        return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, tz=UTC).date() if value > 0 else None
    if not isinstance(value, str):
        return None
    text = value.strip()
    if crawl := _CRAWL.search(text):
        return date.fromisocalendar(int(crawl[1]), max(1, int(crawl[2])), 1)
    if compact := _COMPACT.match(text):
        return date(int(compact[1]), int(compact[2]), int(compact[3]))
    return _day(datetime.fromisoformat(text)) if text else None


def _at(record: Mapping[str, Any], path: str) -> Any:
    value: Any = record
    for name in path.split("."):
        if isinstance(value, str) and value.startswith("{"):
            try:
                value = json.loads(value)
            except ValueError:
                return None
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _first(record: Mapping[str, Any], paths: tuple[str, ...]) -> Any:
    return next((value for path in paths if (value := _at(record, path)) is not None), None)


def _url(record: Mapping[str, Any], paths: tuple[str, ...]) -> str | None:
    found = (_string(_at(record, path)) for path in paths)
    return next((url for url in found if url and "://" in url), None)


def _subcorpus(name: str | None) -> str | None:
    """A name that goes on to a single file or line, as `cc/2023-06/en_head_0000.json.gz/line7`, ends with its crawl."""
    crawl = None if name is None else _CRAWL.search(name)
    return name if crawl is None else crawl[0]


def _string(value: Any) -> str | None:
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value) or None
    return None


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, (int, float)) else type(value).__name__)
