"""Tokenizers without their models: what the n-gram reference needs to count a model's own tokens."""

from __future__ import annotations

from pathlib import Path

from resources.models.weights import CACHE, LanguageModels, tokenizer_digest
from resources.perplexity.reference_scores import Encoder
from strandline.models import ModelSpec
from strandline.scoring.tokens import token_ids


def tokenizer_encoder(spec: ModelSpec, cache: Path = CACHE) -> Encoder:
    """How a model whose weights run here reads a text: the first ids of the whole text's tokenization.

    Models with one tokenizer share its name, and so their n-gram references. No weights are read.

    Raises:
        ModelLoadError: where the model has no tokenizer here.
    """
    tokenizer = LanguageModels(cache).tokenizer(spec)
    name = tokenizer_digest(tokenizer)[:12]
    return Encoder(name, lambda texts, limit: token_ids(tokenizer, texts, limit), len(tokenizer))
