"""Months, and the instants they stand for.

A month label means the state at 00:00 UTC on its snapshot day (the first, unless set otherwise): that is what a
"March 2020 dump" holds. The revision in force is the newest at or before that instant.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime


def month_start(value: date | datetime | str) -> date:
    """The first day of the month of a date, an instant (taken in UTC) or a text such as `2020-03` or `2020-03-15`.

    Raises ValueError for a text that names no month.
    """
    if isinstance(value, datetime):
        value = value.astimezone(UTC).date() if value.tzinfo else value.date()
    if isinstance(value, date):
        return value.replace(day=1)
    text = value.strip()
    try:
        return date.fromisoformat(f"{text}-01" if len(text) == 7 else text).replace(day=1)
    except ValueError:
        raise ValueError(f"{value!r} is not a month; write it as 2020-03") from None


def next_month(month: date) -> date:
    """The first day of the month after."""
    return date(month.year + month.month // 12, month.month % 12 + 1, 1)


def month_range(first: date, last: date) -> tuple[date, ...]:
    """All months from `first` to `last`, both included. Raises ValueError where `last` lies before `first`."""
    month, last = month_start(first), month_start(last)
    if last < month:
        raise ValueError(f"months end ({last:%Y-%m}) before they begin ({month:%Y-%m})")
    months = []
    while month <= last:
        months.append(month)
        month = next_month(month)
    return tuple(months)


def snapshot_instant(month: date, snapshot_day: int = 1) -> datetime:
    """The UTC instant that a month label stands for. `snapshot_day` is 1…28, so that every month has it."""
    if not 1 <= snapshot_day <= 28:
        raise ValueError(f"snapshot_day is {snapshot_day}; it must lie between 1 and 28")
    return datetime(month.year, month.month, snapshot_day, tzinfo=UTC)


def reached(months: Iterable[date], snapshot_day: int, now: datetime) -> tuple[date, ...]:
    """Those months whose instant is not in the future: the state of the others does not exist yet."""
    return tuple(month for month in months if snapshot_instant(month, snapshot_day) <= now)


def utc_instant(text: str) -> datetime:
    """An ISO 8601 instant (`2020-03-01T00:00:00Z`, with or without fractions) in UTC; one without a zone is UTC."""
    moment = datetime.fromisoformat(text.strip())
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
