"""Stopping early: golden values, exact level by full enumeration and simulation, power and savings of the design."""

from fractions import Fraction
from itertools import permutations, product
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.contamination.convolution import exact_tail
from strandline.contamination.monitoring import log_e_process, log_e_value, uniform_e_value
from strandline.contamination.sequential import (
    DESIGNS,
    ECONOMY,
    FIXED_19,
    THREE_LOOKS,
    LookDesign,
    besag_clifford,
    combine_looks,
    design_for,
    expected_draws,
    run_looks,
)
from tests.fakes.contamination_references import besag_clifford_atoms, besag_clifford_grid, pool_atoms

TWO_LOOKS = LookDesign("two looks", (1, 3), (Fraction(1, 5), Fraction(4, 5)), (0.6,))


def fractions(text):
    return [Fraction(part) for part in text.split()]


def test_golden_besag_clifford_stops() -> None:
    def drawn(hits, total):
        return besag_clifford(0.0, [1.0 if k in hits else -1.0 for k in range(1, total + 1)], stop=3, most=19)

    assert drawn({2, 5, 7}, 19).p_fraction == Fraction(3, 7)
    assert drawn({2, 5, 7}, 19).draws == 7
    assert drawn({2, 5}, 19).p_fraction == Fraction(3, 20)
    assert drawn(set(), 19).p_fraction == Fraction(1, 20)
    assert drawn(set(), 18).p_fraction is None


def test_golden_besag_clifford_grid() -> None:
    grid = besag_clifford_grid(3, 19)
    assert [p for p, _ in grid] == fractions(
        "1/20 1/10 3/20 3/19 1/6 3/17 3/16 1/5 3/14 3/13 1/4 3/11 3/10 1/3 3/8 3/7 1/2 3/5 3/4 1"
    )
    assert [share for _, share in grid] == fractions(
        "1/20 1/20 1/20 3/380 1/114 1/102 3/272 1/80 1/70 3/182 1/52 1/44 3/110 1/30 1/24 3/56 1/14 1/10 3/20 1/4"
    )
    assert sum(share for _, share in grid) == 1
    assert expected_draws(3, 19) == Fraction(210631199, 25865840)
    assert float(expected_draws(10, 999)) == pytest.approx(55.56, abs=0.01)


def test_golden_pooled_besag_clifford() -> None:
    observed = fractions("3/7 1/20 3/20 3/12")
    atoms, scores = besag_clifford_atoms(3, 19)
    assert pool_atoms("x", [atoms] * 4, [scores[p] for p in observed]).p_value == pytest.approx(
        0.0222805469923, rel=1e-11
    )
    fine, fine_scores = besag_clifford_atoms(3, 19, scale=10**6)
    pooled = pool_atoms("x", [fine] * 4, [fine_scores[p] for p in observed])
    assert pooled.p_value == pytest.approx(0.0226892433263, rel=1e-10)


def test_golden_looks() -> None:
    weights = fractions("1/10 1/5 7/10")
    logs = [log(p) for p in (0.02, 0.004, 0.006)]
    after = [exp(combine_looks(logs[: looks + 1], weights)) for looks in range(3)]
    assert after == pytest.approx([0.2, 0.02, 0.00857142857143])
    assert combine_looks([log(0.5)], weights) == 0.0


def test_besag_clifford_is_exact_over_twenty_thousand_null_shards() -> None:
    rng = np.random.default_rng(1)
    p = np.array(
        [float(besag_clifford(v[0], v[1:], stop=3, most=19).p_fraction) for v in rng.normal(size=(20_000, 20))]
    )
    for value, _ in besag_clifford_grid(3, 19):
        level = float(value)
        assert abs(np.mean(p <= level + 1e-12) - level) < 4.5 * np.sqrt(level * (1 - level) / len(p)) + 1e-12


