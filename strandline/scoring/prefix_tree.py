"""Token sequences as the tree of their distinct prefixes, read depth first and cut into slices of equal size.

Versions of a document share most of their beginning, so their tokens form a tree with few branches. Sorted sequences,
each without what it shares with the one before, are that tree in depth-first order: one stream of tokens in which every
token's ancestors are known. The stream may be cut anywhere, because at any place only one path is open: whoever
computes it carries what belongs to that path (at most one sequence long) into the next slice. No token is computed
twice and none is padding.

Integers only; the model is in ``tree_forward``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strandline.numeric_input import whole_number

Ints = NDArray[np.int64]
"""Whole numbers: ids, depths or rows."""


@dataclass(frozen=True)
class Request:
    """A token sequence whose tokens from position ``score_from`` (at least 1) on are to be scored."""

    ids: tuple[int, ...]
    score_from: int = 1

    def __post_init__(self) -> None:
        """A sequence needs a token to condition on and one to score."""
        if not isinstance(self.ids, tuple):
            raise ValueError(f"a sequence of ids is a tuple, got {self.ids!r:.60}")
        if not 1 <= whole_number(self.score_from, "score_from", 0) < len(self.ids):
            raise ValueError(f"{len(self.ids)} tokens cannot be scored from position {self.score_from}")


@dataclass(frozen=True)
class Run:
    """Consecutive tokens of one path within a slice.

    ``start`` and ``length`` are rows of the slice, ``depth`` is the number of ancestors of its first token. ``keys``
    are the rows of its whole path, root first, in the buffer that holds the carried path followed by the slice.
    """

    start: int
    length: int
    depth: int
    keys: Ints

    @property
    def is_contiguous(self) -> bool:
        """Whether the path is one piece of the buffer, so that it can be read without gathering."""
        return bool(self.keys[-1] - self.keys[0] == len(self.keys) - 1)


@dataclass(frozen=True)
class TreeSlice:
    """Consecutive rows of the stream, from ``begin`` to ``end``, with what is needed to compute them.

    ``tokens`` and ``depths`` (position ids) have a row each. ``carried`` ancestors of the first row come from the
    slices before. ``parents`` are buffer rows (-1 for a root), ``is_scored`` says whose probability is wanted,
    ``is_parent`` who has a scored child here or later. ``next_path`` are the buffer rows to carry on.
    """

    begin: int
    end: int
    tokens: Ints
    depths: Ints
    carried: int
    runs: tuple[Run, ...]
    parents: Ints
    is_scored: NDArray[np.bool_]
    is_parent: NDArray[np.bool_]
    next_path: Ints


@dataclass(frozen=True)
class _Branch:
    """One sequence in the stream: its new rows [begin, end), after ``shared`` tokens of the sequence before it."""

    begin: int
    end: int
    shared: int


class PrefixTree:
    """The tree of the distinct prefixes of some sequences.

    ``order`` are the distinct sequences as they stand in the stream, ``n_rows`` is the number of tokens to compute.
    Requests for the same ids are one; their tokens are scored from the smallest of their positions. With ``share``
    False every sequence is computed whole, repeats included, in the order given: a batch of always the same shape.

    With ``before``, a path computed earlier, the tree starts where that path is left: its first rows have ancestors
    that are not rows of the tree. All requests must then leave the path to one side (all by a smaller token than its
    own, or all by a greater one or beyond its end).
    """

    def __init__(self, requests: Sequence[Request], *, share: bool = True, before: Sequence[int] = ()) -> None:
        self.order, score_from = _distinct(requests, tuple(before)) if share else _as_given(requests)
        arrays = [np.asarray(ids, dtype=np.int64) for ids in self.order]
        self._branches = _branches(arrays, np.asarray(before, dtype=np.int64), share=share)
        self._ends = np.asarray([branch.end for branch in self._branches], dtype=np.int64)
        self.n_rows = int(self._ends[-1]) if arrays else 0
        self.tokens = _joined([a[b.shared :] for a, b in zip(arrays, self._branches, strict=True)])
        self.depths = _joined([np.arange(b.shared, len(a)) for a, b in zip(arrays, self._branches, strict=True)])
        self._parents = np.arange(-1, self.n_rows - 1)
        self.is_scored = np.zeros(self.n_rows, dtype=bool)
        self._mark(score_from)
        self.is_parent = np.zeros(self.n_rows, dtype=bool)
        parents = self._parents[self.is_scored]
        self.is_parent[parents[parents >= 0]] = True

    def expect_more(self, index: int) -> None:
        """Say that the sequence at this place of ``order`` is going to be gone on from: its end is a parent, too."""
        self.is_parent[self._branches[index].end - 1] = True

    def shared(self, index: int) -> int:
        """Tokens that the sequence at this place of ``order`` shares with the one before it: saved work."""
        return self._branches[index].shared

    def ends_within(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """(place in ``order``, last row) of the sequences that are complete with rows [begin, end)."""
        for index in range(self._branch_at(begin), len(self._branches)):
            last = self._branches[index].end - 1
            if last >= end:
                return
            yield index, last

    def slice(self, begin: int, size: int) -> TreeSlice:
        """The next at most ``size`` rows from row ``begin`` on, given that the open path is carried."""
        size = whole_number(size, "the rows of a slice", 1)
        end = min(self.n_rows, begin + size)
        carried = int(self.depths[begin])
        path = np.arange(carried)
        runs, parents = [], np.empty(end - begin, dtype=np.int64)
        for index in range(self._branch_at(begin), len(self._branches)):
            branch = self._branches[index]
            first, last = max(begin, branch.begin), min(end, branch.end)
            if first >= end:
                break
            depth, rows = int(self.depths[first]), carried + np.arange(first - begin, last - begin)
            path = np.concatenate([path[:depth], rows])
            parents[first - begin : last - begin] = np.concatenate(
                [path[depth - 1 : depth] if depth else [-1], rows[:-1]]
            )
            runs.append(Run(first - begin, last - first, depth, path))
        next_depth = int(self.depths[end]) if end < self.n_rows else 0
        rows_here = slice(begin, end)
        return TreeSlice(
            begin=begin,
            end=end,
            tokens=self.tokens[rows_here],
            depths=self.depths[rows_here],
            carried=carried,
            runs=tuple(runs),
            parents=parents,
            is_scored=self.is_scored[rows_here],
            is_parent=self.is_parent[rows_here],
            next_path=path[:next_depth],
        )

    def _branch_at(self, row: int) -> int:
        return int(np.searchsorted(self._ends, row, side="right"))

    def _mark(self, score_from: Sequence[int]) -> None:
        """Set the parent of every branch's first row and which rows are scored by at least one sequence."""
        path = np.full(max(map(len, self.order), default=0), -1, dtype=np.int64)
        for branch, first in zip(self._branches, score_from, strict=True):
            depth = branch.shared + branch.end - branch.begin
            path[branch.shared : depth] = np.arange(branch.begin, branch.end)
            self._parents[branch.begin] = path[branch.shared - 1] if branch.shared else -1
            rows = path[first:depth]
            self.is_scored[rows[rows >= 0]] = True


