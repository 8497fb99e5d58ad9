"""A suite fails when it should, says which expectation, column and values, and tells a crash from bad data."""

from datetime import date, datetime

import polars as pl
import pytest

from resources.warehouse.validation import Expect, Suite, pandas_frame, validate

BETWEEN = Expect("ExpectColumnValuesToBeBetween", column="x", min_value=0, max_value=10)


def frame(**columns: list[object]) -> pl.DataFrame:
    return pl.DataFrame(columns)


def test_good_rows_pass() -> None:
    report = validate("t", frame(x=[1.0, 2.0]), (BETWEEN,))
    assert report.passed
    assert report.sentence == "t: 2 rows meet all 1 expectations"


@pytest.mark.parametrize(
    ("rows", "suite", "message"),
    [
        (frame(x=[1.0]).clear(), (BETWEEN,), "there are no rows"),
        (frame(x=[None, None]).cast(pl.Float64), (BETWEEN,), "every value of x is NULL"),
        (frame(x=[1.0, float("inf")]), (BETWEEN,), "1 values of x are not finite"),
        (frame(x=[1.0, float("nan")]), (BETWEEN,), "1 values of x are not finite"),
        (frame(x=[1.0]), (), "the suite has no expectations"),
        (frame(x=[1.0, 11.0]), (BETWEEN,), "ExpectColumnValuesToBeBetween on x failed for 1 values"),
    ],
)
def test_each_way_to_fail_has_its_own_message(rows: pl.DataFrame, suite: tuple[Expect, ...], message: str) -> None:
    report = validate("t", rows, suite)
    assert not report.passed
    assert message in [finding.message for finding in report.findings]


def test_a_finding_names_expectation_column_count_and_at_most_ten_samples() -> None:
    report = validate("t", frame(x=[float(i) for i in range(40)]), (BETWEEN,))
    (finding,) = report.findings
    assert (finding.expectation, finding.column, finding.unexpected_count) == ("ExpectColumnValuesToBeBetween", "x", 29)
    assert finding.samples == tuple(float(i) for i in range(11, 21))
    assert not finding.crashed


def test_a_missing_column_or_an_unknown_expectation_is_a_crash_with_its_text() -> None:
    missing = Expect("ExpectColumnValuesToBeBetween", column="y", min_value=0)
    report = validate("t", frame(x=[1.0]), (missing, Expect("ExpectMiracles", column="x"), BETWEEN))
    assert [finding.crashed for finding in report.findings] == [True, True]
    assert '"y"' in report.findings[0].message
    assert "ExpectMiracles" in report.findings[1].message


def test_a_column_may_be_null_or_a_table_empty_only_where_the_suite_says_so() -> None:
    empty = frame(x=[1.0]).clear()
    assert validate("t", empty, Suite((BETWEEN,), may_be_empty=True)).passed
    honest = Expect("ExpectColumnValuesToBeBetween", column="x", min_value=0, may_be_null=True)
    assert validate("t", frame(x=[None]).cast(pl.Float64), (honest,)).passed


def test_the_same_suite_runs_twice_in_one_process() -> None:
    first, second = (validate("t", frame(x=[1.0, 99.0]), (BETWEEN,)) for _ in range(2))
    assert first == second


def test_integers_dates_instants_and_null_keep_their_meaning_for_the_library() -> None:
    rows = pl.DataFrame(
        {
            "i": [1, None],
            "d": [date(2024, 2, 29), None],
            "t": [datetime(2024, 2, 29, 12), None],  # noqa: DTZ001
            "s": ["a", None],
            "b": [True, None],
            "f": [0.5, None],
            "l": [[date(2024, 1, 1)], None],
        }
    )
    converted = pandas_frame(rows)
    assert str(converted["i"].dtype) == "Int64"
    assert converted["i"][0] == 1
    assert converted["d"][0] == date(2024, 2, 29)
    assert str(converted["t"].dtype).startswith("datetime64")
    assert converted.isna().iloc[1].all()
    suite = (
        Expect("ExpectColumnValuesToBeBetween", column="i", min_value=1),
        Expect("ExpectColumnValuesToBeBetween", column="d", min_value=date(2024, 1, 1)),
        Expect("ExpectColumnValuesToBeBetween", column="t", min_value=datetime(2024, 1, 1)),  # noqa: DTZ001
        Expect("ExpectColumnValuesToBeInSet", column="s", value_set=["a"]),
    )
    assert validate("t", rows, suite).passed
    late = (Expect("ExpectColumnValuesToBeBetween", column="d", min_value=date(2025, 1, 1)),)
    assert not validate("t", rows, late).passed


def test_a_failed_check_says_first_what_the_rows_themselves_give_as_reasons() -> None:
    rows = pl.DataFrame(
        {"n": [None, None, 1], "status": ["failed", "failed", "ok"], "reason": ["no such file", "no such file", None]},
        schema={"n": pl.Int64, "status": pl.String, "reason": pl.String},
    )
    failing = validate("b.t", rows, [Expect("ExpectColumnValuesToBeInSet", column="status", value_set=["ok"])])
    assert failing.sentence.startswith("b.t: no such file; ExpectColumnValuesToBeInSet on status")
    passing = validate("b.t", rows, [Expect("ExpectColumnValuesToBeBetween", column="n", min_value=0, mostly=0.1)])
    assert passing.passed
    assert "no such file" not in passing.sentence
