"""The planted worlds of mining: attribution dates what it should, intervals cover, nothing is found where none is."""

from collections import defaultdict

import pytest

from strandline.calibration import summarise
from strandline.corpus.planted import COVERED
from strandline.corpus.simulation import run_once, scenarios

RUNS = 25


@pytest.fixture(scope="module")
def outcomes():
    found = defaultdict(list)
    for scenario in scenarios():
        for seed in range(RUNS):
            found[scenario.estimator, scenario.name].append(run_once(scenario.estimator, scenario.name, 1000 + seed))
    return found


def test_copies_of_the_covered_classes_are_dated_and_others_never_matched(outcomes):
    for (estimator, kind), runs in outcomes.items():
        if estimator == "attribution":
            right = [
                run.truth is not None and run.low95 is not None and run.low95 <= run.truth <= run.high95 for run in runs
            ]
            assert sum(right) / RUNS >= 0.95 if kind in COVERED else not any(run.found for run in runs), kind


def test_intervals_of_the_typical_month_cover_it_and_a_spread_has_none(outcomes):
    for mix in ("upsampled_dump", "minor_dump", "old_crawl", "recent"):
        summary = summarise(outcomes["typical_month", mix], has_truth=True)
        assert summary.coverage95 >= 0.85, mix
        assert summary.n_found == RUNS
    assert summarise(outcomes["typical_month", "spread"], has_truth=False).false_findings <= 0.2 * RUNS


def test_a_gap_is_laid_to_its_cause(outcomes):
    for cause in ("old_crawl", "duplicates", "aligned"):
        summary = summarise(outcomes["gap_shares", cause], has_truth=True)
        assert summary.rmse < 2.5, cause
        assert summary.coverage95 >= 0.85, cause


def test_unrelated_series_are_rarely_called_related_and_mirrored_ones_always(outcomes):
    for name in ("unrelated/phi0.0", "unrelated/phi0.7"):
        assert summarise(outcomes["circular_shift", name], has_truth=False).false_findings <= 0.15 * RUNS
    mirrored = outcomes["circular_shift", "mirrored/phi0.7"]
    assert all(run.found for run in mirrored)
    assert summarise(mirrored, has_truth=True).rmse < 0.5


def test_a_run_is_repeatable_and_an_unknown_estimator_is_refused():
    assert run_once("gap_shares", "old_crawl", 7) == run_once("gap_shares", "old_crawl", 7)
    assert run_once("gap_shares", "old_crawl", 7) != run_once("gap_shares", "old_crawl", 8)
    with pytest.raises(ValueError, match="no estimator named 'guess'"):
        run_once("guess", "old_crawl", 7)
