"""The single-shard permutation test: its level, power, agreement with truescore, and what it refuses."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.contamination.exact import permutation_test
from strandline.contamination.levels import as_level, grid_p_at_most
from tests.fakes.contamination_references import randomised_p

G1 = (-100.0, [-105, -101.5, -99, -100, -103, -110, -98.5, -102, -104])


def ranks_of_rows(values):
    """Conservative ranks of column 0 among all columns, one a row; agrees with permutation_test (tested below)."""
    return 1 + np.sum(values[:, 1:] >= values[:, :1], axis=1)


def test_golden_case_of_one_shard() -> None:
    test = permutation_test(*G1)
    assert (test.greater, test.exceedances, test.rank) == (2, 3, 4)
    assert test.p_fraction == Fraction(2, 5)
    assert test.p_value == 0.4
    assert test.resolution == 0.1
    assert test.z_score == pytest.approx(0.720224134862, abs=5e-13)
    assert test.p_range == (0.3, 0.4)


def test_agrees_with_truescore_to_twelve_digits() -> None:
    truescore = pytest.importorskip("truescore.contamination")
    rng = np.random.default_rng(3)
    for m in (1, 2, 9, 19, 99):
        values = rng.normal(-500, 12, m + 1)
        ours, theirs = permutation_test(values[0], values[1:]), truescore.exchangeability_test(values[0], values[1:])
        assert ours.p_value == pytest.approx(theirs.p_value, abs=1e-12)
        assert ours.resolution == pytest.approx(theirs.resolution, abs=1e-12)
        assert ours.shuffled_mean == pytest.approx(theirs.permutation_mean, rel=1e-12)
        if m > 1:
            assert ours.shuffled_sd == pytest.approx(theirs.permutation_std, rel=1e-12)
            assert ours.z_score == pytest.approx(theirs.z_score, abs=1e-12)


def test_false_positive_rate_lands_on_the_level_and_not_merely_below() -> None:
    values = np.random.default_rng(0).standard_normal((40_000, 20)) ** 3
    p = ranks_of_rows(values) / 20
    for level in (0.05, 0.1, 0.5):
        rate = np.mean(p <= level + 1e-12)
        assert abs(rate - level) < 4 * np.sqrt(level * (1 - level) / len(p))


def test_null_p_values_are_uniform_point_by_point() -> None:
    values = -np.random.default_rng(1).exponential(size=(40_000, 10))
    counts = np.bincount(ranks_of_rows(values), minlength=11)[1:]
    assert np.all(np.abs(counts / 40_000 - 0.1) < 4 * np.sqrt(0.09 / 40_000))


def test_a_memorised_published_order_is_detected() -> None:
    rng = np.random.default_rng(2)
    found = [permutation_test(rng.normal(4), rng.normal(size=99)).rejects("0.01") for _ in range(200)]
    assert np.mean(found) > 0.9


def test_vectorised_ranks_are_those_of_the_function() -> None:
    values = np.round(np.random.default_rng(5).normal(size=(200, 8)), 1)
    assert [permutation_test(row[0], row[1:]).rank for row in values] == list(ranks_of_rows(values))


def test_nineteen_permutations_reach_five_percent_but_never_less() -> None:
    best = permutation_test(0.0, np.full(19, -1.0))
    assert best.rejects("0.05")
    assert not best.rejects("0.0499999")
    assert not best.rejects("0.01")
    assert best.at_floor
    assert "floor" in best.summary()


@pytest.mark.parametrize(("m", "alpha"), [(19, "1/20"), (9, "0.1"), (19, 0.05), (9, 0.1), (99, 0.01), (32, "1/33")])
def test_a_p_value_equal_to_the_level_rejects(m, alpha) -> None:
    assert permutation_test(1.0, np.zeros(m)).rejects(alpha)
    assert not permutation_test(0.0, [0.0, *np.full(m - 1, -1.0)]).rejects(alpha)


def test_levels_are_read_as_written() -> None:
    assert as_level(0.05) == Fraction(1, 20)
    assert grid_p_at_most(0, 19, 0.05)
    for bad in (0, 1, -0.1, "x", float("nan"), True):
        with pytest.raises(ValueError):
            as_level(bad)


def test_ties_count_against_contamination_and_the_range_is_reported() -> None:
    test = permutation_test(-1.0, [-1.0, -1.0 - 1e-13, -2.0, -0.5])
    assert (test.greater, test.exceedances) == (1, 3)
    assert test.p_range == (2 / 5, 4 / 5)
    drawn = {randomised_p(test, np.random.default_rng(seed)) for seed in range(60)}
    assert drawn == {Fraction(2, 5), Fraction(3, 5), Fraction(4, 5)}


def test_random_tie_breaking_keeps_the_level_on_coarse_values() -> None:
    rng = np.random.default_rng(8)
    values = rng.integers(0, 3, size=(6000, 10))
    p = [float(randomised_p(permutation_test(row[0], row[1:]), rng)) for row in values]
    assert abs(np.mean(np.array(p) <= 0.1) - 0.1) < 4 * np.sqrt(0.09 / 6000)


def test_identical_values_give_no_evidence() -> None:
    test = permutation_test(-3.0, [-3.0] * 19)
    assert test.p_value == 1.0
    assert test.z_score is None


@pytest.mark.parametrize(
    ("canonical", "shuffled", "words"),
    [
        (1.0, [], "no permutations"),
        (float("nan"), [1.0], "not finite"),
        (1.0, [1.0, float("inf")], "position 1"),
        (1.0, [True, False], "truth values"),
        (1.0, [[1.0, 2.0]], "shape"),
        (1.0, ["a"], "not a number"),
        ([1.0, 2.0], [1.0], "one number"),
    ],
)
def test_bad_input_is_refused_in_clear_words(canonical, shuffled, words) -> None:
    with pytest.raises(ValueError, match=words):
        permutation_test(canonical, shuffled)


def test_a_negative_tolerance_is_refused() -> None:
    with pytest.raises(ValueError, match="tolerance"):
        permutation_test(1.0, [1.0], tolerance=-1.0)


@given(
    st.floats(allow_nan=True, allow_infinity=True),
    st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=12),
)
def test_any_input_gives_a_p_value_or_an_error(canonical, shuffled) -> None:
    try:
        test = permutation_test(canonical, shuffled)
    except ValueError:
        return
    assert 0 < test.p_value <= 1
    assert test.greater <= test.exceedances <= test.n_permutations
    assert test.z_score is None or np.isfinite(test.z_score)
