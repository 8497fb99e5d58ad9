"""Monthly perplexity curves, and the paper's statistic: the month in which the trimmed mean is lowest.

The monthly value is the mean of perplexities (not of log-likelihoods) after cutting 2.5 % of the documents from each
tail; the relative curve is its min-max over months, because raw perplexities do not compare across tokenizers. The
lowest month carries NO claim about memory: months in which many documents change together move the whole curve, and a
bootstrap over topics cannot see them (on planted worlds its 95 % interval covers in 42–78 % of cases). What does NOT
belong here: estimators that make a claim (``panel_with_reference``, ``panel_without_reference``, ``rise``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from strandline.numeric_input import real_array, real_number, whole_number
from strandline.perplexity.differences import LARGEST_LOGARITHM, Floats, Ints
from strandline.perplexity.random_streams import uniforms

CURVES_VERSION = "1"
"""Raise it when the same scores would give other curves: tables made by it then show as stale."""

TRIM = 0.025
"""Cut from each tail of a month: the paper averages the middle 95 %."""

BAND = (0.025, 0.975)
"""Quantiles of a 95 % band."""

SAME = 1e-12
"""Relative difference of months that are one value: some 5,000 roundings of a float64, far under any edit's effect."""


@dataclass(frozen=True)
class MonthlyCurve:
    """One entry a month; NaN where no document has a score.

    ``relative`` is NaN throughout where the range is zero. ``low95`` and ``high95`` are a pointwise bootstrap band on
    the scale of ``relative``: the band of the mean, not of its minimum, and it may leave 0 to 1. Where the months hold
    the same topics it is the band of the curve's shape: how hard the drawn topics are on the whole is taken out.
    """

    mean_perplexity: Floats
    relative: Floats
    low95: Floats
    high95: Floats
    n_documents: Ints
    n_excluded: Ints


@dataclass(frozen=True)
class LowestMonth:
    """Where the trimmed curve is lowest, with a bootstrap over topics: a description, not an estimate of a cutoff."""

    month: int
    interval80: tuple[int, int]
    interval95: tuple[int, int]
    curve: Floats


def trimmed_mean(values: ArrayLike, trim: float = TRIM) -> Floats:
    """Mean over the first axis after cutting floor(trim x n) of the lowest and of the highest values.

    Raises:
        ValueError: for no values, or a share that is not from 0 up to (not including) a half.
    """
    rows = real_array(values, "values")
    if not 0 <= real_number(trim, "trim") < 0.5:
        raise ValueError(f"trim lies between 0 and 0.5, got {trim}")
    if rows.ndim == 0 or len(rows) == 0:
        raise ValueError("needs at least one value to average")
    cut = int(trim * len(rows) + 1e-9)
    if cut == 0:
        return np.asarray(rows.mean(axis=0))
    return np.asarray(np.partition(rows, (cut, len(rows) - cut - 1), axis=0)[cut : len(rows) - cut].mean(axis=0))


def is_constant(curve: ArrayLike) -> bool:
    """Whether the known months of a curve hold one value: then none of them is the lowest."""
    values = real_array(curve, "curve")
    known = values[np.isfinite(values)]
    return bool(known.size > 0 and np.ptp(known) <= SAME * np.max(np.abs(known)))


def relative_curve(curve: ArrayLike) -> Floats:
    """Min-max over months; NaN throughout where the range is zero or nothing is known."""
    values = real_array(curve, "curve").ravel()
    known = values[np.isfinite(values)]
    if known.size == 0 or is_constant(values):
        return np.full(len(values), np.nan)
    return np.asarray((values - known.min()) / np.ptp(known))


def panel_curve(
    mean_nll: ArrayLike, *, complete_cases: bool = True, seed: int = 1, replicates: int = 200
) -> MonthlyCurve:
    """The curve of one resource whose months hold the same topics.

    Args:
        mean_nll: topics by months, NaN where a version has no score.
        complete_cases: leave out topics that lack any month (the published analysis does); otherwise each month
            averages what it has, and topics that come and go move the curve.
        seed, replicates: of the bootstrap over topics behind the band.

    Raises:
        ValueError: for a matrix that is not two-dimensional, and fewer than one replicate.
    """
    whole_number(replicates, "replicates", 1)
    values = np.exp(_matrix(mean_nll))
    scored = np.isfinite(values)
    kept = np.all(scored, axis=1) if complete_cases else np.any(scored, axis=1)
    used = values[kept]
    draws = np.floor(uniforms(seed, 31, (replicates, len(used))) * len(used)).astype(np.int64)
    mean = _column_means(used)
    boots = np.stack([_at_level(_column_means(used[draw]), mean) for draw in draws]) if len(used) else None
    return _curve(mean, boots, np.isfinite(used).sum(axis=0), (scored & ~kept[:, None]).sum(axis=0))