def test_pooled_besag_clifford_keeps_its_level() -> None:
    grid = besag_clifford_grid(3, 19)
    atoms, scores = besag_clifford_atoms(3, 19, scale=64)
    values = np.array([scores[p] for p, _ in grid])
    draws = np.random.default_rng(2).choice(len(grid), size=(20_000, 5), p=[float(share) for _, share in grid])
    totals = values[draws].sum(axis=1)
    p = {total: pool_atoms("x", [atoms] * 5, [total, 0, 0, 0, 0]).p_value for total in np.unique(totals)}
    reached = np.array([p[total] for total in totals])
    for level in (0.05, 0.01):
        assert np.mean(reached <= level) < level + 4 * np.sqrt(level / len(reached))
        assert np.mean(reached <= level) > 0.9 * level - 4 * np.sqrt(level / len(reached))


@pytest.mark.parametrize(
    "shards", [([3.1, 2.2, 0.4, -1.0], [5.0, 1.5, 1.0, 0.2]), ([1.0, 1.0, 0.0, 0.0], [2.0, 1.0, 1.0, 0.0])]
)
def test_no_stopping_time_exceeds_the_level_by_full_enumeration(shards) -> None:
    """Every assignment of the values to published and shuffled is equally likely: count p-values over all of them."""
    p_values = [
        run_looks([list(first), list(second)], TWO_LOOKS, alpha="0.3").p_any
        for first, second in product(permutations(shards[0]), permutations(shards[1]))
    ]
    for level in sorted(set(p_values)):
        if level < 1:
            assert np.mean([p <= level + 1e-12 for p in p_values]) <= level + 1e-9


@pytest.mark.parametrize("draw", ["normal", "left skew"])
def test_the_default_design_keeps_its_level_when_it_stops_early(draw) -> None:
    rng = np.random.default_rng(3)
    rejected = []
    used = []
    for _ in range(1500):
        values = rng.normal(size=(8, 20)) if draw == "normal" else -rng.exponential(size=(8, 20))
        result = run_looks(values, THREE_LOOKS, alpha="0.05")
        rejected.append(result.decision == "rejected")
        used.append(result.n_permutations)
    assert np.mean(rejected) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 1500)
    assert np.mean(rejected) > 0.02
    assert np.mean(used) <= 19 / 4


@pytest.mark.parametrize(
    ("total", "power", "orders"),
    [(0.0, 0.0, 4.3), (3.0, 0.696, 12.9), (4.0, 0.908, 8.4), (5.0, 0.988, 4.8), (7.0, 1.0, 2.1)],
)
def test_power_and_savings_of_the_default_design_are_those_of_the_specification(total, power, orders) -> None:
    """K = 16, level .01: within 3 points of the power of a fixed 19, at the orderings of the table."""
    rng = np.random.default_rng(4)
    early, fixed, used = [], [], []
    for _ in range(200):
        values = rng.normal(size=(16, 20))
        values[:, 0] += total / 4
        result = run_looks(values, THREE_LOOKS, alpha="0.01")
        early.append(result.decision == "rejected")
        used.append(result.n_permutations)
        fixed.append(run_looks(values, FIXED_19, alpha="0.01").decision == "rejected")
    assert np.mean(early) >= power - 3 * np.sqrt(power * (1 - power) / 200) - 0.005
    assert np.mean(fixed) - np.mean(early) <= 0.03 + 3 * np.sqrt(0.03 * 0.97 / 200)
    assert np.mean(used) < orders + 4 * np.std(used) / np.sqrt(200) + 0.1


def test_a_strong_memory_stops_at_the_first_look() -> None:
    values = np.zeros((12, 3)) + np.array([9.0, 0.1, -0.1])
    result = run_looks(values)
    assert (result.decision, result.n_permutations, result.stopped_early) == ("rejected", 2, True)
    assert result.next_look is None


def test_looks_ask_for_more_orders_until_decided() -> None:
    rng = np.random.default_rng(6)
    values = rng.normal(size=(8, 20))
    values[:, 0] += 0.5
    assert run_looks(values[:, :2]).next_look == 2
    second = run_looks(values[:, :3])
    if second.decision == "continue":
        assert second.next_look == 5


def test_values_beyond_the_deciding_look_are_not_read() -> None:
    rng = np.random.default_rng(7)
    values = rng.normal(size=(8, 20))
    result = run_looks(values)
    again = values.copy()
    again[:, 1 + result.n_permutations :] = 50.0
    assert run_looks(again) == result


