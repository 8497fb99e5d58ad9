"""What keeps a release out of the probe: every doubt about its date, its standing or its form is a flag.

A release without flags is stable, dated, undisputed and spelled in two to four numbers that do not tell the date.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, timedelta

from strandline.releases import Release
from strandline.releases.versions import is_plain, parse, scheme_of

UNCERTAINTY_DAYS = {
    "npm": 0,
    "pypi": 0,
    "github": 0,
    "nodejs": 1,
    "python": 1,
    "endoflife": 1,
    "transcribed": 1,
    "git-tag": 3,
    "github-tag": 3,
    "scoop-main": 7,
    "scoop-extras": 7,
}
DEFAULT_UNCERTAINTY_DAYS = 7
TAG_DATED_PROJECTS = {"PostgreSQL": 4}
BACKFILL_DAYS = 1
BULK_LINES = 3
COMPUTED = frozenset({"prerelease", "unparsed", "odd_form", "no_date", "future", "backfilled", "tells_date", "yanked"})


def uncertainty_days(source: str, project: str) -> int:
    """By how many days a date of this source may differ from the day on which the release was announced."""
    return max(UNCERTAINTY_DAYS.get(source, DEFAULT_UNCERTAINTY_DAYS), TAG_DATED_PROJECTS.get(project, 0))


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
        told = [_without_computed(r) for r in members]
        context = {r.version for r in backfilled(told)}, {r.version for r in telling_date(told)}
        done.extend(_flag_one(release, today, *context) for release in told)
    return done


def _without_computed(release: Release) -> Release:
    if COMPUTED.isdisjoint(release.flags):
        return release
    return replace(release, flags=tuple(flag for flag in release.flags if flag not in COMPUTED))


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
    }
    flags = sorted({*release.flags, *(name for name, holds in conditions.items() if holds)})
    return replace(
        release,
        is_stable=not prerelease,
        flags=tuple(flags),
        uncertainty_days=uncertainty_days(release.source, release.project),
    )


def backfilled(releases: Sequence[Release]) -> list[Release]:
    """Releases whose date is the day of a later import, not of their release.

    A version is taken for backfilled when a higher version of its own line, or the opening of a higher line of the
    same major, is dated earlier by more than a day; or when at least three lines were opened on one day. Patches of
    old lines that come out beside newer lines are ordinary and stay.
    """
    known = [(_numbers(r), r) for r in releases if r.released_on is not None and is_plain(r.version)]
    known = [(numbers, r) for numbers, r in known if len(numbers) >= 2]
    found = {r.version: r for r in _out_of_order(known)} | {r.version: r for r in _opened_together(known)}
    return list(found.values())


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


def telling_date(releases: Sequence[Release]) -> list[Release]:
    """Releases whose version spells out when they came: 2024.8.1, or 24.8 in a project that counts by years.

    A question with such a version gives its date away (M18). Two-digit years count only where the project's first
    number was the year in at least two years, for nine tenths of those years' releases, with a month-like second one.
    """
    dated = [(r, numbers, r.released_on.year) for r in releases if r.released_on and (numbers := _numbers(r))]
    totals = Counter(year for _, _, year in dated)
    matches = Counter(year for _, numbers, year in dated if _is_year_and_month(numbers, year))
    counted = {year % 100 for year, n in matches.items() if n >= 0.9 * totals[year]}
    by_years = len(counted) >= 2
    return [r for r, numbers, _ in dated if 1990 <= numbers[0] <= 2100 or (by_years and numbers[0] in counted)]


def _is_year_and_month(numbers: tuple[int, ...], year: int) -> bool:
    return len(numbers) >= 2 and numbers[0] == year % 100 and numbers[1] <= 12
