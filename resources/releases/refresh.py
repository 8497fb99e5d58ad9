"""One refresh of the releases: ask each registry, merge what it says, and keep the last good rows where it fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time

from resources.network.http import FetchError, PermanentError, ShrunkenFetchError, TransientError, refuse_shrunken
from resources.releases.registries import Registries
from strandline.releases import Listing, Project, Release, SourceStatus
from strandline.releases.flags import flagged
from strandline.releases.github import TAG_SOURCE
from strandline.releases.merge import merged
from strandline.releases.trust import MIRROR, redated, without_dates

# The note of a listing none of whose versions can be dated.
UNDATED = "no version has a day that can be believed"


@dataclass(frozen=True)
class SourceState:
    """One row of releases.sources. `fetched_at` is the UTC day of the last good fetch, None for committed facts."""

    ecosystem: str
    package: str
    project: str
    salience_rank: int
    fetched_at: datetime | None = None
    etag: str | None = None
    status: SourceStatus = "facts_only"
    error: str | None = None
    n_releases: int = 0


@dataclass(frozen=True)
class Outcome:
    """What a refresh did to one package: its state, and its rows where they may have changed (None: keep them)."""

    state: SourceState
    releases: list[Release] | None


def initial_state(project: Project, before: SourceState | None, n_releases: int) -> SourceState:
    """The state of a package without a fetch: as it was, or facts only."""
    kept = before or SourceState(project.ecosystem, project.package, project.project, project.salience_rank)
    return replace(kept, project=project.project, salience_rank=project.salience_rank, n_releases=n_releases)


def refresh(
    targets: Iterable[tuple[Project, Sequence[Release], SourceState]], registries: Registries, now: datetime
) -> Iterator[Outcome]:
    """One outcome a package, as it arrives. A failure touches only the status and error of its own package.

    Packages of which most is known come first: a registry whose dates turn out to be a mirror's is believed about
    existence alone from there on, also for packages of which nothing is known yet. Two refreshes on one day end in
    identical rows: the fetch is stamped with its day, and what was first seen keeps its instant.
    """
    mirrors: dict[str, str] = {}
    for project, known, before in sorted(targets, key=lambda t: (-len(t[1]), t[0].package)):
        try:
            fetched = registries.fetch(project, {release.version for release in known})
            _check_size(project, known, fetched.listing)
        except (FetchError, ValueError) as error:
            yield Outcome(_failed(before, error), None)
            continue
        listing = _trusted(project, known, fetched.listing, mirrors)
        rows = flagged(merged(project, known, listing, now), now.date())
        yield Outcome(_fetched(before, listing, fetched.etag, now.date(), len(rows)), rows)


def _trusted(project: Project, known: Sequence[Release], listing: Listing, mirrors: dict[str, str]) -> Listing:
    why = redated(known, listing)
    if why:
        mirrors.setdefault(str(project.registry), f"{project.project}: {why}")
    reason = why or mirrors.get(str(project.registry))
    return without_dates(listing, reason) if reason else listing


def _check_size(project: Project, known: Sequence[Release], listing: Listing) -> None:
    what = f"{project.registry} {project.name}"
    if not listing.releases:
        raise PermanentError(f"{what} lists no release at all")
    if not listing.incomplete:
        refuse_shrunken(what, len(known), len(listing.releases))


def _failed(before: SourceState, error: Exception) -> SourceState:
    words: dict[type, SourceStatus] = {TransientError: "unreachable", ShrunkenFetchError: "shrunken"}
    status = words.get(type(error), "failed")
    if isinstance(error, PermanentError) and error.status in (404, 410):
        status = "missing"
    return replace(before, status=status, error=str(error))


def _fetched(before: SourceState, listing: Listing, etag: str | None, day: date, n_releases: int) -> SourceState:
    midnight = datetime.combine(day, time(), UTC)
    status = listing_status(listing)
    note = listing.note or (UNDATED if status == "undated" else None)
    return replace(before, fetched_at=midnight, etag=etag, status=status, error=note, n_releases=n_releases)


def listing_status(listing: Listing) -> SourceStatus:
    """How far a listing that was read can be used: its days, its existence alone, or a part of it."""
    if any(MIRROR in listed.flags for listed in listing.releases):
        return "mirror_dates"
    if listing.source == TAG_SOURCE:
        return "tags_only"
    if listing.incomplete:
        return "incomplete"
    return "ok" if any(listed.released_on for listed in listing.releases) else "undated"
