"""What a test can reach and what it costs, before anything is spent: smallest p, power, tokens and time."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from strandline.contamination.levels import Level, as_level
from strandline.contamination.sequential import (
    BESAG_CLIFFORD_MOST,
    BESAG_CLIFFORD_STOP,
    LookDesign,
    design_for,
    expected_draws,
)
from strandline.numeric_input import real_number, whole_number

EFFECTS = (2.0, 3.0, 4.0, 5.0, 7.0)
"""Total effects that a plan gives the power for: from one that is mostly missed to one that is always found."""

LARGEST_EFFECT = 1e9
"""Log-likelihoods have some 16 digits: an effect of more standard deviations cannot be written in them."""


def fixed_power(effect: float, n_shards: int, n_permutations: int, alpha: Level) -> float:
    """Power of the Z-sum at a fixed number of permutations, first order.

    Phi(d sqrt(K) sqrt(m/(m+1)) / sqrt(1 + d^2/(m+1)) - z_(1-alpha)); 0 where the smallest reachable p exceeds alpha.
    Within 3 points of simulation for d <= 1 and m >= 9; pessimistic by up to 20 points for d > 1.4 with m <= 5;
    optimistic by up to 7 points at K <= 8 near the floor.

    Args:
        effect: d, the published order's advantage in one shard, in standard deviations between shuffled orders.
        n_shards: K.
        n_permutations: m.
        alpha: level.
    """
    level = as_level(alpha)
    effect = _effect(effect)
    if smallest_p(n_shards, n_permutations) > level:
        return 0.0
    return float(ndtr(_shift(effect, n_shards, n_permutations) + ndtri(float(level))))


def needed_effect(n_permutations: int, alpha: Level, power: float = 0.8) -> float:
    """d sqrt(K) that reaches this power: (z_alpha + z_power) sqrt((m + 1) / m), first order."""
    if not 0 < real_number(power, "power") < 1:
        raise ValueError(f"power lies between 0 and 1, not {power!r}")
    whole_number(n_permutations, "the number of permutations", 1)
    reach = ndtri(power) - ndtri(float(as_level(alpha)))
    return float(reach * sqrt((n_permutations + 1) / n_permutations))


def expected_permutations(design: LookDesign, n_shards: int, alpha: Level, *, effect: float = 0.0) -> float:
    """Expected shuffled orders per shard under a design, by the joint normal law of its looks."""
    level = as_level(alpha)
    whole_number(n_shards, "the number of shards", 1)
    effect = _effect(effect)
    expected = float(design.looks[0])
    for j in range(1, len(design.looks)):
        go_on = _chance_to_continue(design, j, n_shards, level, effect)
        expected += go_on * (design.looks[j] - design.looks[j - 1])
    return expected


def smallest_p(
    n_shards: int, n_permutations: int, weight: Fraction = Fraction(1), n_orders: Sequence[int] | None = None
) -> Fraction:
    """The smallest p-value that K shards with m permutations each can reach at a look of this weight, as a fraction.

    ``n_orders`` is how many orders each shard has that can be told apart: drawing more of them reaches nothing smaller.

    Raises:
        ValueError: no shard, no permutation, a weight outside (0, 1], numbers of orders that do not belong to shards.
    """
    whole_number(n_shards, "the number of shards", 1)
    most = whole_number(n_permutations, "the number of permutations", 1) + 1
    share = as_level(weight, "a look's share of the level") if weight != 1 else Fraction(1)
    counts = [whole_number(n, "the number of orders of a shard", 1) for n in n_orders or [most] * n_shards]
    if len(counts) != n_shards:
        raise ValueError(f"{len(counts)} numbers of orders for {n_shards} shard(s)")
    return min(Fraction(1), 1 / (prod(min(most, n) for n in counts) * share))


def smallest_log_p(
    n_shards: int, n_permutations: int, weight: Fraction = Fraction(1), n_orders: Sequence[int] | None = None
) -> float:
    """The natural logarithm of :func:`smallest_p`, also where that is too small for a float."""
    p = smallest_p(n_shards, n_permutations, weight, n_orders)
    if any(n <= n_permutations for n in n_orders or ()):
        return log(p.numerator) - log(p.denominator)
    return min(0.0, -n_shards * log(n_permutations + 1) - log(weight))


@dataclass(frozen=True)
class Plan:
    """The stated budget of one test.

    ``tokens_per_pass`` is the token count of one ordering of every shard; a verdict scores ``1 + permutations`` passes.
    ``can_reject`` says whether the smallest reachable p lies at or below alpha. Times are None where no rate was
    measured.
    """

    n_shards: int
    examples_per_shard: int
    tokens_per_pass: int
    alpha: float
    design_name: str
    most_permutations: int
    smallest_log_p: float
    expected_permutations_null: float
    expected_permutations_strong: float
    power_by_effect: tuple[tuple[float, float], ...]
    can_reject: bool
    tokens_per_second: float | None = None

    @property
    def expected_tokens(self) -> int:
        """Tokens expected where the benchmark is clean."""
        return round(self.tokens_per_pass * (1 + self.expected_permutations_null))

    @property
    def most_tokens(self) -> int:
        """Tokens at the last look."""
        return self.tokens_per_pass * (1 + self.most_permutations)

    def text(self) -> str:
        """The plan as printed before anything is spent."""
        powers = ", ".join(f"{effect:g} sd {power:.0%}" for effect, power in self.power_by_effect)
        strong = round(self.tokens_per_pass * (1 + self.expected_permutations_strong))
        lines = [
            f"plan: {self.n_shards} shards of up to {self.examples_per_shard} examples, {self.design_name}, "
            f"level {self.alpha:g}",
            f"  smallest reachable p: {_power_of_ten(self.smallest_log_p)}",
            f"  tokens: {self.expected_tokens:,} expected where the benchmark is clean, {strong:,} where it is plainly "
            f"in training, {self.most_tokens:,} at most{self._time()}",
            f"  power by total effect (standard deviations summed over shards / sqrt(shards)): {powers}",
        ]
        if not self.can_reject:
            lines.append("  this budget cannot reach the level: use more shards or more permutations")
        return "\n".join(lines)

    def _time(self) -> str:
        if self.tokens_per_second is None:
            return ""
        expected, most = (tokens / self.tokens_per_second for tokens in (self.expected_tokens, self.most_tokens))
        return f"; at {self.tokens_per_second:.0f} tokens/s {_duration(expected)} expected, {_duration(most)} at most"


def make_plan(
    tokens_per_pass: int,
    n_shards: int,
    examples_per_shard: int,
    *,
    alpha: Level = "0.05",
    design: LookDesign | None = None,
    tokens_per_second: float | None = None,
    n_orders: Sequence[int] | None = None,
) -> Plan:
    """Plan a test; one shard is planned for Besag-Clifford, several for the design (default ``design_for``).

    ``n_orders`` is how many orders of each shard can be told apart, which matters for few or equal examples.

    Raises:
        ValueError: no tokens, no shards, a rate that is not positive.
    """
    whole_number(tokens_per_pass, "the number of tokens", 1)
    whole_number(n_shards, "the number of shards", 1)
    whole_number(examples_per_shard, "the number of examples in a shard", 1)
    if tokens_per_second is not None and real_number(tokens_per_second, "a rate") <= 0:
        raise ValueError(f"a rate is positive, not {tokens_per_second!r}")
    if n_shards == 1:
        facts = _one_shard(alpha, n_orders)
    else:
        facts = _looks(n_shards, alpha, design or design_for(n_shards), n_orders)
    return Plan(
        n_shards=n_shards,
        examples_per_shard=examples_per_shard,
        tokens_per_pass=tokens_per_pass,
        alpha=float(as_level(alpha)),
        tokens_per_second=tokens_per_second,
        **facts,
    )


def _looks(n_shards: int, alpha: Level, design: LookDesign, n_orders: Sequence[int] | None) -> dict[str, Any]:
    last, weight = design.looks[-1], design.weights[-1]
    share = as_level(alpha) * weight
    powers = [(total, fixed_power(total / sqrt(n_shards), n_shards, last, share)) for total in EFFECTS]
    return {
        "design_name": f"{design.name} ({', '.join(map(str, design.looks))} shuffled orders)",
        "most_permutations": last,
        "smallest_log_p": smallest_log_p(n_shards, last, weight, n_orders),
        "can_reject": smallest_p(n_shards, last, weight, n_orders) <= as_level(alpha),
        "expected_permutations_null": expected_permutations(design, n_shards, alpha),
        "expected_permutations_strong": expected_permutations(design, n_shards, alpha, effect=7 / sqrt(n_shards)),
        "power_by_effect": tuple(powers),
    }


def _one_shard(alpha: Level, n_orders: Sequence[int] | None) -> dict[str, Any]:
    return {
        "design_name": f"Besag-Clifford (until {BESAG_CLIFFORD_STOP} exceedances, {BESAG_CLIFFORD_MOST} at most)",
        "most_permutations": BESAG_CLIFFORD_MOST,
        "smallest_log_p": smallest_log_p(1, BESAG_CLIFFORD_MOST, n_orders=n_orders),
        "can_reject": smallest_p(1, BESAG_CLIFFORD_MOST, n_orders=n_orders) <= as_level(alpha),
        "expected_permutations_null": float(expected_draws(BESAG_CLIFFORD_STOP, BESAG_CLIFFORD_MOST)),
        "expected_permutations_strong": float(BESAG_CLIFFORD_MOST),
        "power_by_effect": tuple((effect, fixed_power(effect, 1, BESAG_CLIFFORD_MOST, alpha)) for effect in EFFECTS),
    }


def _effect(value: float) -> float:
    """A finite effect; ValueError for one beyond what any log-likelihoods could show."""
    effect = real_number(value, "an effect")
    if abs(effect) > LARGEST_EFFECT:
        raise ValueError(f"an effect of {effect:g} standard deviations is no effect that a shard could show")
    return effect


def _shift(effect: float, n_shards: int, m: int) -> float:
    return effect * sqrt(n_shards) * sqrt(m / (m + 1)) / sqrt(1 + effect**2 / (m + 1))


def _chance_to_continue(design: LookDesign, j: int, n_shards: int, level: Fraction, effect: float) -> float:
    """P(looks 0..j-1 neither reject nor give up): each statistic lies between its two bounds."""
    from scipy.stats import multivariate_normal

    looks = design.looks[:j]
    low = np.array([-ndtri(bound) for bound in design.futility[:j]])
    high = np.array([_bound(n_shards, m, weight * level) for m, weight in zip(looks, design.weights, strict=False)])
    if np.any(low >= high):
        return 0.0
    mean = np.array([_shift(effect, n_shards, m) for m in looks])
    joint = multivariate_normal(mean, _correlation(looks), allow_singular=True)
    return float(joint.cdf(high, lower_limit=low))


def _bound(n_shards: int, m: int, share: Fraction) -> float:
    reachable = Fraction(1, (m + 1) ** n_shards) <= share
    return float(-ndtri(float(share))) if reachable else 40.0


def _correlation(looks: tuple[int, ...]) -> NDArray[np.float64]:
    """Looks share the published value and the earlier draws: correlation (1 + 1/larger) / sqrt((1 + 1/m)(1 + 1/m'))."""
    variance = 1 + 1 / np.array(looks, dtype=float)
    return np.minimum.outer(variance, variance) / np.sqrt(np.outer(variance, variance))


def _power_of_ten(log_p: float) -> str:
    return f"{exp(log_p):.3g}" if log_p > -600 else f"1e{log_p / log(10):.1f}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
