"""From scored orderings to a verdict in words, with what stands behind it and what it cannot show.

A verdict needs the order check's answer first: where the published order is told apart without a model, the p-value is
an order preference and nothing more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, inf, isfinite, log
from typing import Literal

import numpy as np

from strandline.contamination.exact import RELATIVE_TOLERANCE, ShardTest, permutation_test
from strandline.contamination.levels import Level, as_level
from strandline.contamination.order_check import GATE
from strandline.contamination.pooling import Pooled, fisher_chi2, lattice_fisher, oren_t, rank_sum
from strandline.contamination.sequential import (
    BESAG_CLIFFORD_MOST,
    LookDesign,
    SequentialTest,
    besag_clifford,
    design_for,
    run_looks,
)

VerdictName = Literal[
    "order_memorised", "no_evidence", "order_not_exchangeable", "numerically_fragile", "inconclusive", "comparison"
]

CAUTION = (
    "What this cannot show: only a memory of the published ORDER is visible here. A model that trained on the same "
    "examples in another order, on rewordings or on a data set made from them passes, so a p-value that is not small "
    "is no proof of a clean model."
)
OUT_OF_REACH = "this budget cannot reach level {:g}: use more shards, more permutations or more examples in a shard"
ASSUMPTION = (
    "Assumed: without training on it, the published order of a shard is as good as any other. The order check looks "
    "for surface patterns only; an order by meaning or difficulty could pass it."
)


@dataclass(frozen=True)
class ShardScores:
    """Log-likelihoods of one shard: the published order's first, then shuffled ones in the order they were drawn."""

    shard: int
    values: tuple[float, ...]
    n_tokens: int = 0


@dataclass(frozen=True)
class Verdict:
    """The answer for one model and benchmark, with its evidence.

    ``log_p`` is the natural log of a p-value that is valid at any stop of the design; ``log_floor`` the log of the
    smallest that the design can reach, ``log_floor_scored`` of the smallest that the orders scored until it stopped
    could give. All are None where nothing could be tested. Where the verdict is ``order_not_exchangeable`` the p-value
    measures an order preference, not contamination.
    """

    model: str
    benchmark: str
    method: str
    verdict: VerdictName
    reason: str
    alpha: Fraction
    statistic: float | None = None
    log_p: float | None = None
    log_floor: float | None = None
    log_floor_scored: float | None = None
    n_permutations: int = 0
    stopped_early: bool = False
    order_p: float | None = None
    group: str = "all"
    shard_tests: tuple[tuple[int, ShardTest], ...] = ()
    excluded: tuple[int, ...] = ()
    tolerance: float = 0.0

    @property
    def n_shards(self) -> int:
        """Shards behind the verdict."""
        return len(self.shard_tests)

    @property
    def p_value(self) -> float | None:
        """exp(log_p)."""
        return None if self.log_p is None else exp(self.log_p)

    @property
    def resolution(self) -> float | None:
        """Smallest p-value that this design can reach on these shards."""
        return None if self.log_floor is None else exp(self.log_floor)

    @property
    def at_floor(self) -> bool:
        """Whether p is the smallest that the orders scored could give: it then speaks of their number, not of the
        strength of a memory."""
        if self.log_p is None or self.log_floor_scored is None:
            return False
        return self.log_p < 0 and self.log_p <= self.log_floor_scored + 1e-9

    def summary(self) -> str:
        """The text for a reader: numbers, verdict, what a floor means, what is assumed and what cannot be shown."""
        lines = [f"contamination test of {self.model} on {self.benchmark}: {self.verdict}", f"  {self.reason}"]
        if self.log_p is not None and self.log_floor is not None:
            stopped = ", stopped early" if self.stopped_early else ""
            lines.append(
                f"  {self.method} over {self.n_shards} shard(s), {self.n_permutations} shuffled orders each{stopped}"
            )
            lines.append(f"  {self._p_name()} = {_shown(self.log_p)} (smallest reachable: {_shown(self.log_floor)})")
        if self.at_floor:
            lines.append(
                "  p is at the floor of the orders scored: more of them could make it smaller, it measures no strength"
            )
        if self.order_p is not None:
            lines.append(f"  order check: p = {self.order_p:.4g} (permutation group: {self.group})")
        if self.excluded:
            lines.append(f"  left out for log-likelihoods that are not finite: shard(s) {_listed(self.excluded)}")
        return "\n".join([*lines, f"  {ASSUMPTION}", f"  {CAUTION}"])

    def _p_name(self) -> str:
        return "order preference, p" if self.verdict == "order_not_exchangeable" else "p"


