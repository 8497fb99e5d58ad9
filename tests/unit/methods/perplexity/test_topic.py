"""``topic``: golden values, false discoveries, coverage, what is refused, fuzzing."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.multiple_testing import adjusted_p_values
from strandline.perplexity.planted import planted_topics
from strandline.perplexity.topic import (
    fit_months,
    month_evidence,
    permutation_p_value,
    topic_cutoffs,
    topic_evidence,
    topic_steps,
)

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "cutoff_estimators.json").read_text())


def test_golden_evidence_and_permutations_are_reproduced_to_ten_digits() -> None:
    golden = GOLDEN["topic_1"]
    data = topic_steps(GOLDEN["panel_1"]["Y"], golden["G"])
    zz, zy, yy = topic_evidence(data, golden["lam"])
    evidence = month_evidence(zz, zy, yy, data.n_edits[:, None], golden["s"])
    assert [f"{value:.9e}" for value in evidence[0]] == [f"{value:.9e}" for value in golden["logBF_topic0"]]
    uniform = np.full(12, 1 / 12)
    p_values = np.array([permutation_p_value(data, i, golden["lam"], golden["s"], uniform, 7, 99) for i in range(6)])
    assert np.round(p_values, 9).tolist() == golden["perm_p_B99_seed7_uniform_pt"]
    assert (adjusted_p_values(p_values) <= 0.10).tolist() == golden["bh_10"]


def test_findings_are_mostly_true_and_their_intervals_hold() -> None:
    false = reported = hits = 0
    for seed in range(10):
        world = planted_topics("wiki", np.random.default_rng([seed, 1]), depth=0.2)
        result = topic_cutoffs(world.target - world.reference, world.distances, seed=seed + 1)
        accepted = np.array([status == "found" for status in result.status])
        true = accepted & (world.months >= 0)
        low, high = result.intervals95[true].T
        hits += int(np.sum((low <= world.months[true]) & (world.months[true] <= high)))
        reported += int(accepted.sum())
        false += int((accepted & ~true).sum())
    assert reported >= 150
    assert false <= 0.16 * reported
    assert hits >= 0.93 * (reported - false)


def test_no_topic_is_found_where_none_has_memory() -> None:
    runs = []
    for seed in range(10):
        world = planted_topics("wiki", np.random.default_rng([seed, 2]), without=1.0)
        result = topic_cutoffs(world.target - world.reference, world.distances, seed=seed + 1, replicates=199)
        runs.append("found" in result.status)
        assert np.mean(result.p_values <= 0.05) < 0.2
    assert sum(runs) <= 3


def test_permutation_p_values_are_uniform_under_the_null() -> None:
    world = planted_topics("wiki", np.random.default_rng(5), without=1.0, n_topics=300)
    data = topic_steps(world.target - world.reference, world.distances)
    uniform = np.full(59, 1 / 59)
    p_values = np.array([permutation_p_value(data, i, 0.15, 4.0, uniform, 1, 99) for i in range(300)])
    assert abs(np.mean(p_values <= 0.05) - 0.05) < 0.045
    assert abs(np.mean(p_values <= 0.5) - 0.5) < 0.1


def test_topics_with_few_edits_are_not_judged() -> None:
    world = planted_topics("wiki", np.random.default_rng(6), depth=0.3)
    distances = world.distances.copy()
    distances[0] = 0.0
    distances[1, 5:] = distances[1, 5]
    result = topic_cutoffs(world.target - world.reference, distances, replicates=99)
    assert result.status[:2] == ("too-few-edits", "too-few-edits")
    assert np.isnan(result.q_values[:2]).all()
    assert "found" in result.status


def test_identical_versions_share_their_evidence() -> None:
    world = planted_topics("factbook", np.random.default_rng(7), n_topics=30, depth=0.3)
    data = topic_steps(world.target - world.reference, world.distances)
    zz, zy, yy = topic_evidence(data, 0.15)
    evidence = month_evidence(zz, zy, yy, np.maximum(data.n_edits, 1)[:, None], 4.0)
    same = np.diff(world.distances, axis=1) == 0
    assert np.all(np.abs(np.diff(evidence, axis=1)[same]) < 1e-12)


def test_a_common_month_is_learnt_from_the_topics() -> None:
    evidence = np.full((80, 30), -4.0)
    evidence[:50, 12] = 6.0
    fit = fit_months(evidence)
    assert int(np.argmax(fit.month_weights)) == 12
    assert abs(fit.share_without - 30 / 80) < 0.05
    assert abs(fit.month_weights.sum() - 1) < 1e-12
    assert fit.month_weights.min() >= 0.05 / 30 - 1e-12


@pytest.mark.parametrize(
    ("differences", "distances", "message"),
    [
        (np.zeros((3, 9)), np.zeros((3, 8)), "equal matrices"),
        (np.zeros(9), np.zeros(9), "equal matrices"),
        (np.full((3, 9), np.nan), np.zeros((3, 9)), "finite"),
        (np.zeros((3, 9)), np.tile(np.arange(9)[::-1], (3, 1)), "must not fall"),
    ],
)
def test_bad_input_is_refused_by_name(differences: np.ndarray, distances: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        topic_cutoffs(differences, distances)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_topics=st.integers(1, 8),
    n_months=st.integers(3, 14),
    scale=st.sampled_from([0.0, 1e-9, 1.0, 1e6]),
    share=st.sampled_from([0.0, 0.3, 1.0]),
    size=st.sampled_from([1e-9, 0.02, 5.0]),
)
def test_any_finite_input_gives_months_in_range(
    seed: int, n_topics: int, n_months: int, scale: float, share: float, size: float
) -> None:
    rng = np.random.default_rng(seed)
    edits = size * rng.random((n_topics, n_months)) * (rng.random((n_topics, n_months)) < share)
    values = scale * rng.standard_t(2, (n_topics, n_months))
    result = topic_cutoffs(values, edits.cumsum(axis=1), replicates=19)
    assert np.all((result.months >= 0) & (result.months < n_months))
    assert np.all(result.intervals95[:, 0] <= result.intervals80[:, 0])
    assert np.all(result.intervals80[:, 1] <= result.intervals95[:, 1])
    known = ~np.isnan(result.p_values)
    assert np.all((result.p_values[known] > 0) & (result.p_values[known] <= 1))
    assert np.isfinite([result.share_without, *result.month_weights]).all()
