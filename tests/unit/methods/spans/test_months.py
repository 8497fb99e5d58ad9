"""Months, their instants, and the revision in force."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import strategies as st

from strandline.spans.months import (
    month_range,
    month_start,
    next_month,
    reached,
    snapshot_instant,
    utc_instant,
)

INSTANTS = st.integers(946_684_800, 1_893_456_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


def test_a_month_label_means_the_first_instant_of_its_snapshot_day_in_utc() -> None:
    assert snapshot_instant(date(2020, 3, 1)) == datetime(2020, 3, 1, tzinfo=UTC)
    assert snapshot_instant(date(2020, 3, 1), 2) == datetime(2020, 3, 2, tzinfo=UTC)


@pytest.mark.parametrize("day", [0, 29, 31, -1])
def test_a_snapshot_day_that_some_month_lacks_is_refused(day: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 28"):
        snapshot_instant(date(2020, 3, 1), day)


def test_wikispan_has_85_months_and_newsspan_55() -> None:
    assert len(month_range(date(2016, 4, 1), date(2023, 4, 1))) == 85
    assert len(month_range(date(2016, 1, 1), date(2020, 7, 1))) == 55


def test_months_cross_the_year_and_refuse_to_run_backwards() -> None:
    assert next_month(date(2020, 12, 1)) == date(2021, 1, 1)
    with pytest.raises(ValueError, match="end"):
        month_range(date(2020, 2, 1), date(2020, 1, 1))


@pytest.mark.parametrize(
    ("value", "month"),
    [
        ("2020-03", date(2020, 3, 1)),
        ("2020-03-15", date(2020, 3, 1)),
        (date(2020, 3, 15), date(2020, 3, 1)),
        (datetime(2020, 3, 31, 23, 30, tzinfo=timezone(timedelta(hours=-2))), date(2020, 4, 1)),
    ],
)
def test_what_names_a_month(value: str | date, month: date) -> None:
    assert month_start(value) == month


@pytest.mark.parametrize("value", ["2020", "March 2020", "2020-13", ""])
def test_what_names_no_month_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="not a month"):
        month_start(value)


def test_months_still_to_come_are_not_reached() -> None:
    months = month_range(date(2020, 1, 1), date(2020, 4, 1))
    assert reached(months, 2, datetime(2020, 3, 1, 12, tzinfo=UTC)) == months[:2]


def test_an_instant_without_a_zone_is_utc() -> None:
    assert (
        utc_instant("2020-01-01T00:00:00")
        == utc_instant("2020-01-01T02:00:00+02:00")
        == datetime(2020, 1, 1, tzinfo=UTC)
    )
