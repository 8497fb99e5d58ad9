"""Versions that spell out when they came, in any of the schemes by which projects number by the calendar.

A question with such a version gives its date away (M18), so it is never asked, and its line gives no decoys. Read are
years (2024.8.1), two-digit years at any place (24.8, 1.24.3), quarters (233), months (2403, 202403), weeks and days
(2435, 240315, 20240315, 24075), whole dates in three numbers (1.24.3.15) and Unix times. Numbers of five digits and
more, and years of four, speak for themselves; short ones are taken for a date only where the project goes on so.
What this cannot show: a scheme in its first year whose second number is no month.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from time import strptime

from strandline.releases import Release
from strandline.releases.dates import far_apart
from strandline.releases.versions import is_plain, parse, scheme_of

YEARS = range(1990, 2101)
"""Numbers that a first number of four digits is read as a year for."""
MIN_RUN = {0: 2, 1: 3, 2: 3}
"""Successive values of a number, by its place, that must each have come alone in the year they spell. In the first
place 2 find exactly the projects among the 490 committed ones that number by years; later places pass through the
year's number more often, so they take one more."""
MIN_MONTHS = 3
"""Lines of a single year that must each open in the month that their second number names: by chance 1 in 1,700."""
MIN_SHARE = 0.9
"""Share of a year's releases (or lines) that must fit, since late patches of last year's lines never do."""
MAX_ORDINAL = date.max.toordinal()
"""The last day that a date can be; one beside it may not exist."""
NEAR = {"day": timedelta(days=31), "month": timedelta(days=62), "second": timedelta(days=366)}
"""How far a date that a long number spells may be from the release's day. A build number of six digits falls within a
month of it by chance once in 16,000."""


def telling_date(releases: Sequence[Release]) -> list[Release]:
    """Releases of ONE project whose version spells out when they came; `releases` in any order.

    What the project's scheme is, is learnt from days that no source disputes.
    """
    dated = [(r, numbers) for r in releases if r.released_on is not None and (numbers := _numbers(r))]
    undisputed = [(r, numbers) for r, numbers in dated if not far_apart(r.days.values())]
    by_majority = _years_of_majority(undisputed)
    by_runs = _values_by_years(undisputed)
    return [
        release
        for release, numbers in dated
        if numbers[0] in YEARS
        or numbers[0] in by_majority
        or any((numbers[:place], numbers[place]) in by_runs for place in MIN_RUN if place < len(numbers))
        or (release.released_on is not None and spells_day(release.version, release.released_on))
    ]


def spells_day(version: str, day: date) -> bool:
    """Whether a plain version spells a date near this day by itself, whatever the project's other versions are."""
    if not is_plain(version):
        return False
    parts = version.split(".")
    numbers = [int(part) for part in parts]
    return (
        any(len(part) == 4 and abs(number - day.year) <= 1 for part, number in zip(parts, numbers, strict=True))
        or any(_is_near(part, day) for part in parts)
        or any(_is_date(triple, day) for triple in zip(numbers, numbers[1:], numbers[2:], strict=False))
        or any(_is_padded_month(pair, day) for pair in pairwise(parts))
    )


def _numbers(release: Release) -> tuple[int, ...]:
    parsed = parse(release.version, scheme_of(release.ecosystem))
    return () if parsed is None or parsed.is_prerelease else parsed.numbers


Dated = Sequence[tuple[Release, tuple[int, ...]]]


def _years_of_majority(dated: Dated) -> set[int]:
    """Two-digit years that nine tenths of a year's releases begin with, a month-like number behind; at least two."""
    years = [(r.released_on.year, numbers) for r, numbers in dated if r.released_on]
    totals = Counter(year for year, _ in years)
    fits = Counter(year for year, n in years if len(n) >= 2 and n[0] == year % 100 and n[1] <= 12)
    counted = {year % 100 for year, n in fits.items() if n >= MIN_SHARE * totals[year]}
    return counted if len(counted) >= 2 else set()


def _values_by_years(dated: Dated) -> set[tuple[tuple[int, ...], int]]:
    """(Numbers before, value) of every number that counts years, or quarters, in this project."""
    counting: set[tuple[tuple[int, ...], int]] = set()
    for place, least in MIN_RUN.items():
        firsts: dict[tuple[int, ...], dict[int, date]] = defaultdict(dict)
        for release, numbers in dated:
            if place < len(numbers) and release.released_on is not None:
                seen = firsts[numbers[:place]]
                seen[numbers[place]] = min(release.released_on, seen.get(numbers[place], date.max))
        for before, opened in firsts.items():
            counting |= {(before, value) for value in (*_runs(opened, least), *_quarters(opened))}
    return counting | {((), value) for value in _first_years(dated)}


