"""What a compute worker does with texts: load the model once, tokenize, score along the tree, give rows back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from resources.models.weights import LanguageModels
from resources.perplexity.path_store import PathStore
from strandline.models import ModelSpec
from strandline.models.keys import partition_key
from strandline.scoring.engine import SCORER_VERSION, SLICE_ROWS, score_texts
from strandline.scoring.path_reuse import PathReuse
from strandline.scoring.scores import KnownScore

LIBRARIES = ("torch", "transformers", "tokenizers")


def text_worker(
    spec: ModelSpec, dtype: str, cache: str, slice_rows: int = SLICE_ROWS, kept: PathStore | None = None
) -> Callable[[Mapping[str, Any]], list[dict[str, Any]]]:
    """A worker for payloads of ``texts`` by digest and ``max_tokens``: the rows of ``perplexity.scores``.

    A payload's ``known`` are earlier scores by the digest of their token ids. ``newest`` names the topics whose newest
    version a text is; where paths are ``kept``, its own is there for the version after it.
    """
    models = LanguageModels(Path(cache))
    facts = model_facts(models, spec, dtype)
    computed_by = [facts["weights_digest"], facts["library_versions"], SCORER_VERSION]
    version_of_paths = sha256("\n".join(computed_by).encode()).hexdigest()[:16]

    def known_paths(payload: Mapping[str, Any], device: str) -> PathReuse | None:
        if kept is None:
            return None
        files = kept.within(f"{partition_key(spec.name)} {facts['dtype']} {payload['max_tokens']}", version_of_paths)
        found = (files.find(topic, device) for topic in payload.get("topics", ()))
        return PathReuse([path for path in found if path], payload.get("newest", {}), files.keep)

    def work(payload: Mapping[str, Any]) -> list[dict[str, Any]]:
        known = {digest: KnownScore(**facts) for digest, facts in payload.get("known", {}).items()}
        lm = models.load(spec, dtype)
        paths = known_paths(payload, lm.device)
        scores = score_texts(lm, payload["texts"], payload["max_tokens"], slice_rows, known, paths)
        return [row(asdict(score), facts) for score in scores]

    return work


def model_facts(models: LanguageModels, spec: ModelSpec, dtype: str) -> dict[str, Any]:
    """What is the same in every row of this model."""
    lm = models.load(spec, dtype)
    return {
        "model": spec.name,
        "dtype": lm.dtype,
        "revision": lm.revision,
        "weights_digest": lm.digest,
        "tokenizer_digest": lm.tokenizer_digest,
        "quantisation": lm.quantisation,
        "device": lm.device,
        "library_versions": " ".join(f"{name} {version(name)}" for name in LIBRARIES),
        "scorer_version": SCORER_VERSION,
    }


def row(score: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """A row of ``perplexity.scores``: ``dtype`` is that of the weights, ``computed_in`` that of the score."""
    return {**score, "computed_in": score["dtype"], **facts}
