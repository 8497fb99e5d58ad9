"""A reference that needs no download: an n-gram model of a resource, trained on all months of the OTHER topics.

Subtracting what a model without a cutoff makes of the same tokens is the largest single gain in dating a model. This
one is timeless by construction: within a topic an n-gram counts as often as in the version that holds it most often,
however many months that version lasted, so no month weighs more than another (on real text this is steadier than
weighing versions by their months); and a topic's versions are only scored by models that never saw the topic (K folds).
What it cannot show: it is weaker than a language model, so texts that become easier for language models alone stay in
the difference; on real text it has called the end of the range the lowest. What does NOT belong here: tokenizing (the
caller passes the ids that the target scored) and testing the reference (``estimates``).

Tested by tests/unit/methods/perplexity/test_reference.py against a plain dictionary implementation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from strandline.numeric_input import real_number, whole_number
from strandline.perplexity.differences import Floats, Ints

ORDER = 5
"""Longest n-gram: the usual order of smoothed n-gram models of this size of text."""

FOLDS = 8
"""Parts of the topics: a trade-off between text to train on (seven eighths) and memory."""

DISCOUNT = 0.75
"""Taken off every count: the value in common use for absolute discounting."""

BLOCK = 400
"""Topics that are fitted together: a bound on memory."""

LARGEST_VOCABULARY = 2**31
"""Token ids are stored as 32-bit integers."""

NGRAM_VERSION = "1"
"""Raised when the same texts would get other scores; part of what a stored reference counts for."""


@dataclass(frozen=True)
class Document:
    """One version of a topic: the token ids that the target model scored, its prefix token first if it has one.

    ``skip`` leading tokens are context only: 1, as in the target's own score (a token needs something before it).
    """

    topic: str
    key: str
    tokens: Sequence[int] | Ints
    skip: int = 1


@dataclass(frozen=True)
class ReferenceScore:
    """Mean negative log-likelihood (nats) of a document's tokens under the cross-fitted model, over ``n_tokens``."""

    key: str
    mean_nll: float
    n_tokens: int


@dataclass(frozen=True)
class _Level:
    """n-grams of one length: for each distinct one its context (n-1 first tokens), and where documents hold them.

    ``ids`` is the n-gram ending at each position of the stream, -1 where it would reach over a document's start.
    ``context`` gives, for each distinct n-gram, the id of its first n-1 tokens one level below.
    ``tokens_after`` is the last token; counts are topics' maxima summed over all topics or over one fold.
    """

    ids: Ints
    context: Ints
    counts: Floats
    by_fold: list[tuple[Ints, Floats]]


def reference_name(resource: str, tokenizer: str) -> str:
    """The model name under which these scores are stored: one reference a resource and tokenizer."""
    return f"ngram{ORDER}-crossfit:{resource}:{tokenizer}"


def fold_of(topics: Sequence[str], folds: int) -> dict[str, int]:
    """A fold for each topic: equal sizes, decided by the topic's name alone and not by the order it arrives in.

    ValueError for fewer than one fold.
    """
    whole_number(folds, "folds", 1)
    ranked = sorted(set(topics), key=lambda topic: (sha256(topic.encode()).digest(), topic))
    return {topic: rank % folds for rank, topic in enumerate(ranked)}


def crossfit_scores(
    documents: Sequence[Document],
    *,
    vocabulary: int | None = None,
    order: int = ORDER,
    folds: int = FOLDS,
    discount: float = DISCOUNT,
) -> list[ReferenceScore]:
    """Score each distinct document under interpolated absolute discounting, trained without its topic's fold.

    p_k(w|h) = max(c(hw) - D, 0) / c(h) + D t(h) / c(h) p_(k-1)(w|h'), with t(h) the number of distinct tokens after h;
    unseen contexts fall through, and p_0 is uniform over the vocabulary.

    Args:
        documents: all versions of all topics. Versions with the same tokens are one and get the same score to the last
            bit. More than 400 topics are split into blocks that are cross-fitted on their own, to bound memory.
        vocabulary: size of the token vocabulary; one more than the distinct tokens seen, where it is not given.
        order: longest n-gram.
        folds: parts that topics are split into; fewer topics make fewer folds.
        discount: taken off every count, strictly between 0 and 1.

    Returns:
        One score a distinct (topic, key), in the order of first appearance; documents that leave no token to score are
        absent.

    Raises:
        ValueError: for fewer than two topics (nothing to train on), token ids that are negative or no whole numbers,
            and settings out of range.
    """
    _check_settings(vocabulary, order, folds, discount)
    if not documents:
        raise ValueError("a cross-fitted reference needs at least two topics, got no document")
    scores: dict[tuple[str, str], ReferenceScore] = {}
    for block in blocks_of([document.topic for document in documents]):
        members = [document for document in documents if document.topic in block]
        scores |= _block_scores(members, vocabulary, order, folds, discount)
    keys = dict.fromkeys((document.topic, document.key) for document in documents)
    return [scores[key] for key in keys if key in scores]