def _runs(opened: dict[int, date], least: int) -> Iterator[int]:
    """Values in runs of at least `least` successive ones that each spell the year in which they, and no other, came.

    A line that opens in December may bear the year to come. A project that opens several values a year passes through
    the year's number without counting by it. A value between such runs that is a year late belongs to them.
    """
    years = {value: _year(value, day) for value, day in opened.items()}
    a_year = Counter(years.values())
    run: list[int] = []
    counting: list[int] = []
    for value in [*sorted(opened), None]:
        if value is not None and value < 100 and years[value] % 100 == value and a_year[years[value]] == 1:
            run.append(value)
            continue
        counting += run if len(run) >= least else []
        run = []
    for value in opened:
        is_between = bool(counting) and counting[0] < value < counting[-1]
        if value in counting or (is_between and abs(years[value] % 100 - value) <= 1):
            yield value


def _year(value: int, opened: date) -> int:
    """The year that a value came in; the next one where it came in December and bears that year."""
    return opened.year + (opened.month == 12 and (opened.year + 1) % 100 == value)


def _quarters(opened: dict[int, date]) -> list[int]:
    """Values of three digits that spell year and quarter, where nearly all such values of the project do."""
    values = [value for value in opened if 100 <= value <= 999]
    fits = [v for v in values if opened[v].year % 100 == v // 10 and 1 <= v % 10 <= 4]
    return fits if len({v // 10 for v in fits}) >= 2 and len(fits) >= MIN_SHARE * len(values) else []


def _first_years(dated: Dated) -> Iterator[int]:
    """First numbers that spell the year, and whose lines each open in the month that their second number names."""
    opened: dict[tuple[int, int], date] = {}
    for release, numbers in dated:
        if len(numbers) >= 2 and release.released_on is not None:
            line = numbers[0], numbers[1]
            opened[line] = min(release.released_on, opened.get(line, date.max))
    for first in {first for first, _ in opened}:
        lines = {second: day for (value, second), day in opened.items() if value == first}
        fits = [second for second, day in lines.items() if (day.year % 100, day.month) == (first, second)]
        if len(fits) >= MIN_MONTHS and len(fits) >= MIN_SHARE * len(lines):
            yield first


def _is_near(digits: str, day: date) -> bool:
    """Whether a number of four or more digits reads as a day, month, week or instant near this day."""
    return any(abs(read - day) <= NEAR[unit] for unit, read in _readings(digits))


def _readings(digits: str) -> Iterator[tuple[str, date]]:
    """What a number of four or more digits may spell, as the day and the unit it is told in."""
    for form, unit in _FORMS.get(len(digits), ()):
        try:
            text, shape = (digits + "1", form + "%w") if form.endswith("%W") else (digits, form)
            yield unit, date(*strptime(text, shape)[:3])
        except ValueError:
            continue
    seconds = {10: 1, 13: 1_000, 16: 1_000_000, 19: 1_000_000_000}.get(len(digits))
    if seconds:
        yield "second", datetime.fromtimestamp(int(digits) // seconds, UTC).date()


_FORMS = {
    4: (("%y%m", "day"), ("%y%W", "day")),
    5: (("%y%j", "day"),),
    6: (("%Y%m", "month"), ("%y%m%d", "day")),
    7: (("%Y%j", "day"),),
    8: (("%Y%m%d", "second"), ("%d%m%Y", "second"), ("%m%d%Y", "second")),
    10: (("%Y%m%d%H", "second"), ("%y%m%d%H%M", "day")),
    12: (("%Y%m%d%H%M", "second"), ("%y%m%d%H%M%S", "day")),
    14: (("%Y%m%d%H%M%S", "second"),),
}
"""Ways to write a date in so many digits, each with the unit that its nearness is judged by."""


def _is_date(triple: tuple[int, int, int], day: date) -> bool:
    """Whether three numbers are this day, or one beside it, as year-month-day, day-month-year or month-day-year."""
    days = [date.fromordinal(day.toordinal() + shift) for shift in (-1, 0, 1) if 1 < day.toordinal() < MAX_ORDINAL]
    spelled = {(d.year % 100, d.month, d.day) for d in days}
    first, second, third = triple
    return not spelled.isdisjoint({triple, (third, second, first), (third, first, second)})


def _is_padded_month(pair: tuple[str, str], day: date) -> bool:
    """Whether two numbers are the year and the month of this day, the month with a zero before it ('17.03')."""
    return pair[1].startswith("0") and (pair[0], pair[1]) == (f"{day:%y}", f"{day:%m}")
