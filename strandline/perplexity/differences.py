"""The centred curve of a panel and its monthly steps: what the panel estimators share.

A panel is a matrix of mean negative log-likelihoods (nats per token), one row a topic and one column a month. What does
NOT belong here: intervals, tests and statuses (see ``panel_with_reference`` and ``panel_without_reference``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strandline.numeric_input import real_array, whole_number

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NORMAL_MAD = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation: 1 / Phi^-1(3/4)."""

WINSOR = (0.025, 0.975)
"""Where a month is clipped over topics: the share that the paper trims, clipped and not cut so that every topic
keeps its place in every month."""

LARGEST_LOGARITHM = 700.0
"""exp() of more is beyond the largest float64, exp(709.78)."""

LARGEST_VALUE = 1e100
"""Values whose squares, added up, still are floats."""


@dataclass(frozen=True)
class CentredCurve:
    """A panel after despiking, centring and winsorising, with the mean curve and its steps.

    ``values`` is topics by months and ``curve`` its mean over topics. ``steps`` are the differences of the curve,
    ``variances`` their sampling variances over topics, ``residuals`` the steps without their running median, ``excess``
    what is left of them beyond sampling noise. ``changed[m]`` says that some topic changed between months m and m+1.
    """

    values: Floats
    curve: Floats
    steps: Floats
    variances: Floats
    residuals: Floats
    excess: Floats
    changed: NDArray[np.bool_]

    @property
    def n_topics(self) -> int:
        return int(self.values.shape[0])

    @property
    def n_months(self) -> int:
        return int(self.values.shape[1])


def centred_curve(panel: Floats) -> CentredCurve:
    """Steps 1–4 of the panel estimators on a complete matrix (see ``check_panel``)."""
    changed = np.any(np.diff(panel, axis=1) != 0, axis=0)
    values = winsorised(centred(despiked(panel)))
    curve = values.mean(axis=0)
    steps = np.diff(curve)
    variances = np.diff(values, axis=1).var(axis=0, ddof=1) / len(values)
    residuals = steps - running_median(steps, 7)
    with np.errstate(over="ignore"):
        share = np.clip(1 - variances / np.maximum(residuals**2, 1e-300), 0, 1)
    return CentredCurve(values, curve, steps, variances, residuals, residuals * np.sqrt(share), changed)


def check_panel(
    target: ArrayLike, reference: ArrayLike | None, min_topics: int, min_months: int, *, least_months: int = 3
) -> Floats:
    """The matrix of target minus reference (or the target alone) as floats.

    Two topics and ``least_months`` months are needed whatever the minima say: with fewer there is no curve.

    Raises:
        ValueError: where a matrix is not two-dimensional, shapes differ, a value is missing or infinite, or there are
            too few topics or months. Months or topics with gaps are for the caller to leave out beforehand.
    """
    min_topics = max(whole_number(min_topics, "min_topics", 0), 2)
    min_months = max(whole_number(min_months, "min_months", 0), least_months)
    panel = real_array(target, "target scores")
    if panel.ndim != 2:
        raise ValueError(f"a panel is topics by months, got {panel.ndim} dimension(s)")
    if panel.shape[0] < min_topics or panel.shape[1] < min_months:
        raise ValueError(
            f"needs {min_topics} topics and {min_months} months, got {panel.shape[0]} and {panel.shape[1]}"
        )
    if reference is not None:
        other = real_array(reference, "reference scores")
        if other.shape != panel.shape:
            raise ValueError(f"the reference is {other.shape} and the target {panel.shape}")
        with np.errstate(invalid="ignore", over="ignore"):
            panel = panel - other
    if not np.all(np.isfinite(panel)) or np.max(np.abs(panel)) > LARGEST_VALUE:
        raise ValueError("a panel must be finite: leave out topics with missing or non-finite months")
    return panel


def despiked(panel: Floats) -> Floats:
    """Replace single months that jump away and back (a redirect, vandalism) by the mean of their neighbours."""
    jumps = np.abs(np.diff(panel, axis=1))
    moved = jumps[jumps > 0]
    limit = max(8 * NORMAL_MAD * float(np.median(moved)) if moved.size else 0.0, 0.25)
    before, here, after = panel[:, :-2], panel[:, 1:-1], panel[:, 2:]
    up = (here - before > limit) & (here - after > limit)
    down = (before - here > limit) & (after - here > limit)
    lone = (up | down) & (np.abs(before - after) < limit / 2)
    cleaned = panel.copy()
    cleaned[:, 1:-1][lone] = (before[lone] + after[lone]) / 2
    return cleaned


def centred(panel: Floats) -> Floats:
    """Each topic minus its median over months."""
    return panel - np.median(panel, axis=1, keepdims=True)


def winsorised(panel: Floats) -> Floats:
    """Each month clipped, over topics, at its 2.5 % and 97.5 % quantiles (type 7)."""
    low, high = np.quantile(panel, WINSOR, axis=0)
    clipped: Floats = np.clip(panel, low, high)
    return clipped


def running_median(series: Floats, window: int) -> Floats:
    """Median over a centred window of at least one value, which is cut at the ends."""
    whole_number(window, "window", 1)
    half = window // 2
    return np.array([np.median(series[max(0, m - half) : m + half + 1]) for m in range(len(series))])


def detrended(rows: Floats) -> Floats:
    """Each row minus its least-squares straight line."""
    time = np.arange(rows.shape[1], dtype=np.float64)
    time -= time.mean()
    slope = rows @ time / (time @ time)
    fitted: Floats = rows.mean(axis=1, keepdims=True) + slope[:, None] * time
    return rows - fitted


def tie_blocks(changed: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """First and last month of the run of identical months around each month."""
    months = np.arange(len(changed) + 1)
    starts = np.maximum.accumulate(np.where(np.concatenate([[True], changed]), months, 0))
    ends = np.minimum.accumulate(np.where(np.concatenate([changed, [True]]), months, len(changed))[::-1])[::-1]
    return starts, ends
