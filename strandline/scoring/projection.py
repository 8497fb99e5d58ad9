"""From hidden states to log-likelihoods without ever holding a distribution over the whole vocabulary for many rows.

The logarithm of the normaliser is taken a few rows at a time; the target's logit is computed for the target alone, in
fp32. So half-precision rounding of logits averages out in the normaliser and does not touch the target.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from strandline.scoring.kernels import linear

CHUNK_ELEMENTS = 3_200_000
"""Logits held at once: 13 MB in fp32. A trade-off: about 65 rows for 49,152 ids, which keeps them near the
processor's caches without making the products small."""


class Projection:
    """The output layer of a causal language model: weights, bias, and what the model does to its logits."""

    def __init__(self, model: Any) -> None:
        layer = model.get_output_embeddings()
        if layer is None or not hasattr(layer, "weight"):
            raise TypeError(f"{type(model).__name__} has no output embedding")
        self._weight: torch.Tensor = layer.weight
        self._bias: torch.Tensor | None = getattr(layer, "bias", None)
        self._after = _after(model.config.get_text_config())
        self._rows = max(1, CHUNK_ELEMENTS // self._weight.shape[0])

    @property
    def n_ids(self) -> int:
        """Rows of the output embedding: one more than the largest id that can be scored."""
        return self._weight.shape[0]

    def log_normaliser(self, hidden: torch.Tensor) -> torch.Tensor:
        """log of the sum over the vocabulary of exp(logit), fp32, for hidden states [rows, size]."""
        found = torch.empty(hidden.shape[0], dtype=torch.float32, device=hidden.device)
        for start in range(0, hidden.shape[0], self._rows):
            rows = hidden[start : start + self._rows]
            logits = self._after(linear(rows, self._weight, self._bias).float())
            found[start : start + self._rows] = torch.logsumexp(logits, -1)
        return found

    def target_logit(self, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The logit of each row's target alone, fp32."""
        logits = (hidden.float() * self._weight.index_select(0, targets).float()).sum(-1)
        if self._bias is not None:
            logits = logits + self._bias.index_select(0, targets).float()
        return self._after(logits)


def _after(config: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    """What the model does to its logits: a factor, a divisor, a soft cap, or nothing."""
    factor = getattr(config, "logit_scale", None) or 1.0
    factor /= getattr(config, "logits_scaling", None) or 1.0
    cap = getattr(config, "final_logit_softcapping", None)

    def after(logits: torch.Tensor) -> torch.Tensor:
        scaled = logits if factor == 1.0 else logits * factor
        return scaled if cap is None else torch.tanh(scaled / cap) * cap

    return after
