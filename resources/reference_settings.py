"""What a Dagster step needs to know about references: the listed ones, and how a model reads its texts."""

from __future__ import annotations

import dagster as dg
from pydantic import Field

from resources.places import ROOT
from resources.reference_scores import Encoder, words_encoder
from strandline.models import ModelSpec
from strandline.perplexity.settings import ReferenceSetting, read_references


class ReferenceResource(dg.ConfigurableResource):
    """The references of ``data/references.yaml`` and the tokenizers of the n-gram reference."""

    path: str = Field(default="data/references.yaml", description="The listed references.")

    def listed(self) -> list[ReferenceSetting]:
        """The listed references in order of preference; ValueError names a faulty entry."""
        return read_references(ROOT / self.path)

    def encoder(self, spec: ModelSpec) -> Encoder:
        """How the model reads a text: its own tokens, or words where an endpoint keeps its tokenizer to itself."""
        if spec.backend != "transformers":
            return words_encoder()
        from resources.model_tokenizers import tokenizer_encoder

        return tokenizer_encoder(spec)
