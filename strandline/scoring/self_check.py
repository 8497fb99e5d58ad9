"""Before a model's scores are trusted: do the fast ways equal the plain forward pass of this very model?

A few short sequences that branch are scored along the tree, in slices small enough that paths are carried, and in a
padded batch, and compared with one document at a time. The first way that agrees is used. What this cannot show:
behaviour that begins beyond the lengths tried here, which is why attention with a window is tried beyond its window.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from strandline.scoring.language_model import LanguageModel
from strandline.scoring.prefix_tree import PrefixTree, Request

TOLERANCE = {"float32": 1e-4, "bfloat16": 0.1, "float16": 0.05}
"""Nats a token by which a fast way may differ from the plain pass. In fp32 it is what the engine claims; half
precision keeps 8 or 11 bits, so that sums in another order differ by hundredths of a nat."""

_LENGTH = 24
"""Tokens of a sample: long enough to branch twice and to be cut into slices, short enough that the check costs a
moment."""

_ONE_AT_A_TIME = threading.RLock()
"""A model is checked once, also where several threads begin to use it together."""

_LONGEST_WINDOW = 1024
"""The longest window of windowed attention that a sample is made to pass; beyond that the check would take
seconds."""


@dataclass(frozen=True)
class SelfCheck:
    """How a model is scored: ``tree``, ``batch`` or ``single``; why the faster ways are not used; the differences."""

    method: str
    refused: tuple[str, ...]
    difference: float


def self_check(lm: LanguageModel) -> SelfCheck:
    """The fastest way that agrees with the plain forward pass, found once a loaded model."""
    with _ONE_AT_A_TIME:
        if "self_check" not in lm.cache:
            lm.cache["self_check"] = _checked(lm)
    found: SelfCheck = lm.cache["self_check"]
    return found


def _checked(lm: LanguageModel) -> SelfCheck:
    from strandline.scoring.plain_forward import document_losses

    samples = _samples(lm)
    expected = [float(document_losses(lm.model, ids).sum()) for ids in samples]
    refused: list[str] = []
    for name, way in (("tree", _along_tree), ("batch", _in_batch)):
        try:
            difference = _largest_difference(way, lm, samples, expected)
        except Exception as error:
            refused.append(f"{name}: {type(error).__name__}: {error}")
            continue
        if difference <= TOLERANCE.get(lm.dtype, 1e-4):
            return SelfCheck(name, tuple(refused), difference)
        refused.append(f"{name}: differs by {difference:.2g} nats a token")
    return SelfCheck("single", tuple(refused), 0.0)


def _largest_difference(
    way: Callable[[LanguageModel, list[tuple[int, ...]]], list[float]],
    lm: LanguageModel,
    samples: list[tuple[int, ...]],
    expected: list[float],
) -> float:
    found = np.asarray(way(lm, samples))
    counts = np.asarray([len(ids) - 1 for ids in samples])
    difference = np.abs(found - np.asarray(expected)) / counts
    return float(np.where(np.isfinite(difference), difference, np.where(np.isfinite(expected), np.inf, 0.0)).max())


def _along_tree(lm: LanguageModel, samples: list[tuple[int, ...]]) -> list[float]:
    from strandline.scoring.tree_forward import TreeForward, tree_mode

    forward, tree = TreeForward(lm), PrefixTree([Request(ids) for ids in samples])
    found: dict[tuple[int, ...], float] = {}
    with tree_mode(lm):
        state, row = forward.start(), 0
        while row < tree.n_rows:
            piece = tree.slice(row, max(11, len(samples[0]) // 2))
            finished, state = forward.step(tree, piece, state)
            row = piece.end
            found |= {tree.order[done.index]: float(done.sums[-1]) for done in finished}
    return [found[ids] for ids in samples]


def _in_batch(lm: LanguageModel, samples: list[tuple[int, ...]]) -> list[float]:
    from strandline.scoring.plain_forward import batch_losses

    return [float(losses.sum()) for losses in batch_losses(lm, samples)]


def _samples(lm: LanguageModel) -> list[tuple[int, ...]]:
    """Four sequences of distinct lengths that share beginnings, of ids spread over the vocabulary."""
    length = _sample_length(lm.model.config.get_text_config())
    if lm.context_length is not None:
        length = min(length, lm.context_length)
    n_ids = min(
        lm.model.get_input_embeddings().weight.shape[0], len(lm.tokenizer) if lm.tokenizer is not None else 10**9
    )
    rng = np.random.default_rng(20)
    trunk = rng.integers(0, n_ids, length).tolist()
    cuts = (length, max(1, 2 * length // 3), max(1, length // 3), max(1, length // 3))
    tails = [[], *(rng.integers(0, n_ids, 3).tolist() for _ in range(3))]
    sequences = {tuple(map(int, (trunk[:cut] + tail)[:length])) for cut, tail in zip(cuts, tails, strict=True)}
    return sorted((ids for ids in sequences if len(ids) > 1), key=len, reverse=True)


def _sample_length(config: Any) -> int:
    """Long enough to pass the window of windowed attention, where that is not too long to try."""
    window = getattr(config, "sliding_window", None) or 0
    return window + _LENGTH if 0 < window <= _LONGEST_WINDOW else _LENGTH