def bucket_curve(buckets: Sequence[ArrayLike], *, seed: int = 1, replicates: int = 200) -> MonthlyCurve:
    """The curve of one resource whose months hold different documents: one array of mean_nll a month."""
    whole_number(replicates, "replicates", 1)
    values = [np.exp(_bounded(real_array(bucket, "mean_nll").ravel())) for bucket in buckets]
    finite = [bucket[np.isfinite(bucket)] for bucket in values]
    boots = np.full((replicates, len(finite)), np.nan)
    for month, bucket in enumerate(finite):
        if len(bucket):
            draws = np.floor(uniforms(seed * 1009 + month, 32, (len(bucket), replicates)) * len(bucket)).astype(
                np.int64
            )
            boots[:, month] = trimmed_mean(bucket[draws])
    mean = np.array([float(trimmed_mean(bucket[:, None])[0]) if len(bucket) else np.nan for bucket in finite])
    kept = np.array([len(bucket) for bucket in finite], dtype=np.int64)
    return _curve(mean, boots, kept, np.array([len(bucket) for bucket in values]) - kept)


def lowest_month(mean_nll: ArrayLike, *, seed: int = 1, replicates: int = 300) -> LowestMonth:
    """``trimmed95_minmax``: the first lowest month of the trimmed curve of a complete panel.

    Raises:
        ValueError: for missing or infinite values, an empty panel, and fewer than one replicate.
    """
    whole_number(replicates, "replicates", 1)
    values = np.exp(_matrix(mean_nll))
    if values.size == 0 or not np.all(np.isfinite(values)):
        raise ValueError("needs a complete, finite panel")
    curve = trimmed_mean(values)
    draws = np.floor(uniforms(seed, 31, (replicates, len(values))) * len(values)).astype(np.int64)
    lowest = np.sort([int(np.argmin(trimmed_mean(values[draw]))) for draw in draws])
    month = int(np.argmin(curve))
    eighty, ninety_five = (_equal_tails(lowest, tail, month) for tail in (0.1, 0.025))
    return LowestMonth(month, eighty, ninety_five, curve)


def _matrix(mean_nll: ArrayLike) -> Floats:
    matrix = real_array(mean_nll, "mean_nll")
    if matrix.ndim != 2:
        raise ValueError(f"needs topics by months, got {matrix.ndim} dimension(s)")
    return _bounded(matrix)


def _bounded(values: Floats) -> Floats:
    """NaN in place of what has no perplexity that a float can hold."""
    return np.where(np.abs(values) < LARGEST_LOGARITHM, values, np.nan)


def _column_means(values: Floats) -> Floats:
    if np.all(np.isfinite(values)) and len(values):
        return trimmed_mean(values)
    columns = [column[np.isfinite(column)] for column in values.T]
    return np.array([float(trimmed_mean(column[:, None])[0]) if len(column) else np.nan for column in columns])


def _at_level(boot: Floats, mean: Floats) -> Floats:
    known = np.isfinite(boot) & np.isfinite(mean)
    return boot - float(np.mean((boot - mean)[known])) if known.any() else boot


def _curve(mean: Floats, boots: Floats | None, n_documents: Ints, n_excluded: Ints) -> MonthlyCurve:
    relative = relative_curve(mean)
    low = high = np.full(len(mean), np.nan)
    if boots is not None and np.any(np.isfinite(relative)):
        known = np.isfinite(mean)
        span, base = np.ptp(mean[known]), mean[known].min()
        low, high = low.copy(), high.copy()
        low[known], high[known] = (np.nanquantile(boots[:, known], BAND, axis=0) - base) / span
    return MonthlyCurve(mean, relative, low, high, n_documents.astype(np.int64), n_excluded.astype(np.int64))


def _equal_tails(ordered: Ints, tail: float, month: int) -> tuple[int, int]:
    size = len(ordered)
    low = ordered[max(int(np.ceil(tail * size)) - 1, 0)]
    high = ordered[min(int(np.floor((1 - tail) * size)), size - 1)]
    return min(int(low), month), max(int(high), month)
