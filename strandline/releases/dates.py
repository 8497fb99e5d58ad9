"""Days out of what registries write: one place that reads instants and dates as days in UTC, and compares them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any

EARLIEST = date(1990, 1, 1)
"""Days before it are zeros of clocks (1970, year 1) and no release days: package registries are younger."""
TOO_EARLY = "too_early"
"""Flag of a version whose day lies before its registry held anything."""
UNREADABLE = "unreadable_day"
"""Flag of a version whose registry gives something that is no day."""


MAX_APART_DAYS = 2
"""Two sources may differ by time zones and by a day between upload and announcement; more is a contradiction."""


def far_apart(days: Iterable[date]) -> bool:
    """Whether days that sources give for one release contradict each other."""
    ordered = sorted(days)
    return bool(ordered) and (ordered[-1] - ordered[0]).days > MAX_APART_DAYS


def utc_day(value: Any, since: date = EARLIEST) -> date | None:
    """The UTC day of an ISO instant or date.

    None for what is absent, not a text, unreadable, outside the years that a calendar has, or before `since`. An
    instant without a zone is taken as UTC, so the answer does not depend on where this runs.
    """
    return read_day(value, since)[0]


def read_day(value: Any, since: date = EARLIEST) -> tuple[date | None, tuple[str, ...]]:
    """The same, with a flag that says why there is none: `too_early` (before `since`) or `unreadable_day`.

    An absent value (None or an empty text) has neither a day nor a flag.
    """
    if value is None or value == "":
        return None, ()
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value.strip())
        day = (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)).date()
    except (ValueError, OverflowError, AttributeError, TypeError):
        return None, (UNREADABLE,)
    return (day, ()) if day >= since else (None, (TOO_EARLY,))
