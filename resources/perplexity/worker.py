"""What a compute worker does with texts: load the model once, tokenize, score along the tree, give rows back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from resources.models.libraries import library_versions
from resources.models.weights import LanguageModels
from resources.perplexity.path_store import PathStore
from strandline.models import ModelSpec
from strandline.models.keys import partition_key
from strandline.scoring.engine import SCORER_VERSION, SLICE_ROWS, score_texts
from strandline.scoring.language_model import LanguageModel, ids_digest
from strandline.scoring.path_reuse import PathReuse
from strandline.scoring.scores import KnownScore, TextScore


class TextPayload(TypedDict):
    """The texts of one task.

    ``texts`` by digest; ``known`` are stored scores by the digest of their token ids; ``topics`` are those of the
    texts, ``newest`` the topics whose newest version a text is, by the text's digest.
    """

    texts: Mapping[str, str]
    max_tokens: int
    known: NotRequired[Mapping[str, Mapping[str, Any]]]
    topics: NotRequired[list[str]]
    newest: NotRequired[Mapping[str, list[str]]]


class ModelFacts(TypedDict):
    """What is the same in every row of ``perplexity.scores`` of one model."""

    model: str
    dtype: str
    revision: str | None
    weights_digest: str
    tokenizer_digest: str | None
    quantisation: str | None
    device: str
    library_versions: str
    scorer_version: str


def text_worker(
    spec: ModelSpec, dtype: str, cache: str, slice_rows: int = SLICE_ROWS, kept: PathStore | None = None
) -> Callable[[TextPayload], list[dict[str, Any]]]:
    """A worker for payloads of texts: the rows of ``perplexity.scores``.

    Where paths are ``kept``, a text goes on from the path of its topic's newest version whose score is stored.
    """
    models = LanguageModels(Path(cache))
    facts = model_facts(models, spec, dtype)
    computed_by = [facts["weights_digest"], facts["library_versions"], SCORER_VERSION, facts["device"]]
    version_of_paths = sha256("\n".join(computed_by).encode()).hexdigest()[:16]

    def known_paths(payload: TextPayload, lm: LanguageModel) -> PathReuse | None:
        if kept is None:
            return None
        files = kept.within(paths_name(spec.name, facts["dtype"], payload["max_tokens"]), version_of_paths)
        scored, head = payload.get("known", {}), int(lm.bos_id is not None)
        stored = [
            files.find(topic, lm.device, lambda ids: ids_digest(ids[head:]) in scored)
            for topic in payload.get("topics", ())
        ]
        return PathReuse([path for path in stored if path], payload.get("newest", {}), files.keep)

    def work(payload: TextPayload) -> list[dict[str, Any]]:
        known = {digest: KnownScore(**score) for digest, score in payload.get("known", {}).items()}
        lm = models.load(spec, dtype)
        paths = known_paths(payload, lm)
        scores = score_texts(lm, payload["texts"], payload["max_tokens"], slice_rows, known, paths)
        return [row(score, facts) for score in scores]

    return work


def paths_name(model: str, dtype: str, max_tokens: int) -> str:
    """The folder of the paths that are kept for a model's scores in one format under one limit."""
    return f"{partition_key(model)} {dtype} {max_tokens}"


def model_facts(models: LanguageModels, spec: ModelSpec, dtype: str) -> ModelFacts:
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
        "library_versions": library_versions(),
        "scorer_version": SCORER_VERSION,
    }


def row(score: TextScore, facts: ModelFacts) -> dict[str, Any]:
    """A row of ``perplexity.scores``: ``dtype`` is that of the weights, ``computed_in`` that of the score."""
    return {**asdict(score), "computed_in": score.dtype, **facts}
