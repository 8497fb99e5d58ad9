"""Every calibration scenario runs, is repeatable, and judges what it says."""

import pytest

from strandline.calibration import summarise
from strandline.perplexity.simulation import run_once, scenarios


def test_each_scenario_has_a_hundred_runs_and_one_name() -> None:
    listed = scenarios()
    assert len({(s.estimator, s.name) for s in listed}) == len(listed)
    assert {s.estimator for s in listed} == {"panel", "panel_noref", "trimmed95_minmax", "rise", "topic"}
    assert min(s.n_runs for s in listed) >= 100


@pytest.mark.parametrize(
    "scenario",
    [s for s in scenarios() if "n1000" not in s.name and "/many/" not in s.name],
    ids=lambda s: f"{s.estimator}-{s.name}",
)
def test_a_run_is_repeatable_and_its_truth_is_as_declared(scenario) -> None:  # type: ignore[no-untyped-def]
    first, again = (run_once(scenario.estimator, scenario.name, 5) for _ in range(2))
    assert first == again
    assert (first.truth is None) or scenario.has_truth
    assert first.found == (first.status == "found")


def test_intervals_of_findings_are_ordered_and_coverage_is_counted() -> None:
    runs = [run_once("panel", "sharp/factbook/n100/m24", seed) for seed in range(10)]
    for run in runs:
        assert run.low95 <= run.low80 <= run.estimate <= run.high80 <= run.high95  # type: ignore[operator]
    summary = summarise(runs, has_truth=True)
    assert summary.coverage95 is not None
    assert summary.coverage95 >= 0.8


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown estimator"):
        run_once("guess", "sharp/wiki/n100/m59", 1)
    with pytest.raises(ValueError, match="unknown world"):
        run_once("panel", "odd/wiki/n100/m59", 1)
    with pytest.raises(ValueError, match="unknown edit habit"):
        run_once("panel", "sharp/odd/n100/m59", 1)
