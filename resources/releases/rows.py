"""Releases between their records and the tables: what stands in the warehouse, over the committed facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

import polars as pl

from resources.releases.refresh import Outcome, SourceState, initial_state
from resources.releases.registries import Endpoints, release_page
from resources.warehouse.store import Change, Merge, Replace, Warehouse
from strandline.releases import FAILED_STATUSES, Project, Release
from strandline.releases.facts import source_day
from strandline.releases.items import ProbeItem
from strandline.releases.merge import with_facts
from strandline.releases.trust import MIRROR


@dataclass(frozen=True)
class Known:
    """All that is known before a refresh: the projects, every release, and how each source stands."""

    projects: tuple[Project, ...]
    releases: list[Release]
    states: list[SourceState]

    def targets(
        self, registries: Sequence[str], packages: Sequence[str] = ()
    ) -> list[tuple[Project, list[Release], SourceState]]:
        """The projects that a refresh asks for, by registry and name there, and what is known of each."""
        known: dict[tuple[str, str], list[Release]] = {}
        for release in self.releases:
            known.setdefault((release.ecosystem, release.package), []).append(release)
        return [
            (project, known.get((project.ecosystem, project.package), []), state)
            for project, state in zip(self.projects, self.states, strict=True)
            if project.registry in registries and (not packages or project.name in packages)
        ]


def stored_over_facts(warehouse: Warehouse, projects: tuple[Project, ...], facts: Iterable[Release]) -> Known:
    """The stored rows of the tracked projects with the committed facts under them."""
    stored = warehouse.query("select * exclude (url) from releases.releases")
    tracked = {(p.ecosystem, p.package): p for p in projects}
    rows = [_release(row) for row in stored.iter_rows(named=True) if (row["ecosystem"], row["package"]) in tracked]
    releases = with_facts(rows, facts)
    states = {(s.ecosystem, s.package): s for s in _states(warehouse)}
    counts: dict[tuple[str, str], int] = {}
    for release in releases:
        key = (release.ecosystem, release.package)
        counts[key] = counts.get(key, 0) + 1
    return Known(
        projects,
        releases,
        [initial_state(p, states.get(key), counts.get(key, 0)) for key, p in tracked.items()],
    )


def stored_releases(warehouse: Warehouse) -> list[Release]:
    """All rows of releases.releases as records."""
    return [_release(r) for r in warehouse.query("select * exclude (url) from releases.releases").iter_rows(named=True)]


def release_rows(
    releases: Iterable[Release], projects: Iterable[Project], endpoints: Endpoints
) -> list[dict[str, object]]:
    """Rows for releases.releases, each with the page of its release where one can be derived."""
    tracked = {(p.ecosystem, p.package): p for p in projects}
    names = [field.name for field in fields(Release)]
    return [
        {
            **{name: getattr(release, name) for name in names},
            "flags": list(release.flags),
            "other_days": [str(other) for other in release.other_days],
            "url": release_page(endpoints, tracked[release.ecosystem, release.package], release.version),
        }
        for release in releases
    ]


def state_rows(states: Iterable[SourceState]) -> list[dict[str, object]]:
    """Rows for releases.sources."""
    return [asdict(state) for state in states]


def item_rows(items: Iterable[ProbeItem], projects: Iterable[Project], endpoints: Endpoints) -> list[dict[str, object]]:
    """Rows for releases.probe_items, each with the page of its release."""
    tracked = {p.project: p for p in projects}
    rows = []
    for item in items:
        row = {**asdict(item), "url": release_page(endpoints, tracked[item.project], item.version)}
        rows.append({name: value for name, value in row.items() if name not in ("ecosystem", "package")})
    return rows


def refresh_writes(outcome: Outcome, projects: Iterable[Project], endpoints: Endpoints) -> tuple[Change, ...]:
    """What one outcome of a refresh changes in the tables; a failure leaves the releases as they are."""
    state = outcome.state
    merge = Merge("releases.sources", state_rows([state]))
    if outcome.releases is None:
        return (merge,)
    rows = release_rows(outcome.releases, projects, endpoints)
    return merge, Replace("releases.releases", rows, {"ecosystem": state.ecosystem, "package": state.package})


def source_summary(warehouse: Warehouse) -> dict[str, Any]:
    """How many sources have each status, and which failed or cannot be believed."""
    rows = warehouse.query("select status, project, error from releases.sources")
    bad = rows.filter(pl.col("status").is_in([*FAILED_STATUSES, MIRROR]))
    return {
        "n_sources": rows.height,
        "statuses": dict(rows["status"].value_counts(sort=True).iter_rows()),
        "failing": [f"{row['project']}: {row['error']}" for row in bad.iter_rows(named=True)][:50],
    }


def coverage(warehouse: Warehouse) -> dict[str, Any]:
    """How many releases there are, of how many projects, up to when, and how many each flag keeps out."""
    totals = warehouse.query(
        "select count(*) as n_releases, count(*) filter (is_stable and released_on is not null) as n_stable, "
        "count(distinct project) as n_projects, count(withdrawn_at) as n_withdrawn, "
        "count(*) filter (released_on is null) as n_undated, "
        "max(released_on) filter (not list_contains(flags, 'future')) as newest from releases.releases"
    )
    flags = warehouse.query(
        "select flag, count(*) from (select unnest(flags) as flag from releases.releases) group by 1"
    )
    return {**totals.row(0, named=True), "kept_out_by": dict(sorted(flags.iter_rows()))}


def _release(row: dict[str, Any]) -> Release:
    values = {field.name: row[field.name] for field in fields(Release)}
    values["flags"] = tuple(row["flags"] or ())
    values["other_days"] = tuple(map(source_day, row["other_days"] or ()))
    for name in ("first_seen_at", "withdrawn_at"):
        values[name] = _in_utc(row[name])
    return Release(**values)


def _states(warehouse: Warehouse) -> list[SourceState]:
    rows = warehouse.query("select * from releases.sources").iter_rows(named=True)
    return [SourceState(**{**row, "fetched_at": _in_utc(row["fetched_at"])}) for row in rows]


def _in_utc(moment: object) -> datetime | None:
    return moment.replace(tzinfo=UTC) if isinstance(moment, datetime) else None
