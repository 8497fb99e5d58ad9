"""Which orders to score next: decided by the stopping rule from the values at hand, one question at a time."""

from collections.abc import Mapping, Sequence
from math import isfinite

from strandline.contamination.levels import as_level
from strandline.contamination.order_batches import NOTHING_STORED, StoredShard
from strandline.contamination.orderings import REVERSED, Shard
from strandline.contamination.sequential import BESAG_CLIFFORD_MOST, LookDesign, besag_clifford, run_looks
from strandline.contamination.verdict import ShardScores

DRAWS_AT_ONCE = 20
"""Shuffled orders drawn at a time under Besag and Clifford's rule: it takes 56 on average where nothing is remembered,
so at most 19 are scored in vain, while the batches stay full."""


def next_permutations(
    shards: Sequence[Shard], stored: Mapping[int, StoredShard], design: LookDesign | None, alpha: str
) -> list[int] | None:
    """The permutations to have next, or None once the design has decided. ``design`` None: Besag and Clifford's rule.

    Where it has rejected, the reversed order is wanted too: whether that one stands out as well tells a reader whether
    neighbours are alike. Where values that are not finite leave one shard, it is tested by Besag and Clifford's rule.
    """
    logliks = [stored.get(shard.index, NOTHING_STORED).logliks for shard in shards]
    values = [scores_of(shard.index, row).values for shard, row in zip(shards, logliks, strict=True)]
    done = min(len(row) for row in values) - 1
    first = 1 if design is None else design.looks[0]
    if done < first:
        return list(range((DRAWS_AT_ONCE if design is None else first) + 1))
    whole = [row for row in values if all(isfinite(value) for value in row)]
    if not whole:
        return None
    if design is not None and len(whole) > 1:
        more, rejected = next_by_design(whole, design, alpha)
    else:
        more, rejected = next_by_besag_clifford(whole[0], alpha)
    if more is not None:
        return list(range(more + 1))
    turned = all(REVERSED in row for row in logliks)
    return [REVERSED] if rejected and not turned else None


def next_by_design(values: Sequence[Sequence[float]], design: LookDesign, alpha: str) -> tuple[int | None, bool]:
    """Shuffled orders to have at the next look, None once decided; and whether the design has rejected."""
    result = run_looks(values, design, alpha=alpha)
    return result.next_look, result.decision == "rejected"


def next_by_besag_clifford(values: Sequence[float], alpha: str) -> tuple[int | None, bool]:
    """Shuffled orders of the one shard to have next, None once decided; and whether the rule has rejected."""
    p = besag_clifford(values[0], values[1:]).p_fraction
    if p is None:
        return min(len(values) - 1 + DRAWS_AT_ONCE, BESAG_CLIFFORD_MOST), False
    return None, p <= as_level(alpha)


def scores_of(
    shard: int,
    values: Mapping[int, float | None],
    n_tokens: int = 0,
    n_orders: int | None = None,
    dtype: str | None = None,
) -> ShardScores:
    """A shard's published value and its shuffled ones in the order they were drawn, as far as they go unbroken.

    A value that is not finite stands as NaN, so that the shard is left out of the verdict and named.
    """
    unbroken: list[float] = []
    while len(unbroken) in values:
        value = values[len(unbroken)]
        unbroken.append(float("nan") if value is None else value)
    return ShardScores(shard, tuple(unbroken), n_tokens, n_orders, dtype)
