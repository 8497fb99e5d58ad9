"""Algorithm 2: discounted n-gram counts, month by month."""

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.corpus import ngrams as module
from strandline.corpus import topic_versions
from strandline.corpus.attribution import VersionMatcher
from strandline.corpus.ngrams import NgramHasher, count_ngrams
from tests.fakes.plain_ngrams import count_ngrams_plainly

JAN, FEB, MAR = (date(2020, month, 1) for month in (1, 2, 3))


def as_table(counts):
    return {(count.subcorpus, count.month): count.weight for count in counts}


def test_only_what_is_special_to_a_month_is_counted():
    topic = topic_versions("t", [(JAN, "a b c"), (FEB, "a b d")], None)
    counts = as_table(count_ngrams([topic], [("crawl", "a b d")], size=2))
    assert counts == {("crawl", JAN): 0, ("crawl", FEB): 1}


def test_what_is_common_to_all_months_is_discounted_as_a_multiset():
    first = topic_versions("first", [(JAN, "x y"), (FEB, "x y")], None)
    second = topic_versions("second", [(FEB, "x y z")], None)
    counts = as_table(count_ngrams([first, second], [("crawl", "x y"), ("crawl", "x y")], size=2))
    assert counts == {("crawl", JAN): 0, ("crawl", FEB): 2}


def test_a_shuffled_copy_is_ignored_by_attribution_and_counted_by_n_grams():
    sentences = [
        "The river floods its lower banks nearly every spring.",
        "A council of nine members votes on the yearly budget.",
        "Wheat and barley grow on the plateau north of town!",
        "Two ferries cross to the island when the ice is gone.",
        "Its museum shows tools from an abandoned copper mine.",
        "Most families moved here after the railway had opened.",
        "Winters are long, dark and very dry in this valley.",
    ]
    january, february = " ".join(sentences), " ".join(s.replace("votes on the", "decides the whole") for s in sentences)
    topic = topic_versions("t", [(JAN, january), (FEB, february)], None)
    shuffled = " ".join(s.replace("votes on the", "decides the whole") for s in sentences[::-1])
    assert VersionMatcher(topic).attribute(shuffled) is None
    counts = as_table(count_ngrams([topic], [("crawl", shuffled)]))
    assert counts["crawl", FEB] > 0
    assert counts["crawl", JAN] == 0


def test_only_the_first_words_of_a_hit_are_read():
    topic = topic_versions("t", [(JAN, "p q"), (FEB, "r s")], None)
    counts = as_table(count_ngrams([topic], [("crawl", "p q " + "w " * 10 + "r s")], size=2, hit_words=4))
    assert counts == {("crawl", JAN): 1, ("crawl", FEB): 0}


def test_counts_depend_neither_on_case_nor_on_leading_space():
    topic = topic_versions("t", [(JAN, "Old Town Hall"), (FEB, "New Town Hall")], None)
    plain = as_table(count_ngrams([topic], [("crawl", "New Town Hall")], size=2))
    assert as_table(count_ngrams([topic], [("crawl", "   NEW town\thall")], size=2)) == plain
    assert plain["crawl", FEB] == 1


def test_nothing_to_count_gives_zeros_or_nothing():
    topic = topic_versions("t", [(JAN, "a b c")], None)
    assert count_ngrams([topic], []) == []
    assert count_ngrams([], [("crawl", "a b c")]) == []
    assert as_table(count_ngrams([topic], [("crawl", "")], size=2)) == {("crawl", JAN): 0}


def test_n_grams_of_no_words_are_refused():
    with pytest.raises(ValueError, match="do not exist"):
        NgramHasher(0)


text = st.text("ab ", max_size=25)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from([JAN, FEB, MAR]), text), min_size=1, max_size=4), min_size=1, max_size=3
    ),
    st.lists(st.tuples(st.sampled_from(["c4", "wiki"]), text), max_size=4),
    st.integers(1, 3),
    st.integers(1, 12),
)
def test_the_vectorised_count_equals_the_counters_as_printed(groups, hits, size, hit_words):
    topics = []
    for place, group in enumerate(groups):
        monthly = {month: version for month, version in group if version.strip()}
        if monthly:
            topics.append(topic_versions(str(place), list(monthly.items()), None))
    assert as_table(count_ngrams(topics, hits, size, hit_words)) == count_ngrams_plainly(topics, hits, size, hit_words)


def test_counting_in_small_chunks_changes_nothing(monkeypatch):
    topic = topic_versions("t", [(JAN, "a b c d e f"), (FEB, "a b c x y z"), (MAR, "q r s t u v")], None)
    hits = [("crawl", "a b c x y z q r s"), ("wiki", "d e f a b c")]
    whole = count_ngrams([topic], hits, size=2)
    monkeypatch.setattr(module, "_CELLS", 6)
    assert count_ngrams([topic], hits, size=2) == whole
