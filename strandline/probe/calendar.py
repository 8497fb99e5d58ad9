"""The calendar that a probe asks about: eligible days and the releases on each, from rows of releases.probe_items.

What makes a release askable, and how its decoy was chosen, is decided in `strandline.releases`; how a day's items
are picked for a round is decided by the policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from strandline.numeric_input import real_number, whole_number
from strandline.probe import Kind, Question
from strandline.releases.versions import natural

MIN_ITEMS = 5
"""Releases that a day needs to be asked about: the five of a round (M29)."""
UNRANKED = 1_000_000
"""Rank of a project without one: behind all that have one."""


MOST_A_DAY = 14
"""Releases of the fullest day of a synthetic calendar: about as many as the committed facts have before thinning."""


@dataclass(frozen=True)
class Item:
    """A release that can be asked about, and the version beside it that was never released (None: no decoy)."""

    released_on: date
    project: str
    version: str
    decoy_version: str | None
    salience_rank: int = UNRANKED

    def key(self, kind: Kind) -> tuple[str, str, str]:
        """What makes two questions the same question: kind, project and version."""
        return (kind, self.project, self.version if kind == "real" else str(self.decoy_version))

    def question(self, position: int, kind: Kind) -> Question:
        """The question about this release or about its decoy."""
        return Question(position, self.released_on, self.project, self.key(kind)[2], kind)


@dataclass(frozen=True)
class Calendar:
    """N eligible days in order (index 0…N-1), each with at least `MIN_ITEMS` items in order of salience."""

    dataset_version: str
    days: tuple[date, ...]
    items: tuple[tuple[Item, ...], ...]

    @property
    def n_days(self) -> int:
        """Number of eligible days, N."""
        return len(self.days)

    @cached_property
    def ordinals(self) -> npt.NDArray[np.float64]:
        """Each day as a proleptic day number, shape (N,)."""
        return np.array([day.toordinal() for day in self.days], dtype=np.float64)

    @cached_property
    def index(self) -> dict[date, int]:
        """Day to its index."""
        return {day: i for i, day in enumerate(self.days)}


def salience_key(item: Item) -> tuple[int, str, tuple[tuple[int, int, str], ...]]:
    """Order of preference on a day (M32): widely known projects first, then by name and version."""
    return (item.salience_rank, item.project, natural(item.version))


def distinct_first(items: Iterable[Item]) -> list[Item]:
    """The same items in order, but each project once before any project's second release (M33)."""
    seen: set[str] = set()
    first: list[Item] = []
    repeats: list[Item] = []
    for item in items:
        (repeats if item.project in seen else first).append(item)
        seen.add(item.project)
    return first + repeats


def item_from_row(row: Mapping[str, Any]) -> Item:
    """One row of releases.probe_items as an item; ValueError where a needed column is missing or empty."""
    for column in ("released_on", "project", "version"):
        if row.get(column) in (None, ""):
            raise ValueError(f"a probe item lacks {column}: {dict(row)}")
    rank, decoy = row.get("salience_rank"), row.get("decoy_version") or None
    if not all(isinstance(text, str) for text in (row["project"], row["version"], decoy or "")):
        raise ValueError(f"project and versions of a probe item are texts: {dict(row)}")
    salience = UNRANKED if rank is None else whole_number(rank, "the salience rank of a probe item", 0)
    return Item(_day(row["released_on"]), row["project"], row["version"], decoy, salience)


def _day(value: object) -> date:
    """A day that is a date, or an ISO date as text."""
    try:
        day = date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        day = None
    if not isinstance(day, date) or isinstance(day, datetime):
        raise ValueError(f"the day of a probe item is a date, got {value!r}")
    return day


def build_calendar(
    rows: Iterable[Mapping[str, Any]], *, min_items: int = MIN_ITEMS, dataset_version: str | None = None
) -> Calendar:
    """Eligible days and their items from rows of releases.probe_items, in any order.

    A day is eligible with at least `min_items` distinct releases (M29); the calendar is sorted by date (M22), the
    items of a day by salience (M32). A release given twice keeps its first row in (decoy, rank) order. Raises
    ValueError where rows of several dataset versions are mixed or fewer than two days are eligible.
    """
    whole_number(min_items, "the least number of releases of a day", 1)
    rows = list(rows)
    versions = {str(r["dataset_version"]) for r in rows if r.get("dataset_version") is not None}
    if dataset_version is None and len(versions) > 1:
        raise ValueError(f"rows of several dataset versions: {sorted(versions)}")
    by_day: dict[date, dict[tuple[str, str], Item]] = {}
    for item in sorted(map(item_from_row, rows), key=lambda i: (i.decoy_version or "", i.salience_rank)):
        by_day.setdefault(item.released_on, {}).setdefault((item.project, item.version), item)
    days = sorted(day for day, items in by_day.items() if len(items) >= min_items)
    if len(days) < 2:
        raise ValueError(f"a calendar needs two days with {min_items} releases or more; there are {len(days)}")
    items = tuple(tuple(sorted(by_day[day].values(), key=salience_key)) for day in days)
    return Calendar(dataset_version or next(iter(versions), "unversioned"), tuple(days), items)


def synthetic_calendar(n_days: int = 723, *, seed: int = 0, n_projects: int = 120) -> Calendar:
    """A made-up calendar for simulation: gaps of 1 to 7 days, 5 to 14 releases a day, projects of unequal activity.

    ValueError for fewer than two days, or fewer projects than a day may hold.
    """
    whole_number(n_days, "the number of days", 2)
    whole_number(n_projects, "the number of projects", MOST_A_DAY)
    whole_number(seed, "the seed", 0)
    rng = np.random.default_rng(seed)
    gaps = rng.choice([1, 2, 3, 4, 5, 7], size=n_days, p=[0.38, 0.24, 0.16, 0.1, 0.07, 0.05])
    starts = date(2020, 1, 1).toordinal() + np.cumsum(gaps)
    activity = 1.0 / np.arange(1, n_projects + 1) ** 0.6
    counts = np.zeros(n_projects, dtype=int)
    rows = []
    for ordinal in starts:
        picked = rng.choice(
            n_projects, size=rng.integers(MIN_ITEMS, MOST_A_DAY + 1), replace=False, p=activity / activity.sum()
        )
        for p in picked:
            counts[p] += 1
            rows.append(_synthetic_row(int(ordinal), int(p), int(counts[p])))
    return build_calendar(rows, dataset_version=f"synthetic-{n_days}-{seed}")


def _synthetic_row(ordinal: int, project: int, count: int) -> dict[str, Any]:
    major, minor = divmod(count, 40)
    return {
        "released_on": date.fromordinal(ordinal),
        "project": f"project {project:03d}",
        "version": f"{major}.{minor}.0",
        "decoy_version": f"{major}.{minor}.37",
        "salience_rank": project,
    }


def day_of(ordinal: float) -> date:
    """The calendar day of a whole day number; ValueError outside the years 1 to 9999."""
    number = round(real_number(ordinal, "a day number"))
    if not 1 <= number <= date.max.toordinal():
        raise ValueError(f"day number {ordinal!r} lies outside the calendar of the years 1 to 9999")
    return date.fromordinal(number)
