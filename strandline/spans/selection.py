"""What a refresh has to fetch, and what of it is complete afterwards: the bookkeeping that all sources share.

A month is fetched again only where it is not complete under the present settings; a document within it only where no
final version of it is known. Pure: `plan` takes what is stored and says what to fetch, `settle` takes what came and
says what to store.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from hashlib import sha256

from strandline.spans import RELATIVE, TRANSIENT, DeferredError, Span, Version
from strandline.spans.months import next_month
from strandline.spans.news import Rules

MONTH_STATUSES = ("ok", "short", "failed", "deferred")
"""Every word that a month's status may be."""
COMPLETE = frozenset({"ok", "short"})
"""Statuses of months that are not fetched again: a month may have fewer documents than were asked for."""
MANNERS = frozenset({"maxlag", "pause"})
"""Options that say how a server is asked and change no text."""


@dataclass(frozen=True)
class Month:
    """Whether a month of a resource is complete: a row of spans.months.

    `note` tells of what was read for it and belongs to no month.
    """

    month: date
    status: str
    reason: str | None
    n_documents: int
    n_ok: int
    note: str | None = None

    def __post_init__(self) -> None:
        if self.status not in MONTH_STATUSES:
            raise ValueError(f"{self.month}: {self.status!r} is no status of a month")


@dataclass(frozen=True)
class Known:
    """What the warehouse holds of a resource: final versions by (topic, month), and texts by content id.

    `documents` is what the source last called each topic's document.
    """

    versions: Mapping[tuple[str, date], Version] = field(default_factory=dict)
    contents: Mapping[str, Version] = field(default_factory=dict)
    documents: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, versions: Iterable[Version]) -> Known:
        """Index versions; those of a transient status, or of one that depends on the list, are as good as unknown."""
        final = [version for version in versions if version.status not in TRANSIENT | RELATIVE]
        return cls(
            {(version.topic, version.month): version for version in final},
            {version.content_id: version for version in final if version.content_id},
            {v.topic: v.document for v in sorted(final, key=lambda v: v.month) if v.document is not None},
        )

    def open_months(self, topic: str, months: Iterable[date]) -> list[date]:
        """The months for which no final version of this topic is known."""
        return [month for month in months if (topic, month) not in self.versions]


@dataclass(frozen=True)
class Stored:
    """What the warehouse holds of a resource.

    months: status and digest of each month that was judged. documents: the topics that have a row, by month. versions:
    those that were found under the present settings, without their texts.
    """

    months: Mapping[date, tuple[str, str | None]] = field(default_factory=dict)
    documents: Mapping[date, frozenset[str]] = field(default_factory=dict)
    versions: Sequence[Version] = ()


@dataclass(frozen=True)
class Plan:
    """What a refresh has to do: the months to fetch, those that leave the tables, and what need not be fetched."""

    open: tuple[date, ...]
    forgotten: tuple[date, ...]
    known: Known


@dataclass(frozen=True)
class Settled:
    """What a refresh came to: each fetched month judged, and those whose rows are replaced as a whole."""

    months: tuple[Month, ...]
    replaced: Mapping[date, tuple[Version, ...]]


def plan(span: Span, stored: Stored, asked: Iterable[date], digest: str) -> Plan:
    """What has to be fetched of the months asked for; `digest` is that of the present settings (`settings_digest`)."""
    wanted = set(asked)
    return Plan(
        open=tuple(month for month in open_months(span, stored.months, digest) if month in wanted),
        forgotten=tuple(sorted((set(stored.months) | set(stored.documents)) - set(span.months))),
        known=Known.of(stored.versions),
    )


def settle(
    span: Span, todo: Plan, stored: Stored, fresh: Iterable[Version], stopped: DeferredError | None = None
) -> Settled:
    """What stands in each fetched month now, from what came and what was known.

    A month that `stopped` (why the source ended early) says nothing of is judged by its documents, and the rows of
    documents that are no longer asked for leave it.
    """
    current = _current(span, todo, fresh)
    cut = set(todo.open) if stopped and stopped.months is None else set(stopped.months or ()) if stopped else set()
    judged = [
        judge_month(month, current[month], expected_documents(span), str(stopped) if month in cut else None)
        for month in todo.open
    ]
    topics = {month: {version.topic for version in current[month]} for month in todo.open}
    left_over = [m for m in todo.open if m not in cut and stored.documents.get(m, frozenset()) - topics[m]]
    return Settled(tuple(judged), {month: tuple(current[month]) for month in left_over})


