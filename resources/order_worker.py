"""What a compute worker does with orderings: tokenize examples, and score batches of equal shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from resources.language_models import LanguageModels
from strandline.models import ModelSpec
from strandline.perplexity.engine import Scorer
from strandline.perplexity.language_model import LanguageModel
from strandline.perplexity.prefix_tree import Request
from strandline.perplexity.scores import SequenceScore

PROBE_TOKENS = 256


def order_worker(spec: ModelSpec, dtype: str, folder: str) -> Callable[[Mapping[str, Any]], Any]:
    """A worker for two kinds of payload: ``texts`` to tokenize, and ``windows`` to score in batches of ``size``."""
    models = LanguageModels(Path(folder))

    def work(payload: Mapping[str, Any]) -> Any:
        if "texts" in payload:
            return tokenized(models.load(spec, dtype), payload["texts"])
        return scored(models.load(spec, payload["dtype"]), payload["windows"], payload["size"])

    return work


def tokenized(lm: LanguageModel, texts: Sequence[str]) -> dict[str, Any]:
    """Ids of each text alone, and what belongs beside them; the rate is measured on the first tokens of the texts."""
    ids = lm.token_ids(texts)
    flat = lm.with_bos([i for row in ids for i in row][:PROBE_TOKENS])
    scorer = Scorer(lm)
    began = monotonic()
    scorer.batch([Request(tuple(flat))], 1)
    return {
        "ids": ids,
        "bos_id": lm.bos_id,
        "context_length": lm.context_length,
        "device": lm.device,
        "tokens_per_second": len(flat) / max(1e-6, monotonic() - began),
    }


def scored(lm: LanguageModel, windows: Sequence[Sequence[Request]], size: int) -> list[list[SequenceScore]]:
    """Scores of every window's sequences, each window a batch of exactly ``size``."""
    scorer = Scorer(lm)
    return [scorer.batch(window, size) for window in windows]
