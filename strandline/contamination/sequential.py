"""Stopping early without losing the level: looks with weights over all shards, and Besag-Clifford for one shard.

The default design looks at every shard after 2, 5 and 19 shuffled orders. Open-ended monitoring is ``monitoring``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log
from typing import Literal

from numpy.typing import ArrayLike

from strandline.contamination.exact import RELATIVE_TOLERANCE, checked_tolerance, finite_values
from strandline.contamination.levels import Level, as_level
from strandline.contamination.pooling import Pooled, z_sum
from strandline.numeric_input import real_number, whole_number

Decision = Literal["continue", "rejected", "futile", "finished"]


@dataclass(frozen=True)
class LookDesign:
    """When to look, how much of the level each look may spend, and when to give up.

    ``looks`` are shuffled orders per shard, nested; ``weights`` sum to at most 1; after look j the test gives up where
    p exceeds ``futility[j]`` (one entry fewer than looks; giving up never raises the level).
    """

    name: str
    looks: tuple[int, ...]
    weights: tuple[Fraction, ...]
    futility: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.looks or len(self.weights) != len(self.looks) or len(self.futility) != len(self.looks) - 1:
            raise ValueError("a design has one weight for each look and one futility bound fewer")
        if list(self.looks) != sorted({whole_number(m, "a look", 1) for m in self.looks}):
            raise ValueError(f"looks rise from at least 1, not {self.looks}")
        if not all(isinstance(weight, Fraction) and weight > 0 for weight in self.weights) or sum(self.weights) > 1:
            raise ValueError("weights are positive fractions and sum to at most 1")
        if not all(0 <= real_number(bound, "a futility bound") <= 1 for bound in self.futility):
            raise ValueError("futility bounds are p-values, from 0 to 1")


@dataclass(frozen=True)
class Look:
    """One look: permutations per shard, pooled evidence, the share of the level it may spend."""

    n_permutations: int
    pooled: Pooled
    weight: Fraction


@dataclass(frozen=True)
class SequentialTest:
    """The looks done so far, the decision, and a p-value that is valid whenever one stops.

    ``log_p_any`` is ln min(1, min over looks of p_j / w_j); ``log_floor`` the smallest value that it could reach at
    the last look of the design.
    """

    design: LookDesign
    alpha: Fraction
    looks: tuple[Look, ...]
    decision: Decision
    log_p_any: float
    log_floor: float

    @property
    def p_any(self) -> float:
        """The p-value that stays valid at any stop."""
        return exp(self.log_p_any)

    @property
    def log_floor_scored(self) -> float:
        """ln of the smallest valid p that the looks done could have given, whatever the values were."""
        return combine_looks([look.pooled.log_floor for look in self.looks], self.design.weights)

    @property
    def n_permutations(self) -> int:
        """Shuffled orders per shard at the last look done."""
        return self.looks[-1].n_permutations if self.looks else 0

    @property
    def stopped_early(self) -> bool:
        """Whether a decision fell before the design's last look."""
        return self.decision in ("rejected", "futile") and self.n_permutations < self.design.looks[-1]

    @property
    def next_look(self) -> int | None:
        """Shuffled orders per shard to reach next; None once decided."""
        return self.design.looks[len(self.looks)] if self.decision == "continue" else None


def _weights(*shares: str) -> tuple[Fraction, ...]:
    return tuple(Fraction(share) for share in shares)


THREE_LOOKS = LookDesign("three looks", (2, 5, 19), _weights("0.05", "0.10", "0.85"), (0.3, 0.1))
"""Chosen by simulation: 4.3 orders a shard under the null instead of 19, for 1 to 2.5 points of power at level .01."""

ECONOMY = LookDesign("economy", (3, 9), _weights("0.15", "0.85"), (0.3,))
"""At most 9 orders, within 2.3 points of the power of 9 fixed ones: where tokens matter more than the last points."""

FIXED_19 = LookDesign("fixed 19", (19,), _weights("1"), ())
"""19 orders reach a p-value of .05 in one shard: the fewest that do, and what the published script uses about."""

DESIGNS = {design.name: design for design in (THREE_LOOKS, ECONOMY, FIXED_19)}
"""The designs that a setting can name."""

FINAL_LOOK_OF_FEW_SHARDS = {2: 59, 3: 29}
"""So many orders let two and three shards reach p-values below .001, as four shards do with 19."""

BESAG_CLIFFORD_STOP, BESAG_CLIFFORD_MOST = 10, 999
"""p-values down to .001 at 56 draws under the null on average; a smaller stop makes p coarser, a larger one dearer."""

MOST_DRAWS_SUMMED = 10_000
"""Ten times what is ever drawn; the exact sum of many more fractions would take minutes."""


def design_for(n_shards: int) -> LookDesign:
    """The default design for two or more shards; two or three shards need a later last look to reach small p-values.

    One shard is tested by :func:`besag_clifford` instead.
    """
    if whole_number(n_shards, "the number of shards", 0) < 2:
        raise ValueError("looks pool at least two shards; test one shard by besag_clifford")
    last = FINAL_LOOK_OF_FEW_SHARDS.get(n_shards)
    if last is None:
        return THREE_LOOKS
    return LookDesign(f"three looks to {last}", (2, 5, last), THREE_LOOKS.weights, THREE_LOOKS.futility)