def _current(span: Span, todo: Plan, fresh: Iterable[Version]) -> dict[date, list[Version]]:
    """The versions that make up each month: what came now, and for a listed topic what was known."""
    listed = set(span.topics)
    current = {
        key: version for key, version in todo.known.versions.items() if key[0] in listed and key[1] in set(todo.open)
    }
    current |= {(version.topic, version.month): version for version in fresh}
    months: dict[date, list[Version]] = {month: [] for month in todo.open}
    for (_, month), version in current.items():
        months[month].append(version)
    return months


def expected_documents(span: Span) -> int | None:
    """How many documents with a text each month is asked to have; None: as many as there are."""
    return int(span.options.get("per_month", Rules.per_month)) if span.kind == "unpaired" else None


def settings_digest(span: Span, cleaner: str) -> str:
    """A digest of the settings that decide which texts a month holds: not its description, months or token limit."""
    return _digest(span, cleaner, topics=sorted(span.topics))


def version_digest(span: Span, cleaner: str) -> str:
    """The same without the list of topics: what decides which text a topic has in a month."""
    return _digest(span, cleaner)


def _digest(span: Span, cleaner: str, **more: object) -> str:
    relevant = {
        "source": span.source,
        "snapshot_day": span.snapshot_day,
        "options": {name: value for name, value in span.options.items() if name not in MANNERS},
        "cleaner": cleaner,
        **more,
    }
    return sha256(json.dumps(relevant, sort_keys=True, default=str).encode()).hexdigest()


def open_months(span: Span, done: Mapping[date, tuple[str, str | None]], digest: str) -> tuple[date, ...]:
    """The months to fetch: those not complete, or completed under other settings. `done` maps to (status, digest)."""
    return tuple(
        m for m in span.months if (held := done.get(m)) is None or held[0] not in COMPLETE or held[1] != digest
    )


def judge_month(month: date, versions: Sequence[Version], expected: int | None, gave_up: str | None = None) -> Month:
    """Whether a month is complete, from its versions.

    `expected` is how many documents with a text were asked for (None: as many as there are). `gave_up` says why the
    source stopped before the end. A month with a document that could not be fetched has failed, and names it.
    """
    n_ok = sum(version.status == "ok" for version in versions)
    broken = sorted((v for v in versions if v.status in TRANSIENT), key=lambda v: v.topic)
    if gave_up is not None:
        return Month(month, "deferred", gave_up, len(versions), n_ok)
    if broken:
        others = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
        return Month(month, "failed", f"{broken[0].topic}: {broken[0].reason}{others}", len(versions), n_ok)
    if n_ok < (expected or 0):
        return Month(month, "short", f"{n_ok} documents where {expected} were asked for", len(versions), n_ok)
    return Month(month, "ok", None, len(versions), n_ok)


def describe_failures(months: Iterable[Month]) -> str | None:
    """One line that names the months that were not completed and why; None where all were."""
    causes: dict[str, list[date]] = {}
    for month in months:
        if month.status not in COMPLETE:
            causes.setdefault(f"{month.status}: {month.reason}", []).append(month.month)
    return "; ".join(f"{_spelled(named)} ({cause})" for cause, named in causes.items()) or None


def _spelled(months: Iterable[date]) -> str:
    """Months in words, three or more neighbours as `2016-04 to 2023-04`."""
    runs: list[list[date]] = []
    for month in sorted(months):
        if runs and next_month(runs[-1][-1]) == month:
            runs[-1].append(month)
        else:
            runs.append([month])
    return ", ".join(
        f"{run[0]:%Y-%m} to {run[-1]:%Y-%m}" if len(run) > 2 else ", ".join(f"{month:%Y-%m}" for month in run)
        for run in runs
    )


def row(version: Version) -> dict[str, object]:
    """A version as a row of spans.revisions, without its text."""
    fields = asdict(version)
    del fields["text"]
    return fields
