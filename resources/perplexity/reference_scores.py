"""Scores of the cross-fitted n-gram reference: texts out of the warehouse, scores into it, block by block.

The method belongs to ``strandline.perplexity.reference``. Nothing is fitted again while the texts, the tokenizer and
the method stay the same, which a row of ``perplexity.reference_tests``, written afterwards, says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from resources.warehouse.store import Merge, Replace, Warehouse, removal
from strandline.perplexity.differences import Ints
from strandline.perplexity.reference import (
    NGRAM_VERSION,
    Document,
    ReferenceScore,
    blocks_of,
    crossfit_scores,
    reference_name,
    word_ids,
)

DTYPE = "float64"
"""What the reference's probabilities are computed in."""

TOPICS_AT_ONCE = 50
"""Topics whose texts are read together: a trade-off between memory and queries."""


@dataclass(frozen=True)
class Encoder:
    """How texts become the ids that an n-gram reference counts.

    ``name`` tells tokenizers apart; ``ids`` gives the first so many ids of each text, without special tokens;
    ``vocabulary`` is the number of ids that exist, None where it is open. ``is_own`` says that they are the ids which
    the model itself scores.
    """

    name: str
    ids: Callable[[Sequence[str], int], list[list[int]]]
    vocabulary: int | None = None
    is_own: bool = True


@dataclass(frozen=True)
class NgramReference:
    """The stored reference of a resource: the name of its scores, what it was fitted on, and texts scored."""

    name: str
    texts_digest: str
    n_texts: int
    is_new: bool


def words_encoder() -> Encoder:
    """Words and marks in place of tokens, for models whose tokenizer is out of reach: nearly the same span of text."""

    vocabulary: dict[str, int] = {}

    def ids(texts: Sequence[str], max_tokens: int) -> list[list[int]]:
        return [words[:max_tokens] for words in word_ids(texts, vocabulary)]

    return Encoder("words", ids, is_own=False)


@dataclass(frozen=True)
class _Span:
    """The tokens that the model scored of each text: at most ``length`` in all, BOS first where it has one."""

    max_tokens: int
    bos_id: int | None
    length: int
    is_context_limited: bool

    def of(self, ids: Sequence[int]) -> Ints:
        head = [] if self.bos_id is None else [self.bos_id]
        return np.asarray([*head, *ids][: self.length], dtype=np.int64)


def ngram_reference(store: Warehouse, model: str, resource: str, encoder: Encoder) -> NgramReference | None:
    """The n-gram reference of a resource on the tokens that the model scored, fitted and stored where it is missing.

    Returns:
        None for fewer than two topics: there is nothing to fit on.
    """
    topics, texts = _topics_and_digest(store, resource)
    if len(topics) < 2:
        return None
    span = _span(store, model, resource, encoder)
    tokens = f"{encoder.name}-{span.length}" if span.is_context_limited else encoder.name
    name = _name(store, model, resource, tokens, span)
    digest = sha256(f"{NGRAM_VERSION} {tokens} {span.max_tokens} {span.bos_id} {texts}".encode()).hexdigest()[:16]
    known = _known(store, name, digest)
    if known is not None:
        return NgramReference(name, digest, known, False)
    n_texts = 0
    for number, block in enumerate(blocks_of(topics)):
        rows = _score_rows(name, span, _block_scores(store, resource, sorted(block), encoder, span))
        store.write(*(() if number else _forgotten(name)), Merge("perplexity.scores", rows))
        n_texts += len(rows)
    return NgramReference(name, digest, n_texts, True)


def _forgotten(name: str) -> tuple[Replace, Replace]:
    """The changes that take out an earlier fit and what was said of it, so that a killed run leaves no claim behind."""
    return removal("perplexity.scores", {"model": name}), removal("perplexity.reference_tests", {"reference": name})


def _topics_and_digest(store: Warehouse, resource: str) -> tuple[list[str], str]:
    """The topics of a resource that have a text, and a digest of all their texts."""
    rows = store.query(
        "with held as (select distinct topic, text_sha256 from spans.revisions where resource = ? and status = 'ok') "
        "select topic, md5(string_agg(text_sha256, ' ' order by text_sha256)) as digest "
        "from held group by topic order by topic",
        [resource],
    )
    return rows["topic"].to_list(), sha256(repr(rows.rows()).encode()).hexdigest()


def _span(store: Warehouse, model: str, resource: str, encoder: Encoder) -> _Span:
    max_tokens, bos_id, ended = store.query(
        "select max(resources.max_tokens), any_value(prefix_token), max(n_tokens) filter (is_context_limited) "
        "from spans.resources left join perplexity.scores on scores.max_tokens = resources.max_tokens "
        "and scores.model = ? and scores.status = 'ok' where resources.resource = ?",
        [model, resource],
    ).row(0)
    if not encoder.is_own:
        return _Span(max_tokens, None, max_tokens, False)
    whole = max_tokens + (bos_id is not None)
    return _Span(max_tokens, bos_id, whole if ended is None else ended + 1, ended is not None)


def _name(store: Warehouse, model: str, resource: str, tokens: str, span: _Span) -> str:
    """The name of the scores. Where another model of the same tokenizer, but of another BOS, has them, one's own.

    The BOS is the context of the first token, so that such models need references of different scores.
    """
    plain = reference_name(resource, tokens)
    others = store.query(
        "select count(*) from perplexity.reference_tests where reference = ? and model <> ? and exists "
        "(from perplexity.scores where scores.model = reference and prefix_token is distinct from ?)",
        [plain, model, span.bos_id],
    ).item()
    return reference_name(resource, f"{tokens}-prefix-{span.bos_id}") if others else plain


def _known(store: Warehouse, name: str, digest: str) -> int | None:
    """The texts that stored scores of that name cover, where they were fitted on these texts and settings."""
    n_texts = store.query(
        "select max(n_texts) as n_texts from perplexity.reference_tests where reference = ? and texts_digest = ?",
        [name, digest],
    ).item()
    held = store.query("select count(*) from perplexity.scores where model = ?", [name]).item()
    return int(n_texts) if n_texts is not None and held >= n_texts else None


def _block_scores(
    store: Warehouse, resource: str, topics: list[str], encoder: Encoder, span: _Span
) -> list[ReferenceScore]:
    documents: list[Document] = []
    for first in range(0, len(topics), TOPICS_AT_ONCE):
        rows = store.query(
            "with held as (select distinct topic, text_sha256 from spans.revisions "
            "where resource = ? and status = 'ok' and list_contains(?, topic)) "
            "select topic, text_sha256, text from held join spans.texts using (text_sha256) order by all",
            [resource, topics[first : first + TOPICS_AT_ONCE]],
        )
        for topic, key, ids in zip(
            rows["topic"], rows["text_sha256"], encoder.ids(rows["text"].to_list(), span.max_tokens), strict=True
        ):
            documents.append(Document(topic, key, span.of(ids)))
    return crossfit_scores(documents, vocabulary=encoder.vocabulary) if len(topics) > 1 else []


def _score_rows(name: str, span: _Span, scores: Sequence[ReferenceScore]) -> list[dict[str, object]]:
    first = {score.key: score for score in reversed(scores)}
    return [
        {
            "model": name,
            "text_sha256": key,
            "max_tokens": span.max_tokens,
            "n_tokens": score.n_tokens,
            "mean_nll": score.mean_nll,
            "perplexity": float(np.exp(score.mean_nll)),
            "status": "ok",
            "dtype": DTYPE,
            "prefix_token": span.bos_id,
            "scorer_version": f"ngram-{NGRAM_VERSION}",
        }
        for key, score in first.items()
    ]
