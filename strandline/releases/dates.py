"""Days out of what registries write: one place that reads instants and dates, always as days in UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

EARLIEST = date(1990, 1, 1)


def utc_day(value: Any) -> date | None:
    """The UTC day of an ISO instant or date.

    None for what is absent, not a text, unreadable or before 1990 (the zero of some clocks). An instant without a
    zone is taken as UTC, so the answer does not depend on where this runs.
    """
    if isinstance(value, datetime):
        return _checked(_as_utc(value).date())
    if not isinstance(value, str) or not value.strip():
        return None
    try:
        return _checked(_as_utc(datetime.fromisoformat(value.strip())).date())
    except ValueError:
        return None


def _as_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _checked(day: date) -> date | None:
    return day if day >= EARLIEST else None
