"""Results as people read them: nothing cut, nothing crammed."""

from datetime import UTC, date, datetime

import polars as pl

from console.row_text import as_text


def test_a_result_that_fits_is_a_table() -> None:
    rows = pl.DataFrame({"month": [date(2024, 3, 1), None], "weight": [0.1 + 0.2, 25.0]})
    assert as_text(rows) == "month       weight\n----------  ------\n2024-03-01  0.3\nNULL        25"


def test_a_result_that_is_too_wide_is_one_record_below_the_other_with_every_word() -> None:
    reason = "the curve does not move " * 20
    text = as_text(pl.DataFrame({"model": ["a", "b"], "reason": [reason, "short"]}), width=100)
    assert text.splitlines()[:2] == ["row 1", "  model   a"]
    assert reason in text
    assert text.endswith("row 2\n  model   b\n  reason  short")


def test_every_column_of_a_very_wide_result_is_named_once_a_row() -> None:
    rows = pl.DataFrame({f"column_{i}": [i] for i in range(40)})
    assert as_text(rows, width=80).count("column_") == 40


def test_lines_inside_a_value_stay_in_their_column() -> None:
    assert as_text(pl.DataFrame({"text": ["one\ntwo"]})) == "row 1\n  text  one\n        two"


def test_no_rows_are_said_to_be_none() -> None:
    assert as_text(pl.DataFrame({"a": [], "b": []})).endswith("(no rows)")
    assert as_text(pl.DataFrame({f"column_{i}": [] for i in range(40)}), width=80).endswith("(no rows)")


def test_lists_instants_and_truth_are_plain_words() -> None:
    rows = pl.DataFrame({"a": [[1.5, None]], "b": [datetime(2024, 3, 1, 4, 5, 6, 7, tzinfo=UTC)], "c": [True]})
    assert as_text(rows).splitlines()[-1] == "[1.5, NULL]  2024-03-01 04:05:06  true"
