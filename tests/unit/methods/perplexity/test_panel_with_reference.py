"""``panel``: golden values to their digits, what moves an estimate and what must not, level, power and fuzzing."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.perplexity.differences import centred_curve, despiked, tie_blocks
from strandline.perplexity.panel_with_reference import PanelCutoff, first_lowest, panel_cutoff, prominence
from strandline.perplexity.planted import PANEL_WORLDS, planted_panel

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "cutoff_estimators.json").read_text())
STATUSES = {"found", "flat", "edge-left", "edge-right", "two-valley", "inconclusive"}


def rounded(values: object) -> list[str]:
    """To the ten significant digits that the golden values are given in; zero has no sign."""
    return [f"{value + 0.0:.9e}" for value in np.atleast_1d(np.asarray(values, dtype=np.float64))]


@pytest.mark.parametrize("name", ["panel_1", "panel_2", "panel_3"])
def test_golden_panels_are_reproduced_to_ten_digits(name: str) -> None:
    golden = GOLDEN[name]
    result = panel_cutoff(
        golden["Y"], golden["Yref"], seed=golden["seed"], replicates=golden["B"], min_topics=6, min_months=12
    )
    assert rounded(result.curve) == rounded(golden["mu"])
    assert rounded(result.step_variances) == rounded(golden["step_var"])
    assert rounded(result.excess) == rounded(golden["excess"])
    assert rounded([result.prominence, result.range]) == rounded([golden["prominence"], golden["range"]])
    assert rounded([result.p_flat, result.p_range]) == rounded([golden["p_prom"], golden["p_range"]])
    assert result.lowest_months[:10].tolist() == golden["first10_boot_argmin"]
    assert (result.month, result.status) == (golden["month"], golden["status"])
    assert [list(result.block), list(result.interval80), list(result.interval95)] == [
        golden["block"],
        golden["i80"],
        golden["i95"],
    ]


def world(name: str, seed: int, edits: str = "wiki", **settings: int) -> PanelCutoff:
    panel = planted_panel(name, edits, np.random.default_rng([seed, 77]), **settings)
    return panel_cutoff(panel.target, panel.reference, seed=seed + 1, replicates=200)


def test_no_valley_is_found_where_none_is_in_the_range() -> None:
    statuses = Counter(world(name, seed).status for name in ("flat", "monoL", "monoR") for seed in range(40))
    assert statuses["found"] <= 2
    assert set(statuses) <= STATUSES


def test_flat_worlds_reject_flatness_about_as_often_as_the_level_says() -> None:
    p_values = np.array([world("flat", seed).p_flat for seed in range(120)])
    assert np.mean(p_values <= 0.05) <= 0.12
    assert np.mean(p_values <= 0.5) <= 0.65


def test_sharp_dumps_are_covered_and_mostly_found() -> None:
    hits80 = hits95 = found = 0
    for seed in range(40):
        panel = planted_panel("sharp", "factbook", np.random.default_rng([seed, 5]))
        result = panel_cutoff(panel.target, panel.reference, replicates=200)
        assert panel.truth is not None
        hits80 += result.interval80[0] <= panel.truth <= result.interval80[1]
        hits95 += result.interval95[0] <= panel.truth <= result.interval95[1]
        found += result.found
    assert hits80 >= 34
    assert hits95 >= 37
    assert found >= 16


def test_a_thousand_topics_find_a_sharp_dump_to_the_month() -> None:
    panel = planted_panel("sharp", "wiki", np.random.default_rng(8), n_topics=1000)
    result = panel_cutoff(panel.target, panel.reference, replicates=200)
    assert result.status == "found"
    assert result.interval95 == (panel.truth, panel.truth)


def test_two_equal_dumps_are_seldom_one_finding_and_both_are_named() -> None:
    results = [world("two", seed, n_topics=1000) for seed in range(6)]
    named = [r for r in results if r.status == "two-valley"]
    assert len(named) >= 3
    assert all(r.second_month is not None and abs(r.second_month - r.month) >= 6 for r in named)
    assert sum(r.found for r in results) <= 2


def test_the_order_of_topics_does_not_move_the_estimate_and_equal_seeds_agree() -> None:
    panel = planted_panel("mix80", "wiki", np.random.default_rng(3))
    first = panel_cutoff(panel.target, panel.reference, seed=4)
    again = panel_cutoff(panel.target, panel.reference, seed=4)
    turned = panel_cutoff(panel.target[::-1], panel.reference[::-1], seed=4)
    assert (first.interval80, first.p_flat) == (again.interval80, again.p_flat)
    assert turned.month == first.month
    assert np.allclose(turned.curve, first.curve, atol=1e-14)


def test_levels_of_topics_and_of_the_reference_cancel() -> None:
    panel = planted_panel("sharp", "wiki", np.random.default_rng(4))
    levels = np.random.default_rng(5).normal(size=(100, 1))
    plain = panel_cutoff(panel.target, panel.reference, replicates=100)
    moved = panel_cutoff(panel.target + levels, panel.reference - 3, replicates=100)
    assert (plain.month, plain.interval95) == (moved.month, moved.interval95)
    assert np.allclose(plain.curve, moved.curve, atol=1e-12)


def test_months_that_are_identical_in_all_topics_are_reported_as_one_block() -> None:
    panel = planted_panel("sharp", "wiki", np.random.default_rng(6), n_topics=400)
    assert panel.truth is not None
    tied = panel.target - panel.reference
    tied[:, panel.truth + 1] = tied[:, panel.truth + 2] = tied[:, panel.truth]
    result = panel_cutoff(tied, np.zeros_like(tied), replicates=100)
    assert result.block == (panel.truth, panel.truth + 2)
    assert result.interval80[0] <= panel.truth
    assert result.interval80[1] >= panel.truth + 2


def test_a_page_that_is_redirected_for_a_month_is_despiked_and_a_lasting_change_is_not() -> None:
    rows = np.tile(np.linspace(2.0, 2.02, 9), (2, 1))
    rows[0, 4] += 1.5
    rows[1, 4:] += 1.5
    cleaned = despiked(rows)
    assert abs(cleaned[0, 4] - 2.01) < 1e-9
    assert np.array_equal(cleaned[1], rows[1])


def test_tie_blocks_are_runs_without_change() -> None:
    starts, ends = tie_blocks(np.array([True, False, False, True, False]))
    assert starts.tolist() == [0, 1, 1, 1, 4, 4]
    assert ends.tolist() == [0, 3, 3, 3, 5, 5]


def test_prominence_is_the_climb_on_the_lower_side() -> None:
    assert prominence(np.array([[3.0, 1.0, 2.0], [1.0, 2.0, 3.0], [5.0, 0.0, 9.0]])).tolist() == [1.0, 0.0, 5.0]
    assert first_lowest(np.array([[2.0, 1.0, 1.0 + 1e-13]])).tolist() == [1]


@pytest.mark.parametrize(
    ("target", "reference", "message"),
    [
        (np.zeros(30), None, "topics by months"),
        (np.zeros((19, 59)), None, "20 topics"),
        (np.zeros((20, 11)), None, "12 months"),
        (np.full((20, 12), np.nan), None, "finite"),
        (np.full((20, 12), np.inf), None, "finite"),
        (np.zeros((20, 12)), np.zeros((20, 13)), "reference"),
    ],
)
def test_bad_panels_are_refused_by_name(target: np.ndarray, reference: np.ndarray | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        panel_cutoff(target, reference)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_topics=st.integers(20, 30),
    n_months=st.integers(12, 20),
    scale=st.sampled_from([0.0, 1e-12, 0.01, 1.0, 1e6]),
    share=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    name=st.sampled_from(["noise", "walk", "equal"]),
)
def test_any_finite_panel_gives_finite_ordered_results(
    seed: int, n_topics: int, n_months: int, scale: float, share: float, name: str
) -> None:
    rng = np.random.default_rng(seed)
    steps = rng.standard_t(2, (n_topics, n_months)) * scale * (rng.random((n_topics, n_months)) < share)
    panel = {"noise": steps, "walk": steps.cumsum(axis=1), "equal": np.tile(steps[:1], (n_topics, 1))}[name]
    result = panel_cutoff(panel, None, seed=1, replicates=20)
    assert result.status in STATUSES
    assert 0 <= result.interval95[0] <= result.interval80[0] <= result.month <= result.interval80[1]
    assert result.interval80[1] <= result.interval95[1] < n_months
    assert 0 < result.p_flat <= 1
    assert 0 < result.p_range <= 1
    assert np.all(np.isfinite(result.curve))
    assert np.all(np.isfinite(result.excess))


def test_a_panel_that_never_changes_is_flat() -> None:
    result = panel_cutoff(np.tile(np.arange(20.0)[:, None], (1, 12)))
    assert result.status == "flat"
    assert result.block == (0, 11)


def test_planted_worlds_hold_unchanged_scores_exactly() -> None:
    for name in PANEL_WORLDS:
        panel = planted_panel(name, "factbook", np.random.default_rng(1))
        unchanged = np.diff(panel.distances, axis=1) == 0
        assert 0.5 < unchanged.mean() < 0.98
        assert np.mean(np.diff(panel.target, axis=1)[unchanged] == 0) > 0.98
        assert np.all(np.diff(panel.reference, axis=1)[unchanged] == 0)
    assert centred_curve(panel.target).n_months == 59
