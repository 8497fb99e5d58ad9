"""The ordinary forward pass: batches padded on the right, or one document at a time with the model's own logits.

The second is the definition that everything else must equal; the first serves models whose attention cannot be
replaced. Padding uses an existing id under a mask and stands after every real token, so that it can reach none of
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from strandline.scoring.kernels import fast_linear_layers
from strandline.scoring.language_model import LanguageModel
from strandline.scoring.projection import Projection

PADDING_ID = 0
"""An id that every vocabulary has; under the mask it reaches no real token."""

_ROWS_AT_ONCE = 64
"""Rows whose distribution over the vocabulary is held in fp32 at once: 38 MB for 150,000 ids."""

Ids = tuple[int, ...]
"""The token ids of one sequence."""


def document_losses(model: object, ids: Sequence[int]) -> NDArray[np.float64]:
    """Negative log-likelihoods of tokens 1, 2, … of one document, from the model's own logits; fp64 from fp32."""
    with torch.inference_mode():
        given = torch.tensor([list(ids)], device=model.device)  # type: ignore[attr-defined]
        logits = model(input_ids=given, use_cache=False).logits[0]  # type: ignore[operator]
        found = [
            torch.logsumexp(rows.float(), -1) - rows.float().gather(-1, targets[:, None])[:, 0]
            for rows, targets in zip(
                torch.split(logits[:-1], _ROWS_AT_ONCE), torch.split(given[0, 1:], _ROWS_AT_ONCE), strict=True
            )
        ]
        return torch.cat(found).double().cpu().numpy()


def batch_losses(lm: LanguageModel, batch: Sequence[Ids]) -> list[NDArray[np.float64]]:
    """The same for several documents in one pass, padded on the right."""
    lengths = [len(ids) for ids in batch]
    ids = torch.full((len(batch), max(lengths)), PADDING_ID)
    mask = torch.zeros_like(ids)
    for row, document in enumerate(batch):
        ids[row, : len(document)] = torch.tensor(document)
        mask[row, : len(document)] = 1
    ids, mask = ids.to(lm.device), mask.to(lm.device)
    projection = Projection(lm.model)
    with torch.inference_mode(), fast_linear_layers(lm.model):
        hidden = lm.model.base_model(input_ids=ids, attention_mask=mask, use_cache=False)[0]
        before = torch.cat([hidden[row, : n - 1] for row, n in enumerate(lengths)])
        targets = torch.cat([ids[row, 1:n] for row, n in enumerate(lengths)])
        losses = projection.log_normaliser(before) - projection.target_logit(before, targets)
    return [part.double().cpu().numpy() for part in torch.split(losses, [n - 1 for n in lengths])]


def length_batches(sequences: Sequence[Ids], rows: int) -> Iterator[list[Ids]]:
    """Distinct sequences in batches of like length, each of at most ``rows`` tokens with padding, or of one
    sequence."""
    batch: list[Ids] = []
    for ids in sorted(set(sequences), key=lambda ids: (len(ids), ids)):
        if batch and len(ids) * (len(batch) + 1) > rows:
            yield batch
            batch = []
        batch.append(ids)
    if batch:
        yield batch
