"""From scored orderings to a verdict in words, with what stands behind it and what it cannot show.

A verdict needs the order check's answer first: where the published order is told apart without a model, the p-value is
an order preference and nothing more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, log, sqrt

import numpy as np

from strandline.contamination.exact import RELATIVE_TOLERANCE, ShardTest, permutation_test
from strandline.contamination.levels import Level, as_level
from strandline.contamination.order_check import GATE
from strandline.contamination.planner import needed_effect, smallest_log_p, smallest_p
from strandline.contamination.pooling import Pooled, fisher_chi2, lattice_fisher, oren_t, rank_sum
from strandline.contamination.sequential import (
    BESAG_CLIFFORD_MOST,
    BesagClifford,
    LookDesign,
    SequentialTest,
    besag_clifford,
    design_for,
    run_looks,
)
from strandline.contamination.statuses import VerdictName
from strandline.numeric_input import real_array, real_number, whole_number
from strandline.scoring.scores import FP32

VERDICT_VERSION = "1"
"""Raise it when the same log-likelihoods would give other verdicts: tables made by it then show as stale."""

# Sentences of the summary and of reasons, each in one place because tests and readers look for them.

# The last sentence of every report, whatever the verdict.
CAUTION = (
    "What this cannot show: only a memory of the published ORDER is visible here. A model that trained on the same "
    "examples in another order, on rewordings or on a data set made from them passes, so a p-value that is not small "
    "is no proof of a clean model."
)
# The reason of a verdict, in one place because two judgements give it.
OUT_OF_REACH = "this budget cannot reach level {:g}: use more shards, more permutations or more examples in a shard"
# How a reason begins, in one place because two judgements give it.
UNFINISHED = "scoring is not finished"
# The reason of a verdict, in one place because two judgements give it.
WITHIN_NOISE = "the verdict turns on differences within the scoring noise; score again in fp32"
# What every report says before its caution.
ASSUMPTION = (
    "Assumed: without training on it, the published order of a shard is as good as any other. The order check looks "
    "for surface patterns only; an order by meaning or difficulty could pass it."
)

UNIT_ROUNDOFF = {FP32: 2.0**-24, "bfloat16": 2.0**-8, "float16": 2.0**-11}
"""Half the distance from 1 to the next number of the format. A server's format is not known: it is taken for fp32."""

LOGIT_SIZE = 20.0
"""Logits of language models reach about 20, and each is rounded once; over n tokens the errors grow as the root of n.
With it 230 tokens in bfloat16 may be off by 1.2 nats, the most that was measured there."""

LAST_DIGITS = 4
"""A sum that passed through single precision is off by up to one of its last digits at either end: four half digits."""

NATS_A_TOKEN = 3.0
"""About what a token of plain text costs a small model; stands in where the number of tokens is not known."""


@dataclass(frozen=True)
class ShardScores:
    """Log-likelihoods of one shard: the published order's first, then shuffled ones in the order they were drawn.

    ``n_orders`` is how many of its orders can be told apart and ``dtype`` the number format of the values, where they
    are known.
    """

    shard: int
    values: tuple[float, ...]
    n_tokens: int = 0
    n_orders: int | None = None
    dtype: str | None = None


