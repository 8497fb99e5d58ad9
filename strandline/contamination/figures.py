"""Pictures of contamination tests: where each shard's published order lies among its shuffled ones."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from strandline.contamination.verdict import ShardScores, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHUFFLED, PUBLISHED = "#9aa5b1", "#c0392b"
"""Grey for what is many and expected, red for the one value that is asked about; told apart in grey print by shape."""


def published_among_shuffled(verdict: Verdict, shards: Sequence[ShardScores]) -> "Figure":
    """One line a shard: shuffled orders as grey ticks, the published one as a red dot, as they were scored.

    Everything is a difference to the mean of the shard's shuffled orders, in nats: after an early stop there are too
    few of them for a standard deviation. Shards with values that are not finite, or all equal, are left out. Under the
    null the red dots are spread like the grey ticks; a memory of the order moves them to the right.
    """
    from matplotlib.figure import Figure

    drawn = [(shard.shard, _differences(shard.values[: verdict.n_permutations + 1])) for shard in shards]
    rows = [(index, values) for index, values in drawn if values is not None]
    figure = Figure(figsize=(7.5, 2.2 + 0.22 * max(4, len(rows))), layout="constrained")
    axes = figure.subplots()
    axes.axvline(0.0, color=SHUFFLED, linewidth=0.8)
    for height, (_, values) in enumerate(rows):
        axes.plot(values[1:], [height] * (len(values) - 1), "|", color=SHUFFLED, markersize=9, label="shuffled orders")
        axes.plot(values[:1], [height], "o", color=PUBLISHED, markersize=5, label="the published order")
    if rows:
        figure.legend(*_once(axes.get_legend_handles_labels()), loc="outside lower center", ncols=2, fontsize=8)
    axes.set_yticks(range(len(rows)), [str(index) for index, _ in rows], fontsize=7)
    axes.invert_yaxis()
    axes.set_ylabel("shard")
    axes.set_xlabel("log-likelihood above the mean of the shard's shuffled orders (nats)")
    p = "" if verdict.p_value is None else f" (p = {verdict.p_value:.2g})"
    axes.set_title(f"{verdict.model} on {verdict.benchmark}: {verdict.verdict.replace('_', ' ')}{p}", fontsize=10)
    return figure


def _once(handles_labels: tuple[list[Any], list[Any]]) -> tuple[list[Any], list[Any]]:
    """Handles and labels for a legend, each label once."""
    named = dict(zip(handles_labels[1], handles_labels[0], strict=True))
    return list(named.values()), list(named)


def _differences(values: Sequence[float]) -> NDArray[np.float64] | None:
    row = np.asarray(values, dtype=float)
    if len(row) < 2 or not np.all(np.isfinite(row)) or np.ptp(row) == 0:
        return None
    return np.asarray(row - np.mean(row[1:]))
