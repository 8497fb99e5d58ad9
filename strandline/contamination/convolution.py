"""The exact null distribution of a sum of independent integer scores, and its tail without underflow.

Each shard contributes :class:`Atoms`: the integer scores that its published order could have had, with integer
weights. Which scores a statistic uses belongs to ``pooling``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import exp, log, prod

import numpy as np
from numpy.typing import NDArray

from strandline.numeric_input import real_number, whole_number

Floats = NDArray[np.float64]

MAX_CELLS = 40_000_000
"""Cells of the table of a sum: 320 MB. Fifty shards of 100 orders take about half a million."""

BOUNDARY = 1e-8
"""How near to the level, in ln p, a comparison is made in integers: the error of ln p is below 1e-12."""

LARGEST_SCORE = 2**53
"""Scores beyond this are no longer told apart as floats, in which the tilt is computed."""


@dataclass(frozen=True)
class Atoms:
    """One shard's possible scores; atom ``i`` has probability ``weights[i] / sum(weights)`` under the null."""

    scores: tuple[int, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.scores or len(self.scores) != len(self.weights):
            raise ValueError("atoms need one positive weight for each score, and at least one score")
        if {type(number) for number in (*self.scores, *self.weights)} != {int}:
            raise ValueError("scores and weights are whole numbers")
        if min(self.weights) <= 0:
            raise ValueError("atoms need one positive weight for each score")
        if max(map(abs, self.scores)) > LARGEST_SCORE:
            raise ValueError(f"scores beyond {LARGEST_SCORE} cannot be told from their neighbours")

    @property
    def total(self) -> int:
        """Sum of the weights."""
        return sum(self.weights)

    def top_weight(self) -> int:
        """Weight of the highest score."""
        top = max(self.scores)
        return sum(weight for score, weight in zip(self.scores, self.weights, strict=True) if score == top)


def uniform(scores: Sequence[int]) -> Atoms:
    """Atoms of equal weight: the shard's published order is equally likely to be any of its orders."""
    return Atoms(tuple(whole_number(score, "a score", -LARGEST_SCORE) for score in scores), (1,) * len(scores))


def log_floor(shards: Sequence[Atoms]) -> float:
    """Natural log of the smallest p-value that any outcome of these shards could reach."""
    return sum(log(shard.top_weight()) - log(shard.total) for shard in shards)


def tail_log_p(shards: Sequence[Atoms], threshold: int) -> float:
    """ln P(sum of independent scores >= threshold), to a relative error below 1e-12 in p.

    The distribution is built by shift-and-add, so only positive numbers are ever added, under an exponential tilt
    that puts its mean at the threshold, so nothing underflows: 300 shards at their floor are no harder than one.

    Raises:
        ValueError: no shards; a threshold that no outcome reaches; scores too far apart to tabulate.
    """
    low, high = _range(shards)
    threshold = whole_number(threshold, "a threshold", -len(shards) * LARGEST_SCORE)
    if threshold > high:
        raise ValueError(f"no outcome reaches the score {threshold}; the highest is {high}")
    if threshold <= low:
        return 0.0
    if threshold == high:
        return log_floor(shards)
    scores = [np.asarray(shard.scores, dtype=np.int64) for shard in shards]
    logs = [np.array([log(w) for w in shard.weights]) - log(shard.total) for shard in shards]
    tilted = _Tilted(np.concatenate(scores), np.concatenate(logs), np.array([len(row) for row in scores]))
    theta = _tilt(tilted, threshold)
    weights = tilted.weights(theta)
    half = len(shards) // 2
    first = _sum_distribution(scores[:half], weights[:half])
    second = _sum_distribution(scores[half:], weights[half:])
    tail = _discounted_tail(first, second, threshold, theta)
    return min(0.0, tilted.log_norm(theta) - theta * threshold + log(tail))


def exact_tail(shards: Sequence[Atoms], threshold: int) -> Fraction:
    """P(sum >= threshold) as an exact fraction, by the same shift-and-add on one long integer.

    Each coefficient of the count polynomial has its own field of bits, wide enough never to carry.
    """
    low, _ = _range(shards)
    threshold = whole_number(threshold, "a threshold", -len(shards) * LARGEST_SCORE)
    total = prod(shard.total for shard in shards)
    if threshold <= low:
        return Fraction(1)
    bits = total.bit_length() + 1
    packed = reduce(lambda value, shard: _shift_add(value, shard, bits), shards, 1)
    above = packed >> ((threshold - low) * bits)
    return Fraction(above % ((1 << bits) - 1), total)


def tail_at_most(shards: Sequence[Atoms], threshold: int, log_p: float, level: Fraction) -> bool:
    """Whether P(sum >= threshold) <= level: by ``log_p``, and in integers where that lies within 1e-8 of the level."""
    gap = real_number(log_p, "a log p-value") - (log(level.numerator) - log(level.denominator))
    if abs(gap) > BOUNDARY:
        return gap < 0
    return exact_tail(shards, threshold) <= level


def _range(shards: Sequence[Atoms]) -> tuple[int, int]:
    if not shards:
        raise ValueError("no shards to pool")
    low = sum(min(shard.scores) for shard in shards)
    high = sum(max(shard.scores) for shard in shards)
    if high - low > MAX_CELLS:
        raise ValueError(f"the scores span {high - low} values, too many to tabulate; use a coarser scale")
    return low, high


def _shift_add(value: int, shard: Atoms, bits: int) -> int:
    low = min(shard.scores)
    terms = (
        (value * weight) << ((score - low) * bits) for score, weight in zip(shard.scores, shard.weights, strict=True)
    )
    return sum(terms)


class _Tilted:
    """All shards' atoms side by side, tilted together: probability proportional to weight * exp(theta * score)."""

    def __init__(self, scores: NDArray[np.int64], logs: Floats, sizes: NDArray[np.int64]) -> None:
        self.scores, self.logs, self.sizes = scores, logs, sizes
        self.starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def _raw(self, theta: float) -> tuple[Floats, Floats, Floats]:
        exponents = self.logs + theta * self.scores
        tops = np.maximum.reduceat(exponents, self.starts)
        raw = np.exp(exponents - np.repeat(tops, self.sizes))
        return raw, np.add.reduceat(raw, self.starts), tops

    def mean(self, theta: float) -> float:
        raw, totals, _ = self._raw(theta)
        return float(np.sum(np.add.reduceat(raw * self.scores, self.starts) / totals))

    def log_norm(self, theta: float) -> float:
        _, totals, tops = self._raw(theta)
        return float(np.sum(tops + np.log(totals)))

    def weights(self, theta: float) -> list[Floats]:
        raw, totals, _ = self._raw(theta)
        return np.split(raw / np.repeat(totals, self.sizes), self.starts[1:])


def _tilt(tilted: _Tilted, threshold: int) -> float:
    """The non-negative tilt whose mean is the threshold; 0 where the threshold lies below the mean."""
    if tilted.mean(0.0) >= threshold:
        return 0.0
    low, high = 0.0, 1e-6
    while tilted.mean(high) < threshold and high < 100:
        low, high = high, 2 * high
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if tilted.mean(middle) < threshold else (low, middle)
    return (low + high) / 2


def _sum_distribution(scores: Sequence[NDArray[np.int64]], weights: Sequence[Floats]) -> tuple[Floats, int]:
    """Probabilities of the sum of some shards, and the sum that cell 0 stands for."""
    table, offset = np.ones(1), 0
    for score, weight in zip(scores, weights, strict=True):
        low = int(score.min())
        grown = np.zeros(len(table) + int(score.max()) - low)
        for shift, mass in zip(score - low, weight, strict=True):
            grown[shift : shift + len(table)] += mass * table
        table, offset = grown, offset + low
    return table, offset


def _discounted_tail(first: tuple[Floats, int], second: tuple[Floats, int], threshold: int, theta: float) -> float:
    """Sum over i + j >= threshold of first[i] second[j] exp(-theta (i + j - threshold))."""
    from scipy.signal import lfilter

    (left, left_low), (right, right_low) = first, second
    beyond = lfilter([1.0], [1.0, -exp(-theta)], right[::-1])[::-1]
    wanted = threshold - left_low - right_low - np.arange(len(left))
    inside = np.clip(wanted, 0, len(right) - 1)
    discount = np.exp(theta * np.minimum(wanted, 0))
    return float(np.sum(np.where(wanted < len(right), left * beyond[inside] * discount, 0.0)))
