"""The budget planner: its formulas against the specification's tables and against simulation."""

from math import log, sqrt

import numpy as np
import pytest

from strandline.contamination.planner import (
    expected_permutations,
    fixed_power,
    make_plan,
    needed_effect,
    smallest_log_p,
)
from strandline.contamination.sequential import ECONOMY, THREE_LOOKS, run_looks


@pytest.mark.parametrize(
    ("n_shards", "m", "total", "alpha", "power"),
    [
        (4, 19, 2.5, "0.01", 0.508),
        (4, 19, 4, "0.01", 0.891),
        (8, 5, 2.5, "0.01", 0.429),
        (8, 5, 4, "0.01", 0.798),
        (16, 9, 2.5, "0.01", 0.500),
        (50, 5, 4, "0.01", 0.891),
        (50, 19, 2.5, "0.01", 0.541),
        (8, 9, 2.5, "0.001", 0.210),
    ],
)
def test_power_formula_reproduces_the_specification(n_shards, m, total, alpha, power) -> None:
    assert fixed_power(total / sqrt(n_shards), n_shards, m, alpha) == pytest.approx(power, abs=0.0006)


def test_power_is_zero_where_the_level_is_out_of_reach() -> None:
    assert fixed_power(9.0, 1, 19, "0.01") == 0.0
    assert fixed_power(9.0, 1, 99, "0.01") > 0.9


def test_needed_effects() -> None:
    assert [round(needed_effect(19, alpha), 2) for alpha in ("0.05", "0.01", "0.001")] == [2.55, 3.25, 4.03]


def test_smallest_p_of_the_default_design() -> None:
    last = THREE_LOOKS.weights[-1]
    assert np.exp(smallest_log_p(8, 19, last)) == pytest.approx(4.6e-11, rel=0.01)
    assert np.exp(smallest_log_p(4, 19, last)) == pytest.approx(7.4e-6, rel=0.01)


def test_expected_orders_match_simulation() -> None:
    rng = np.random.default_rng(5)
    for design in (THREE_LOOKS, ECONOMY):
        for effect in (0.0, 0.75):
            used = []
            for _ in range(250):
                values = rng.normal(size=(16, 20))
                values[:, 0] += effect
                used.append(run_looks(values, design, alpha="0.01").n_permutations)
            expected = expected_permutations(design, 16, "0.01", effect=effect)
            assert abs(np.mean(used) - expected) < 4 * np.std(used) / sqrt(250) + 0.6


def test_the_null_costs_at_most_a_quarter_of_nineteen() -> None:
    assert expected_permutations(THREE_LOOKS, 16, "0.01") <= 19 / 4


def test_plan_states_tokens_time_and_reach() -> None:
    plan = make_plan(11_400, 32, 26, tokens_per_second=1000)
    text = plan.text()
    assert plan.most_tokens == 228_000
    assert 55_000 < plan.expected_tokens < 65_000
    assert "smallest reachable p" in text
    assert "4 min at most" in text
    assert "power" in text
    assert plan.can_reject


def test_plan_says_when_the_level_cannot_be_reached() -> None:
    plan = make_plan(500, 1, 20, alpha="0.0001")
    assert not plan.can_reject
    assert "cannot reach" in plan.text()
    assert plan.smallest_log_p == pytest.approx(log(1 / 1000))


def test_shards_of_a_few_examples_reach_no_smaller_p_than_they_have_orders() -> None:
    assert smallest_log_p(1, 999, n_orders=[6]) == pytest.approx(log(1 / 6))
    assert smallest_log_p(3, 29, n_orders=[10**9] * 3) == smallest_log_p(3, 29)
    alone, several = make_plan(50, 1, 3, n_orders=[6]), make_plan(200, 4, 2, n_orders=[2] * 4)
    assert not alone.can_reject
    assert not several.can_reject
    assert make_plan(50, 1, 4, n_orders=[24]).can_reject


@pytest.mark.parametrize("bad", [{"tokens_per_pass": 0, "n_shards": 3}, {"tokens_per_pass": 5, "n_shards": 0}])
def test_a_plan_needs_shards_and_tokens(bad) -> None:
    with pytest.raises(ValueError):
        make_plan(examples_per_shard=25, **bad)


def test_a_plan_needs_a_rate_that_is_one() -> None:
    with pytest.raises(ValueError, match="rate"):
        make_plan(5, 5, 5, tokens_per_second=0)
    with pytest.raises(ValueError):
        needed_effect(19, "0.05", power=1.0)
    with pytest.raises(ValueError):
        smallest_log_p(0, 19)