def judge(
    model: str,
    benchmark: str,
    shards: Sequence[ShardScores],
    *,
    order_p: float | None,
    alpha: Level = "0.05",
    gate: Level = GATE,
    design: LookDesign | None = None,
    group: str = "all",
    sentinel_difference: float = 0.0,
    n_orders: int | None = None,
) -> Verdict:
    """The verdict on the orders scored so far.

    Two or more shards are pooled by the looks of ``design`` (default ``design_for``); one shard is tested by Besag and
    Clifford's rule. Shards with a value that is not finite are left out whole and named.

    Args:
        model, benchmark: names.
        shards: scored shards.
        order_p: p-value of the order check on the same permutation group; None where there is none yet.
        alpha: level of the verdict, stored with it.
        gate: level at which the order check blocks the verdict.
        design: looks.
        group: the permutation group, for the text.
        sentinel_difference: largest difference seen when the published order was scored again; values closer than it
            count as ties, and a verdict that hangs on it is ``numerically_fragile``.
        n_orders: how many orders the smallest shard has at all. Where that leaves the level out of reach, a test that
            does not reject is ``inconclusive``.

    Raises:
        ValueError: a shard without a shuffled order, a level outside (0, 1).
    """
    level = as_level(alpha)
    whole = [shard for shard in shards if all(isfinite(value) for value in shard.values)]
    left_out = tuple(shard.shard for shard in shards if shard not in whole)
    base = Verdict(model, benchmark, "none", "inconclusive", "", level, order_p=order_p, group=group, excluded=left_out)
    if not whole:
        return replace(base, reason=_nothing(left_out))
    base = replace(base, tolerance=_tolerance(whole, sentinel_difference))
    floor = -inf if n_orders is None else -len(whole) * log(n_orders)
    tested = _one_shard(base, whole[0], floor) if len(whole) == 1 else _many_shards(base, whole, design, floor)
    return _gated(tested, order_p, gate)


def comparisons(shards: Sequence[ShardScores], n_permutations: int) -> list[Pooled]:
    """The named statistics on the orders at hand, for comparison only: none is valid after an early stop.

    Exact lattice Fisher and rank sum, Fisher's chi-squared as truescore has it, Oren et al.'s t-test. A statistic that
    these shards do not allow is left out.
    """
    rows = [shard.values[: n_permutations + 1] for shard in shards if all(isfinite(value) for value in shard.values)]
    if not rows:
        return []
    tests = [permutation_test(row[0], row[1:]) for row in rows]
    ranks = [test.rank for test in tests]
    found = [
        lattice_fisher(ranks, n_permutations),
        rank_sum(ranks, n_permutations),
        fisher_chi2([test.p_value for test in tests]),
    ]
    try:
        found.append(oren_t(rows))
    except ValueError:
        return found
    return found


def benjamini_hochberg(log_p_values: Sequence[float]) -> list[float]:
    """False-discovery-rate q-values of natural-log p-values, in the order given."""
    if not log_p_values:
        return []
    logs = np.asarray(log_p_values, dtype=float)
    if not np.all(np.isfinite(logs)) or np.any(logs > 0):
        raise ValueError("log p-values are finite and at most 0")
    order = np.argsort(logs, kind="stable")
    adjusted = logs[order] + np.log(len(logs)) - np.log(np.arange(1, len(logs) + 1))
    smallest = np.minimum.accumulate(adjusted[::-1])[::-1]
    q_values = np.empty(len(logs))
    q_values[order] = np.exp(np.minimum(smallest, 0.0))
    return [float(q) for q in q_values]


def _many_shards(base: Verdict, shards: Sequence[ShardScores], design: LookDesign | None, floor: float) -> Verdict:
    design = design or design_for(len(shards))
    result = run_looks([shard.values for shard in shards], design, alpha=base.alpha)
    lowered = [(shard.values[0] - base.tolerance, *shard.values[1:]) for shard in shards]
    lower = run_looks(lowered, design, alpha=base.alpha)
    floor = max(floor, result.log_floor)
    word, reason = _verdict_and_reason(result, lower, floor)
    done = result.n_permutations
    return replace(
        base,
        method=f"exact Z-sum, {design.name}",
        verdict=word,
        reason=reason,
        statistic=result.looks[-1].pooled.statistic if result.looks else None,
        log_p=result.log_p_any if result.looks else None,
        log_floor=min(floor, result.log_p_any) if result.looks else None,
        log_floor_scored=result.log_floor_scored if result.looks else None,
        n_permutations=done,
        stopped_early=result.stopped_early,
        shard_tests=_shard_tests(shards, done, base.tolerance),
    )


