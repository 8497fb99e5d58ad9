"""The model's forward pass over the slices of a prefix tree: negative log-likelihoods of whole sequences.

What belongs to the open path (keys and values of every layer, the last hidden states, the normalisers, the running sum)
is carried from slice to slice, so that a slice of any size gives the same numbers. Sums are in fp64.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from strandline.scoring.attention import IMPLEMENTATION, Carried, TreePass, TreeUnsupportedError, register
from strandline.scoring.kernels import fast_linear_layers
from strandline.scoring.language_model import LanguageModel
from strandline.scoring.prefix_tree import PrefixTree, TreeSlice
from strandline.scoring.projection import Projection

_SWITCH = threading.Lock()
"""Held while a model's attention is exchanged; see ``tree_mode``."""


@dataclass(frozen=True)
class PathState:
    """What is carried along a path: row i belongs to its token at depth i."""

    carried: Carried
    hidden: torch.Tensor
    log_normaliser: torch.Tensor
    sums: NDArray[np.float64]

    def first(self, length: int) -> PathState:
        """The state of the path's beginning."""
        return PathState(
            {layer: (key[:, :length], value[:, :length]) for layer, (key, value) in self.carried.items()},
            self.hidden[:length],
            self.log_normaliser[:length],
            self.sums[:length],
        )


@dataclass(frozen=True)
class PathSum:
    """A finished sequence: place in the tree's order, and the running sum of negative log-likelihoods along its path.

    ``state`` is that of the path, where it was asked for.
    """

    index: int
    sums: NDArray[np.float64]
    state: PathState | None = None


class TreeForward:
    """Runs slices of trees through a model. Thread-safe: a pass belongs to the thread that runs it."""

    def __init__(self, lm: LanguageModel) -> None:
        self._lm = lm
        self._device = torch.device(lm.device)
        self._projection = Projection(lm.model)
        self._body = lm.model.base_model
        if self._body is lm.model:
            raise TreeUnsupportedError(f"{type(lm.model).__name__} has no body apart from its output layer")

    def start(self) -> PathState:
        """The state before the first row of a tree."""
        nothing = torch.empty(0, device=self._device)
        return PathState({}, nothing, nothing, np.empty(0))

    def step(
        self, tree: PrefixTree, piece: TreeSlice, state: PathState, kept: Collection[int] = ()
    ) -> tuple[list[PathSum], PathState]:
        """Compute one slice: the sequences that end in it, and the state for the next.

        Sequences whose places in the tree's order are among ``kept`` come with their state; the tree must have been
        told to expect more of them.
        """
        ends = {index: _keys_at(piece, last - piece.begin) for index, last in tree.ends_within(piece.begin, piece.end)}
        wanted = {index: torch.from_numpy(ends[index]).to(self._device) for index in ends if index in kept}
        with torch.inference_mode(), TreePass(piece, state.carried, self._device, wanted) as tree_pass:
            hidden = self._hidden(piece)
            if piece.carried:
                hidden = torch.cat([state.hidden, hidden])
            log_normaliser = self._log_normaliser(piece, hidden, state)
            losses = self._losses(piece, hidden, log_normaliser)
            sums = _running_sums(piece, losses, state.sums)

            def along(rows: torch.Tensor, carried: Carried) -> PathState:
                here = sums[rows.cpu().numpy()]
                return PathState(carried, hidden.index_select(0, rows), log_normaliser.index_select(0, rows), here)

            states = {index: along(rows, tree_pass.kept_carried[index]) for index, rows in wanted.items()}
            finished = [PathSum(index, sums[keys], states.get(index)) for index, keys in ends.items()]
            return finished, along(tree_pass.next_rows, tree_pass.next_carried)

    def _hidden(self, piece: TreeSlice) -> torch.Tensor:
        ids = torch.from_numpy(piece.tokens).to(self._device)[None]
        positions = torch.from_numpy(piece.depths).to(self._device)[None]
        output: torch.Tensor = self._body(input_ids=ids, position_ids=positions, use_cache=False)[0]
        return output[0]

    def _log_normaliser(self, piece: TreeSlice, hidden: torch.Tensor, state: PathState) -> torch.Tensor:
        """Of the carried path and of the rows with a scored child; NaN elsewhere, where nobody may read it."""
        found = torch.full((hidden.shape[0],), float("nan"), device=self._device)
        found[: piece.carried] = state.log_normaliser
        rows = torch.from_numpy(piece.carried + np.flatnonzero(piece.is_parent)).to(self._device)
        found[rows] = self._projection.log_normaliser(hidden.index_select(0, rows))
        return found

    def _losses(self, piece: TreeSlice, hidden: torch.Tensor, log_normaliser: torch.Tensor) -> NDArray[np.float64]:
        """Negative log-likelihood of every row's token given its path; 0 where it is not scored."""
        scored = np.flatnonzero(piece.is_scored)
        parents = torch.from_numpy(piece.parents[scored]).to(self._device)
        targets = torch.from_numpy(piece.tokens[scored]).to(self._device)
        logits = self._projection.target_logit(hidden.index_select(0, parents), targets)
        losses = np.zeros(len(piece.tokens))
        losses[scored] = (log_normaliser.index_select(0, parents) - logits).double().cpu().numpy()
        return losses


@contextmanager
def tree_mode(lm: LanguageModel) -> Iterator[None]:
    """Within the context the model attends over trees, with its fastest linear layers; afterwards it is as before.

    Raises TreeUnsupportedError where the model's attention cannot be replaced. Entered by several threads at once, the
    model is switched by the first and switched back by the last.
    """
    with _SWITCH:
        users, stack = lm.cache.get("tree_mode", (0, None))
        if not users:
            lm.cache["attention"] = lm.model.config._attn_implementation
            stack = _switch(lm.model)
        lm.cache["tree_mode"] = (users + 1, stack)
    try:
        yield
    finally:
        with _SWITCH:
            users, stack = lm.cache["tree_mode"]
            lm.cache["tree_mode"] = (users - 1, stack)
            if users == 1:
                stack.close()


def _switch(model: Any) -> ExitStack:
    register()
    before = model.config._attn_implementation
    model.set_attn_implementation(IMPLEMENTATION)
    if model.config._attn_implementation != IMPLEMENTATION:
        raise TreeUnsupportedError(f"{type(model).__name__} does not let its attention be replaced")
    stack = ExitStack()
    stack.callback(model.set_attn_implementation, before)
    stack.enter_context(fast_linear_layers(model))
    return stack


def _running_sums(piece: TreeSlice, losses: NDArray[np.float64], carried: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of losses from the root to each row of the buffer (carried path, then slice)."""
    sums = np.concatenate([carried, np.zeros(len(losses))])
    for run in piece.runs:
        rows = slice(run.start, run.start + run.length)
        before = sums[run.keys[run.depth - 1]] if run.depth else 0.0
        sums[piece.carried + rows.start : piece.carried + rows.stop] = before + np.cumsum(losses[rows])
    return sums


def _keys_at(piece: TreeSlice, row: int) -> NDArray[np.int64]:
    """The buffer rows of the path that ends at this row of the slice."""
    for run in piece.runs:
        if run.start <= row < run.start + run.length:
            return run.keys[: run.depth + row - run.start + 1]
    raise IndexError(row)
