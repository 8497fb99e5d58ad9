"""Calibration of the contamination tests: null designs, planted effects, and planted transformers.

A finding is a rejection at level .05. Scenarios without a truth are null: findings there are false ones, and their
share is the attained level. Those with a truth hold a planted memory: the share of findings is the power. ``estimate``
holds the p-value.

Names: ``null/<shape>/k<shards>/m<orders>``, ``effect<sd>/<share>/k/m`` for simulated log-likelihoods, and
``transformer/<mode>/<copies>`` for small transformers that really trained.
"""

from collections.abc import Callable
from math import exp

import numpy as np
from numpy.typing import NDArray

from strandline.calibration import Recovery, Scenario
from strandline.contamination.exact import permutation_test
from strandline.contamination.levels import as_level
from strandline.contamination.pooling import Pooled, fisher_chi2, lattice_fisher, oren_t, rank_sum, z_sum
from strandline.contamination.sequential import besag_clifford, run_looks
from strandline.contamination.verdict import judge

LEVEL = "0.05"
OURS = ("three_looks", "z_sum", "lattice_fisher", "rank_sum")
THEIRS = ("fisher_chi2", "oren_t")
NULLS = ("null/normal/k8/m19", "null/skew/k8/m19", "null/ties/k8/m19", "null/normal/k50/m19")
EFFECTS = ("effect1.0/1.0/k8/m19", "effect4.0/0.25/k8/m19", "effect0.6/1.0/k50/m19", "effect3.0/0.2/k50/m19")
TRANSFORMERS = ("published/1", "published/2", "published/4", "published/10", "shuffled/10", "absent/0")
LEVEL_RUNS, POWER_RUNS, TRAINED_RUNS = 2000, 400, 10

Values = NDArray[np.float64]


def scenarios() -> tuple[Scenario, ...]:
    """All scenarios of this family."""
    found = [Scenario("besag_clifford", "null/normal/k1/m199", LEVEL_RUNS, has_truth=False)]
    for estimator in OURS + THEIRS:
        nulls = NULLS if estimator in OURS else NULLS[:2]
        effects = EFFECTS if estimator in OURS else EFFECTS[:2]
        found += [Scenario(estimator, name, LEVEL_RUNS, has_truth=False) for name in nulls]
        found += [Scenario(estimator, name, POWER_RUNS) for name in effects]
    found += [
        Scenario("contamination", f"transformer/{name}", TRAINED_RUNS, has_truth=name.startswith("published"))
        for name in TRANSFORMERS
    ]
    return tuple(found)


def run_once(estimator: str, scenario: str, seed: int) -> Recovery:
    """One run: draw or train, test, and say whether the level .05 was reached.

    Raises:
        ValueError: an unknown estimator or scenario.
    """
    if estimator == "contamination":
        return _trained(scenario, seed)
    if estimator not in ESTIMATORS:
        raise ValueError(f"unknown estimator {estimator!r}")
    return ESTIMATORS[estimator](_draw(scenario, np.random.default_rng(seed)))


def _pooled(pooled: Pooled) -> Recovery:
    return _recovery(exp(pooled.log_p), pooled.rejects(LEVEL), "ok")


def _three_looks(values: Values) -> Recovery:
    result = run_looks(list(values), alpha=LEVEL)
    return _recovery(result.p_any, result.decision == "rejected", result.decision)


def _besag_clifford(values: Values) -> Recovery:
    p = besag_clifford(values[0, 0], values[0, 1:], most=values.shape[1] - 1).p_fraction
    assert p is not None
    return _recovery(float(p), p <= as_level(LEVEL), "ok")


def _ranks(values: Values) -> list[int]:
    return [permutation_test(row[0], row[1:]).rank for row in values]


def _p_values(values: Values) -> list[float]:
    return [permutation_test(row[0], row[1:]).p_value for row in values]


ESTIMATORS: dict[str, Callable[[Values], Recovery]] = {
    "three_looks": _three_looks,
    "z_sum": lambda values: _pooled(z_sum(list(values))),
    "lattice_fisher": lambda values: _pooled(lattice_fisher(_ranks(values), values.shape[1] - 1)),
    "rank_sum": lambda values: _pooled(rank_sum(_ranks(values), values.shape[1] - 1)),
    "fisher_chi2": lambda values: _pooled(fisher_chi2(_p_values(values))),
    "oren_t": lambda values: _pooled(oren_t(list(values))),
    "besag_clifford": _besag_clifford,
}


def _draw(scenario: str, rng: np.random.Generator) -> Values:
    kind, shape, shards, orders = scenario.split("/")
    size = (int(shards[1:]), int(orders[1:]) + 1)
    if kind == "null":
        draws: dict[str, Callable[[], Values]] = {
            "normal": lambda: rng.normal(size=size),
            "skew": lambda: -rng.exponential(size=size),
            "ties": lambda: rng.integers(0, 4, size=size).astype(np.float64),
        }
        return draws[shape]()
    values = rng.normal(size=size)
    values[: round(size[0] * float(shape)), 0] += float(kind.removeprefix("effect"))
    return values


def _trained(scenario: str, seed: int) -> Recovery:
    from strandline.contamination.planted import PlantedWorld, planted_scores

    _, mode, copies = scenario.split("/")
    if mode not in ("published", "shuffled", "absent"):
        raise ValueError(f"unknown scenario {scenario!r}")
    scores = planted_scores(PlantedWorld(mode, int(copies)), seed)  # type: ignore[arg-type]
    verdict = judge("planted", mode, scores, order_p=1.0, alpha=LEVEL)
    return _recovery(verdict.p_value or 1.0, verdict.verdict == "order_memorised", verdict.verdict)


def _recovery(p: float, found: bool, status: str) -> Recovery:
    return Recovery(None, p, None, None, None, None, status, found)
