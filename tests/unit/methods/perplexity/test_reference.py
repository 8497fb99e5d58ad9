"""The cross-fitted n-gram reference: equal to a plain implementation, blind to months, exact on ties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.perplexity.reference import Document, crossfit_scores, fold_of, reference_name, word_ids


def plain_scores(
    documents: list[Document], vocabulary: int, order: int, folds: int, discount: float
) -> dict[tuple[str, str], float]:
    """The same model with dictionaries, one topic at a time."""
    fold = fold_of([d.topic for d in documents], min(folds, len({d.topic for d in documents})))
    maxima: dict[str, dict[tuple[int, ...], int]] = {}
    for document in documents:
        counts: dict[tuple[int, ...], int] = {}
        for length in range(1, order + 1):
            for first in range(len(document.tokens) - length + 1):
                gram = tuple(document.tokens[first : first + length])
                counts[gram] = counts.get(gram, 0) + 1
        best = maxima.setdefault(document.topic, {})
        for gram, count in counts.items():
            best[gram] = max(best.get(gram, 0), count)
    scores = {}
    for document in documents:
        total: dict[tuple[int, ...], int] = {}
        for topic, grams in maxima.items():
            if fold[topic] != fold[document.topic]:
                for gram, count in grams.items():
                    total[gram] = total.get(gram, 0) + count
        nll = []
        for place in range(document.skip, len(document.tokens)):
            probability = 1 / vocabulary
            for length in range(1, min(order, place + 1) + 1):
                gram = tuple(document.tokens[place - length + 1 : place + 1])
                after = {g: c for g, c in total.items() if len(g) == length and g[:-1] == gram[:-1]}
                seen = sum(after.values())
                if seen:
                    kept = max(total.get(gram, 0) - discount, 0) / seen
                    probability = kept + discount * len(after) / seen * probability
            nll.append(-np.log(probability))
        if nll:
            scores[document.topic, document.key] = float(np.mean(nll))
    return scores


@settings(max_examples=25, deadline=None)
@given(
    texts=st.lists(
        st.lists(st.lists(st.integers(0, 5), min_size=0, max_size=9), min_size=1, max_size=3), min_size=2, max_size=5
    ),
    order=st.integers(1, 4),
    folds=st.integers(2, 4),
    skip=st.integers(0, 1),
)
def test_scores_equal_a_plain_implementation(texts: list[list[list[int]]], order: int, folds: int, skip: int) -> None:
    documents = [
        Document(f"t{t}", f"v{v}", tokens, skip)
        for t, versions in enumerate(texts)
        for v, tokens in enumerate(versions)
    ]
    scores = crossfit_scores(documents, vocabulary=7, order=order, folds=folds)
    expected = plain_scores(documents, 7, order, folds, 0.75)
    assert len(scores) == len(expected)
    for score, wanted in zip(scores, expected.values(), strict=True):
        assert abs(score.mean_nll - wanted) < 1e-9


def span(seed: int, topics: int = 12, months: int = 10) -> list[Document]:
    rng = np.random.default_rng(seed)
    documents = []
    for topic in range(topics):
        tokens = rng.integers(0, 50, 60)
        for month in range(months):
            tokens = tokens.copy()
            tokens[rng.integers(0, 60, 3)] = rng.integers(0, 50, 3)
            documents.append(Document(f"topic {topic}", f"{topic}/{month}", tokens.tolist()))
    return documents


def test_the_order_of_documents_and_repeated_months_change_nothing() -> None:
    documents = span(1)
    first = {score.key: score.mean_nll for score in crossfit_scores(documents)}
    turned = {score.key: score.mean_nll for score in crossfit_scores(documents[::-1] + documents[:40])}
    assert first.keys() == turned.keys()
    assert all(abs(first[key] - turned[key]) < 1e-12 for key in first)


def test_versions_with_the_same_tokens_get_the_same_score_to_the_last_bit() -> None:
    documents = span(2)
    copies = [Document(d.topic, d.key + "'", d.tokens) for d in documents]
    scores = {score.key: score.mean_nll for score in crossfit_scores(documents + copies)}
    assert all(scores[d.key] == scores[d.key + "'"] for d in documents)


def test_a_topic_is_never_scored_by_a_model_that_saw_it() -> None:
    documents = span(3)
    before = {score.key: score.mean_nll for score in crossfit_scores(documents, vocabulary=99)}
    other = [d if d.topic != "topic 0" else Document(d.topic, d.key, [98] * 60) for d in documents]
    after = {score.key: score.mean_nll for score in crossfit_scores(other, vocabulary=99)}
    fold = fold_of([d.topic for d in documents], 8)
    together = {topic for topic, number in fold.items() if number == fold["topic 0"]} - {"topic 0"}
    for document in documents:
        if document.topic in together:
            assert before[document.key] == pytest.approx(after[document.key], abs=1e-12)
    alone = Document("topic 0", "0/0", documents[0].tokens)
    memorised = crossfit_scores([alone, *documents[10:]], vocabulary=99)[0].mean_nll
    assert memorised == pytest.approx(before["0/0"], abs=1e-12)


def test_how_long_a_version_lasted_does_not_weigh() -> None:
    old, new = [1, 2, 3, 4] * 5, [1, 2, 9, 4] * 5
    documents = [Document(f"t{t}", f"{t}/old", old) for t in range(10)]
    documents += [Document(f"t{t}", f"{t}/new{m}", new) for t in range(10) for m in range(7)]
    scores = {score.key: score.mean_nll for score in crossfit_scores(documents)}
    assert scores["0/old"] == pytest.approx(scores["0/new0"], abs=1e-12)


def test_many_topics_are_fitted_in_blocks() -> None:
    documents = [Document(f"t{t}", str(t), [t % 7, 1, 2, t % 5]) for t in range(900)]
    scores = crossfit_scores(documents)
    assert len(scores) == 900
    assert np.isfinite([score.mean_nll for score in scores]).all()


def test_folds_are_equal_and_decided_by_names_alone() -> None:
    names = [f"topic {n}" for n in range(64)]
    folds = fold_of(names, 8)
    assert folds == fold_of(names[::-1], 8)
    assert sorted(np.bincount(list(folds.values()))) == [8] * 8


def test_what_cannot_be_fitted_is_refused() -> None:
    one = [Document("only", "a", [1, 2, 3])]
    with pytest.raises(ValueError, match="two topics"):
        crossfit_scores(one)
    with pytest.raises(ValueError, match="negative"):
        crossfit_scores([*one, Document("other", "b", [1, -2])])
    with pytest.raises(ValueError, match="discount"):
        crossfit_scores(one, discount=1.0)


def test_a_text_without_a_token_to_score_has_no_score() -> None:
    documents = [*span(4), Document("short", "s", [3]), Document("empty", "e", [])]
    assert {"s", "e"}.isdisjoint(score.key for score in crossfit_scores(documents))


def test_words_stand_in_for_tokens_and_names_tell_resource_and_tokenizer() -> None:
    vocabulary: dict[str, int] = {}
    assert word_ids(["a b, a"], vocabulary) == [[0, 1, 2, 0]]
    assert word_ids(["b!"], vocabulary) == [[1, 3]]
    assert reference_name("readme", "ab12") == "ngram5-crossfit:readme:ab12"
