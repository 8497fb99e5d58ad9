"""Brings one versioned resource up to date in the warehouse: only open months, only what is not known.

What arrives is committed every few seconds, texts and the rows that name them in one transaction, so a kill loses that
much at most. A month that fails keeps what it has, does not hold the others back, and is fetched again by the next run.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import polars as pl

from resources.network.http import FetchError, MissingContactError
from resources.spans.git_repositories import GitError
from resources.spans.sources import SpanSource, fingerprint
from resources.warehouse.store import Change, Merge, Replace, Warehouse, removal
from strandline.spans import DeferredError, Span, Version
from strandline.spans.selection import (
    Known,
    Month,
    judge_month,
    open_months,
    row,
    settings_digest,
    version_digest,
)

REVISIONS: dict[str, Any] = {
    "resource": pl.String, "topic": pl.String, "month": pl.Date, "revision": pl.String,
    "revised_at": pl.Datetime("us", "UTC"), "status": pl.String, "reason": pl.String, "text_sha256": pl.String,
    "n_chars": pl.Int64, "url": pl.String, "document": pl.String, "content_id": pl.String, "cleaned_by": pl.String,
    "settings_sha256": pl.String, "replaced_share": pl.Float64,
}  # fmt: skip
PER_MONTH = 500
VERSIONS_AT_ONCE, SECONDS_AT_ONCE = 500, 10.0


def refresh(store: Warehouse, span: Span, source: SpanSource, months: Sequence[date], now: datetime) -> list[Month]:
    """Fetch what the open ones of these months lack, and say of each of them whether it is complete now.

    Complete months are left alone and are not in the result; months taken out of the settings leave the tables. Raises
    MissingContactError and ValueError (a setting that is wrong) before anything is fetched; every other trouble becomes
    the status of a month.
    """
    _forget_months(store, span)
    digest = digest_of(span, source)
    open_now = [month for month in open_months(span, _done(store, span.resource), digest) if month in set(months)]
    if not open_now:
        return []
    known = Known.of(stored_versions(store, span.resource, version_digest(span, source.cleaner)))
    fresh, gave_up = _fetch(store, span, source, open_now, known)
    current = _current(span, open_now, known, fresh)
    judged = [judge_month(month, list(current[month].values()), _expected(span), gave_up) for month in open_now]
    stale = _stale(store, span.resource, open_now, current) if gave_up is None else set()
    store.write(
        *(
            Replace("spans.revisions", _revisions(span, source, current[m].values()), _where(span, m))
            for m in sorted(stale)
        ),
        Merge("spans.months", _months(span.resource, judged, digest, now)),
    )
    return judged


def digest_of(span: Span, source: SpanSource) -> str:
    """The digest under which months of this resource count as complete."""
    return settings_digest(span, f"{source.cleaner}\n{fingerprint(source, span)}")


def stored_versions(store: Warehouse, resource: str, digest: str) -> list[Version]:
    """The versions in the warehouse that were found under these settings (``version_digest``), without their texts."""
    rows = store.query(
        "select topic, month, status, reason, revision, revised_at, document, content_id, url, text_sha256, n_chars "
        "from spans.revisions where resource = ? and settings_sha256 = ? order by topic, month",
        [resource, digest],
    )
    return [Version(**{**r, "revised_at": _utc(r["revised_at"])}) for r in rows.iter_rows(named=True)]


def _forget_months(store: Warehouse, span: Span) -> None:
    """Take the rows of months that the settings no longer hold out of the tables."""
    for table in ("spans.revisions", "spans.months"):
        held = store.query(f"select distinct month from {table} where resource = ?", [span.resource])["month"]
        gone = [removal(table, _where(span, month)) for month in held if month not in span.months]
        if gone:
            store.write(*gone)


def _fetch(
    store: Warehouse, span: Span, source: SpanSource, months: Sequence[date], known: Known
) -> tuple[dict[tuple[str, date], Version], str | None]:
    """Take the source's batches into the warehouse; what came, and why it stopped early if it did."""
    fresh: dict[tuple[str, date], Version] = {}
    held: list[Version] = []
    stopped: str | None = None
    since = time.monotonic()
    try:
        for batch in source.versions(span, months, known):
            held += batch
            if len(held) >= VERSIONS_AT_ONCE or time.monotonic() - since >= SECONDS_AT_ONCE:
                fresh |= _committed(store, span, source, held)
                held, since = [], time.monotonic()
    except MissingContactError:
        raise
    except (DeferredError, FetchError, GitError) as error:
        stopped = str(error)
    return fresh | _committed(store, span, source, held), stopped


def _committed(
    store: Warehouse, span: Span, source: SpanSource, versions: Sequence[Version]
) -> dict[tuple[str, date], Version]:
    """Texts and the rows that name them, in one transaction; the same versions without their texts."""
    if versions:
        store.write(*_changes(span, source, versions))
    return {(version.topic, version.month): replace(version, text=None) for version in versions}


def _current(
    span: Span, months: Sequence[date], known: Known, fresh: Mapping[tuple[str, date], Version]
) -> dict[date, dict[str, Version]]:
    """The versions that make up each month: what came now, and for a listed topic what was known."""
    current: dict[date, dict[str, Version]] = {month: {} for month in months}
    listed = set(span.topics)
    for (topic, month), version in known.versions.items():
        if month in current and topic in listed:
            current[month][topic] = version
    for (topic, month), version in fresh.items():
        current[month][topic] = version
    return current


def _stale(
    store: Warehouse, resource: str, months: Sequence[date], current: Mapping[date, Mapping[str, Version]]
) -> set[date]:
    """The months that hold rows of documents no longer asked for."""
    rows = store.query("select topic, month from spans.revisions where resource = ?", [resource])
    return {month for topic, month in rows.iter_rows() if month in set(months) and topic not in current[month]}


def _changes(span: Span, source: SpanSource, versions: Sequence[Version]) -> list[Change]:
    texts = {v.text_sha256: v.text for v in versions if v.text is not None}
    frame = pl.DataFrame(
        {"text_sha256": list(texts), "text": list(texts.values())},
        schema={"text_sha256": pl.String, "text": pl.String},
    )
    return [Merge("spans.texts", frame), Merge("spans.revisions", _revisions(span, source, versions))]


def _revisions(span: Span, source: SpanSource, versions: Iterable[Version]) -> pl.DataFrame:
    made = {"cleaned_by": source.cleaner, "settings_sha256": version_digest(span, source.cleaner)}
    rows = [{"resource": span.resource, **made, **row(version)} for version in versions]
    return pl.DataFrame(rows, schema=REVISIONS)


def _months(resource: str, months: Sequence[Month], digest: str, now: datetime) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "resource": resource,
                "month": m.month,
                "status": m.status,
                "reason": m.reason,
                "n_documents": m.n_documents,
                "n_ok": m.n_ok,
                "settings_sha256": digest,
                "fetched_at": now,
            }
            for m in months
        ],
        schema_overrides={"reason": pl.String, "fetched_at": pl.Datetime("us", "UTC")},
    )


def _done(store: Warehouse, resource: str) -> dict[date, tuple[str, str | None]]:
    rows = store.query("select month, status, settings_sha256 from spans.months where resource = ?", [resource])
    return {month: (status, digest) for month, status, digest in rows.iter_rows()}


def _expected(span: Span) -> int | None:
    return int(span.options.get("per_month", PER_MONTH)) if span.kind == "unpaired" else None


def _where(span: Span, month: date) -> dict[str, Any]:
    return {"resource": span.resource, "month": month}


def _utc(value: datetime | None) -> datetime | None:
    return value.replace(tzinfo=UTC) if value is not None else None