def test_giving_up_is_reported_as_such() -> None:
    values = np.zeros((8, 20)) + np.arange(20.0)
    result = run_looks(values)
    assert (result.decision, result.n_permutations) == ("futile", 2)
    assert result.p_any == 1.0


def test_a_p_value_equal_to_the_share_of_the_level_rejects() -> None:
    """Two shards at their floor after one shuffled order: p = 1/4 = w * alpha."""
    design = LookDesign("one", (1,), (Fraction(1, 2),), ())
    result = run_looks([[1.0, 0.0], [1.0, 0.0]], design, alpha="1/2")
    assert result.decision == "rejected"
    assert exact_tail(result.looks[0].pooled.atoms, int(result.looks[0].pooled.statistic)) == Fraction(1, 4)
    assert run_looks([[1.0, 0.0], [1.0, 0.0]], design, alpha="0.4999").decision == "finished"


def test_few_shards_get_a_later_last_look() -> None:
    assert [design_for(k).looks for k in (2, 3, 4, 50)] == [(2, 5, 59), (2, 5, 29), (2, 5, 19), (2, 5, 19)]
    with pytest.raises(ValueError, match="two shards"):
        design_for(1)


def test_designs_are_offered_by_name() -> None:
    assert set(DESIGNS) == {"three looks", "economy", "fixed 19"}
    assert sum(ECONOMY.weights) == sum(THREE_LOOKS.weights) == 1


@pytest.mark.parametrize(
    ("looks", "weights", "futility"),
    [
        ((), (), ()),
        ((5, 2), ("1/2", "1/2"), (0.3,)),
        ((2,), ("2",), ()),
        ((2, 5), ("1/2", "1/2"), ()),
        ((0,), ("1",), ()),
    ],
)
def test_designs_that_make_no_sense_are_refused(looks, weights, futility) -> None:
    with pytest.raises(ValueError):
        LookDesign("x", looks, tuple(Fraction(w) for w in weights), futility)


def test_bad_input_is_refused() -> None:
    for bad in ([], [[1.0, float("nan"), 2.0]]):
        with pytest.raises(ValueError):
            run_looks(bad)
    with pytest.raises(ValueError, match="stop"):
        besag_clifford(0.0, [], stop=0, most=5)
    with pytest.raises(ValueError, match="draw 2"):
        besag_clifford(0.0, [1.0, float("inf")])


def test_e_values_have_mean_one_under_exchangeability() -> None:
    """S exceedances in t draws are uniform on 0..t when the published value is exchangeable."""
    for t in (1, 5, 19):
        for prior in (1.3, 2.0, 16.0):
            assert np.mean([exp(log_e_value(s, t, prior)) for s in range(t + 1)]) == pytest.approx(1.0)
        assert np.mean([uniform_e_value(s, t, 0.3) for s in range(t + 1)]) == pytest.approx(1.0)
    assert exp(log_e_value(2, 10, 2.0)) == pytest.approx(2 * 9 / 12)


def test_e_process_never_crosses_more_often_than_the_level() -> None:
    rng = np.random.default_rng(9)
    crossed = 0
    for _ in range(400):
        values = rng.normal(size=(4, 31))
        hits = np.cumsum(values[:, 1:] >= values[:, :1], axis=1)
        best = max(log_e_process([(int(h[t]), t + 1) for h in hits]) for t in range(30))
        crossed += best >= -log(0.1)
    assert crossed / 400 < 0.1 + 3 * np.sqrt(0.09 / 400)
    with pytest.raises(ValueError):
        log_e_process([])
    with pytest.raises(ValueError):
        log_e_value(3, 2, 2.0)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.lists(st.floats(-1e5, 1e5), min_size=7, max_size=7), min_size=1, max_size=4),
    st.sampled_from(["0.05", "0.5", "0.001"]),
)
def test_any_shards_give_a_decision_and_a_valid_p(shards, alpha) -> None:
    result = run_looks(shards, alpha=alpha)
    assert result.decision in ("continue", "rejected", "futile")
    assert 0 < result.p_any <= 1
    assert (result.decision == "rejected") == (result.p_any <= float(Fraction(alpha)) * (1 + 1e-12))
