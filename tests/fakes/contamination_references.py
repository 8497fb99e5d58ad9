"""Slow or special statistics that the exact methods are compared with; the product itself does not need them."""

from collections.abc import Sequence
from fractions import Fraction
from math import floor, lcm, log, prod

import numpy as np
from numpy.typing import ArrayLike

from strandline.contamination.convolution import Atoms, log_floor, tail_log_p
from strandline.contamination.exact import ShardTest
from strandline.contamination.pooling import SCALE, Pooled, p_value_list

GRID_TOLERANCE = 1e-9


def randomised_p(test: ShardTest, rng: np.random.Generator) -> Fraction:
    """A p-value with ties broken at random: exact level even with ties, but two seeds differ, so never the default."""
    return Fraction(int(rng.integers(1 + test.greater, test.rank + 1)), test.n_permutations + 1)


def pool_atoms(method: str, shards: Sequence[Atoms], observed: Sequence[int]) -> Pooled:
    """Exact pooling of any integer scores, such as those of Besag-Clifford shards."""
    if len(shards) != len(observed):
        raise ValueError("one observed score for each shard")
    total = sum(observed)
    return Pooled(method, float(total), tail_log_p(shards, total), log_floor(shards), len(shards), tuple(shards))


def ranks_of(p_values: ArrayLike, n_permutations: Sequence[int] | int) -> list[int]:
    """Ranks behind shard p-values on the grid 1/(m+1)..1.

    Raises:
        ValueError: a p-value outside (0, 1], or off its declared grid.
    """
    values = p_value_list(p_values)
    sizes = [n_permutations] * len(values) if isinstance(n_permutations, int) else list(n_permutations)
    if len(sizes) != len(values):
        raise ValueError("one number of permutations for each p-value")
    exact = [p * (m + 1) for p, m in zip(values, sizes, strict=True)]
    for k, value in enumerate(exact):
        if abs(value - round(value)) > GRID_TOLERANCE or round(value) < 1:
            raise ValueError(f"p-value {values[k]!r} of shard {k} is not on the grid of {sizes[k]} permutations")
    return [round(value) for value in exact]


def fisher_product(ranks: Sequence[int], n_permutations: Sequence[int] | int) -> Fraction:
    """P(product of p-values <= the observed one), exactly, by counting integer products: for small cases.

    Products never fall as ranks are multiplied, so branches above the observed product are dropped.
    """
    sizes = [n_permutations] * len(ranks) if isinstance(n_permutations, int) else list(n_permutations)
    limit = prod(ranks)
    counts = {1: 1}
    for m in sizes:
        counts = _multiply(counts, m + 1, limit)
    return Fraction(sum(counts.values()), prod(m + 1 for m in sizes))


def _multiply(counts: dict[int, int], n: int, limit: int) -> dict[int, int]:
    grown: dict[int, int] = {}
    for product, count in counts.items():
        for rank in range(1, min(n, limit // product) + 1):
            grown[product * rank] = grown.get(product * rank, 0) + count
    return grown


def besag_clifford_grid(stop: int, most: int) -> list[tuple[Fraction, Fraction]]:
    """Attainable p-values in rising order, each with its probability under the null (continuous values)."""
    grid = [Fraction(g, most + 1) for g in range(1, stop + 1)]
    grid += [Fraction(stop, draws) for draws in range(most, stop - 1, -1)]
    return [(p, p - below) for below, p in zip([Fraction(0), *grid], grid, strict=False)]


def besag_clifford_atoms(stop: int, most: int, *, scale: int = SCALE) -> tuple[Atoms, dict[Fraction, int]]:
    """Lattice Fisher atoms of one such shard, and the score of each attainable p-value, for ``pool_atoms``."""
    grid = besag_clifford_grid(stop, most)
    scores = {p: floor(scale * -log(p) + 0.5) for p, _ in grid}
    common = lcm(*(probability.denominator for _, probability in grid))
    weights = tuple(int(probability * common) for _, probability in grid)
    return Atoms(tuple(scores[p] for p, _ in grid), weights), scores