def run_looks(
    shards: Sequence[ArrayLike], design: LookDesign = THREE_LOOKS, *, alpha: Level = "0.05"
) -> SequentialTest:
    """Apply a design to the orders scored so far.

    Each look's Z-sum p-value is valid given the shards' values, so P(min_j p_j / w_j <= a) <= a at every stopping time,
    whatever the dependence between looks; stopping early without rejecting only lowers it. A look rejects at
    p_j <= w_j * alpha.

    Args:
        shards: for each shard the published value, then shuffled values in the order they were drawn. Looks beyond the
            shortest shard are not done; values beyond the deciding look are not read.
        design: looks, weights and futility bounds.
        alpha: level of the verdict.

    Returns:
        A :class:`SequentialTest`; its decision is ``continue`` while the next look still needs orders.

    Raises:
        ValueError: as :func:`~strandline.contamination.pooling.z_sum`.

    What it cannot show: restarting, adding looks or drawing beyond the last look are not covered by the level.
    """
    level = as_level(alpha)
    rows = [finite_values(shard, f"shard {k}") for k, shard in enumerate(shards)]
    if not rows:
        raise ValueError("no shards to test")
    available = min(len(row) for row in rows) - 1
    looks: list[Look] = []
    decision: Decision = "continue"
    for j, m in enumerate(design.looks):
        if m > available or decision != "continue":
            break
        looks.append(Look(m, z_sum([row[: m + 1] for row in rows]), design.weights[j]))
        decision = _decide(looks, design, level)
    log_p_any = combine_looks([look.pooled.log_p for look in looks], design.weights)
    floor = -len(rows) * log(design.looks[-1] + 1) - log(design.weights[-1])
    return SequentialTest(design, level, tuple(looks), decision, log_p_any, min(0.0, floor))


def _decide(looks: Sequence[Look], design: LookDesign, level: Fraction) -> Decision:
    last = looks[-1]
    if last.pooled.at_most(last.weight * level):
        return "rejected"
    if len(looks) == len(design.looks):
        return "finished"
    return "futile" if last.pooled.p_value > design.futility[len(looks) - 1] else "continue"


def combine_looks(log_p_values: Sequence[float], weights: Sequence[Fraction]) -> float:
    """ln of the p-value that is valid at any stop: min(1, min over the looks done of p_j / w_j).

    Raises:
        ValueError: a log p-value that is positive or no finite number, a weight that is not positive.
    """
    if any(real_number(log_p, "a log p-value") > 0 for log_p in log_p_values) or any(not w > 0 for w in weights):
        raise ValueError("log p-values are at most 0, and weights are positive")
    return min([0.0, *(log_p - log(weight) for log_p, weight in zip(log_p_values, weights, strict=False))])


@dataclass(frozen=True)
class BesagClifford:
    """One shard, drawn until ``stop`` exceedances or ``most`` draws.

    ``p_fraction`` is None while more draws are needed.
    """

    exceedances: int
    draws: int
    stop: int
    most: int

    @property
    def p_fraction(self) -> Fraction | None:
        """stop / draws at the stop-th exceedance, else (1 + exceedances) / (most + 1) after all draws."""
        if self.exceedances == self.stop:
            return Fraction(self.stop, self.draws)
        return Fraction(1 + self.exceedances, self.most + 1) if self.draws == self.most else None


def besag_clifford(
    canonical: float,
    draws: Iterable[float],
    *,
    stop: int = BESAG_CLIFFORD_STOP,
    most: int = BESAG_CLIFFORD_MOST,
    tolerance: float | None = None,
) -> BesagClifford:
    """Draw shuffled orders until the published one has been matched often enough to stop asking.

    Exact: p <= stop / l holds just when the published value is among the top ``stop`` of the first l values. Draws past
    the stopping point are not read. Ties within the tolerance count as exceedances.

    Raises:
        ValueError: a value that is not finite, a negative count.
    """
    _check_rule(stop, most)
    if tolerance is not None:
        checked_tolerance(tolerance)
    published = float(finite_values([canonical], "the published log-likelihood")[0])
    seen = exceedances = 0
    for value in draws:
        if exceedances == stop or seen == most:
            break
        drawn = float(finite_values([value], f"draw {seen + 1}")[0])
        within = RELATIVE_TOLERANCE * max(abs(published), abs(drawn)) if tolerance is None else tolerance
        seen += 1
        exceedances += drawn >= published - within
    return BesagClifford(exceedances, seen, stop, most)


def expected_draws(stop: int, most: int) -> Fraction:
    """Expected draws under the null: stop * (1 + H_most - H_stop), with H the harmonic numbers."""
    _check_rule(stop, most)
    if most > MOST_DRAWS_SUMMED:
        raise ValueError(f"expected draws are summed for at most {MOST_DRAWS_SUMMED:,} draws, not {most:,}")
    return stop * (1 + sum((Fraction(1, i) for i in range(stop + 1, most + 1)), Fraction(0)))


def _check_rule(stop: int, most: int) -> None:
    if whole_number(stop, "stop", 0) < 1 or whole_number(most, "most", 0) < stop:
        raise ValueError(f"the rule needs 1 <= stop <= most, not stop {stop} and most {most}")
