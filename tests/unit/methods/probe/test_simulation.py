"""Planted worlds: the estimators recover what was planted, and find no date where there is none."""

import numpy as np
import pytest

from strandline.calibration import summarise
from strandline.probe import simulation
from strandline.probe.calendar import synthetic_calendar
from strandline.probe.modelclock import Rules


@pytest.fixture(scope="module")
def pool() -> simulation.Pool:
    return simulation.pool_of(synthetic_calendar(400, seed=11))


def runs(pool: simulation.Pool, name: str, n: int):
    for seed in range(n):
        world = simulation.plant(name, pool, np.random.default_rng([seed, 3]))
        yield simulation.calibrated_recovery(pool, world, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", simulation.TRUTHS)
def test_the_95_percent_interval_covers_the_half_way_date(pool: simulation.Pool, name: str) -> None:
    summary = summarise(list(runs(pool, name, 8)), has_truth=True)
    assert summary.n_found >= 7
    assert summary.coverage95 >= 0.75


@pytest.mark.parametrize("name", simulation.EDGES)
def test_without_a_boundary_no_date_is_found(pool: simulation.Pool, name: str) -> None:
    assert summarise(list(runs(pool, name, 4)), has_truth=False).false_findings == 0


def test_the_seed_announces_a_result_for_a_model_that_always_says_yes_and_the_default_does_not(
    pool: simulation.Pool,
) -> None:
    world = simulation.plant("always_yes", pool, np.random.default_rng(1))
    assert simulation.modelclock_recovery(pool, world, Rules(replicates=1)).found
    assert not simulation.calibrated_recovery(pool, world, 1).found


@pytest.mark.slow
def test_the_seed_is_too_sure_where_knowledge_fades_and_the_default_is_not(pool: simulation.Pool) -> None:
    covered = {"seed": 0, "default": 0}
    for seed in range(10):
        world = simulation.plant("S2a", pool, np.random.default_rng([seed, 3]))
        seeded = simulation.modelclock_recovery(pool, world, Rules(replicates=1))
        default = simulation.calibrated_recovery(pool, world, seed)
        covered["seed"] += bool(seeded.low95 and seeded.high95 and seeded.low95 <= world.truth <= seeded.high95)
        covered["default"] += bool(default.found and default.low95 <= world.truth <= default.high95)
    assert covered["default"] >= 9
    assert covered["seed"] <= 6


def test_a_planted_model_answers_the_same_question_the_same_way(pool: simulation.Pool) -> None:
    world = simulation.plant("coin_flips", pool, np.random.default_rng(1))
    asked = [pool.calendar.items[5][0].question(5, "real")] * 4
    assert len({a.answer for a in simulation.answer(pool, world, asked).answers}) == 1


def test_the_rates_of_the_worlds_are_those_described(pool: simulation.Pool) -> None:
    rng = np.random.default_rng(2)
    truth = float(np.median(pool.day))
    real, decoy = simulation.rates("S3", pool, truth, 0, rng)
    assert set(np.round(real, 3)) == {0.05, 0.45}
    assert set(decoy) == {0.02}
    real, _ = simulation.rates("S2b", pool, truth, 365, rng)
    at_end = real[np.abs(pool.day - (truth + 182.5)).argmin()]
    assert at_end == pytest.approx(0.05 + 0.85 * 0.05, abs=0.01)


def test_scenarios_name_every_world_once_and_can_be_run() -> None:
    names = [(s.estimator, s.name) for s in simulation.scenarios()]
    assert len(set(names)) == len(names)
    assert {s.name for s in simulation.scenarios() if s.has_truth} >= {"S1_committed", "S6_synthetic"}
    assert all(s.n_runs >= 100 for s in simulation.scenarios())
    first = simulation.run_once("probe_calibrated", "S1_synthetic", 7)
    assert first == simulation.run_once("probe_calibrated", "S1_synthetic", 7)
    assert first.low95 <= first.truth <= first.high95


def test_an_unknown_simulation_is_refused() -> None:
    with pytest.raises(ValueError, match="no such simulation"):
        simulation.run_once("probe_calibrated", "S9_synthetic", 1)
