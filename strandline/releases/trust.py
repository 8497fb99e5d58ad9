"""Whether a registry's dates can be those of the releases.

Many mirrors and caches answer with the time at which THEY fetched a version. Such dates look like any other, and are
wrong by years; two things give them away: they contradict what is known, and they run against the order of versions.
What this cannot show: a mirror that fetched every version within days of its release.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise

from strandline.releases import Listing, Release
from strandline.releases.flags import uncertainty_days
from strandline.releases.versions import is_plain, numbers_of

MIRROR = "mirror_dates"
"""Flag of a version, and status of a source, whose days are those of a mirror's own fetches."""
MIN_COMPARED = 5
"""Fewer known days could differ by chance of one edited list."""
MAX_DIFFERING = 0.5
"""Of 76 releases checked, a registry's own days agreed with second-hand ones for all; a mirror's differ for most."""
MIN_PAIRS = 8
"""Fewer pairs of successive patches say little: with days at random half of them run backwards."""
MAX_BACKWARDS = 0.2
"""Of 56,024 such pairs of the committed facts 4 run backwards, in no project over 2 %; of a mirror that fetches at
random half do. Of 200 simulated mirrors of an unknown package at least 190 are caught."""


def agree(known: Release, day: date, source: str) -> bool:
    """Whether two dates of a release differ by no more than both sources are unsure of, and a day for time zones."""
    if known.released_on is None:
        return True
    unsure = uncertainty_days(known.source, known.project) + uncertainty_days(source, known.project)
    return abs((day - known.released_on).days) <= unsure + 1


def redated(known: Iterable[Release], listing: Listing) -> str | None:
    """Why the listing's dates cannot be those of the releases, in one sentence; None where nothing speaks against them.

    Of at least five versions whose day is known already, more than half differ; or, of at least eight pairs of
    neighbours within a line, more than a fifth are dated backwards.
    """
    days = {listed.version: listed.released_on for listed in listing.releases if listed.released_on is not None}
    compared = [r for r in known if r.released_on is not None and r.version in days]
    differing = [r for r in compared if not agree(r, days[r.version], listing.source)]
    if len(compared) >= MIN_COMPARED and len(differing) > MAX_DIFFERING * len(compared):
        return f"the registry gives other days for {len(differing)} of {len(compared)} known releases, as a mirror does"
    backwards, pairs = _backwards(days)
    if pairs >= MIN_PAIRS and backwards > MAX_BACKWARDS * pairs:
        return f"the registry dates {backwards} of {pairs} successive patches backwards, as a mirror does"
    return None


def _backwards(days: dict[str, date]) -> tuple[int, int]:
    lines: dict[tuple[int, ...], list[tuple[int, date]]] = defaultdict(list)
    for version, day in days.items():
        if is_plain(version):
            *line, last = numbers_of(version)
            lines[tuple(line)].append((last, day))
    gaps = [later[1] - earlier[1] for line in lines.values() for earlier, later in pairwise(sorted(line))]
    return sum(gap < timedelta(days=-1) for gap in gaps), len(gaps)


def without_dates(listing: Listing, why: str) -> Listing:
    """What is left of such a listing: that its versions exist. It withdraws nothing, and dates nothing."""
    releases = tuple(
        replace(listed, released_on=None, other_days=(), flags=tuple(sorted({*listed.flags, MIRROR})))
        for listed in listing.releases
    )
    return replace(listing, releases=releases, incomplete=True, note=why)
