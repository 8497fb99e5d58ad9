"""``rise``: golden values, level on autocorrelated trends, power on planted rises, fuzzing."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.perplexity.planted import planted_series
from strandline.perplexity.rise import RiseCutoff, autoregressive_series, rise_cutoff

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "cutoff_estimators.json").read_text())["rise_1"]
STATUSES = {"found", "no-rise", "edge-left", "edge-right", "inconclusive"}


def test_the_golden_series_is_reproduced_to_ten_digits() -> None:
    result = rise_cutoff(GOLDEN["y"], seed=GOLDEN["seed"], replicates=GOLDEN["B"])
    numbers = {
        "p": result.p_flat,
        "phi0": result.autocorrelation_trend,
        "phi1": result.autocorrelation_rise,
        "phi": result.autocorrelation,
        "stat": result.statistic,
        "vs_quad": result.versus_curve,
        "gamma": result.height,
    }
    assert {name: f"{value:.9e}" for name, value in numbers.items()} == {
        name: f"{GOLDEN[name]:.9e}" for name in numbers
    }
    assert [f"{value:.9e}" for value in result.posterior] == [f"{value:.9e}" for value in GOLDEN["post"]]
    assert (result.status, result.first_risen) == (GOLDEN["status"], GOLDEN["month"])
    assert [list(result.risen80), list(result.risen95)] == [GOLDEN["i80"], GOLDEN["i95"]]


def test_the_cutoff_is_the_month_before_the_rise() -> None:
    result = rise_cutoff(GOLDEN["y"], seed=7, replicates=199)
    assert (result.month, result.interval80, result.interval95) == (13, (12, 13), (9, 13))


def run(world: str, seed: int, **settings: float) -> tuple[RiseCutoff, int | None]:
    series = planted_series(world, np.random.default_rng([seed, 11]), **settings)  # type: ignore[arg-type]
    return rise_cutoff(series.values, seed=seed + 1, replicates=99), series.first_risen


@pytest.mark.parametrize("phi", [0.0, 0.4, 0.7])
def test_an_autocorrelated_trend_is_seldom_called_a_rise(phi: float) -> None:
    results = [run("none", seed, phi=phi)[0] for seed in range(100)]
    assert sum(result.p_flat <= 0.05 for result in results) <= 12
    assert sum(result.found for result in results) <= 2


def test_a_clear_step_is_found_and_its_interval_holds_it() -> None:
    results = [run("step", seed, phi=0.0, snr=4.0) for seed in range(40)]
    assert sum(result.found for result, _ in results) >= 30
    assert sum(result.risen80[0] <= (start or 0) <= result.risen80[1] for result, start in results) >= 34


@pytest.mark.parametrize("world", ["ramp12", "hinge", "log6"])
def test_slow_rises_are_covered(world: str) -> None:
    results = [run(world, seed, phi=0.4, snr=4.0) for seed in range(40)]
    assert sum(result.risen95[0] <= (start or 0) <= result.risen95[1] for result, start in results) >= 36


def test_units_and_level_do_not_matter() -> None:
    y = np.array(GOLDEN["y"])
    plain, moved = rise_cutoff(y), rise_cutoff(100 * y + 7)
    assert (plain.status, plain.first_risen, plain.risen95) == (moved.status, moved.first_risen, moved.risen95)
    assert plain.p_flat == moved.p_flat
    assert np.allclose(plain.posterior, moved.posterior)


def test_a_falling_series_has_no_rise() -> None:
    series = planted_series("step", np.random.default_rng(3), snr=-6.0, phi=0.0)
    assert rise_cutoff(series.values).status != "found"


def test_bootstrap_noise_is_stationary() -> None:
    noise = autoregressive_series(1, 4000, 30, 0.6)
    assert abs(noise[:, 0].std() - 1.25) < 0.05
    assert abs(noise[:, -1].std() - 1.25) < 0.05
    assert abs(np.corrcoef(noise[:, 10], noise[:, 11])[0, 1] - 0.6) < 0.04


@pytest.mark.parametrize(
    ("series", "message"),
    [
        (np.zeros(23), "24 months"),
        (np.zeros((24, 2)), "24 months"),
        (np.full(24, np.nan), "finite"),
        (np.arange(24.0), "straight line"),
        (np.zeros(24), "straight line"),
    ],
)
def test_bad_series_are_refused_by_name(series: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rise_cutoff(series)


@settings(max_examples=40, deadline=None)
@given(
    values=st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=24, max_size=40),
    repeats=st.integers(1, 3),
)
def test_any_finite_series_gives_a_posterior_or_a_clear_error(values: list[float], repeats: int) -> None:
    series = np.repeat(values, repeats)
    if np.ptp(series) <= 1e-9 * max(1.0, np.max(np.abs(series))):
        return
    result = rise_cutoff(series + 1e-3 * np.sin(np.arange(len(series)) ** 2), replicates=20)
    assert result.status in STATUSES
    assert abs(result.posterior.sum() - 1) < 1e-9
    assert np.isfinite([result.p_flat, result.statistic, result.height]).all()
    assert result.risen95[0] <= result.risen80[0] <= result.first_risen <= result.risen80[1] <= result.risen95[1]
