"""BM25 whose statistics are those of a whole corpus: the formula, hostile input, and files that make no difference."""

from collections import Counter
from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.corpus.bm25 import (
    CorpusStatistics,
    joined_statistics,
    largest_ratio,
    query_words,
    score,
    stored_length,
)

WORDS = st.lists(st.sampled_from("abcdefgh"), max_size=30)


def statistics(texts: list[list[str]]) -> CorpusStatistics:
    counts = Counter(word for words in texts for word in set(words))
    return CorpusStatistics(len(texts), sum(map(len, texts)), counts)


def test_a_score_is_the_printed_formula() -> None:
    known = CorpusStatistics(10, 50, {"a": 3, "b": 10})
    saturation = 1.2 * (0.25 + 0.75 * 4 / 5)
    expected = 2 * log(1 + 7.5 / 3.5) * 1 * 2.2 / (1 + saturation) + log(1 + 0.5 / 10.5) * 3 * 2.2 / (3 + saturation)
    assert score(["a", "b", "b", "b"], {"a": 2, "b": 1, "c": 5}, known) == pytest.approx(expected, rel=1e-12)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(WORDS, max_size=8), min_size=1, max_size=5), WORDS, WORDS)
def test_statistics_of_files_joined_are_those_of_one_file(
    files: list[list[list[str]]], document: list[str], query: list[str]
) -> None:
    cut = joined_statistics(statistics(texts) for texts in files)
    whole = statistics([text for texts in files for text in texts])
    assert cut == whole
    assert cut.digest == whole.digest
    found = score(document, Counter(query), cut)
    assert found == score(document, Counter(query), whole)
    assert found >= 0
    assert (found > 0) == bool(set(document) & set(query))


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=8), st.lists(WORDS, min_size=1, max_size=8), WORDS, WORDS)
def test_a_file_never_understates_a_score_by_more_than_the_bound(
    here: list[list[str]], elsewhere: list[list[str]], document: list[str], query: list[str]
) -> None:
    whole, part = statistics(here + elsewhere), statistics(here)
    local = CorpusStatistics(whole.n_documents, whole.n_documents * part.mean_length, whole.frequencies)  # type: ignore[arg-type]
    exact = score(document, Counter(query), whole)
    assert exact <= score(document, Counter(query), local) * largest_ratio(part, whole) * (1 + 1e-12)


def test_nothing_is_divided_by_nothing() -> None:
    assert score(["a"], {"a": 1}, CorpusStatistics(0, 0, {})) > 0
    assert score([], {}, joined_statistics([])) == 0
    assert CorpusStatistics(1, 5, {"a": 9}).idf("a") > 0
    assert largest_ratio(CorpusStatistics(3, 0, {}), CorpusStatistics(3, 9, {})) == 3


def test_lengths_are_stored_as_the_engine_stores_them() -> None:
    table = {0: 0, 39: 39, 40: 40, 41: 40, 43: 42, 55: 54, 59: 56, 60: 60, 87: 84, 88: 88, 1000: 984}
    assert {length: stored_length(length) for length in table} == table


def test_query_words_are_the_first_ones_however_letters_are_written() -> None:
    assert query_words("B a b", 2) == {"b": 1, "a": 1}
    assert query_words("cafe\u0301 \u1112\u1161\u11ab", 9) == {"caf\u00e9": 1, "\ud55c": 1}
    assert query_words("x" * 40 + " short " + "y" * 39, 9) == {"short": 1, "y" * 39: 1}
    assert query_words("\u0939\u093f\u0902\u0926\u0940 x\u0331y", 9) == {
        "\u0939\u093f\u0902\u0926\u0940": 1,
        "x\u0331y": 1,
    }
    assert query_words("\u6f22\u5b57\u304b \u6f22", 9) == {"\u6f22\u5b57": 1, "\u5b57\u304b": 1, "\u6f22": 1}
