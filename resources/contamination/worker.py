"""What a compute worker does with orderings: tokenize examples, and score batches of equal shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from resources.contamination.order_scoring import Tokenization
from resources.endpoints.completions import RemoteScorer, remote_scorer
from resources.models.libraries import library_versions
from resources.models.weights import LanguageModels
from strandline.contamination.order_batches import OrderBatch
from strandline.models import ModelSpec
from strandline.scoring.engine import Scorer
from strandline.scoring.language_model import LanguageModel
from strandline.scoring.prefix_tree import Request
from strandline.scoring.scores import SequenceScore

PROBE_TOKENS = 256
"""Tokens on which the rate of a worker is measured: about a second on one core, long enough not to be all overhead."""

BatchScores = list[list[SequenceScore]]


@dataclass(frozen=True)
class TokenizeTexts:
    """The payload that asks for ids of texts; the other payload is a batch of orders to score."""

    texts: tuple[str, ...]


Payload = TokenizeTexts | OrderBatch
Work = Callable[[Payload], Tokenization | BatchScores]


def order_worker(spec: ModelSpec, dtype: str, folder: str) -> Work:
    """A worker that tokenizes in the model's format and scores every batch in the batch's own."""
    models = LanguageModels(Path(folder))

    def work(payload: Payload) -> Tokenization | BatchScores:
        lm = models.load(spec, payload.dtype if isinstance(payload, OrderBatch) else dtype)
        return _answer(payload, lm, Scorer(lm))

    return work


def remote_order_worker(spec: ModelSpec) -> Work:
    """The same for a served model that returns prompt log-probabilities; one that does not is refused by name."""
    scorer = remote_scorer(spec)
    return lambda payload: _answer(payload, scorer, scorer)


def _answer(
    payload: Payload, model: LanguageModel | RemoteScorer, scorer: Scorer | RemoteScorer
) -> Tokenization | BatchScores:
    if isinstance(payload, TokenizeTexts):
        return _tokenized(payload.texts, model, scorer)
    return [scorer.batch(window, payload.size) for window in payload.windows]


def _tokenized(
    texts: Sequence[str], model: LanguageModel | RemoteScorer, scorer: Scorer | RemoteScorer
) -> Tokenization:
    """Ids of each text alone, and what belongs beside them; the rate is measured on the first tokens of the texts."""
    ids = model.token_ids(texts)
    head = [] if model.bos_id is None else [model.bos_id]
    room = min(PROBE_TOKENS, model.context_length or PROBE_TOKENS) - len(head)
    probe = [*head, *[i for row in ids for i in row][:room]]
    here = isinstance(model, LanguageModel)
    return Tokenization(
        ids,
        model.bos_id,
        model.context_length,
        _rate(probe, scorer) if len(probe) > 1 else None,
        model.device,
        library_versions() if here else None,
    )


def _rate(probe: Sequence[int], scorer: Scorer | RemoteScorer) -> float:
    began = monotonic()
    scorer.batch([Request(tuple(probe))], 1)
    return len(probe) / max(1e-6, monotonic() - began)