@dataclass(frozen=True)
class Verdict:
    """The answer for one model and benchmark, with its evidence.

    ``log_p`` is the natural log of a p-value that is valid at any stop of the design; ``log_floor`` the log of the
    smallest that the design can reach, ``log_floor_scored`` of the smallest that the orders scored until it stopped
    could give. All are None where nothing could be tested. Where the verdict is ``order_not_exchangeable`` the p-value
    measures an order preference, not contamination. ``needed_effect`` is the total effect (see ``planner``) that the
    last look finds in 80 % of tests; None where it can find none.
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
    needed_effect: float | None = None

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
) -> Verdict:
    """The verdict on the orders scored so far.

    Two or more shards are pooled by the looks of ``design`` (default ``design_for``); one shard is tested by Besag and
    Clifford's rule. Shards with a value that is not finite are left out whole and named. A rejection must survive when
    every published value is lowered by the noise of its number format, or it is ``numerically_fragile``; where no order
    of these examples could reach the level, the verdict is ``inconclusive``.

    Args:
        model, benchmark, group: names; the group is that of the permutations.
        shards, design: scored shards, and the looks that pool them.
        order_p: p-value of the order check on the same permutation group; None where there is none yet.
        alpha: level of the verdict, stored with it.
        gate: level at which the order check blocks the verdict.
        sentinel_difference: largest difference seen when the published order was scored again; values closer than it
            count as ties, and a verdict that hangs on it is ``numerically_fragile``.

    Raises:
        ValueError: a shard without a shuffled order, values that are no numbers, a level outside (0, 1).
    """
    level = as_level(alpha)
    whole = _scored_whole(shards)
    left_out = tuple(shard.shard for shard in shards if shard not in whole)
    base = Verdict(model, benchmark, "none", "inconclusive", "", level, order_p=order_p, group=group, excluded=left_out)
    if not whole:
        return replace(base, reason=_nothing(left_out))
    moved = _sentinel_difference(sentinel_difference)
    tested = _one_shard(base, whole[0], moved) if len(whole) == 1 else _many_shards(base, whole, design, moved)
    return _gated(tested, order_p, gate)


def _scored_whole(shards: Sequence[ShardScores]) -> list[ShardScores]:
    """The shards whose every value is finite."""
    return [shard for shard in shards if np.all(np.isfinite(real_array(shard.values, f"shard {shard.shard}")))]


def _sentinel_difference(given: float) -> float:
    """The difference as a number; ValueError where it is none, or negative."""
    moved = real_number(given, "a sentinel difference")
    if moved < 0:
        raise ValueError(f"a sentinel difference is not negative, not {given!r}")
    return moved


def comparisons(shards: Sequence[ShardScores], n_permutations: int) -> list[Pooled]:
    """The named statistics on the orders at hand, for comparison only: none is valid after an early stop.

    Exact lattice Fisher and rank sum, Fisher's chi-squared as truescore has it, Oren et al.'s t-test. A statistic that
    these shards do not allow is left out.
    """
    whole_number(n_permutations, "the number of permutations", 1)
    used = [real_array(shard.values, f"shard {shard.shard}")[: n_permutations + 1] for shard in shards]
    rows = [row for row in used if np.all(np.isfinite(row))]
    if any(len(row) <= n_permutations for row in rows):
        raise ValueError(f"a shard has fewer than {n_permutations} shuffled orders")
    if not rows:
        return []
    tests = [permutation_test(row[0], row[1:]) for row in rows]
    ranks = [test.rank for test in tests]
    named = [
        lattice_fisher(ranks, n_permutations),
        rank_sum(ranks, n_permutations),
        fisher_chi2([test.p_value for test in tests]),
    ]
    try:
        named.append(oren_t(rows))
    except ValueError:
        return named
    return named


def _many_shards(base: Verdict, shards: Sequence[ShardScores], design: LookDesign | None, moved: float) -> Verdict:
    """The verdict by looks over two or more shards; orders beyond the deciding look change nothing."""
    design = design or design_for(len(shards))
    result = run_looks([shard.values for shard in shards], design, alpha=base.alpha)
    done = result.n_permutations
    shards = [replace(shard, values=shard.values[: done + 1]) for shard in shards]
    tolerance = _tolerance(shards, moved)
    lowered = [(shard.values[0] - _noise(shard, tolerance), *shard.values[1:]) for shard in shards]
    lower = run_looks(lowered, design, alpha=base.alpha)
    smallest, floor = _reach(shards, list(zip(design.looks, design.weights, strict=True)))
    is_within_reach, share = smallest <= base.alpha, base.alpha * design.weights[-1]
    word, reason = _verdict_and_reason(result, lower.decision == "rejected", is_within_reach)
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
        tolerance=tolerance,
        shard_tests=_shard_tests(shards, done, tolerance),
        needed_effect=needed_effect(design.looks[-1], share) if is_within_reach else None,
    )


def _verdict_and_reason(result: SequentialTest, holds: bool, is_within_reach: bool) -> tuple[VerdictName, str]:
    """The verdict of looks; ``holds``: they reject also when the published values are lowered by the noise."""
    alpha = float(result.alpha)
    if result.decision == "continue":
        return "inconclusive", f"{UNFINISHED}: the next look needs {result.next_look} shuffled orders a shard"
    if not is_within_reach or (result.decision == "finished" and _is_tied(result)):
        return "inconclusive", OUT_OF_REACH.format(alpha)
    if result.decision == "rejected":
        if not holds:
            return "numerically_fragile", WITHIN_NOISE
        return "order_memorised", f"the published order is more likely than chance allows at level {alpha:g}"
    reason = f"no evidence at level {alpha:g} that the published order is special to this model"
    if result.decision == "futile":
        look = result.looks[-1]
        own = look.pooled.p_value
        reason += (
            f"; given up after {look.n_permutations} shuffled orders a shard, where this look alone has p = {own:.2g}"
        )
    return "no_evidence", reason


def _is_tied(result: SequentialTest) -> bool:
    """Whether, for equal values, no look could have rejected whichever of its orders had been the published one."""
    return all(look.pooled.floor > look.weight * result.alpha for look in result.looks)


def _reach(shards: Sequence[ShardScores], looks: Sequence[tuple[int, Fraction]]) -> tuple[Fraction, float]:
    """The smallest p that looks can reach on these shards, and its logarithm; 1 where all orders scored tie."""
    if all(len(shard.values) > 1 and len(set(shard.values)) == 1 for shard in shards):
        return Fraction(1), 0.0
    n = len(shards)
    return min(
        (smallest_p(n, m, weight, _orders(shards, m)), smallest_log_p(n, m, weight, _orders(shards, m)))
        for m, weight in looks
    )


def _orders(shards: Sequence[ShardScores], n_permutations: int) -> list[int]:
    """Orders that can be told apart in each shard; as many as are drawn where their number is not known."""
    return [n_permutations + 1 if shard.n_orders is None else shard.n_orders for shard in shards]


def _one_shard(base: Verdict, shard: ShardScores, moved: float) -> Verdict:
    """The verdict by Besag and Clifford's rule."""
    tolerance = _tolerance([shard], moved)
    test = besag_clifford(shard.values[0], shard.values[1:], tolerance=tolerance)
    if test.draws == 0:
        raise ValueError(f"no permutations in shard {shard.shard}: at least one shuffled order is needed")
    lower = besag_clifford(shard.values[0], shard.values[1:], tolerance=_noise(shard, tolerance)).p_fraction
    used = replace(shard, values=shard.values[: test.draws + 1])
    smallest, floor = _reach([used], [(BESAG_CLIFFORD_MOST, Fraction(1))])
    is_within_reach, p = smallest <= base.alpha, test.p_fraction
    holds = lower is not None and lower <= base.alpha
    word, reason = _verdict_of_one(test, p, base.alpha, holds, is_within_reach)
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
        tolerance=tolerance,
        shard_tests=_shard_tests([shard], test.draws, tolerance),
        needed_effect=needed_effect(BESAG_CLIFFORD_MOST, base.alpha) if is_within_reach else None,
    )


