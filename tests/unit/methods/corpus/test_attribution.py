"""Algorithm 1: the nearest version of a topic, decided strictly and exactly."""

from datetime import date
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.corpus import attribution, topic_versions
from strandline.corpus.attribution import VersionMatcher, attribute_plainly, edits_allowed
from strandline.corpus.texts import nfc

JAN, FEB, MAR, APR = (date(2020, month, 1) for month in (1, 2, 3, 4))


def matcher(*texts: tuple[date, str]) -> VersionMatcher:
    return VersionMatcher(topic_versions("topic", texts, None))


def levenshtein(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        row, before = [i], row
        for j, b in enumerate(right, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b)))
    return row[-1]


def test_a_copy_is_attributed_to_the_month_of_its_version():
    found = matcher((JAN, "the mayor is Ann Smith"), (FEB, "the mayor is Bob Jones"))
    assert found.attribute("the mayor is Bob Jones!").months == (FEB,)
    assert found.attribute("the mayor is Ann Smith").distance == 0


def test_versions_that_tie_share_the_copy():
    found = matcher((JAN, "a long sentence A"), (FEB, "a long sentence A"), (MAR, "a long sentence B"))
    tied = found.attribute("a long sentence C")
    assert tied.months == (JAN, FEB, MAR)
    assert tied.share == pytest.approx(1 / 3)
    assert found.attribute("a long sentence A").months == (JAN, FEB)


@pytest.mark.parametrize("length", [5, 10, 15, 20, 35, 1000, 3335])
def test_a_distance_of_exactly_the_limit_is_not_a_match(length):
    version = "a" * length
    at_limit = length // 5
    document = "b" * at_limit + "a" * (length - at_limit)
    assert matcher((JAN, version)).attribute(document) is None
    under = "b" * (at_limit - 1) + "a" * (length - at_limit + 1)
    assert matcher((JAN, version)).attribute(under).edits == at_limit - 1


@given(st.integers(0, 5000), st.sampled_from([0.1, 0.15, 0.2, 0.3, 1.0]))
def test_the_edits_allowed_are_the_most_that_stay_strictly_under(length, limit):
    most = edits_allowed(length, limit)
    assert Fraction(str(limit)) * length > most if most >= 0 else length == 0
    assert most + 1 >= Fraction(str(limit)) * length


def test_the_distance_is_over_the_documents_characters_not_the_versions():
    version = "x" * 100
    short = "x" * 82
    assert matcher((JAN, version)).attribute(short) is None
    assert matcher((JAN, short)).attribute(version).distance == pytest.approx(18 / 100)


def test_composed_and_decomposed_letters_are_the_same_text():
    found = matcher((JAN, "Caf\u00e9 society in Paris"))
    assert found.attribute("Cafe\u0301 society in Paris").distance == 0


@pytest.mark.parametrize("empty", ["", "   ", "\n\t "])
def test_an_empty_document_is_never_matched(empty):
    assert matcher((JAN, "text"), (FEB, " ")).attribute(empty) is None


def test_an_empty_version_is_never_matched_and_a_topic_without_texts_is_refused():
    assert matcher((JAN, ""), (FEB, "some text")).attribute("some text").months == (FEB,)
    with pytest.raises(ValueError, match="no version has a text"):
        topic_versions("topic", [(JAN, ""), (FEB, "  ")], None)


@pytest.mark.parametrize("limit", [0, -0.1, 1.5, float("nan")])
def test_a_senseless_limit_is_refused(limit):
    with pytest.raises(ValueError, match="limit"):
        VersionMatcher(topic_versions("topic", [(JAN, "text")], None), limit)


def test_a_version_that_returns_later_counts_for_both_of_its_times():
    found = matcher((JAN, "first text"), (FEB, "second one"), (MAR, "first text"))
    assert found.attribute("first text").months == (JAN, MAR)


def test_the_query_is_the_version_of_the_reported_month_or_the_last_before_it():
    texts = [(FEB, "february"), (MAR, "march")]
    assert topic_versions("t", texts, MAR).query == "march"
    assert topic_versions("t", texts, APR).query == "march"
    assert topic_versions("t", texts, JAN).query == "february"
    assert topic_versions("t", texts, None).query == "march"


alphabet = st.text("abc é\U0001f600", max_size=30)


@settings(max_examples=300, deadline=None)
@given(st.lists(alphabet, min_size=1, max_size=6), alphabet, st.sampled_from([0.2, 0.5, 1.0]))
def test_attribution_equals_comparing_with_every_months_text(versions, document, limit):
    texts = [(date(2020, 1 + place, 1), text) for place, text in enumerate(versions)]
    if not any(text.strip() for text in versions):
        return
    fast = VersionMatcher(topic_versions("t", texts, None), limit).attribute(document)
    assert fast == attribute_plainly(document, texts, limit)


@settings(max_examples=100, deadline=None)
@given(st.text("abcd", min_size=1, max_size=20), st.text("abcd", min_size=1, max_size=20))
def test_the_distance_is_levenshteins(version, document):
    found = attribute_plainly(document, [(JAN, version)], 1.0)
    edits = levenshtein(document, version)
    assert (found is None and edits >= len(document)) or found.edits == edits


def a_year_of_edits(rng, letters, written, edits):
    """Twelve versions of a text of 3,000 letters, each with so many letters written over the one before."""
    text, texts = list(rng.choice(letters, size=3000)), []
    for month in range(1, 13):
        for place in rng.integers(0, 3000, size=edits):
            text[place] = str(rng.choice(written))
        texts.append((date(2020, month, 1), "".join(text)))
    return texts


def test_long_near_duplicates_are_told_apart_like_the_plain_loop():
    rng = np.random.default_rng(5)
    texts = a_year_of_edits(rng, list("abcdefgh     "), list("abcdefgh"), 15)
    found = VersionMatcher(topic_versions("t", texts, None))
    for month, version in texts:
        copy = list(version)
        for place in rng.integers(0, 3000, size=40):
            copy[place] = "z"
        document = "".join(copy)
        assert found.attribute(document) == attribute_plainly(document, texts)
        assert found.attribute(document).months == (month,)


@settings(max_examples=300, deadline=None)
@given(st.lists(alphabet.filter(str.strip), min_size=1, max_size=6, unique=True), alphabet)
def test_no_version_is_dropped_for_more_edits_than_it_has(versions, document):
    texts = [(date(2020, 1 + place, 1), text) for place, text in enumerate(versions)]
    topic = topic_versions("t", texts, None)
    bounds = VersionMatcher(topic)._lower_bounds(nfc(document)).tolist()
    edits = [levenshtein(nfc(document), version.text) for version in topic.versions]
    assert all(bound <= true for bound, true in zip(bounds, edits, strict=True))


def test_of_many_near_versions_hardly_more_than_the_nearest_is_compared(monkeypatch):
    rng = np.random.default_rng(6)
    texts = a_year_of_edits(rng, list("abcdefghijklmnop   "), list("qrstuvwxyz"), 30)
    found = VersionMatcher(topic_versions("t", texts, None))
    compared = []
    distance = attribution.Levenshtein.distance
    counting = SimpleNamespace(distance=lambda *given, **options: compared.append(1) or distance(*given, **options))
    monkeypatch.setattr(attribution, "Levenshtein", counting)
    for month, version in texts:
        copy = list(version)
        for place in rng.integers(0, 3000, size=60):
            copy[place] = "#"
        assert found.attribute("".join(copy)).months == (month,)
    assert len(compared) <= 1.5 * len(texts)
