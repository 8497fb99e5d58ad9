"""MinHash signatures: equal sets, unbiased estimates, and the pairs that bands bring together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.corpus.signatures import (
    band_keys,
    candidate_pairs,
    group_pairs,
    jaccard,
    shingle_hashes,
    signatures,
)

VOCABULARY = [f"word{n}" for n in range(500)]


def text_of(rng, n_words):
    return " ".join(rng.choice(VOCABULARY, size=n_words))


def shingle_set(text):
    words = text.lower().split()
    return {tuple(words[place : place + 5]) for place in range(max(1, len(words) - 4))} if words else set()


def altered(rng, text, share):
    words = text.split()
    for place in rng.choice(len(words), size=round(share * len(words)), replace=False):
        words[place] = "changed"
    return " ".join(words)


@settings(max_examples=200, deadline=None)
@given(st.text("abc \n", max_size=60), st.text("abc \n", max_size=60))
def test_jaccard_equals_that_of_the_shingle_sets(left, right):
    ours, theirs = shingle_set(left), shingle_set(right)
    expected = len(ours & theirs) / len(ours | theirs) if ours & theirs else 0.0
    assert jaccard(shingle_hashes(left), shingle_hashes(right)) == pytest.approx(expected)


def test_a_signature_does_not_depend_on_the_batch_it_is_made_in():
    rng = np.random.default_rng(1)
    texts = [text_of(rng, n) for n in (0, 1, 4, 5, 30, 400, 3)] + ["", "…", "one  ", "naïve Ünïcode 東京"]
    together = signatures(texts)
    for row, text in enumerate(texts):
        assert (signatures([text])[0] == together[row]).all()


def test_equal_sets_of_shingles_have_equal_signatures_whatever_the_case_and_spacing():
    text = "The quick brown fox jumps over the lazy dog"
    assert (signatures([text]) == signatures([f"  {text.upper().replace(' ', '   ')}."])).all()


@pytest.mark.parametrize("n_words", [20, 60, 400, 3000])
def test_the_share_of_equal_bins_estimates_jaccard_without_bias(n_words):
    rng = np.random.default_rng(n_words)
    errors = []
    for _ in range(200):
        text = text_of(rng, n_words)
        other = altered(rng, text, rng.uniform(0.0, 0.12))
        left, right = signatures([text, other])
        errors.append((left == right).mean() - jaccard(shingle_hashes(text), shingle_hashes(other)))
    assert abs(np.mean(errors)) < 3.5 * np.std(errors) / len(errors) ** 0.5 + 0.005
    assert np.std(errors) < 0.09


def test_near_duplicates_become_candidates_and_unrelated_texts_hardly_ever():
    rng = np.random.default_rng(2)
    texts = [text_of(rng, 300) for _ in range(300)]
    copies = [altered(rng, text, 0.015) for text in texts]
    similar = [jaccard(shingle_hashes(a), shingle_hashes(b)) >= 0.8 for a, b in zip(texts, copies, strict=True)]
    found = set(candidate_pairs(band_keys(signatures(texts + copies))))
    recalled = [(row, row + 300) in found for row in range(300) if similar[row]]
    assert len(recalled) > 200
    assert sum(recalled) / len(recalled) >= 0.99
    assert len({pair for pair in found if pair[1] - pair[0] != 300}) < 5


def test_a_crowd_of_equal_pages_stays_connected_without_all_pairs():
    pairs = set(group_pairs(list(range(1000))))
    assert len(pairs) < 2000
    assert {right for left, right in pairs if left == 0} == set(range(1, 1000))


def test_signatures_agree_with_datasketch_about_similarity():
    datasketch = pytest.importorskip("datasketch")
    rng = np.random.default_rng(4)
    differences = []
    for _ in range(60):
        text = text_of(rng, 300)
        other = altered(rng, text, rng.uniform(0.0, 0.1))
        theirs = []
        for each in (text, other):
            reference = datasketch.MinHash(num_perm=128, seed=1)
            reference.update_batch([" ".join(shingle).encode() for shingle in shingle_set(each)])
            theirs.append(reference)
        left, right = signatures([text, other])
        differences.append((left == right).mean() - theirs[0].jaccard(theirs[1]))
    assert abs(np.mean(differences)) < 0.03
