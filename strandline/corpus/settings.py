"""The user's settings of training corpora, checked: a mapping as read from YAML becomes `CorpusSpec` records.

Reading files belongs to `resources`. Every mistake is a ValueError that names the corpus and the setting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date
from typing import Any

from strandline.corpus import layouts
from strandline.corpus.attribution import LIMIT
from strandline.corpus.dedup_audit import rules
from strandline.corpus.duplicates import THRESHOLD
from strandline.corpus.layouts import Layout
from strandline.corpus.ngrams import HIT_WORDS, SIZE
from strandline.numeric_input import real_number
from strandline.spans.months import month_start

LARGEST = 1_000_000
"""The largest count that a setting of mining takes: hits or words beyond are no search any more."""

READERS = ("files", "environment")
"""Where the documents of a corpus come from: files, or the READMEs of the installed packages."""

SCOPES = ("corpus", "none")
"""Where duplicates are looked for."""


@dataclass(frozen=True)
class CorpusPart:
    """A part of a corpus: which files, how they are laid out, and what is known of all of them.

    `subcorpus` overrides what records say; `is_crawl` marks web pages, whose age can lie before their crawl;
    `dump_month` is the month of the crawl or dump where records tell no day. `options` go to the file system.
    """

    files: tuple[str, ...] = ()
    layout: Layout = field(default_factory=Layout)
    subcorpus: str | None = None
    is_crawl: bool = True
    dump_month: date | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Mining:
    """The parameters of mining; the defaults are the paper's where it states them.

    `limit` is the distance that a match stays strictly under, `top` the hits of a query, `query_words` the words of it,
    `ngram` and `hit_words` those of Algorithm 2, `near` the Jaccard index of a near duplicate. A document near to
    several topics is a copy of the nearest one, unless `every_topic` counts it for each, as Algorithm 1 is printed.
    """

    limit: float = LIMIT
    top: int = 10
    query_words: int = 512
    ngram: int = SIZE
    hit_words: int = HIT_WORDS
    near: float = THRESHOLD
    every_topic: bool = False

    def __post_init__(self) -> None:
        for name in ("limit", "near"):
            if not 0 < real_number(getattr(self, name), name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must lie above 0 and not above 1")
        for name in ("top", "query_words", "ngram", "hit_words"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST:
                raise ValueError(f"{name} is {value!r}; it must be a whole number of at least 1 and at most {LARGEST}")


@dataclass(frozen=True)
class CorpusSpec:
    """A training corpus as its user configured it.

    `resources` are the versioned resources that are looked for, `reported` the month that is advertised for each (the
    newest month of the resource where none is given), `models` those that were trained on it. `dedup_rule` is the rule
    that its makers state, `excluded_domains` those that they left out.
    """

    corpus: str
    reader: str = "files"
    description: str = ""
    parts: tuple[CorpusPart, ...] = ()
    resources: tuple[str, ...] = ()
    reported: Mapping[str, date] = field(default_factory=dict)
    models: tuple[str, ...] = ()
    dedup_rule: str | None = None
    excluded_domains: tuple[str, ...] = ()
    duplicates: str = "corpus"
    mining: Mining = field(default_factory=Mining)


def corpora_of(raw: Any) -> tuple[CorpusSpec, ...]:
    """The enabled corpora of a settings document, in its order."""
    entries = raw.get("corpora") if isinstance(raw, Mapping) else None
    if not isinstance(entries, list):
        raise ValueError("the settings must hold a list under `corpora`")
    specs = [_corpus(entry) for entry in entries if not isinstance(entry, Mapping) or entry.get("enabled", True)]
    names = [spec.corpus for spec in specs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"the corpus {twice[0]} is set twice")
    return tuple(specs)


def _corpus(entry: Any) -> CorpusSpec:
    name = str(entry.get("corpus") or "") if isinstance(entry, Mapping) else ""
    if not name:
        raise ValueError(f"a corpus without a name: {entry!r}")
    try:
        return _checked(name, entry)
    except (ValueError, TypeError) as error:
        raise ValueError(f"corpus {name}: {error}") from None


def _checked(name: str, entry: Mapping[str, Any]) -> CorpusSpec:
    _known(entry, {each.name for each in fields(CorpusSpec)} | {"enabled"})
    spec = CorpusSpec(
        corpus=name,
        reader=_one_of("reader", entry.get("reader", "files"), READERS),
        description=str(entry.get("description", "")).strip(),
        parts=_parts(entry.get("parts")),
        resources=_texts("resources", entry.get("resources")),
        reported={str(key): _month(value) for key, value in _mapping("reported", entry.get("reported")).items()},
        models=_texts("models", entry.get("models")),
        dedup_rule=entry.get("dedup_rule") and _one_of("dedup_rule", entry["dedup_rule"], tuple(rules())),
        excluded_domains=_texts("excluded_domains", entry.get("excluded_domains")),
        duplicates=_one_of("duplicates", entry.get("duplicates", "corpus"), SCOPES),
        mining=Mining(**_known(_mapping("mining", entry.get("mining")), {each.name for each in fields(Mining)})),
    )
    if spec.reader == "files" and not spec.parts:
        raise ValueError("no parts; each part lists its files")
    if not spec.resources:
        raise ValueError("no resources to look for")
    if strange := sorted(set(spec.reported) - set(spec.resources)):
        raise ValueError(f"a month is reported for {strange[0]}, which is not among its resources")
    return spec


def _parts(value: Any) -> tuple[CorpusPart, ...]:
    if not isinstance(value, list | None):
        raise ValueError(f"parts is {value!r}; it must be a list")
    return tuple(_part(part) for part in value or ())


def _part(entry: Any) -> CorpusPart:
    if not isinstance(entry, Mapping) or not entry.get("files"):
        raise ValueError(f"a part without files: {entry!r}")
    _known(entry, {each.name for each in fields(CorpusPart)})
    month = entry.get("dump_month")
    return CorpusPart(
        files=_texts("files", entry["files"]),
        layout=layouts.layout(entry.get("layout", "plain")),
        subcorpus=str(entry["subcorpus"]) if entry.get("subcorpus") else None,
        is_crawl=bool(entry.get("is_crawl", True)),
        dump_month=None if month is None else _month(month),
        options=_mapping("options", entry.get("options")),
    )


def _known(entry: Mapping[str, Any], names: set[str]) -> Mapping[str, Any]:
    if unknown := sorted(set(map(str, entry)) - names):
        raise ValueError(f"unknown setting {unknown[0]}; known are {', '.join(sorted(names))}")
    return entry


def _mapping(setting: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping | None):
        raise ValueError(f"{setting} is {value!r}; it must be a mapping")
    return dict(value or {})


def _one_of(setting: str, value: Any, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise ValueError(f"{setting} is {value!r}; it must be one of {', '.join(allowed)}")
    return str(value)


def _texts(setting: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ValueError(f"{setting} is {value!r}; it must be a text or a list of texts")
    return tuple(value)


def _month(value: Any) -> date:
    return month_start(value if isinstance(value, date) else str(value))
