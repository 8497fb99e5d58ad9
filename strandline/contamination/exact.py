"""The exact permutation test of one shard: is the published order more likely than shuffled ones?

Pooling several shards belongs to ``pooling``, stopping early to ``sequential``.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strandline.contamination.levels import Level, as_level, grid_p_at_most
from strandline.numeric_input import real_array, real_number

RELATIVE_TOLERANCE = 1e-9
"""Values this close, relative to the largest, tie: a thousand times the rounding of a sum of some hundred terms."""


@dataclass(frozen=True)
class ShardTest:
    """One shard's published order among its shuffled ones.

    ``greater`` counts shuffled values above the published one by more than the tolerance, ``exceedances`` those at
    least as high once ties within the tolerance count against contamination. ``z_score`` only describes; it never
    enters a p-value. It is None where the shuffled values do not vary or there is just one.
    """

    canonical: float
    n_permutations: int
    greater: int
    exceedances: int
    tolerance: float
    shuffled_mean: float
    shuffled_sd: float
    z_score: float | None

    @property
    def rank(self) -> int:
        """Conservative rank of the published order, 1 = the most likely of all ``n_permutations + 1``."""
        return 1 + self.exceedances

    @property
    def p_fraction(self) -> Fraction:
        """The p-value as an exact fraction."""
        return Fraction(self.rank, self.n_permutations + 1)

    @property
    def p_value(self) -> float:
        """(1 + exceedances) / (n_permutations + 1)."""
        return self.rank / (self.n_permutations + 1)

    @property
    def p_range(self) -> tuple[float, float]:
        """The p-values that a random breaking of ties could give; they differ only where values tie."""
        return (1 + self.greater) / (self.n_permutations + 1), self.p_value

    @property
    def resolution(self) -> float:
        """Smallest p-value that this many permutations can reach."""
        return 1 / (self.n_permutations + 1)

    @property
    def at_floor(self) -> bool:
        """Whether p is the smallest possible one: a statement about the budget, not about the model."""
        return self.exceedances == 0

    def rejects(self, alpha: Level) -> bool:
        """Whether p <= alpha, decided in integers."""
        return grid_p_at_most(self.exceedances, self.n_permutations, alpha)

    def summary(self, alpha: Level = "0.05") -> str:
        """A few lines for a reader, with the resolution and, at the floor, what the floor means."""
        level = float(as_level(alpha))
        z = "undefined" if self.z_score is None else f"{self.z_score:+.2f}"
        words = (
            "the published order is more likely than chance allows"
            if self.rejects(alpha)
            else "no evidence that the published order is special"
        )
        lines = [
            f"one shard, {self.n_permutations} shuffled orders",
            f"  published order {self.canonical:.4f} nats; shuffled mean {self.shuffled_mean:.4f}, "
            f"sd {self.shuffled_sd:.4f} (z {z}, descriptive only)",
            f"  p = {self.p_value:.4g} (smallest reachable with this budget: {self.resolution:.4g})",
            f"  at level {level:g}: {words}",
        ]
        if self.at_floor:
            lines.append("  p is at the floor: it says how many orders were scored, not how strong the memory is")
        return "\n".join(lines)


def permutation_test(canonical: float, shuffled: ArrayLike, *, tolerance: float | None = None) -> ShardTest:
    """Exact permutation test of one shard.

    If the model never saw the published order, the published value and the shuffled ones are exchangeable, so its
    rank is uniform on 1..m+1 and p = (1 + #{shuffled >= published}) / (m + 1) is uniform on that grid: no
    asymptotics and no distribution assumed. Ties count against contamination, which can only raise p.

    Args:
        canonical: log-likelihood of the published order, nats.
        shuffled: log-likelihoods of m independently shuffled orders of the same examples.
        tolerance: values within it tie; default 1e-9 of the largest magnitude.

    Raises:
        ValueError: no permutations; truth values; a value that is not finite; a negative tolerance.

    What it cannot show: training on the same examples in another order, on paraphrases or on derived data passes this
    test; a p-value that is not small is an absence of evidence. And where neighbours in the published order are alike,
    the null is false without any memory: see ``order_check``.

    Reference: Oren et al. 2023, arXiv:2310.17623. Tests: tests/unit/methods/contamination/test_exact.py.
    """
    published, others = _checked(canonical, shuffled)
    within = _tolerance(published, others, tolerance)
    with np.errstate(over="ignore", invalid="ignore"):
        sd = float(np.std(others, ddof=1)) if len(others) > 1 else 0.0
        mean = float(np.mean(others))
    if not (isfinite(sd) and isfinite(mean)):
        raise ValueError("the log-likelihoods are too large to be averaged")
    return ShardTest(
        canonical=published,
        n_permutations=len(others),
        greater=int(np.sum(others > published + within)),
        exceedances=int(np.sum(others >= published - within)),
        tolerance=within,
        shuffled_mean=mean,
        shuffled_sd=sd,
        z_score=_z_score(published, mean, sd),
    )


def finite_values(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """A non-empty one-dimensional array of finite numbers; ValueError says what is wrong and where."""
    try:
        array = real_array(values, name)
    except ValueError as error:
        raise ValueError(f"{name} holds truth values or something that is not a number: {error}") from error
    if array.ndim != 1 or not len(array):
        raise ValueError(f"{name} is a non-empty list of numbers, not of shape {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise ValueError(f"{name} holds a value that is not finite at position {bad[0]}")
    return array


def checked_tolerance(tolerance: float) -> float:
    """A distance within which values tie. ValueError for one that is negative or not finite."""
    if real_number(tolerance, "a tolerance") < 0:
        raise ValueError(f"a tolerance is not negative, not {tolerance!r}")
    return tolerance


def _checked(canonical: float, shuffled: ArrayLike) -> tuple[float, NDArray[np.float64]]:
    if np.size(canonical) != 1:
        raise ValueError("the published log-likelihood is one number")
    published = float(finite_values(np.reshape(np.asarray(canonical), (1,)), "the published log-likelihood")[0])
    if np.size(shuffled) == 0:
        raise ValueError("no permutations: at least one shuffled order is needed")
    return published, finite_values(shuffled, "the shuffled log-likelihoods")


def _tolerance(published: float, others: NDArray[np.float64], tolerance: float | None) -> float:
    if tolerance is None:
        return RELATIVE_TOLERANCE * max(abs(published), float(np.max(np.abs(others))))
    return checked_tolerance(tolerance)


def _z_score(published: float, mean: float, sd: float) -> float | None:
    z = (published - mean) / sd if sd > 0 else float("nan")
    return z if isfinite(z) else None
