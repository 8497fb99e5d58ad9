"""The words of verdicts and statuses stand once: constraints and comments of the tables, suites and pages have them
all."""

import re
from pathlib import Path

import duckdb
import pytest

from assets.suites.contamination import SUITES
from console.summary import VERDICTS as SAID
from resources.warehouse.schema import SCHEMA_DIR, table
from strandline.contamination.statuses import (
    BENCHMARK_STATUSES,
    COUNTED,
    ORDER_CHECK_STATUSES,
    ORDERING_STATUSES,
    SHARD_STATUSES,
    VERDICT_WORDS,
    VERDICTS,
)

WORDS = {
    ("benchmarks", "status"): BENCHMARK_STATUSES,
    ("order_checks", "status"): ORDER_CHECK_STATUSES,
    ("order_logliks", "status"): ORDERING_STATUSES,
    ("shard_tests", "status"): SHARD_STATUSES,
    ("tests", "verdict"): VERDICT_WORDS,
}


@pytest.mark.parametrize(("name", "column"), WORDS)
def test_a_tables_constraint_and_comment_have_the_words_of_the_method(name: str, column: str) -> None:
    with duckdb.connect() as connection:
        connection.execute((SCHEMA_DIR / "contamination.sql").read_text(encoding="utf-8"))
        checks = connection.execute(
            "select constraint_text from duckdb_constraints() where table_name = ? and constraint_type = 'CHECK'",
            [name],
        ).fetchall()
    [constraint] = [text for (text,) in checks if column in text]
    assert set(re.findall(r"'(\w+)'", constraint)) == set(WORDS[name, column])
    declared = table(f"contamination.{name}").column(column)
    assert declared is not None
    assert set(WORDS[name, column]) <= set(re.findall(r"\w+", declared.comment))


@pytest.mark.parametrize(("name", "column"), [key for key in WORDS if key != ("benchmarks", "status")])
def test_a_suite_lets_the_words_of_the_method_pass(name: str, column: str) -> None:
    sets = [e.arguments["value_set"] for e in SUITES[f"contamination.{name}"].expectations
            if e.column == column and "mostly" not in e.arguments]  # fmt: skip
    assert sets == [[*WORDS[name, column]]]


def test_a_benchmark_that_could_not_be_read_does_not_pass() -> None:
    sets = [e.arguments["value_set"] for e in SUITES["contamination.benchmarks"].expectations if e.column == "status"]
    assert sets == [["ok"]]


def test_every_verdict_is_said_in_words_and_explained_on_the_page(root: Path) -> None:
    assert set(SAID) == set(VERDICTS)
    page = (root / "docs" / "methods" / "contamination-tests.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == [*VERDICTS]
    assert set(COUNTED) < set(VERDICTS)
