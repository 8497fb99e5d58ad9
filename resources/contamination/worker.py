"""What a compute worker does with orderings: tokenize examples, and score batches of equal shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any

from resources.endpoints.completions import RemoteScorer, remote_scorer
from resources.models.weights import LanguageModels
from resources.perplexity.worker import LIBRARIES
from strandline.models import ModelSpec
from strandline.scoring.engine import Scorer
from strandline.scoring.language_model import LanguageModel
from strandline.scoring.prefix_tree import Request

PROBE_TOKENS = 256

Work = Callable[[Mapping[str, Any]], Any]


def order_worker(spec: ModelSpec, dtype: str, folder: str) -> Work:
    """A worker for two kinds of payload: ``texts`` to tokenize, and ``windows`` to score in batches of ``size``."""
    models = LanguageModels(Path(folder))

    def work(payload: Mapping[str, Any]) -> Any:
        lm = models.load(spec, payload.get("dtype", dtype))
        return _answer(payload, lm, Scorer(lm))

    return work


def remote_order_worker(spec: ModelSpec) -> Work:
    """The same for a served model that returns prompt log-probabilities; one that does not is refused by name."""
    scorer = remote_scorer(spec)
    return lambda payload: _answer(payload, scorer, scorer)


def _answer(payload: Mapping[str, Any], model: LanguageModel | RemoteScorer, scorer: Scorer | RemoteScorer) -> Any:
    if "texts" in payload:
        return _tokenized(payload["texts"], model, scorer)
    return [scorer.batch(window, payload["size"]) for window in payload["windows"]]


def _tokenized(
    texts: Sequence[str], model: LanguageModel | RemoteScorer, scorer: Scorer | RemoteScorer
) -> dict[str, Any]:
    """Ids of each text alone, and what belongs beside them; the rate is measured on the first tokens of the texts."""
    ids = model.token_ids(texts)
    head = [] if model.bos_id is None else [model.bos_id]
    room = min(PROBE_TOKENS, model.context_length or PROBE_TOKENS) - len(head)
    probe = [*head, *[i for row in ids for i in row][:room]]
    rate = _rate(probe, scorer) if len(probe) > 1 else None
    here = isinstance(model, LanguageModel)
    return {
        "ids": ids,
        "tokens_per_second": rate,
        "bos_id": model.bos_id,
        "context_length": model.context_length,
        "device": model.device,
        "libraries": " ".join(f"{name} {version(name)}" for name in LIBRARIES) if here else None,
    }


def _rate(probe: Sequence[int], scorer: Scorer | RemoteScorer) -> float:
    began = monotonic()
    scorer.batch([Request(tuple(probe))], 1)
    return len(probe) / max(1e-6, monotonic() - began)
