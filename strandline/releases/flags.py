"""What keeps a release out of the probe: every doubt about its date, its standing or its form is a flag.

A release without flags is stable, dated, undisputed and spelled in two to four numbers that do not tell the date.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, timedelta

from strandline.releases import Release
from strandline.releases.dates import TOO_EARLY, far_apart
from strandline.releases.sources import named, source_uncertainty
from strandline.releases.spelled_dates import telling_date
from strandline.releases.versions import is_plain, parse, scheme_of

RULES_VERSION = "2"
"""Raised when the rules of flags, merging or items change what the tables hold, so that the UI shows them as stale."""
TAG_DATED_PROJECTS = {"PostgreSQL": 4}
"""Projects whose every source takes the day of the tag, and by how many days it precedes the announcement."""
BACKFILL_DAYS = 1
"""Slack between days of one registry that are out of order: time zones and uploads around midnight."""
BULK_LINES = 3
"""Two lines of a major are at times opened on one day (a fix of both); three are an import of an archive."""
DISAGREE = "sources_disagree"
"""Flag of a release whose sources give days too far apart."""
COMPUTED = frozenset(
    {"prerelease", "unparsed", "odd_form", "no_date", "future", "backfilled", "tells_date", "yanked", TOO_EARLY}
)
"""Flags that are worked out anew each time, and so need not be stored with the facts."""


def uncertainty_days(source: str, project: str) -> int:
    """By how many days a date of this source may differ from the day on which the release was announced."""
    return max(source_uncertainty(source), TAG_DATED_PROJECTS.get(project, 0))


def flagged(releases: Iterable[Release], today: date) -> list[Release]:
    """The same releases with their flags, stability and uncertainty worked out anew.

    Flags that came from a registry (`draft`, `unpublished`, `sources_disagree`, …) stay; those computed here are
    recomputed, so that calling this twice changes nothing. Works on any mix of projects.
    """
    projects: dict[tuple[str, str], list[Release]] = defaultdict(list)
    for release in releases:
        projects[release.ecosystem, release.package].append(release)
    done: list[Release] = []
    for members in projects.values():
        members_as_told = [_without_computed(r) for r in members]
        context = {r.version for r in backfilled(members_as_told)}, {r.version for r in telling_date(members_as_told)}
        done.extend(_flag_one(release, today, *context) for release in members_as_told)
    return done


def _without_computed(release: Release) -> Release:
    """The flags that a registry told. A dispute is told only where the other day was not kept (older warehouses).

    `too_early` is told where the registry's day was so early that it was not taken at all.
    """
    dropped = COMPUTED | ({DISAGREE} if release.other_days else set())
    if release.released_on is None:
        dropped -= {TOO_EARLY}
    if dropped.isdisjoint(release.flags):
        return release
    return replace(release, flags=tuple(flag for flag in release.flags if flag not in dropped))


def _flag_one(release: Release, today: date, late: set[str], dated: set[str]) -> Release:
    parsed = parse(release.version, scheme_of(release.ecosystem))
    prerelease = not release.is_stable if parsed is None else parsed.is_prerelease
    prerelease |= bool({"draft", "prerelease_declared"} & set(release.flags))
    conditions = {
        "unparsed": parsed is None,
        "prerelease": prerelease,
        "odd_form": parsed is not None and not parsed.is_prerelease and not is_plain(release.version),
        "no_date": release.released_on is None,
        "future": release.released_on is not None and release.released_on > today,
        "yanked": release.is_yanked,
        "backfilled": release.version in late,
        "tells_date": release.version in dated,
        DISAGREE: far_apart(release.days.values()),
        TOO_EARLY: _is_too_early(release),
    }
    flags = sorted({*release.flags, *(name for name, holds in conditions.items() if holds)})
    return replace(
        release,
        is_stable=not prerelease,
        flags=tuple(flags),
        uncertainty_days=uncertainty_days(release.source, release.project),
    )


def _is_too_early(release: Release) -> bool:
    """Whether the day lies before its registry held anything."""
    registry = named(release.source)
    return registry is not None and release.released_on is not None and release.released_on < registry.since


def backfilled(releases: Sequence[Release]) -> list[Release]:
    """Releases whose date is the day of a later import, not of their release.

    A version is taken for backfilled when a higher version of its own line, or the opening of a higher line of the
    same major, is dated earlier by more than a day; or when at least three lines were opened on one day. Patches of
    old lines that come out beside newer lines are ordinary and stay.
    """
    known = [(_numbers(r), r) for r in releases if r.released_on is not None and is_plain(r.version)]
    known = [(numbers, r) for numbers, r in known if len(numbers) >= 2]
    late = {r.version: r for r in _out_of_order(known)} | {r.version: r for r in _opened_together(known)}
    return list(late.values())


def _numbers(release: Release) -> tuple[int, ...]:
    parsed = parse(release.version, scheme_of(release.ecosystem))
    return () if parsed is None or parsed.is_prerelease else parsed.numbers


def _out_of_order(known: list[tuple[tuple[int, ...], Release]]) -> Iterable[Release]:
    slack = timedelta(days=BACKFILL_DAYS)
    lines: dict[tuple[int, ...], list[tuple[tuple[int, ...], Release]]] = defaultdict(list)
    openings: dict[int, list[tuple[tuple[int, ...], Release]]] = defaultdict(list)
    for numbers, release in known:
        lines[numbers[:-1]].append((numbers, release))
        if not any(numbers[2:]):
            openings[numbers[0]].append((numbers, release))
    for group in (*lines.values(), *openings.values()):
        earliest = date.max
        for _, release in sorted(group, key=lambda pair: pair[0], reverse=True):
            day = release.released_on or date.max
            if day - slack > earliest:
                yield release
            earliest = min(earliest, day)


def _opened_together(known: list[tuple[tuple[int, ...], Release]]) -> Iterable[Release]:
    openings = [(numbers[0], release) for numbers, release in known if len(numbers) > 2 and not any(numbers[2:])]
    days = Counter((major, release.released_on) for major, release in openings)
    return (release for major, release in openings if days[major, release.released_on] >= BULK_LINES)
