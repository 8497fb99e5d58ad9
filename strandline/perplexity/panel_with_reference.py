"""``panel``: the effective cutoff of a panel whose texts were also scored by a reference model.

Claim: the month in which the target's *memory* of the resource is largest, with an interval, and only where a valley
stands out of what chance and common text changes make. The difference target minus reference takes out text that
became easier or harder for every model. What it cannot show: a cutoff outside the months that were scored (``edge-…``
means "lowest at the end of the range" and nothing more), or anything at all where the reference has a cutoff of its own
inside the range. What does NOT belong here: estimates without a reference that claim memory.

Tested by `tests/unit/methods/perplexity/test_panel_with_reference.py`:
golden values, level on flat and monotone worlds, power, fuzzing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, sqrt

import numpy as np
from numpy.typing import ArrayLike

from strandline.numeric_input import whole_number
from strandline.perplexity.differences import (
    CentredCurve,
    Floats,
    Ints,
    centred_curve,
    check_panel,
    detrended,
    tie_blocks,
)
from strandline.perplexity.random_streams import uniforms

MIN_TOPICS, MIN_MONTHS = 20, 12
"""The smallest panel that was simulated has 20 topics (coverage holds, power is .07); under a year of months a trend
cannot be told from one flank of a valley."""

TAILS80, TAILS95 = (0.06, 0.94), (0.015, 0.985)
"""Bootstrap quantiles of the intervals, widened on purpose from .10 and .025 until simulated worlds were covered."""

ALPHA = 0.05
"""Level of both tests of flatness; at it no simulated world without a valley was dated (0 of 900)."""

SHOCK, SHOCK_ALONE = 0.5, 1.0
"""Share of the common steps that the intervals let stand for chance: a reference takes most of them out, and half of
what is left covered in simulation; without one all of them count."""

AT_AN_END = 0.05
"""Share of the range, at least two months, that counts as its end."""

MOST_AT_END, CLEARLY_AT_END = 0.5, 0.8
"""Share of the bootstrap curves that are lowest at an end, for an edge status with and without a valley by the test."""

APART = 6
"""Months between two dips that are told apart: a judgement, half a year."""

SHARE_FAR, SHARE_DIP = 0.08, 0.05
"""Shares of the bootstrap curves that fall far from the lowest month, and into one dip of five months, before it is
called a second one; tuned on simulated worlds with two equal dumps."""

WIDEST80, WIDEST95 = (6, 3), (9, 2)
"""Widest intervals that name a month: so many months, or the range over so much, whichever is more. A judgement: an
80 % interval of a third of the range says little."""


@dataclass(frozen=True)
class PanelCutoff:
    """The estimate and the evidence it rests on. Months are 0-based column indexes; intervals include both ends.

    ``month`` is the lowest month whatever the status: it is a finding only where ``status`` is ``found`` (and, with
    ``second_month``, the two dips of ``two-valley``). ``p_flat`` tests that no valley exists (prominence), ``p_range``
    that the curve does not move at all. ``lowest_months`` are the lowest months of the bootstrap curves.
    """

    status: str
    month: int
    second_month: int | None
    block: tuple[int, int]
    interval80: tuple[int, int]
    interval95: tuple[int, int]
    p_flat: float
    p_range: float
    prominence: float
    range: float
    curve: Floats
    step_variances: Floats
    excess: Floats
    lowest_months: Ints

    @property
    def found(self) -> bool:
        return self.status == "found"


def panel_cutoff(
    target: ArrayLike,
    reference: ArrayLike | None = None,
    *,
    seed: int = 1,
    replicates: int = 1000,
    min_topics: int = MIN_TOPICS,
    min_months: int = MIN_MONTHS,
) -> PanelCutoff:
    """Date a panel by the lowest month of its reference-differenced mean curve.

    Args:
        target: topics by months, mean negative log-likelihood (nats per token) under the dated model.
        reference: the same token spans under a model without a cutoff inside the range. Without one the result
            describes the curve only (what texts and memory did together): claim nothing about memory from it.
        seed: selects the random streams; equal seeds give equal results.
        replicates: bootstrap curves and null curves.
        min_topics, min_months: fewer are refused.

    Raises:
        ValueError: for missing or infinite values, unequal shapes, and too few topics, months or replicates.
    """
    whole_number(replicates, "replicates", 20)
    panel = centred_curve(check_panel(target, reference, min_topics, min_months))
    return _dated(panel, SHOCK_ALONE if reference is None else SHOCK, seed, replicates)


def _dated(panel: CentredCurve, shock: float, seed: int, replicates: int) -> PanelCutoff:
    """The lowest month of a centred curve, its intervals, and the tests that decide what it may be called."""
    curves = bootstrap_curves(panel, shock, seed, replicates)
    month = int(np.argmin(panel.curve))
    lowest = first_lowest(curves)
    block, interval80, interval95 = _intervals(panel, lowest, month)
    p_flat, p_range = flatness(panel, shock, seed, replicates)
    second = second_valley(panel.curve, curves, lowest, month)
    status = _status(panel.n_months, lowest, interval80, interval95, p_flat, p_range, second)
    return PanelCutoff(
        status=status,
        month=month,
        second_month=second if status == "two-valley" else None,
        block=block,
        interval80=interval80,
        interval95=interval95,
        p_flat=p_flat,
        p_range=p_range,
        prominence=float(prominence(panel.curve[None])[0]),
        range=float(np.ptp(panel.curve)),
        curve=panel.curve,
        step_variances=panel.variances,
        excess=panel.excess,
        lowest_months=lowest,
    )


def shock_paths(panel: CentredCurve, seed: int, streams: tuple[int, int], replicates: int) -> Floats:
    """Random walks of common text changes: steps drawn from the excess, signs at random, only where texts changed."""
    shape = (replicates, panel.n_months - 1)
    picks = np.floor(uniforms(seed, streams[0], shape) * shape[1]).astype(np.int64)
    signs = np.where(uniforms(seed, streams[1], shape) < 0.5, -1.0, 1.0)
    walks = np.cumsum(panel.excess[picks] * signs * panel.changed, axis=1)
    return np.concatenate([np.zeros((replicates, 1)), walks], axis=1)


def bootstrap_curves(panel: CentredCurve, shock: float, seed: int, replicates: int) -> Floats:
    """Mean curves over resampled topics plus ``shock`` times a path of common changes; replicates by months."""
    n = panel.n_topics
    picks = np.floor(uniforms(seed, 1, (replicates, n)) * n).astype(np.int64)
    cells = (picks + np.arange(replicates)[:, None] * n).ravel()
    counts = np.bincount(cells, minlength=replicates * n).reshape(replicates, n).astype(np.float64)
    spread = sqrt(n / (n - 1)) * (counts @ panel.values / n - panel.curve)
    return panel.curve + spread + shock * shock_paths(panel, seed, (2, 3), replicates)


def first_lowest(curves: Floats) -> Ints:
    """First month of each curve within 1e-12 of its minimum."""
    lowest: Ints = np.argmax(curves <= curves.min(axis=1, keepdims=True) + 1e-12, axis=1)
    return lowest


def prominence(curves: Floats) -> Floats:
    """How far each curve climbs on the lower of the two sides of its minimum."""
    rows = np.arange(len(curves))
    lowest = curves.argmin(axis=1)
    left = np.maximum.accumulate(curves, axis=1)[rows, lowest]
    right = np.maximum.accumulate(curves[:, ::-1], axis=1)[:, ::-1][rows, lowest]
    climb: Floats = np.minimum(left, right) - curves[rows, lowest]
    return climb


def flatness(panel: CentredCurve, shock: float, seed: int, replicates: int) -> tuple[float, float]:
    """p-values of "no valley" (prominence) and "no movement" (range), from sign flips of whole topics.

    Flips are exact for independent topics whose deviations are symmetric; common changes are added as shock paths.
    """
    n = panel.n_topics
    signs = np.where(uniforms(seed, 4, (replicates, n)) < 0.5, -1.0, 1.0) * (sqrt(n / (n - 1)) / n)
    paths = shock_paths(panel, seed, (5, 6), replicates)
    levelled = panel.values - panel.values.mean(axis=1, keepdims=True)
    no_valley = signs @ detrended(panel.values) + detrended(shock * paths)
    no_movement = signs @ levelled + paths
    return (
        _exceedance(prominence(no_valley), float(prominence(panel.curve[None])[0])),
        _exceedance(np.ptp(no_movement, axis=1), float(np.ptp(panel.curve))),
    )


def second_valley(curve: Floats, curves: Floats, lowest: Ints, month: int) -> int | None:
    """Centre of a second dip at least 6 months away that bootstrap curves fall into, else None.

    The ridge between the dips must stand above both in 90 % of the bootstrap curves.
    """
    far = lowest[np.abs(lowest - month) >= APART]
    if len(far) < SHARE_FAR * len(lowest):
        return None
    counts = np.bincount(far, minlength=len(curve))
    nearby = np.convolve(counts, np.ones(5, dtype=np.int64), mode="same")
    other = int(np.argmax(nearby))
    first, last = sorted((month, other))
    ridge = first + int(np.argmax(curve[first : last + 1]))
    if nearby[other] < SHARE_DIP * len(lowest) or not first < ridge < last:
        return None
    height = curves[:, ridge] - np.maximum(curves[:, month], curves[:, other])
    return other if np.quantile(height, 0.1) > 0 else None


def widths_too_large(n_months: int, interval80: tuple[int, int], interval95: tuple[int, int]) -> bool:
    """Whether intervals are too wide to name a month: over a third (80 %) or half (95 %) of the range."""
    width80, width95 = (high - low + 1 for low, high in (interval80, interval95))
    too_wide80 = width80 > max(WIDEST80[0], n_months / WIDEST80[1])
    return too_wide80 or width95 > max(WIDEST95[0], n_months / WIDEST95[1])


def _intervals(
    panel: CentredCurve, lowest: Ints, month: int
) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """The lowest month's tie block and the 80 % and 95 % intervals, which hold whole tie blocks."""
    starts, ends = tie_blocks(panel.changed)
    block = (int(starts[month]), int(ends[month]))
    interval80, interval95 = (_interval(starts[lowest], ends[lowest], tails, block) for tails in (TAILS80, TAILS95))
    return block, interval80, interval95


