"""Attention over a tree of tokens: every row of a slice attends to its own path, and to nothing else.

The function is registered with transformers as an attention implementation, so that the models' own code runs
unchanged around it. The pass in hand is bound to the thread. Keys and values of the open path are carried from slice to
slice, a layer at a time. Scores are computed in blocks of a few dozen rows, whose keys end where the block ends: that
skips the masked half, keeps the scores in cache and never holds a square of them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from strandline.scoring.prefix_tree import Run, TreeSlice

IMPLEMENTATION = "strandline_tree"
"""The name under which transformers knows it; a model's configuration bears it only while trees are computed."""

BLOCK_ROWS = 64
"""Rows of one block of scores. A trade-off: fewer blocks are fewer calls, but within a block up to half of the last
keys is masked and computed for nothing, and its scores should stay in a core's cache."""

_BOUND = threading.local()
"""The pass that each thread has in hand: transformers calls attention functions without a way to hand one through."""

Carried = dict[int, tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of the open path by layer, each [groups, tokens, size]."""


class TreeUnsupportedError(RuntimeError):
    """The model's attention asks for something that the tree does not know."""


@dataclass
class TreePass:
    """One slice on its way through the layers: ``carried`` comes in, ``next_carried`` is what the next slice needs.

    ``kept`` are buffer rows of whole paths whose keys and values the caller wants as well, in ``kept_carried``.
    """

    piece: TreeSlice
    carried: Carried
    device: torch.device
    kept: Mapping[int, torch.Tensor] = field(default_factory=dict)
    next_carried: Carried = field(default_factory=dict)
    kept_carried: dict[int, Carried] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Put the gathered paths on the device once for all layers."""
        self.next_rows = torch.from_numpy(self.piece.next_path).to(self.device)
        self.keys = [
            None if run.is_contiguous else torch.from_numpy(run.keys).to(self.device) for run in self.piece.runs
        ]
        self.masks: dict[tuple[int, int, int | None], torch.Tensor] = {}

    def mask(self, rows: int, keys: int, window: int | None) -> torch.Tensor:
        """What to add to the scores of a block whose rows are the last of its keys: 0, or minus infinity.

        Without a window only the last ``rows`` keys are covered: earlier ones are seen by every row.
        """
        wanted = (rows, rows if window is None else keys, window)
        if wanted not in self.masks:
            row = torch.arange(keys - rows, keys, device=self.device)[:, None]
            key = torch.arange(keys - wanted[1], keys, device=self.device)[None, :]
            seen = (key <= row) if window is None else (key <= row) & (key > row - window)
            self.masks[wanted] = torch.zeros(seen.shape, device=self.device).masked_fill_(~seen, float("-inf"))
        return self.masks[wanted]

    def __enter__(self) -> TreePass:
        """Bind this pass to the thread."""
        _BOUND.tree_pass = self
        return self

    def __exit__(self, *exception: object) -> None:
        """Unbind it."""
        _BOUND.tree_pass = None


def register() -> None:
    """Make the implementation known to transformers."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register(IMPLEMENTATION, tree_attention)


def tree_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    sliding_window: int | None = None,
    s_aux: torch.Tensor | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of one layer for the pass bound to this thread; shapes as in transformers, batch 1.

    Raises TreeUnsupportedError for attention sinks, or outside a pass.
    """
    tree_pass = getattr(_BOUND, "tree_pass", None)
    if tree_pass is None or s_aux is not None:
        raise TreeUnsupportedError("attention sinks" if s_aux is not None else "no tree in hand")
    key, value = _with_carried(tree_pass, module.layer_idx, key[0], value[0])
    heads, rows, size = query.shape[1:]
    groups, value_size = key.shape[0], value.shape[-1]
    scaled = (query[0] * (size**-0.5 if scaling is None else scaling)).view(groups, heads // groups, rows, size)
    out = torch.empty(rows, groups, heads // groups, value_size, dtype=query.dtype, device=query.device)
    for run, gathered in zip(tree_pass.piece.runs, tree_pass.keys, strict=True):
        own_key, own_value = _path(key, run, gathered), _path(value, run, gathered)
        for first in range(0, run.length, BLOCK_ROWS):
            last = min(run.length, first + BLOCK_ROWS)
            block = slice(run.start + first, run.start + last)
            until = run.depth + last
            since = 0 if sliding_window is None else max(0, run.depth + first - sliding_window + 1)
            mask = tree_pass.mask(last - first, until - since, sliding_window)
            out[block] = _block(scaled[:, :, block], own_key[:, since:until], own_value[:, since:until], mask, softcap)
    return out.view(1, rows, heads, value_size), None


def _block(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor, softcap: float | None
) -> torch.Tensor:
    """Attention of a block of rows: query [groups, heads, rows, size], key and value [groups, keys, size]."""
    groups, heads, rows, size = query.shape
    keys = key.shape[1]
    scores = torch.bmm(query.reshape(groups, heads * rows, size), key.transpose(1, 2)).view(groups * heads, rows, keys)
    scores = scores.float()
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    scores[:, :, keys - mask.shape[1] :].add_(mask)
    shares = torch.softmax(scores, -1).to(value.dtype).view(groups, heads * rows, keys)
    return torch.bmm(shares, value).view(groups, heads, rows, -1).permute(2, 0, 1, 3)


def _path(rows: torch.Tensor, run: Run, gathered: torch.Tensor | None) -> torch.Tensor:
    if gathered is None:
        return rows[:, int(run.keys[0]) : int(run.keys[-1]) + 1]
    return rows.index_select(1, gathered)


def _with_carried(
    tree_pass: TreePass, layer: int, key: torch.Tensor, value: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values of the carried path and the slice; what the next slice needs is set aside."""
    if tree_pass.piece.carried:
        old_key, old_value = tree_pass.carried[layer]
        key, value = torch.cat([old_key, key], 1), torch.cat([old_value, value], 1)
    if len(tree_pass.next_rows):
        rows = tree_pass.next_rows
        tree_pass.next_carried[layer] = (key.index_select(1, rows), value.index_select(1, rows))
    for path, wanted in tree_pass.kept.items():
        layers = tree_pass.kept_carried.setdefault(path, {})
        layers[layer] = (key.index_select(1, wanted), value.index_select(1, wanted))
    return key, value
