"""Probe items: the releases that can be asked about, day by day, each with a version beside it that never was.

From all known releases to a calendar: what is flagged falls out, prolific projects are thinned, at most a few days a
week are kept, and each day holds its best known projects. The same rows give the same items in any order.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from strandline.numeric_input import share, whole_number
from strandline.releases import Project, Release
from strandline.releases.decoys import Decoy, decoys_for
from strandline.releases.versions import numbers_of, scheme_of, sort_key

UNRANKED = 1_000_000
"""Rank of a project without one: behind all that have one."""
PROMPT = "Had {project} released version {version} yet?"
"""The question of the seed (M16), word for word."""


@dataclass(frozen=True)
class ProbeItem:
    """One row of releases.probe_items: a real release on an eligible day and its decoy (None where none was free)."""

    dataset_version: str
    position: int
    released_on: date
    project: str
    version: str
    decoy_version: str | None
    decoy_kind: str | None
    salience_rank: int
    source: str
    ecosystem: str
    package: str
    prompt: str


@dataclass(frozen=True)
class ItemRules:
    """How a calendar is drawn from the releases.

    A day is eligible with at least `min_items` items of `min_projects` projects, `min_decoys` of them with a decoy.
    `days_a_week`: only the days with the most projects of each half-week (2) or week (1) are kept, since the dates are
    no finer than that; 7 keeps all. `per_day` items at most, `per_project_day` of one project, and `per_project_year`
    of one project in one year, so that a few prolific projects do not fill the calendar. The calendar ends where fewer
    projects than `min_coverage` of the usual are known to have released anything.
    """

    first_day: date = date(2015, 1, 1)
    min_items: int = 5
    min_projects: int = 5
    min_decoys: int = 3
    days_a_week: int = 2
    per_day: int = 12
    per_project_day: int = 2
    per_project_year: int = 26
    min_coverage: float = 0.25

    def __post_init__(self) -> None:
        for name in ("min_items", "min_projects", "days_a_week", "per_day", "per_project_day", "per_project_year"):
            whole_number(getattr(self, name), name, 1)
        whole_number(self.min_decoys, "min_decoys", 0)
        if self.days_a_week > 7:
            raise ValueError(f"days_a_week is at most 7, got {self.days_a_week}")
        share(self.min_coverage, "min_coverage")


def askable(releases: Iterable[Release], rules: ItemRules) -> list[Release]:
    """Releases that may become questions: dated, stable, not withdrawn, without a flag, within the calendar."""
    return [
        r
        for r in releases
        if r.released_on is not None
        and r.released_on >= rules.first_day
        and r.is_stable
        and not r.is_yanked
        and not r.flags
        and r.withdrawn_at is None
    ]


def horizon(releases: Iterable[Release], min_coverage: float) -> date:
    """The last day by which the releases of most projects are known.

    Facts of some projects reach further than those of others, and days on which only these can be asked about would
    tell of them, not of time. It is the end of the last week in which at least `min_coverage` times the usual number
    of projects (the median of a year that ended a year before) released something. date.max without releases.
    """
    share(min_coverage, "the least share of projects")
    weeks: dict[int, set[str]] = defaultdict(set)
    for release in releases:
        if release.released_on is not None:
            weeks[release.released_on.toordinal() // 7].add(release.project)
    if not weeks:
        return date.max
    newest = max(weeks)
    counts = [len(weeks.get(week, ())) for week in range(newest - 103, newest - 51)]
    usual = sorted(counts)[len(counts) // 2]
    last = max((week for week, names in weeks.items() if len(names) >= min_coverage * usual), default=newest)
    return date.fromordinal(min(last * 7 + 6, date.max.toordinal()))


def thinned(releases: Iterable[Release], per_project_year: int) -> list[Release]:
    """At most so many releases of a project a year: those that open a line first, then spread evenly over the year.

    Releases without a day are left out.
    """
    years: dict[tuple[str, int], list[Release]] = defaultdict(list)
    whole_number(per_project_year, "releases of a project in a year", 1)
    for release in releases:
        if release.released_on is not None:
            years[release.project, release.released_on.year].append(release)
    return [release for members in years.values() for release in _spread(members, per_project_year)]


def _spread(members: list[Release], limit: int) -> list[Release]:
    ordered = sorted(members, key=_by_date)
    if len(ordered) <= limit:
        return ordered
    openings = [r for r in ordered if numbers_of(r.version)[-1] == 0]
    if len(openings) >= limit:
        return _evenly(openings, limit)
    chosen = {r.version for r in openings}
    others = [r for r in ordered if r.version not in chosen]
    return sorted(openings + _evenly(others, limit - len(openings)), key=_by_date)


def _evenly(ordered: list[Release], n: int) -> list[Release]:
    return [ordered[(2 * i + 1) * len(ordered) // (2 * n)] for i in range(n)]


def _by_date(release: Release) -> tuple[date, tuple[Any, ...]]:
    return release.released_on or date.min, _by_version(release)


def _by_version(release: Release) -> tuple[Any, ...]:
    return sort_key(release.version, scheme_of(release.ecosystem))


def of_the_day(releases: Sequence[Release], ranks: Mapping[str, int], rules: ItemRules) -> list[Release]:
    """The items of one day: one of each project by salience (M32, M33), then second ones, up to `per_day`.

    Of several releases of a project on one day the highest comes first.
    """
    projects: dict[str, list[Release]] = defaultdict(list)
    for release in releases:
        projects[release.project].append(release)
    turns: list[tuple[int, int, str, Release]] = []
    for project, members in projects.items():
        members.sort(key=_by_version, reverse=True)
        for turn, release in enumerate(members[: rules.per_project_day]):
            turns.append((turn, ranks.get(project, UNRANKED), project, release))
    return [release for *_, release in sorted(turns, key=lambda t: t[:3])[: rules.per_day]]


def chosen_days(days: Mapping[date, Sequence[Release]], rules: ItemRules) -> list[date]:
    """Of each week, or part of a week, the day with the most projects; ties go to the earlier day."""
    eligible = [
        day
        for day, items in days.items()
        if len(items) >= rules.min_items and len({r.project for r in items}) >= rules.min_projects
    ]
    best: dict[int, date] = {}
    for day in sorted(eligible):
        slot = day.toordinal() * rules.days_a_week // 7
        held = best.get(slot)
        if held is None or _n_projects(days[day]) > _n_projects(days[held]):
            best[slot] = day
    return sorted(best.values())


def _n_projects(items: Sequence[Release]) -> int:
    return len({release.project for release in items})


def probe_items(
    releases: Sequence[Release], projects: Iterable[Project], rules: ItemRules | None = None
) -> list[ProbeItem]:
    """All items of the calendar, in order of day and salience.

    releases: every known version in every form, already flagged (`flags.flagged`): the decoys avoid them all.
    Raises ValueError where no day is eligible.
    """
    rules = rules or ItemRules()
    ranks = {p.project: p.salience_rank for p in projects}
    days: dict[date, list[Release]] = defaultdict(list)
    usable = [release for release in askable(releases, rules) if release.project in ranks]
    end = horizon(usable, rules.min_coverage)
    for release in thinned(usable, rules.per_project_year):
        if release.released_on is not None and release.released_on <= end:
            days[release.released_on].append(release)
    picked = {day: of_the_day(members, ranks, rules) for day, members in days.items()}
    kept = [release for day in chosen_days(picked, rules) for release in picked[day]]
    decoys = _decoys(releases, kept)
    rows = _numbered(kept, decoys, ranks, rules)
    if not rows:
        raise ValueError(f"no day has {rules.min_items} askable releases of {rules.min_projects} projects")
    return rows


def _decoys(releases: Iterable[Release], kept: Iterable[Release]) -> dict[tuple[str, str], Decoy]:
    known: dict[str, list[Release]] = defaultdict(list)
    wanted: dict[str, list[Release]] = defaultdict(list)
    for release in releases:
        known[release.project].append(release)
    for release in kept:
        wanted[release.project].append(release)
    return {
        (project, version): decoy
        for project, members in wanted.items()
        for version, decoy in decoys_for(known[project], members).items()
    }


def _numbered(
    kept: Sequence[Release], decoys: Mapping[tuple[str, str], Decoy], ranks: Mapping[str, int], rules: ItemRules
) -> list[ProbeItem]:
    days: dict[date, list[Release]] = defaultdict(list)
    for release in kept:
        days[release.released_on or date.min].append(release)
    full = [day for day in sorted(days) if sum((r.project, r.version) in decoys for r in days[day]) >= rules.min_decoys]
    version = dataset_version([r for day in full for r in days[day]], decoys, ranks)
    return [
        _item(version, position, release, decoys.get((release.project, release.version)), ranks[release.project])
        for position, day in enumerate(full)
        for release in days[day]
    ]


def _item(version: str, position: int, release: Release, decoy: Decoy | None, rank: int) -> ProbeItem:
    assert release.released_on is not None
    return ProbeItem(
        dataset_version=version,
        position=position,
        released_on=release.released_on,
        project=release.project,
        version=release.version,
        decoy_version=decoy.version if decoy else None,
        decoy_kind=decoy.kind if decoy else None,
        salience_rank=rank,
        source=release.source,
        ecosystem=release.ecosystem,
        package=release.package,
        prompt=PROMPT.format(project=release.project, version=release.version),
    )


def dataset_version(kept: Iterable[Release], decoys: Mapping[tuple[str, str], Decoy], ranks: Mapping[str, int]) -> str:
    """The name of an item set: its last day and twelve digits of a digest.

    The digest is over days, projects with their ranks, versions and decoys: a rank decides which of a day's items are
    asked, so another rank is another set.
    """
    rows = sorted(
        (str(r.released_on), r.project, ranks[r.project], r.version, d.version if d else "")
        for r in kept
        for d in (decoys.get((r.project, r.version)),)
    )
    if not rows:
        return "empty"
    return f"{rows[-1][0]}-{hashlib.sha256(repr(rows).encode()).hexdigest()[:12]}"
