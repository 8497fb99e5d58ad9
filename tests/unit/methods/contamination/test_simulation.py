"""Planted truth: trained transformers are found out, null designs are not, and every scenario runs."""

import numpy as np
import pytest

from strandline.contamination.sequential import ECONOMY, THREE_LOOKS, design_for, run_looks
from strandline.contamination.simulation import ESTIMATORS, TRANSFORMERS, run_once, scenarios


def test_scenarios_cover_nulls_effects_and_ten_seeds_of_each_transformer() -> None:
    found = scenarios()
    assert len({(item.estimator, item.name) for item in found}) == len(found)
    trained = [item for item in found if item.name.startswith("transformer/")]
    assert [item.name.removeprefix("transformer/") for item in trained] == list(TRANSFORMERS)
    assert all(item.n_runs >= 10 for item in trained)
    assert all(item.has_truth != item.name.startswith("null/") for item in found if item not in trained)


def test_every_untrained_scenario_runs_and_is_reproducible() -> None:
    for item in scenarios():
        if item.estimator in ESTIMATORS and "k50" not in item.name:
            run = run_once(item.estimator, item.name, 5)
            assert run == run_once(item.estimator, item.name, 5)
            assert 0 < run.estimate <= 1
            assert run.truth is None


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown estimator"):
        run_once("x", "null/normal/k8/m19", 0)
    with pytest.raises(ValueError, match="unknown scenario"):
        run_once("contamination", "transformer/other/1", 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "n_shards"), [(THREE_LOOKS, 6), (ECONOMY, 2), (design_for(2), 2), (design_for(3), 3)]
)
def test_designs_that_stop_early_keep_their_level_over_twenty_thousand_replications(design, n_shards) -> None:
    """Every other data set is normal, every other one skewed to the left, where the published t-test fails."""
    rng = np.random.default_rng(31)
    size = (n_shards, design.looks[-1] + 1)
    rejected = 0
    for run in range(20_000):
        values = rng.normal(size=size) if run % 2 else -rng.exponential(size=size)
        rejected += run_looks(values, design, alpha="0.05").decision == "rejected"
    assert rejected / 20_000 < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 20_000)
    assert rejected / 20_000 > 0.03


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "copies", "word"),
    [("published", 4, "order_memorised"), ("shuffled", 4, "no_evidence"), ("absent", 0, "no_evidence")],
)
def test_a_trained_transformer_is_detected_only_where_it_saw_the_published_order(mode, copies, word) -> None:
    from strandline.contamination.planted import PlantedWorld, planted_scores
    from strandline.contamination.verdict import judge

    scores = planted_scores(PlantedWorld(mode, copies, n_examples=160, background=60, epochs=10), seed=7)
    verdict = judge("planted", mode, scores, order_p=1.0, alpha="0.01")
    assert verdict.verdict == word
    if word == "order_memorised":
        assert verdict.p_value < 0.001
