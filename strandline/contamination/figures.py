"""Pictures of contamination tests: where each shard's published order lies among its shuffled ones."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from strandline.contamination.verdict import ShardScores, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHUFFLED, PUBLISHED, MEAN = "#9aa5b1", "#c0392b", "#1f4e79"


def published_among_shuffled(verdict: Verdict, shards: Sequence[ShardScores]) -> "Figure":
    """One line a shard: shuffled orders as grey ticks, the published one as a red dot, in the shard's own sd.

    Shards with values that are not finite, or all equal, are left out. Under the null the red dots are spread like
    the grey ticks; a memory of the order moves them to the right.
    """
    from matplotlib.figure import Figure

    drawn = [(shard.shard, _standardised(shard.values[: verdict.n_permutations + 1])) for shard in shards]
    rows = [(index, values) for index, values in drawn if values is not None]
    figure = Figure(figsize=(7.5, 1.8 + 0.22 * max(4, len(rows))), layout="constrained")
    axes = figure.subplots()
    for height, (_, values) in enumerate(rows):
        axes.plot(values[1:], [height] * (len(values) - 1), "|", color=SHUFFLED, markersize=9)
        axes.plot(values[:1], [height], "o", color=PUBLISHED, markersize=5)
    if rows:
        mean = float(np.mean([values[0] for _, values in rows]))
        axes.axvline(mean, color=MEAN, linewidth=1, label=f"mean of published orders ({mean:+.2f} sd)")
        axes.legend(loc="upper left", fontsize=8)
    axes.set_yticks(range(len(rows)), [str(index) for index, _ in rows], fontsize=7)
    axes.invert_yaxis()
    axes.set_ylabel("shard")
    axes.set_xlabel("log-likelihood, standard deviations from the shuffled orders' mean")
    axes.set_title(f"{verdict.model} on {verdict.benchmark}: {verdict.verdict.replace('_', ' ')}", fontsize=10)
    return figure


def _standardised(values: Sequence[float]) -> NDArray[np.float64] | None:
    row = np.asarray(values, dtype=float)
    if len(row) < 3 or not np.all(np.isfinite(row)):
        return None
    sd = float(np.std(row[1:], ddof=1))
    return np.asarray((row - np.mean(row[1:])) / sd) if sd > 0 else None
