"""Words that tables hold stand once, in the methods; what the schema says of them is compared here."""

import re
from pathlib import Path

import pytest

from assets.suites.corpus import SUITES
from strandline.corpus import SHARD_STATUSES
from strandline.corpus.dedup_audit import rules
from strandline.corpus.duplicates import CLASSES
from strandline.corpus.explanation import GAP_STATUSES
from strandline.corpus.histograms import COUNT_METHODS
from strandline.corpus.truth import OUTCOMES

WORDS = {
    "corpora.status": SHARD_STATUSES,
    "version_counts.method": COUNT_METHODS,
    "duplicate_pairs.class": CLASSES,
    "dedup_audit.rule": tuple(rules()),
    "explanations.status": GAP_STATUSES,
    "truth_checks.outcome": OUTCOMES,
}


@pytest.mark.parametrize("column", WORDS)
def test_the_comment_of_a_column_names_every_word_that_it_may_hold(column: str, root: Path) -> None:
    schema = (root / "sql" / "schema" / "corpus.sql").read_text(encoding="utf-8")
    (comment,) = re.findall(rf"comment on column corpus\.{re.escape(column)} is '([^']*)'", schema)
    said = re.sub(r"\([^)]*\)", "", comment)
    assert [word for word in re.findall(r"[a-z_]+", said) if word != "or"] == list(WORDS[column])


@pytest.mark.parametrize("column", WORDS)
def test_the_suite_of_a_table_lets_in_these_words_alone(column: str) -> None:
    table, name = column.split(".")
    sets = [
        each.arguments["value_set"]
        for each in SUITES[f"corpus.{table}"].expectations
        if each.expectation == "ExpectColumnValuesToBeInSet"
        and each.arguments["column"] == name
        and "mostly" not in each.arguments
    ]
    assert sets == [list(WORDS[column])]


@pytest.mark.parametrize("column", ["version_counts.method", "truth_checks.outcome"])
def test_the_constraint_of_a_column_lists_the_same_words(column: str, root: Path) -> None:
    schema = (root / "sql" / "schema" / "corpus.sql").read_text(encoding="utf-8")
    (listed,) = re.findall(rf"check \({column.split('.')[1]} in \(([^)]*)\)\)", schema)
    assert tuple(re.findall(r"'([a-z_]+)'", listed)) == WORDS[column]
