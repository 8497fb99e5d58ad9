"""Benjamini and Hochberg's adjustment of many p-values, for every place that controls false discoveries.

Claim: reporting all tests with an adjusted value (q) of at most ``level`` keeps the expected share of false ones among
them at or under ``level``, for independent or positively dependent p-values (Benjamini and Hochberg 1995). A q-value is
never below its p-value, also after rounding. What it cannot show: anything about a single test, or about tests chosen
after a look at their results.
"""

from __future__ import annotations

from math import exp

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strandline.numeric_input import real_array

Floats = NDArray[np.float64]


def adjusted_p_values(p_values: ArrayLike) -> Floats:
    """The q-values of p-values, in the order given; NaN stays NaN and does not count as a test.

    Raises:
        ValueError: for anything but one row of numbers from 0 to 1 and NaN.
    """
    p = _row(p_values, "p-values")
    tested = np.flatnonzero(~np.isnan(p))
    if np.any((p[tested] < 0) | (p[tested] > 1)):
        raise ValueError("p-values lie between 0 and 1")
    order = tested[np.argsort(p[tested], kind="stable")]
    q = np.full(len(p), np.nan)
    q[order] = np.minimum(_smallest_so_far(p[order] * len(order) / _ranks(order)), 1.0)
    return np.asarray(np.maximum(q, p))


def adjusted_log_p_values(log_p_values: ArrayLike) -> Floats:
    """The q-values (not their logarithms) of natural-log p-values, for p-values too small for a float.

    Raises:
        ValueError: for anything but one row of finite numbers of at most 0.
    """
    logs = _row(log_p_values, "log p-values")
    if not np.all(np.isfinite(logs)) or np.any(logs > 0):
        raise ValueError("log p-values are finite and at most 0")
    order = np.argsort(logs, kind="stable")
    q = np.empty(len(logs))
    scaled = logs[order] + np.log(len(logs) or 1) - np.log(_ranks(order))
    q[order] = np.exp(np.minimum(_smallest_so_far(scaled), 0.0))
    own = [max(exp(value), float(np.exp(value))) for value in logs]
    return np.maximum(q, own)


def _row(values: ArrayLike, name: str) -> Floats:
    row = real_array(values, name)
    if row.ndim != 1:
        raise ValueError(f"{name} are one row of numbers, got {row.ndim} dimension(s)")
    return row


def _ranks(order: NDArray[np.intp]) -> NDArray[np.int64]:
    return np.arange(1, len(order) + 1)


def _smallest_so_far(scaled: Floats) -> Floats:
    """The step-up rule: each scaled value, or a smaller one of a larger p-value."""
    return np.asarray(np.minimum.accumulate(scaled[::-1])[::-1])