def _check_settings(vocabulary: int | None, order: int, folds: int, discount: float) -> None:
    """ValueError where a setting of the cross-fitted reference is out of range."""
    whole_number(order, "order", 1)
    whole_number(folds, "folds", 2)
    if not 0 < real_number(discount, "discount") < 1:
        raise ValueError(f"discount lies between 0 and 1, got {discount}")
    if vocabulary is not None and whole_number(vocabulary, "vocabulary", 0) > LARGEST_VOCABULARY:
        raise ValueError(f"vocabulary is at most {LARGEST_VOCABULARY}, got {vocabulary}")


def blocks_of(topics: Sequence[str]) -> list[frozenset[str]]:
    """Parts of at most 400 topics that are fitted on their own, decided by the topics' names alone.

    A caller with many texts may fetch and score one block after the other, with the same result.
    """
    number = fold_of(topics, max(1, -(-len(set(topics)) // BLOCK)))
    blocks: dict[int, set[str]] = {}
    for topic, block in number.items():
        blocks.setdefault(block, set()).add(topic)
    return [frozenset(blocks[block]) for block in sorted(blocks)]


def _block_scores(
    documents: Sequence[Document], vocabulary: int | None, order: int, folds: int, discount: float
) -> dict[tuple[str, str], ReferenceScore]:
    keys = [(d.topic, d.skip, _token_ids(d).tobytes()) for d in documents]
    distinct = dict(zip(keys, documents, strict=True))
    means = dict(zip(distinct, _scored(list(distinct.values()), vocabulary, order, folds, discount), strict=True))
    scores: dict[tuple[str, str], ReferenceScore] = {}
    for key, document in zip(keys, documents, strict=True):
        mean, n_tokens = means[key]
        if n_tokens > 0:
            scores[document.topic, document.key] = ReferenceScore(document.key, mean, n_tokens)
    return scores


def _token_ids(document: Document) -> Ints:
    """The ids as integers; ValueError where they are something else, which NumPy would round."""
    ids = np.asarray(document.tokens)
    if ids.size and (ids.dtype.kind not in "iu" or ids.ndim != 1):
        raise ValueError(f"token ids are whole numbers in one row, got {ids.dtype} for {document.topic!r}")
    return ids.astype(np.int64).ravel()


def _scored(
    distinct: Sequence[Document], vocabulary: int | None, order: int, folds: int, discount: float
) -> list[tuple[float, int]]:
    topics = [document.topic for document in distinct]
    folds = min(folds, len(set(topics)))
    if folds < 2:
        raise ValueError("a cross-fitted reference needs at least two topics")
    stream, start, number = _stream(distinct)
    size = vocabulary if vocabulary is not None else len(np.unique(stream)) + 1
    fold = fold_of(topics, folds)
    topic_number = {topic: index for index, topic in enumerate(dict.fromkeys(topics))}
    topic_of = np.array([topic_number[topic] for topic in topics], dtype=np.int64)[number]
    fold_of_topic = np.array([fold[topic] for topic in topic_number], dtype=np.int64)
    levels = _levels(stream, start, number, topic_of, fold_of_topic, order, folds)
    nll = _stream_nll(levels, fold_of_topic[topic_of], folds, float(max(size, 1)), discount)
    return _document_means(distinct, nll)


def word_ids(texts: Sequence[str], vocabulary: dict[str, int]) -> list[list[int]]:
    """Ids of words, numbers and marks, a stand-in where the target's own tokens are out of reach.

    ``vocabulary`` holds the ids given so far, and new words are added to it.
    """
    from re import findall

    return [[vocabulary.setdefault(word, len(vocabulary)) for word in findall(r"\w+|[^\w\s]", text)] for text in texts]


def _stream(documents: Sequence[Document]) -> tuple[Ints, Ints, Ints]:
    """All tokens in one row, each position's document start and each position's document number."""
    lengths = np.array([len(document.tokens) for document in documents], dtype=np.int64)
    arrays = [_token_ids(document) for document in documents]
    stream = np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int64)
    if stream.size and stream.min() < 0:
        raise ValueError("token ids must not be negative")
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    number = np.repeat(np.arange(len(documents)), lengths)
    return stream, starts[number], number


def _levels(
    stream: Ints, start: Ints, number: Ints, topic_of: Ints, fold_of_topic: Ints, order: int, folds: int
) -> list[_Level]:
    levels: list[_Level] = []
    position = np.arange(len(stream))
    _, token = np.unique(stream, return_inverse=True)
    shorter = np.zeros(len(stream), dtype=np.int64)
    for length in range(1, order + 1):
        valid = position - start >= length - 1
        if length > 1:
            shorter = np.concatenate([[-1], levels[-1].ids[:-1]])
            valid &= shorter >= 0
        ids, context = _distinct_ids(shorter, token.astype(np.int64), valid)
        counts, by_fold = _counts(ids, number, topic_of, fold_of_topic, len(context), folds)
        levels.append(_Level(ids, context, counts, by_fold))
    return levels


def _distinct_ids(shorter: Ints, token: Ints, valid: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    width = int(token.max(initial=0)) + 1
    keys, inverse = np.unique(shorter[valid] * width + token[valid], return_inverse=True)
    ids = np.full(len(token), -1, dtype=np.int64)
    ids[valid] = inverse
    return ids, keys // width


def _counts(
    ids: Ints, number: Ints, topic_of: Ints, fold_of_topic: Ints, size: int, folds: int
) -> tuple[Floats, list[tuple[Ints, Floats]]]:
    """Counts of each n-gram over all topics, and each fold's share of them (n-gram ids and counts)."""
    held = ids >= 0
    in_document, repeats = np.unique(number[held] * size + ids[held], return_counts=True)
    document_topic = np.zeros(int(number.max(initial=0)) + 1, dtype=np.int64)
    document_topic[number] = topic_of
    in_topic, inverse = np.unique(document_topic[in_document // size] * size + in_document % size, return_inverse=True)
    most = np.zeros(len(in_topic), dtype=np.int64)
    np.maximum.at(most, inverse, repeats)
    ngram, fold = in_topic % size, fold_of_topic[in_topic // size]
    by_fold: list[tuple[Ints, Floats]] = []
    for part in range(folds):
        rows = fold == part
        own, where = np.unique(ngram[rows], return_inverse=True)
        held_there = np.bincount(where, weights=most[rows], minlength=len(own)).astype(np.float64)
        by_fold.append((own.astype(np.int64), held_there))
    return np.bincount(ngram, weights=most, minlength=size).astype(np.float64), by_fold


def _stream_nll(levels: list[_Level], fold_at: Ints, folds: int, size: float, discount: float) -> Floats:
    nll = np.zeros(len(fold_at))
    for part in range(folds):
        here = np.flatnonzero(fold_at == part)
        probability = np.full(len(here), 1 / size)
        for depth, level in enumerate(levels):
            counts = level.counts.copy()
            own, held = level.by_fold[part]
            counts[own] -= held
            contexts = len(levels[depth - 1].counts) if depth else 1
            seen = np.bincount(level.context, weights=counts, minlength=contexts)
            kinds = np.bincount(level.context, weights=counts > 0.5, minlength=contexts)
            ids = level.ids[here]
            rows = ids >= 0
            context = level.context[ids[rows]]
            total = seen[context]
            known = total > 0.5
            divisor = np.where(known, total, 1.0)
            kept = np.maximum(counts[ids[rows]] - discount, 0) / divisor
            mixed = kept + discount * kinds[context] / divisor * probability[rows]
            probability[rows] = np.where(known, mixed, probability[rows])
        nll[here] = -np.log(probability)
    return nll


def _document_means(documents: Sequence[Document], nll: Floats) -> list[tuple[float, int]]:
    ends = np.cumsum([len(document.tokens) for document in documents])
    parts = [
        nll[end - len(document.tokens) + document.skip : end] for document, end in zip(documents, ends, strict=True)
    ]
    return [(float(part.mean()) if len(part) else 0.0, len(part)) for part in parts]
