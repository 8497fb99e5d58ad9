"""The quality suites of the span tables can fail: on nothing, on nulls, and on what must not be."""

from __future__ import annotations

import polars as pl
import pytest

from assets.suites.spans import STATUSES, SUITES
from resources.warehouse.schema import tables
from resources.warehouse.validation import validate

GOOD: dict[str, dict[str, object]] = {
    "spans.resources": {"resource": "r", "source": "git", "last_month": "x", "settings_sha256": "a" * 64},
    "spans.months": {"status": "ok", "n_documents": 2, "n_ok": 2, "fetched_at": "x"},
    "spans.revisions": {"topic": "t", "status": "ok", "text_sha256": "b" * 64, "n_chars": 5, "cleaned_by": "c-1"},
    "spans.texts": {"text_sha256": "c" * 64, "text": "words"},
}
BAD = [
    ("spans.resources", "source", "gopher"),
    ("spans.resources", "settings_sha256", "not a digest"),
    ("spans.months", "status", "deferred"),
    ("spans.months", "n_documents", 0),
    ("spans.months", "n_ok", 0),
    ("spans.revisions", "status", "fine"),
    ("spans.revisions", "text_sha256", "B" * 64),
    ("spans.revisions", "n_chars", 0),
    ("spans.revisions", "topic", ""),
    ("spans.texts", "text_sha256", ""),
    ("spans.texts", "text", ""),
]


def frame(table: str, **changes: object) -> pl.DataFrame:
    row = {**GOOD[table], **changes}
    return pl.DataFrame([row] * 4)


def test_every_span_table_has_a_suite() -> None:
    assert set(SUITES) == {name for name in tables() if name.startswith("spans.")} == set(GOOD)


@pytest.mark.parametrize("table", sorted(GOOD))
def test_good_rows_pass_and_none_or_only_nulls_fail(table: str) -> None:
    assert validate(table, frame(table), SUITES[table]).passed
    assert not validate(table, frame(table).clear(), SUITES[table]).passed
    nulls = frame(table).with_columns(
        pl.lit(None).cast(dtype).alias(name) for name, dtype in frame(table).schema.items()
    )
    assert not validate(table, nulls, SUITES[table]).passed


@pytest.mark.parametrize(("table", "column", "value"), BAD)
def test_what_must_not_be_fails(table: str, column: str, value: object) -> None:
    report = validate(table, frame(table, **{column: value}), SUITES[table])
    assert not report.passed
    assert not any(finding.crashed for finding in report.findings)


def test_statuses_are_single_words_in_lower_case() -> None:
    assert all(status.replace("_", "").isalpha() and status.islower() for status in STATUSES)
    assert len(set(STATUSES)) == len(STATUSES)
