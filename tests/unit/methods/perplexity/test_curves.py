"""Monthly curves: the trimmed mean, the relative scale, complete cases, bands; and the paper's lowest month."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from strandline.perplexity.curves import bucket_curve, lowest_month, panel_curve, relative_curve, trimmed_mean
from strandline.perplexity.planted import planted_panel


def test_two_and_a_half_percent_are_cut_from_each_tail_of_a_month() -> None:
    values = np.arange(100.0)[:, None]
    values[-1] = 1e6
    assert trimmed_mean(values)[0] == np.arange(2, 98).mean()
    assert trimmed_mean(np.arange(39.0)[:, None])[0] == 19.0
    assert trimmed_mean(np.array([[0.0]] * 39 + [[4000.0]]))[0] == 0.0


def test_perplexities_are_averaged_and_not_log_likelihoods() -> None:
    curve = panel_curve(np.log([[2.0, 4.0], [8.0, 4.0]]))
    assert np.allclose(curve.mean_perplexity, [5.0, 4.0])
    assert np.allclose(curve.relative, [1.0, 0.0])


def test_topics_that_lack_a_month_are_left_out_unless_told_otherwise() -> None:
    scores = np.log([[2.0, 4.0, 6.0], [8.0, np.nan, 10.0], [4.0, 8.0, 2.0]])
    complete = panel_curve(scores)
    assert complete.n_documents.tolist() == [2, 2, 2]
    assert complete.n_excluded.tolist() == [1, 0, 1]
    assert np.allclose(complete.mean_perplexity, [3.0, 6.0, 4.0])
    available = panel_curve(scores, complete_cases=False)
    assert available.n_documents.tolist() == [3, 2, 3]
    assert available.n_excluded.tolist() == [0, 0, 0]
    assert np.allclose(available.mean_perplexity, [14 / 3, 6.0, 6.0])


def test_a_curve_without_a_range_has_no_relative_values() -> None:
    curve = panel_curve(np.zeros((5, 4)))
    assert np.isnan(curve.relative).all()
    assert np.isnan(curve.low95).all()
    assert np.allclose(curve.mean_perplexity, 1.0)
    assert np.isnan(relative_curve(np.full(3, np.nan))).all()


def test_nothing_complete_gives_an_empty_curve_and_not_a_number() -> None:
    curve = panel_curve(np.array([[np.nan, 1.0], [1.0, np.nan]]))
    assert curve.n_documents.tolist() == [0, 0]
    assert curve.n_excluded.tolist() == [1, 1]
    assert np.isnan(curve.mean_perplexity).all()


def test_the_band_surrounds_the_curve_and_narrows_with_topics() -> None:
    small, large = (
        panel_curve(planted_panel("sharp", "wiki", np.random.default_rng(1), n_topics=n).target) for n in (40, 640)
    )
    for curve in (small, large):
        assert np.mean((curve.low95 <= curve.relative) & (curve.relative <= curve.high95)) > 0.95
    wide, narrow = ((c.high95 - c.low95).mean() * np.ptp(c.mean_perplexity) for c in (small, large))
    assert narrow < 0.5 * wide


def test_a_band_covers_the_shape_of_the_curve_about_as_often_as_it_says() -> None:
    def scores(seed: int, topics: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        return rng.normal(2.5, 0.4, (topics, 1)) + rng.normal(0, 0.05, (topics, 6)) + [0.0, 0.1, 0.05, 0.0, 0.0, 0.02]

    truth = trimmed_mean(np.exp(scores(999, 100_000)))
    hits = []
    for seed in range(40):
        curve = panel_curve(scores(seed, 80), seed=seed + 1)
        level = curve.mean_perplexity.mean() - truth.mean()
        low, high = (
            band * np.ptp(curve.mean_perplexity) + curve.mean_perplexity.min() for band in (curve.low95, curve.high95)
        )
        hits += list((low <= truth + level) & (truth + level <= high))
    assert 0.86 < np.mean(hits) <= 0.99


def test_months_with_other_documents_are_averaged_one_by_one() -> None:
    curve = bucket_curve([np.log([1.0, 3.0]), np.array([]), np.log([10.0, 10.0, np.nan])])
    assert curve.n_documents.tolist() == [2, 0, 2]
    assert curve.n_excluded.tolist() == [0, 0, 1]
    assert np.allclose(curve.mean_perplexity, [2.0, np.nan, 10.0], equal_nan=True)
    assert np.allclose(curve.relative, [0.0, np.nan, 1.0], equal_nan=True)


def test_the_lowest_month_of_the_trimmed_curve_is_the_papers_statistic() -> None:
    panel = planted_panel("sharp", "wiki", np.random.default_rng(2))
    result = lowest_month(panel.target, replicates=100)
    assert result.month == int(np.argmin(trimmed_mean(np.exp(panel.target))))
    assert result.interval95[0] <= result.interval80[0] <= result.month <= result.interval80[1]


def test_the_papers_interval_is_too_narrow_which_is_why_it_makes_no_claim() -> None:
    hits = 0
    for seed in range(60):
        panel = planted_panel("mix80", "factbook", np.random.default_rng([seed, 3]))
        result = lowest_month(panel.target, replicates=100)
        hits += result.interval95[0] <= (panel.truth or 0) <= result.interval95[1]
    assert hits < 0.85 * 60


def test_the_lowest_month_needs_a_complete_panel() -> None:
    with pytest.raises(ValueError, match="complete"):
        lowest_month([[1.0, np.nan]])
    with pytest.raises(ValueError, match="topics by months"):
        panel_curve([1.0, 2.0])


@settings(max_examples=40, deadline=None)
@given(arrays(np.float64, (6, 4), elements=st.floats(allow_nan=True, allow_infinity=True)))
def test_any_scores_give_finite_values_or_missing_ones(scores: np.ndarray) -> None:
    for complete in (True, False):
        curve = panel_curve(scores, complete_cases=complete, replicates=5)
        assert not np.isinf(curve.mean_perplexity).any()
        assert np.all((curve.n_documents + curve.n_excluded) <= 6)
        known = np.isfinite(curve.relative)
        assert np.all((curve.relative[known] >= 0) & (curve.relative[known] <= 1))