def _verdict_of_one(
    test: BesagClifford, p: Fraction | None, alpha: Fraction, holds: bool, is_within_reach: bool
) -> tuple[VerdictName, str]:
    """The verdict on one shard; ``holds``: it is rejected also when the published value is lowered by the noise."""
    if p is None:
        so_far = f"{test.draws} shuffled orders, {test.exceedances} at least as likely"
        return "inconclusive", f"{UNFINISHED}: {so_far}"
    if not is_within_reach:
        return "inconclusive", OUT_OF_REACH.format(float(alpha))
    if p <= alpha and not holds:
        return "numerically_fragile", WITHIN_NOISE
    if p <= alpha:
        return "order_memorised", f"the published order is more likely than chance allows at level {float(alpha):g}"
    kind = "not special to this model on this evidence"
    return "no_evidence", f"the published order is {kind} at level {float(alpha):g}"


def _gated(verdict: Verdict, order_p: float | None, gate: Level) -> Verdict:
    if order_p is None:
        reason = "no verdict before the order check of this very order and permutation group"
        return replace(verdict, verdict="inconclusive", reason=reason)
    if not 0 < real_number(order_p, "an order check's p-value") <= 1:
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


def _tolerance(shards: Sequence[ShardScores], moved: float) -> float:
    """Values this close tie: a rounding of the sums, or what the published order has moved by."""
    largest = max(abs(value) for shard in shards for value in shard.values)
    return max(RELATIVE_TOLERANCE * largest, moved)


def _noise(shard: ShardScores, tolerance: float) -> float:
    """By how much a shard's values may be off: the tolerance, or what its number format cannot resolve."""
    largest = max(abs(value) for value in shard.values)
    n_tokens = shard.n_tokens or largest / NATS_A_TOKEN
    rounding = UNIT_ROUNDOFF.get(shard.dtype or FP32, UNIT_ROUNDOFF[FP32])
    return max(tolerance, LOGIT_SIZE * rounding * sqrt(n_tokens), LAST_DIGITS * UNIT_ROUNDOFF[FP32] * largest)


def _nothing(left_out: Sequence[int]) -> str:
    if left_out:
        return f"no shard is left: the log-likelihoods of shard(s) {_listed(left_out)} are not all finite"
    return "no shard has been scored"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")


def _shown(log_p: float) -> str:
    return f"{exp(log_p):.3g}" if log_p > -600 else f"1e{log_p / log(10):.1f}"
