"""Calibration of the contamination tests: null designs, planted effects, and planted transformers.

A finding is a rejection at level .05. Scenarios without a truth are null: findings there are false ones, and their
share is the attained level. Those with a truth hold a planted memory: the share of findings is the power. ``estimate``
holds the p-value.

Names: ``null/<shape>/k<shards>/m<orders>``, ``effect<sd>/<share>/k/m`` for simulated log-likelihoods, and
``transformer/<mode>/<copies>`` for small transformers that really trained.
"""

import re
from collections.abc import Callable
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from strandline.calibration import Recovery, Scenario
from strandline.contamination.exact import permutation_test
from strandline.contamination.levels import as_level
from strandline.contamination.monitoring import log_e_process, uniform_e_value
from strandline.contamination.pooling import Pooled, fisher_chi2, lattice_fisher, oren_t, rank_sum, z_sum
from strandline.contamination.sequential import besag_clifford, run_looks
from strandline.contamination.verdict import judge

LEVEL = "0.05"
"""The default level of the product, at which findings are counted."""

# The tests that this project offers, by their names in `ESTIMATORS`.
OURS = ("three_looks", "z_sum", "lattice_fisher", "rank_sum")
# The tests from the literature that they are compared with.
THEIRS = ("fisher_chi2", "oren_t")
MONITORS = ("e_process", "e_uniform")
"""The product's methods, those of the literature, and those for open-ended monitoring."""

# Worlds without an effect, named by noise, shards (k) and shuffled orders (m); why these: below `EFFECTS`.
NULLS = ("null/normal/k8/m19", "null/skew/k8/m19", "null/ties/k8/m19", "null/normal/k50/m19")
EFFECTS = ("effect1.0/1.0/k8/m19", "effect4.0/0.25/k8/m19", "effect0.6/1.0/k50/m19", "effect3.0/0.2/k50/m19")
"""Level where values are normal, skewed to the left (the t-test fails) and tied; power for weak effects everywhere and
for strong ones in a few shards; few shards and many."""

TRANSFORMERS = ("published/1", "published/2", "published/4", "published/10", "shuffled/10", "absent/0")
"""Copies of the benchmark in the corpus of a small transformer, and how it lies there."""

LEVEL_RUNS, POWER_RUNS, TRAINED_RUNS = 2000, 400, 10
"""2,000 runs give a level of .05 to half a point, 400 a power to 2.5 points; a training run takes seconds each."""

UNIFORM_MOST = 0.5
"""Exceedance rates up to one half are the alternatives of the uniform prior: half is the null's own mean."""

SIMULATED = re.compile(
    r"(null/(?P<shape>normal|skew|ties)|effect(?P<effect>\d+\.?\d*)/(?P<share>0?\.\d+|1\.0))"
    r"/k(?P<shards>[1-9]\d{0,3})/m(?P<orders>[1-9]\d{0,3})"
)
"""The names of simulated scenarios."""

TRAINED = re.compile(r"transformer/(?P<mode>published|shuffled|absent)/(?P<copies>\d{1,3})")
"""The names of scenarios with a trained transformer."""

Values = NDArray[np.float64]


def scenarios() -> tuple[Scenario, ...]:
    """All scenarios of this family."""
    listed = [Scenario("besag_clifford", "null/normal/k1/m199", LEVEL_RUNS, has_truth=False)]
    for estimator in OURS + THEIRS + MONITORS:
        nulls = NULLS if estimator in OURS else NULLS[:2]
        effects = EFFECTS if estimator in OURS else EFFECTS[:2]
        listed += [Scenario(estimator, name, LEVEL_RUNS, has_truth=False) for name in nulls]
        listed += [Scenario(estimator, name, POWER_RUNS) for name in effects]
    listed += [
        Scenario("contamination", f"transformer/{name}", TRAINED_RUNS, has_truth=name.startswith("published"))
        for name in TRANSFORMERS
    ]
    return tuple(listed)


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


def _e_process(values: Values) -> Recovery:
    return _monitored(log_e_process(_counts(values)))


def _e_uniform(values: Values) -> Recovery:
    return _monitored(sum(log(uniform_e_value(s, t, UNIFORM_MOST)) for s, t in _counts(values)))


def _monitored(log_e: float) -> Recovery:
    """Evidence that may be watched for ever rejects once it reaches 1 / level (Ville); 1 / e is a valid p-value."""
    p = exp(min(0.0, -log_e))
    return _recovery(p, p <= float(as_level(LEVEL)), "ok")


def _counts(values: Values) -> list[tuple[int, int]]:
    """Exceedances and draws of each shard."""
    return [(permutation_test(row[0], row[1:]).exceedances, len(row) - 1) for row in values]


def _besag_clifford(values: Values) -> Recovery:
    p = besag_clifford(values[0, 0], values[0, 1:], most=values.shape[1] - 1).p_fraction
    assert p is not None
    return _recovery(float(p), p <= as_level(LEVEL), "ok")


def _ranks(values: Values) -> list[int]:
    return [permutation_test(row[0], row[1:]).rank for row in values]


def _p_values(values: Values) -> list[float]:
    return [permutation_test(row[0], row[1:]).p_value for row in values]


# Every simulated test by its name.
ESTIMATORS: dict[str, Callable[[Values], Recovery]] = {
    "three_looks": _three_looks,
    "z_sum": lambda values: _pooled(z_sum(list(values))),
    "lattice_fisher": lambda values: _pooled(lattice_fisher(_ranks(values), values.shape[1] - 1)),
    "rank_sum": lambda values: _pooled(rank_sum(_ranks(values), values.shape[1] - 1)),
    "fisher_chi2": lambda values: _pooled(fisher_chi2(_p_values(values))),
    "oren_t": lambda values: _pooled(oren_t(list(values))),
    "besag_clifford": _besag_clifford,
    "e_process": _e_process,
    "e_uniform": _e_uniform,
}


def _draw(scenario: str, rng: np.random.Generator) -> Values:
    parts = SIMULATED.fullmatch(scenario)
    if parts is None:
        raise ValueError(f"unknown scenario {scenario!r}")
    size = (int(parts["shards"]), int(parts["orders"]) + 1)
    if parts["shape"] == "skew":
        return -rng.exponential(size=size)
    if parts["shape"] == "ties":
        return rng.integers(0, 4, size=size).astype(np.float64)
    values = rng.normal(size=size)
    if parts["effect"]:
        values[: round(size[0] * float(parts["share"])), 0] += float(parts["effect"])
    return values


def _trained(scenario: str, seed: int) -> Recovery:
    from strandline.contamination.planted import PlantedWorld, planted_scores

    parts = TRAINED.fullmatch(scenario)
    if parts is None:
        raise ValueError(f"unknown scenario {scenario!r}")
    mode, copies = parts["mode"], parts["copies"]
    scores = planted_scores(PlantedWorld(mode, int(copies)), seed)  # type: ignore[arg-type]
    verdict = judge("planted", mode, scores, order_p=1.0, alpha=LEVEL)
    return _recovery(verdict.p_value or 1.0, verdict.verdict == "order_memorised", verdict.verdict)


def _recovery(p: float, found: bool, status: str) -> Recovery:
    return Recovery(None, p, None, None, None, None, status, found)