def _verdict_and_reason(result: SequentialTest, lower: SequentialTest, floor: float) -> tuple[VerdictName, str]:
    alpha = float(result.alpha)
    if result.decision == "continue":
        return (
            "inconclusive",
            f"scoring is not finished: the next look needs {result.next_look} shuffled orders a shard",
        )
    if (result.decision == "rejected") != (lower.decision == "rejected"):
        return "numerically_fragile", "the verdict turns on differences within the scoring noise; score again in fp32"
    if result.decision == "rejected":
        return "order_memorised", f"the published order is more likely than chance allows at level {alpha:g}"
    if floor > log(result.alpha):
        return "inconclusive", OUT_OF_REACH.format(alpha)
    reason = f"no evidence at level {alpha:g} that the published order is special to this model"
    if result.decision == "futile":
        look = result.looks[-1]
        own = look.pooled.p_value
        reason += (
            f"; given up after {look.n_permutations} shuffled orders a shard, where this look alone has p = {own:.2g}"
        )
    return "no_evidence", reason


def _one_shard(base: Verdict, shard: ShardScores, floor: float) -> Verdict:
    test = besag_clifford(shard.values[0], shard.values[1:], tolerance=base.tolerance)
    if test.draws == 0:
        raise ValueError(f"no permutations in shard {shard.shard}: at least one shuffled order is needed")
    floor = max(floor, -log(BESAG_CLIFFORD_MOST + 1))
    p = test.p_fraction
    word: VerdictName = "inconclusive"
    reason = f"scoring is not finished: {test.draws} shuffled orders, {test.exceedances} at least as likely"
    if p is not None:
        rejected = p <= base.alpha
        word = "order_memorised" if rejected else "no_evidence"
        kind = "more likely than chance allows" if rejected else "not special to this model on this evidence"
        reason = f"the published order is {kind} at level {float(base.alpha):g}"
        if not rejected and floor > log(base.alpha):
            word, reason = "inconclusive", OUT_OF_REACH.format(float(base.alpha))
    return replace(
        base,
        method="Besag-Clifford",
        verdict=word,
        reason=reason,
        statistic=float(test.exceedances),
        log_p=None if p is None else log(p),
        log_floor=None if p is None else min(floor, log(p)),
        log_floor_scored=None if p is None else -log(BESAG_CLIFFORD_MOST + 1),
        n_permutations=test.draws,
        stopped_early=test.draws < BESAG_CLIFFORD_MOST and p is not None,
        shard_tests=_shard_tests([shard], test.draws, base.tolerance),
    )


def _gated(verdict: Verdict, order_p: float | None, gate: Level) -> Verdict:
    if order_p is None:
        reason = "no verdict before the order check of this very order and permutation group"
        return replace(verdict, verdict="inconclusive", reason=reason)
    if not 0 < order_p <= 1:
        raise ValueError(f"an order check's p-value lies in (0, 1], not {order_p!r}")
    if Fraction(str(order_p)) > as_level(gate):
        return verdict
    reason = (
        "neighbours in the published order are alike without any model, so a model prefers it without having seen it"
    )
    return replace(verdict, verdict="order_not_exchangeable", reason=reason)


def _shard_tests(shards: Sequence[ShardScores], done: int, tolerance: float) -> tuple[tuple[int, ShardTest], ...]:
    return tuple(
        (shard.shard, permutation_test(shard.values[0], shard.values[1 : done + 1], tolerance=tolerance))
        for shard in shards
        if done
    )


def _tolerance(shards: Sequence[ShardScores], sentinel_difference: float) -> float:
    if not isfinite(sentinel_difference) or sentinel_difference < 0:
        raise ValueError(f"a sentinel difference is finite and not negative, not {sentinel_difference!r}")
    largest = max(abs(value) for shard in shards for value in shard.values)
    return max(RELATIVE_TOLERANCE * largest, sentinel_difference)


def _nothing(left_out: Sequence[int]) -> str:
    if left_out:
        return f"no shard is left: the log-likelihoods of shard(s) {_listed(left_out)} are not all finite"
    return "no shard has been scored"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")


def _shown(log_p: float) -> str:
    return f"{exp(log_p):.3g}" if log_p > -600 else f"1e{log_p / log(10):.1f}"
