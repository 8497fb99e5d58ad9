"""The user's settings of versioned resources, checked: a mapping as read from YAML becomes `Span` records.

Reading files is `resources.spans.topic_lists`. Every mistake is a ValueError that names the resource and the setting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from strandline.spans import Span
from strandline.spans.months import month_range, month_start, reached

DEFAULT_TOKENS = 512
"""Tokens scored of each document unless the settings say otherwise: the context that the paper scored articles with."""
KEYS = frozenset(
    {"resource", "source", "enabled", "description", "months", "snapshot_day", "max_tokens"}
    | {"topics", "topics_file", "first_topics", "options"}
)
"""What an entry may say."""
LATEST = "latest"
"""As the last month: the newest one whose instant has passed."""


@dataclass(frozen=True)
class SourceKind:
    """What the settings of a kind of source may say.

    options: names of the settings that belong to it alone; of these `lists` are lists of texts and `numbers` numbers
    between two bounds, whole where both bounds are. kind: `panel` (the same documents every month) or `unpaired`.
    is_listed: its documents are those that the user names; the others find theirs. max_tokens: scored of each document
    unless the settings say otherwise.
    """

    name: str
    options: frozenset[str] = frozenset()
    kind: str = "panel"
    is_listed: bool = False
    max_tokens: int = DEFAULT_TOKENS
    lists: frozenset[str] = frozenset()
    numbers: Mapping[str, tuple[float, float]] = field(default_factory=dict)


Sources = Mapping[str, SourceKind]
"""The kinds of sources by name."""


def spans_of(
    raw: Any, sources: Sources, read_topics: Callable[[str], Sequence[str]], now: datetime
) -> tuple[Span, ...]:
    """The enabled resources of a settings document, in its order.

    sources: the kinds that are registered, by name. read_topics: gives the topics in a file that the settings name.
    """
    entries = raw.get("spans") if isinstance(raw, Mapping) else None
    if not isinstance(entries, list):
        raise ValueError("the settings must hold a list under `spans`")
    for entry in entries:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("enabled", True), bool):
            raise ValueError(f"an entry must be a mapping of settings, and `enabled` true or false: {entry!r:.80}")
    names = [entry.get("resource") for entry in entries]
    if twice := sorted({str(name) for name in names if names.count(name) > 1}):
        raise ValueError(f"the resource {twice[0]} is set twice")
    spans = [_span(entry, sources, read_topics, now) for entry in entries if entry.get("enabled", True)]
    return tuple(spans)


def _span(
    entry: Mapping[str, Any], sources: Sources, read_topics: Callable[[str], Sequence[str]], now: datetime
) -> Span:
    name = str(entry.get("resource") or "")
    if not name:
        raise ValueError(f"a resource without a name: {dict(entry)}")
    if unknown := sorted(set(map(str, entry)) - KEYS):
        raise ValueError(f"resource {name}: unknown setting {unknown[0]}; known are {', '.join(sorted(KEYS))}")
    source = sources.get(str(entry.get("source", "")))
    if source is None:
        known = ", ".join(sorted(sources))
        raise ValueError(f"resource {name}: source is {entry.get('source', '')!r}; it must be one of {known}")
    day = _positive(name, "snapshot_day", entry.get("snapshot_day", 1), 1)
    return Span(
        resource=name,
        source=source.name,
        kind=source.kind,
        months=_months(name, entry.get("months"), day, now),
        max_tokens=_positive(name, "max_tokens", entry.get("max_tokens", source.max_tokens), 2),
        snapshot_day=day,
        description=str(entry.get("description", "")).strip(),
        topics=_topics(name, entry, read_topics, source.is_listed),
        options=_options(name, entry.get("options"), source),
    )


def _months(name: str, value: Any, snapshot_day: int, now: datetime) -> tuple[date, ...]:
    """`{first: 2016-04, last: 2023-04}`; `last: latest` is the newest month whose instant has passed."""
    if not isinstance(value, Mapping) or set(value) != {"first", "last"}:
        raise ValueError(f"resource {name}: months must be given as {{first: 2016-04, last: 2023-04}}")
    try:
        first = month_start(_text(value["first"]))
        last = month_start(now) if value["last"] == LATEST else month_start(_text(value["last"]))
        months = reached(month_range(first, last), snapshot_day, now)
    except ValueError as error:
        raise ValueError(f"resource {name}: {error}") from None
    if not months:
        raise ValueError(f"resource {name}: no month between {first:%Y-%m} and {last:%Y-%m} has come yet")
    return months


def _text(value: Any) -> date | str:
    return value if isinstance(value, date) else str(value)


def _topics(
    name: str, entry: Mapping[str, Any], read_topics: Callable[[str], Sequence[str]], is_listed: bool
) -> tuple[str, ...]:
    """Topics as listed or from a file, each once, in order; `first_topics` takes only so many of them."""
    given = entry.get("topics")
    if not isinstance(given, list | None):
        raise ValueError(f"resource {name}: topics is {given!r}; it must be a list")
    listed = [str(topic) for topic in given or ()]
    if entry.get("topics_file"):
        try:
            listed += read_topics(str(entry["topics_file"]))
        except OSError as error:
            raise ValueError(f"resource {name}: topics_file {entry['topics_file']}: {error.strerror}") from None
    topics = tuple(dict.fromkeys(topic.strip() for topic in listed if topic.strip()))
    if not topics and is_listed:
        raise ValueError(f"resource {name}: no topics; list them under `topics` or name a `topics_file`")
    limit = entry.get("first_topics")
    return topics if limit is None else topics[: _positive(name, "first_topics", limit, 1)]


def _options(name: str, value: Any, source: SourceKind) -> dict[str, Any]:
    """The options of a source, each known and of its form; a list of texts may be written as one text."""
    if not isinstance(value, Mapping | None):
        raise ValueError(f"resource {name}: options is {value!r}; it must be a mapping")
    options = {str(key): setting for key, setting in (value or {}).items()}
    if unknown := sorted(set(options) - source.options):
        raise ValueError(f"resource {name}: unknown option {unknown[0]}; known are {', '.join(sorted(source.options))}")
    for key in options:
        if key in source.lists:
            options[key] = _texts(f"resource {name}: options.{key}", options[key])
        elif key in source.numbers:
            _check_number(f"resource {name}: options.{key}", options[key], *source.numbers[key])
    return options


def _texts(what: str, value: Any) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{what} is {value!r}; it must be a list of texts")
    return texts


def _check_number(what: str, value: Any, least: float, most: float) -> None:
    """ValueError where a value is no number between two bounds, or no whole one where both bounds are."""
    is_whole = isinstance(least, int) and isinstance(most, int)
    kinds = int if is_whole else int | float
    if not isinstance(value, kinds) or isinstance(value, bool) or not least <= value <= most:
        form = "a whole number" if is_whole else "a number"
        raise ValueError(f"{what} is {value!r}; it must be {form} between {least} and {most}")


def _positive(name: str, setting: str, value: Any, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"resource {name}: {setting} is {value!r}; it must be a whole number of at least {least}")
    return value
