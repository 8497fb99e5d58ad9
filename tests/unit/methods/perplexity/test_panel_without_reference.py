"""``panel_noref``: golden values, refusal where there is nothing, power where it is claimed, fuzzing."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.perplexity.panel_without_reference import NorefCutoff, noref_cutoff
from strandline.perplexity.planted import planted_panel

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "cutoff_estimators.json").read_text())


def digits(value: float) -> str:
    return f"{value:.9e}"


def test_the_golden_valley_is_reproduced_to_ten_digits() -> None:
    golden = GOLDEN["noref_1"]
    result = noref_cutoff(GOLDEN["panel_1"]["Y"], min_topics=6)
    assert (result.status, result.month) == (golden["status"], golden["month"])
    assert [list(result.interval80), list(result.interval95)] == [golden["i80"], golden["i95"]]
    assert digits(result.log_evidence) == digits(golden["lnbf"])
    assert digits(result.log_evidence_second) == digits(golden["lnbf2"])
    assert result.second_position == golden["t2"]
    assert result.overdispersion == golden["phi"]
    inside = (result.positions >= 0) & (result.positions <= 11)
    assert [digits(p) for p in result.posterior[inside]] == [digits(p) for p in golden["post_T0_to_11"]]
    assert digits(result.posterior[result.positions <= 0].sum()) == digits(golden["p_before"])
    assert digits(result.posterior[result.positions >= 11].sum()) == digits(golden["p_after"])


def test_the_golden_flat_panel_is_unclear() -> None:
    golden = GOLDEN["noref_2"]
    result = noref_cutoff(GOLDEN["panel_2"]["Y"], min_topics=6)
    assert (result.status, result.month, result.second_position) == (golden["status"], golden["month"], golden["t2"])
    assert [list(result.interval80), list(result.interval95)] == [golden["i80"], golden["i95"]]
    assert digits(result.log_evidence) == digits(golden["lnbf"])
    assert digits(result.log_evidence_second) == digits(golden["lnbf2"])


def run(name: str, edits: str, seed: int, n_topics: int = 100) -> tuple[NorefCutoff, int | None]:
    panel = planted_panel(name, edits, np.random.default_rng([seed, 9]), n_topics=n_topics)
    return noref_cutoff(panel.target), panel.truth


def test_nothing_is_found_without_a_cutoff_in_the_range() -> None:
    found = [run(name, edits, s)[0].found for name in ("flat", "monoL", "monoR") for edits in ("wiki", "factbook")
             for s in range(15)]  # fmt: skip
    assert sum(found) <= 1


def test_one_valley_is_covered_and_a_thousand_topics_find_it() -> None:
    small = [run("sharp", "wiki", seed) for seed in range(20)]
    assert sum(r.interval80[0] <= (truth or 0) <= r.interval80[1] for r, truth in small) >= 17
    large = [run("sharp", "wiki", seed, 1000) for seed in range(8)]
    assert sum(result.found for result, _ in large) >= 4
    assert all(abs(result.month - (truth or 0)) <= 1 for result, truth in large if result.found)


def test_a_timeless_reference_passes_the_test_that_it_must_pass() -> None:
    for seed in range(10):
        panel = planted_panel("sharp", "wiki", np.random.default_rng(seed))
        assert not noref_cutoff(panel.reference).found


def test_too_small_and_broken_panels_are_refused() -> None:
    with pytest.raises(ValueError, match="20 topics"):
        noref_cutoff(np.zeros((5, 30)))
    with pytest.raises(ValueError, match="finite"):
        noref_cutoff(np.full((30, 30), np.nan))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_months=st.integers(12, 20),
    scale=st.sampled_from([0.0, 1e-12, 0.01, 1.0, 1e6]),
    share=st.sampled_from([0.0, 0.05, 1.0]),
)
def test_any_finite_panel_gives_a_posterior_that_sums_to_one(
    seed: int, n_months: int, scale: float, share: float
) -> None:
    rng = np.random.default_rng(seed)
    steps = rng.standard_t(2, (20, n_months)) * scale * (rng.random((20, n_months)) < share)
    result = noref_cutoff(steps.cumsum(axis=1))
    assert abs(result.posterior.sum() - 1) < 1e-9
    assert np.isfinite([result.log_evidence, result.log_evidence_second, result.overdispersion]).all()
    assert 0 <= result.interval95[0] <= result.interval80[0] <= result.month <= result.interval80[1]
    assert result.interval80[1] <= result.interval95[1] < n_months