def _distinct(requests: Sequence[Request], before: tuple[int, ...]) -> tuple[list[tuple[int, ...]], list[int]]:
    """Depth first, away from the path before: by growing tokens where the requests are greater, else by falling ones.

    Either way a sequence stands before those that begin with it, so that each has at least one row of its own.
    """
    first: dict[tuple[int, ...], int] = {}
    for request in requests:
        first[request.ids] = min(request.score_from, first.get(request.ids, request.score_from))
    less = {ids < before for ids in first} if before else {False}
    if len(less) > 1 or any(before[: len(ids)] == ids for ids in first):
        raise ValueError("sequences on both sides of the path computed before, or on it")
    order = sorted(first, key=_falling) if less == {True} else sorted(first)
    return order, [first[ids] for ids in order]


def _falling(ids: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(-token for token in ids)


def _as_given(requests: Sequence[Request]) -> tuple[list[tuple[int, ...]], list[int]]:
    return [request.ids for request in requests], [request.score_from for request in requests]


def _branches(arrays: Sequence[Ints], before: Ints, *, share: bool) -> list[_Branch]:
    branches: list[_Branch] = []
    row = 0
    for here in arrays:
        shared = common_length(before, here) if share else 0
        branches.append(_Branch(row, row + len(here) - shared, shared))
        row += len(here) - shared
        before = here
    return branches


def common_length(one: Ints, other: Ints) -> int:
    """How many ids two sequences have in common from their beginning on."""
    n = min(len(one), len(other))
    differ = np.flatnonzero(one[:n] != other[:n])
    return int(differ[0]) if len(differ) else n


def _joined(arrays: Sequence[Ints]) -> Ints:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)