def _interval(starts: Ints, ends: Ints, tails: tuple[float, float], block: tuple[int, int]) -> tuple[int, int]:
    size = len(starts)
    low = np.sort(starts)[max(ceil(tails[0] * size) - 1, 0)]
    high = np.sort(ends)[min(floor(tails[1] * size), size - 1)]
    return min(int(low), block[0]), max(int(high), block[1])


def _exceedance(null: Floats, observed: float) -> float:
    return (1 + int(np.count_nonzero(null >= observed - 1e-12))) / (len(null) + 1)


def _status(
    n_months: int,
    lowest: Ints,
    interval80: tuple[int, int],
    interval95: tuple[int, int],
    p_flat: float,
    p_range: float,
    second: int | None,
) -> str:
    """The first rule that applies; ``lowest`` are the lowest months of the bootstrap curves."""
    edge = max(2, round(AT_AN_END * n_months))
    at_left, at_right = float(np.mean(lowest < edge)), float(np.mean(lowest >= n_months - edge))
    if p_flat > ALPHA:
        if p_range > ALPHA:
            return "flat"
        if at_left >= CLEARLY_AT_END:
            return "edge-left"
        return "edge-right" if at_right >= CLEARLY_AT_END else "inconclusive"
    if interval95[0] == 0 and at_left >= MOST_AT_END:
        return "edge-left"
    if interval95[1] == n_months - 1 and at_right >= MOST_AT_END:
        return "edge-right"
    if second is not None:
        return "two-valley"
    touches = interval80[0] == 0 or interval80[1] == n_months - 1
    return "inconclusive" if touches or widths_too_large(n_months, interval80, interval95) else "found"
