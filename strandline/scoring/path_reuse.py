"""Which sequences go on from a path that an earlier run computed, and which begin from nothing.

A topic's next version mostly repeats the one before. Where the keys and values of that one are still at hand, only the
tokens after the first change are computed. Integers only; the states themselves are opaque here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from strandline.scoring.prefix_tree import Ints, Request, common_length

SHORTEST = 2
"""Tokens that a text and a path must share: BOS alone is shared by all and saves nothing."""


@dataclass(frozen=True)
class KnownPath:
    """A computed path: its token ids, and how to get what the engine needs to go on from any place of it."""

    ids: tuple[int, ...]
    open: Callable[[], Any]


@dataclass(frozen=True)
class Start:
    """Requests that leave a path to one side, or lie on it whole; or that begin from nothing."""

    requests: list[Request]
    path: KnownPath | None = None
    is_on_path: bool = False


class PathReuse:
    """The computed paths at hand for some texts, and what becomes of new ones.

    Args:
        known: paths that texts may go on from.
        wanted: by a text's digest, the topics for which this text's path is to be kept.
        keep: called with a topic, its path and the state along it once they are computed.
    """

    def __init__(
        self,
        known: Sequence[KnownPath],
        wanted: Mapping[str, Sequence[str]],
        keep: Callable[[str, tuple[int, ...], Any], None],
    ) -> None:
        self.known = known
        self._topics, self._keep = wanted, keep
        self._wanted: dict[tuple[int, ...], list[str]] = {}

    def see(self, digest: str, ids: tuple[int, ...]) -> None:
        """A text of this digest is going to be computed as these tokens."""
        if topics := self._topics.get(digest):
            self._wanted.setdefault(ids, []).extend(topics)

    def is_wanted(self, ids: tuple[int, ...]) -> bool:
        """Whether the state of this sequence is to be kept."""
        return ids in self._wanted

    def keep(self, ids: tuple[int, ...], state: Any) -> None:
        """Hand a computed path on under each of its topics."""
        for topic in self._wanted[ids]:
            self._keep(topic, ids, state)


def starts(requests: Sequence[Request], paths: Sequence[KnownPath]) -> Iterator[Start]:
    """Every request once, with the path that shares its longest beginning, of at least ``SHORTEST`` tokens.

    Sequences leave a path on one of two sides, by the order of token ids, and each side is a tree of its own:

        path      5 7 2 9
        smaller   5 7 1 …      5 6 …        in this order, away from the path
        greater   5 7 2 9 4 …  5 7 3 …  5 8 …

    On one side each sequence shares at least as much with its neighbour as with the path, so no token that is in the
    path or in the tree is computed again.
    """
    arrays = [np.asarray(path.ids, dtype=np.int64) for path in paths]
    groups: dict[tuple[int, bool, bool], list[Request]] = {}
    for request in requests:
        place, shared = _nearest(np.asarray(request.ids, dtype=np.int64), arrays)
        is_on_path = place >= 0 and shared == len(request.ids)
        is_less = place >= 0 and request.ids < paths[place].ids
        groups.setdefault((place, is_on_path, is_less), []).append(request)
    for (place, is_on_path, _), members in groups.items():
        yield Start(members, paths[place] if place >= 0 else None, is_on_path)


def _nearest(ids: Ints, arrays: Sequence[Ints]) -> tuple[int, int]:
    """Place and common length of the path with the longest common beginning; -1 and 0 where none is worth a start."""
    shared = [common_length(ids, path) for path in arrays]
    best = max(shared, default=0)
    return (shared.index(best), best) if best >= SHORTEST else (-1, 0)
