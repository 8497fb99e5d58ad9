"""Brings one versioned resource up to date in the warehouse: read what is stored, plan, fetch, store what it came to.

What arrives is committed every few seconds, texts and the rows that name them in one transaction, so a kill loses that
much at most. A month that fails keeps what it has, does not hold the others back, and is fetched again by the next run.
What has to be fetched and what is complete is decided in `strandline.spans.selection`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from typing import Any

from resources.network.http import FetchError, MissingContactError
from resources.spans.source import Reader, fingerprint
from resources.warehouse.store import Change, Merge, Replace, Warehouse, removal
from strandline.spans import DeferredError, Span, Version
from strandline.spans.selection import Month, Plan, Stored, plan, row, settings_digest, settle, version_digest

VERSIONS_AT_ONCE, SECONDS_AT_ONCE = 500, 10.0
"""What is held back before it is committed: a commit costs some hundredths of a second, and a kill loses this much."""


def refresh(store: Warehouse, span: Span, reader: Reader, asked: Sequence[date], now: datetime) -> list[Month]:
    """Fetch what the open ones of these months lack, and say of each of them whether it is complete now.

    Complete months are left alone and are not in the result; months taken out of the settings leave the tables. Raises
    MissingContactError and ValueError (a setting that is wrong) before anything is fetched; every other trouble becomes
    the status of a month.
    """
    digest = digest_of(span, reader)
    stored = read_stored(store, span.resource, version_digest(span, reader.cleaner))
    todo = plan(span, stored, asked, digest)
    _forget(store, span, todo)
    if not todo.open:
        return []
    fresh, stopped = _fetch(store, span, reader, todo)
    settled = settle(span, todo, stored, fresh, stopped)
    notes = getattr(reader, "notes", [])
    months = [replace(month, note="; ".join(notes) or None) for month in settled.months]
    store.write(
        *(_replaced(span, reader, month, versions) for month, versions in sorted(settled.replaced.items())),
        Merge("spans.months", _month_rows(span, months, digest, now)),
    )
    return months


def digest_of(span: Span, reader: Reader) -> str:
    """The digest under which months of this resource count as complete."""
    return settings_digest(span, f"{reader.cleaner}\n{fingerprint(reader, span)}")


def read_stored(store: Warehouse, resource: str, digest: str) -> Stored:
    """What the warehouse holds of a resource; `digest` is that of its versions under the present settings."""
    months = store.query("select month, status, settings_sha256 from spans.months where resource = ?", [resource])
    rows = store.query(
        "select topic, month, status, reason, revision, revised_at, document, content_id, url, text_sha256, n_chars, "
        "replaced_share, settings_sha256 from spans.revisions where resource = ? order by topic, month",
        [resource],
    )
    documents: dict[date, set[str]] = {}
    versions = []
    for found in rows.iter_rows(named=True):
        documents.setdefault(found["month"], set()).add(found["topic"])
        if found.pop("settings_sha256") == digest:
            versions.append(Version(**{**found, "revised_at": _utc(found["revised_at"])}))
    return Stored(
        {month: (status, settings) for month, status, settings in months.iter_rows()},
        {month: frozenset(topics) for month, topics in documents.items()},
        versions,
    )


def _forget(store: Warehouse, span: Span, todo: Plan) -> None:
    """Take the rows of months that the settings no longer hold out of the tables."""
    tables = ("spans.revisions", "spans.months")
    gone = [removal(table, _where(span, month)) for table in tables for month in todo.forgotten]
    if gone:
        store.write(*gone)


def _fetch(store: Warehouse, span: Span, reader: Reader, todo: Plan) -> tuple[list[Version], DeferredError | None]:
    """Take the source's batches into the warehouse; what came, without texts, and why it stopped early if it did."""
    fresh: list[Version] = []
    waiting: list[Version] = []
    stopped: DeferredError | None = None
    since = time.monotonic()
    try:
        for batch in reader.versions(span, todo.open, todo.known):
            waiting += batch
            if len(waiting) >= VERSIONS_AT_ONCE or time.monotonic() - since >= SECONDS_AT_ONCE:
                fresh += _committed(store, span, reader, waiting)
                waiting, since = [], time.monotonic()
    except MissingContactError:
        raise
    except DeferredError as error:
        stopped = error
    except FetchError as error:
        stopped = DeferredError(str(error))
    return fresh + _committed(store, span, reader, waiting), stopped


def _committed(store: Warehouse, span: Span, reader: Reader, versions: Sequence[Version]) -> list[Version]:
    """Texts and the rows that name them, in one transaction; the same versions without their texts."""
    if versions:
        store.write(*_changes(span, reader, versions))
    return [replace(version, text=None) for version in versions]


def _changes(span: Span, reader: Reader, versions: Sequence[Version]) -> list[Change]:
    texts = {version.text_sha256: version.text for version in versions if version.text is not None}
    rows = [{"text_sha256": digest, "text": text} for digest, text in texts.items()]
    named = Merge("spans.revisions", _revision_rows(span, reader, versions))
    return [Merge("spans.texts", rows), named] if rows else [named]


def _replaced(span: Span, reader: Reader, month: date, versions: Sequence[Version]) -> Change:
    return Replace("spans.revisions", _revision_rows(span, reader, versions), _where(span, month))


def _revision_rows(span: Span, reader: Reader, versions: Iterable[Version]) -> list[dict[str, Any]]:
    made = {"cleaned_by": reader.cleaner, "settings_sha256": version_digest(span, reader.cleaner)}
    return [{"resource": span.resource, **made, **row(version)} for version in versions]


def _month_rows(span: Span, months: Sequence[Month], digest: str, now: datetime) -> list[dict[str, Any]]:
    added = {"resource": span.resource, "settings_sha256": digest, "fetched_at": now}
    return [{**added, **asdict(month)} for month in months]


def _where(span: Span, month: date) -> Mapping[str, Any]:
    return {"resource": span.resource, "month": month}


def _utc(value: datetime | None) -> datetime | None:
    return value.replace(tzinfo=UTC) if value is not None else None
