"""Rolling windows over a sequence longer than the context: which tokens go in, and which are scored. Integers only.

With a context of 8, a stride of 4 and BOS ``B`` (dots are context, x is scored):

    ids        0 1 2 3 4 5 6 7 8 9
    window 1 B x x x x x x x
    window 2 B       . . . x x x

Every token is scored exactly once; every window starts with BOS where there is one; a token of a later window has at
least ``context - stride`` tokens before it in its window, BOS included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.numeric_input import whole_number
from strandline.scoring.prefix_tree import Request


@dataclass(frozen=True)
class Window:
    """Ids [start, stop) go in, ids [score, stop) are scored."""

    start: int
    score: int
    stop: int


def rolling_windows(n_ids: int, context: int, stride: int, *, has_bos: bool) -> list[Window]:
    """The windows of a sequence of ``n_ids`` ids for inputs of at most ``context`` tokens, BOS included.

    Without BOS the very first id cannot be scored. Raises ValueError where the stride leaves no context.
    """
    n_ids = whole_number(n_ids, "the number of ids", 0)
    context, stride = whole_number(context, "the context", 1), whole_number(stride, "the stride", 1)
    room = context - int(has_bos)
    if stride >= context:
        raise ValueError(f"a stride of {stride} leaves no room in a context of {context} tokens")
    windows: list[Window] = []
    score = 0 if has_bos else 1
    stop = min(n_ids, room)
    while score < stop:
        windows.append(Window(max(0, stop - room), score, stop))
        score, stop = stop, min(n_ids, stop + stride)
    return windows


def window_requests(ids: Sequence[int], context: int | None, stride: int | None, bos_id: int | None) -> list[Request]:
    """The sequences to score so that every id counts once; one where all fits in the context.

    ``stride`` None is half the context. An id counts where a token stands before it. Raises ValueError for a context
    or a stride that is no whole number of at least 1.
    """
    context = None if context is None else whole_number(context, "the context", 1)
    stride = None if stride is None else whole_number(stride, "the stride", 1)
    bos_id = None if bos_id is None else whole_number(bos_id, "bos_id", 0)
    has_bos = bos_id is not None
    whole = len(ids) + int(has_bos)
    context = whole if context is None else min(context, whole)
    if context < 2:
        return []
    stride = max(1, context // 2) if stride is None else stride
    head = (bos_id,) if bos_id is not None else ()
    windows = rolling_windows(len(ids), context, min(stride, context - 1), has_bos=has_bos)
    return [Request((*head, *ids[w.start : w.stop]), w.score - w.start + len(head)) for w in windows]
