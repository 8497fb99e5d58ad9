"""Pooling: golden values, exactness against enumeration, level, power, agreement with truescore, fuzzing."""

from fractions import Fraction
from itertools import product
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from strandline.contamination.convolution import Atoms, exact_tail, tail_at_most, tail_log_p, uniform
from strandline.contamination.exact import permutation_test
from strandline.contamination.pooling import (
    fisher_chi2,
    lattice_fisher,
    oren_t,
    rank_sum,
    z_scores,
    z_sum,
)
from tests.fakes.contamination_references import fisher_product, pool_atoms, ranks_of

G10 = [[-100.25, -103.5, -101, -104.75], [-220, -224.5, -219.5, -226], [-90.5, -95, -93.25, -97]]


def exact_p(pooled):
    return exact_tail(pooled.atoms, int(pooled.statistic))


def lattice_table(n_shards, m, kind):
    """p-value by pooled score, from the functions' own convolution: to simulate many replications at once."""
    make = lattice_fisher if kind == "fisher" else rank_sum
    atoms = make([1] * n_shards, m).atoms
    row = np.array(atoms[0].scores)
    survival = np.ones(1)
    for _ in range(n_shards):
        grown = np.zeros(len(survival) + row.max())
        for score in row:
            grown[score : score + len(survival)] += survival / len(row)
        survival = grown
    return row, np.cumsum(survival[::-1])[::-1]


@pytest.mark.parametrize(
    ("ranks", "m", "chi2", "chi2_p", "fisher", "lattice_score", "lattice_p", "rank_p"),
    [
        ([2, 1, 4, 3], 19, 17.6097505277, 0.024350299643, (49, 20000), 9017, (49, 20000), (21, 16000)),
        (
            [2, 6, 5, 1, 3, 7, 4, 1],
            19,
            30.8813936547,
            0.0139332051169,
            (3521301, 6400000000),
            15813,
            (3521301, 6400000000),
            (4292073, 25600000000),
        ),
        (
            [1, 3, 7, 15],
            [9, 19, 39, 99],
            15.6795887356,
            0.0472026371562,
            (2713, 200000),
            8029,
            (1349, 100000),
            (179, 80000),
        ),
    ],
)
def test_golden_ranks(ranks, m, chi2, chi2_p, fisher, lattice_score, lattice_p, rank_p) -> None:
    sizes = [m] * len(ranks) if isinstance(m, int) else m
    published = fisher_chi2([rank / (size + 1) for rank, size in zip(ranks, sizes, strict=True)])
    assert published.statistic == pytest.approx(chi2, rel=1e-11)
    assert published.p_value == pytest.approx(chi2_p, rel=1e-11)
    assert fisher_product(ranks, m) == Fraction(*fisher)
    lattice = lattice_fisher(ranks, m)
    assert lattice.statistic == lattice_score
    assert exact_p(lattice) == Fraction(*lattice_p)
    assert lattice.p_value == pytest.approx(float(Fraction(*lattice_p)), rel=1e-12)
    ranked = rank_sum(ranks, m)
    assert exact_p(ranked) == Fraction(*rank_p)
    assert ranked.p_value == pytest.approx(float(Fraction(*rank_p)), rel=1e-12)


def test_golden_floor_of_eight_shards() -> None:
    floor = lattice_fisher([1] * 8, 19)
    assert exact_p(floor) == Fraction(1, 25600000000)
    assert floor.log_p == floor.log_floor == pytest.approx(-23.9658581884, abs=5e-11)
    chi2 = fisher_chi2([1 / 20] * 8)
    assert chi2.p_value == pytest.approx(4.86871312332e-05, rel=1e-11)
    assert chi2.log_p == pytest.approx(-9.93009580852, rel=1e-11)
    assert chi2.p_value / floor.p_value == pytest.approx(1246390.55957, rel=1e-10)


def test_golden_four_hundred_shards_do_not_underflow() -> None:
    assert lattice_fisher([1] * 400, 99).log_p == pytest.approx(-1842.0680744, rel=1e-11)
    assert fisher_chi2([1 / 100] * 400).log_p == pytest.approx(-836.394356644, rel=1e-11)
    assert lattice_fisher([1] * 300, 19).log_p == pytest.approx(-300 * log(20), rel=1e-13)


def test_a_tilted_tail_near_the_floor_is_exact() -> None:
    lattice = lattice_fisher([1] * 299 + [2], 19)
    assert exp(lattice.log_p - 300 * log(1 / 20)) == pytest.approx(301, rel=1e-10)


def test_golden_raw_z_sum() -> None:
    shards = [uniform(row) for row in ([5, 1, 2, 3], [4, 6, 1, 2], [9, 3, 3, 1])]
    assert exact_tail(shards, 18) == Fraction(3, 64)
    assert exp(tail_log_p(shards, 18)) == pytest.approx(0.046875, rel=1e-13)


def test_golden_default_z_sum() -> None:
    assert z_scores(G10) == [(871, -461, 563, -973), (861, -689, 1033, -1205), (1277, -395, 255, -1138)]
    pooled = z_sum(G10)
    assert pooled.statistic == 3009
    assert exact_p(pooled) == Fraction(1, 32)
    assert pooled.log_p == pytest.approx(-3.4657359028, abs=5e-11)
    assert pooled.rejects("1/32")
    assert not pooled.rejects("0.03124")


def test_convolution_equals_full_enumeration_on_random_instances_with_ties() -> None:
    rng = np.random.default_rng(11)
    for _ in range(150):
        shards = [uniform(rng.integers(-6, 7, rng.integers(2, 6))) for _ in range(rng.integers(1, 5))]
        observed = int(sum(rng.choice(shard.scores) for shard in shards))
        sums = [sum(row) for row in product(*(shard.scores for shard in shards))]
        truth = Fraction(sum(total >= observed for total in sums), len(sums))
        assert exact_tail(shards, observed) == truth
        assert exp(tail_log_p(shards, observed)) == pytest.approx(float(truth), rel=1e-12)


def test_convolution_equals_long_integers_on_large_designs() -> None:
    rng = np.random.default_rng(12)
    for n_shards, m in ((16, 19), (30, 9)):
        values = rng.normal(size=(n_shards, m + 1))
        values[:, 0] += 1.0
        pooled = z_sum(values)
        truth = exact_p(pooled)
        assert pooled.log_p == pytest.approx(log(truth.numerator) - log(truth.denominator), abs=1e-12)


def test_a_p_value_on_the_level_is_decided_in_integers() -> None:
    shards = [uniform([0, 1])] * 3
    log_p = tail_log_p(shards, 3)
    assert tail_at_most(shards, 3, log_p + 1e-12, Fraction(1, 8))
    assert not tail_at_most(shards, 3, log_p - 1e-12, Fraction(1, 8) - Fraction(1, 10**12))


def test_z_scores_do_not_depend_on_which_value_is_published() -> None:
    rng = np.random.default_rng(13)
    shards = rng.normal(-300, 9, size=(5, 20))
    first = [sorted(row) for row in z_scores(shards)]
    turned = [sorted(row) for row in z_scores([np.roll(row, int(rng.integers(20))) for row in shards])]
    assert first == turned


def test_z_sum_of_one_shard_is_the_rank_test() -> None:
    rng = np.random.default_rng(14)
    for _ in range(50):
        row = rng.normal(size=20)
        assert exact_p(z_sum([row])) == permutation_test(row[0], row[1:]).p_fraction


def test_z_sum_ignores_shift_and_common_scale() -> None:
    rng = np.random.default_rng(15)
    shards = rng.normal(size=(6, 10))
    assert z_sum(shards).statistic == pytest.approx(z_sum(7 * shards - 400).statistic, abs=1)


def test_shards_that_do_not_vary_say_nothing() -> None:
    assert z_sum([[-3.0] * 5, [-4.0] * 5]).p_value == 1.0
    alone = z_sum([[2.0, 1.0, 0.5, 0.1], [-4.0] * 4])
    assert exact_p(alone) == Fraction(1, 4)


def test_token_weights_give_longer_shards_more_say() -> None:
    shards = [[2.0, 0.0, 0.1, -0.2], [-2.0, 0.0, 0.1, 0.2]]
    assert z_sum(shards, token_counts=[900, 100]).p_value < z_sum(shards).p_value
    with pytest.raises(ValueError, match="token count"):
        z_sum(shards, token_counts=[0, 1])


@pytest.mark.parametrize(("n_shards", "m"), [(8, 19), (50, 19), (8, 99)])
@pytest.mark.parametrize("kind", ["fisher", "rank_sum"])
def test_pooled_level_holds_and_is_used_up(n_shards, m, kind) -> None:
    row, survival = lattice_table(n_shards, m, kind)
    ranks = np.random.default_rng(n_shards + m).integers(0, m + 1, size=(40_000, n_shards))
    p = survival[row[ranks].sum(axis=1)]
    for level in (0.05, 0.01):
        rate = np.mean(p <= level)
        error = 4 * np.sqrt(level / len(p))
        assert rate < level + error
        assert rate > (0.9 if kind == "rank_sum" else 0.98) * level - error


def test_the_table_of_the_level_test_is_the_function() -> None:
    row, survival = lattice_table(5, 9, "fisher")
    ranks = [3, 1, 8, 2, 5]
    assert survival[sum(row[r - 1] for r in ranks)] == pytest.approx(lattice_fisher(ranks, 9).p_value, rel=1e-12)


@pytest.mark.parametrize("draw", ["normal", "left skew", "ties"])
def test_z_sum_level_holds_over_twenty_thousand_replications(draw) -> None:
    """2,000 null data sets, in each of which every one of 10 random choices of the published orders is judged."""
    rng = np.random.default_rng(21)
    n_shards, n = 6, 6
    p_values = []
    for _ in range(2000):
        values = rng.normal(size=(n_shards, n))
        if draw == "left skew":
            values = -rng.exponential(size=(n_shards, n)) * np.exp(rng.normal(size=(n_shards, 1)))
        if draw == "ties":
            values = rng.integers(0, 3, size=(n_shards, n)).astype(float)
        atoms = z_sum(values, scale=64).atoms
        table = survival_of(atoms)
        scores = np.array([atom.scores for atom in atoms])
        chosen = scores[np.arange(n_shards), rng.integers(0, n, size=(10, n_shards))].sum(axis=1)
        p_values.extend(table(chosen))
    p_values = np.array(p_values)
    for level in (0.05, 0.01):
        rate = np.mean(p_values <= level)
        assert rate < level + 5 * np.sqrt(level / len(p_values))
        assert rate > 0.7 * level


def survival_of(atoms):
    """The tail of a pooled statistic as a lookup, built as the function builds it."""
    low = [min(atom.scores) for atom in atoms]
    mass = np.ones(1)
    for atom, base in zip(atoms, low, strict=True):
        grown = np.zeros(len(mass) + max(atom.scores) - base)
        for score in atom.scores:
            grown[score - base : score - base + len(mass)] += mass / len(atom.scores)
        mass = grown
    tail = np.cumsum(mass[::-1])[::-1]
    return lambda totals: np.minimum(1.0, tail[np.asarray(totals) - sum(low)])


def test_the_lookup_of_the_level_test_is_the_function() -> None:
    values = np.random.default_rng(22).normal(size=(6, 6))
    pooled = z_sum(values, scale=64)
    assert survival_of(pooled.atoms)([int(pooled.statistic)])[0] == pytest.approx(pooled.p_value, rel=1e-10)


def test_level_of_whole_calls_with_nothing_reused() -> None:
    rng = np.random.default_rng(23)
    p = np.array([z_sum(rng.standard_t(3, size=(4, 6)), scale=128).p_value for _ in range(3000)])
    assert abs(np.mean(p <= 0.05) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 3000) + 0.003


@pytest.mark.parametrize(
    ("n_shards", "m", "effect", "share", "wanted"),
    [
        (8, 19, 0.6, 1.0, 0.250),
        (8, 19, 1.0, 1.0, 0.637),
        (8, 19, 2.0, 1.0, 1.0),
        (8, 19, 4.0, 0.25, 0.412),
        (50, 19, 0.3, 1.0, 0.372),
        (50, 19, 0.6, 1.0, 0.963),
        (50, 19, 3.0, 0.2, 0.795),
        (50, 99, 0.3, 1.0, 0.496),
        (50, 99, 3.0, 0.2, 0.872),
        (8, 99, 1.0, 1.0, 0.695),
        (8, 99, 4.0, 0.25, 0.527),
        (1, 99, 3.0, 1.0, 0.695),
    ],
)
def test_power_of_the_z_sum_is_at_least_that_of_the_specification(n_shards, m, effect, share, wanted) -> None:
    """Level .01; the allowance is 3 standard errors of 200 runs, and half a point for rounding in the table."""
    rng = np.random.default_rng(24)
    found = []
    for _ in range(200):
        values = rng.normal(size=(n_shards, m + 1))
        values[: round(n_shards * share), 0] += effect
        found.append(z_sum(values, scale=128).rejects("0.01"))
    assert np.mean(found) >= wanted - 0.005 - 3 * np.sqrt(wanted * (1 - wanted) / 200)


def test_lattice_fisher_recovers_the_power_that_chi_squared_loses() -> None:
    row, survival = lattice_table(8, 19, "fisher")
    rng = np.random.default_rng(25)
    values = rng.normal(size=(20_000, 8, 20))
    values[:, :, 0] += 1.0
    ranks = 1 + np.sum(values[:, :, 1:] >= values[:, :, :1], axis=2)
    exact = np.mean(survival[row[ranks - 1].sum(axis=1)] <= 0.01)
    chi2 = np.mean(stats.chi2.sf(-2 * np.log(ranks / 20).sum(axis=1), 16) <= 0.01)
    assert exact > 0.57
    assert chi2 < 0.2


def test_eight_shards_none_significant_combine_to_significance() -> None:
    ranks = [2, 3, 2, 4, 2, 3, 2, 2]
    assert min(ranks) / 20 > 0.05
    assert lattice_fisher(ranks, 19).rejects("0.01")
    assert fisher_chi2([rank / 20 for rank in ranks]).rejects("0.01")


def test_the_named_chi_squared_is_calibrated_on_continuous_p_values_and_agrees_with_truescore() -> None:
    truescore = pytest.importorskip("truescore.contamination")
    rng = np.random.default_rng(26)
    p = rng.uniform(size=(4000, 8))
    rate = np.mean([fisher_chi2(row).p_value <= 0.05 for row in p])
    assert abs(rate - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 4000)
    for row in p[:50]:
        ours, theirs = fisher_chi2(row), truescore.combine_shards(row)
        assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-12)
        assert ours.p_value == pytest.approx(theirs.p_value, abs=1e-12)


def test_chi_squared_on_the_grid_is_far_below_its_level() -> None:
    ranks = np.random.default_rng(27).integers(1, 21, size=(20_000, 50))
    p = stats.chi2.sf(-2 * np.log(ranks / 20).sum(axis=1), 100)
    assert np.mean(p <= 0.05) < 0.005
    assert p[0] == pytest.approx(fisher_chi2(ranks[0] / 20).p_value, rel=1e-9)


def test_the_named_t_test_is_scipys_with_ddof_one_and_never_underflows() -> None:
    shards = np.random.default_rng(28).normal(size=(8, 20))
    shards[:, 0] += 1.5
    differences = shards[:, 0] - shards[:, 1:].mean(axis=1)
    reference = stats.ttest_1samp(differences, 0, alternative="greater")
    ours = oren_t(shards)
    assert ours.statistic == pytest.approx(reference.statistic, rel=1e-12)
    assert ours.p_value == pytest.approx(reference.pvalue, rel=1e-10)
    two = [[1e15 + 1.0, 0.0, 0.0], [1e15 - 1.0, 0.0, 0.0]]
    assert oren_t(two).log_p == pytest.approx(-log(np.pi * oren_t(two).statistic), rel=1e-12)
    far = np.zeros((60, 3))
    far[:, 0] = 1e12 + np.arange(60)
    assert oren_t(far).log_p < -1300
    assert oren_t(-shards).p_value > 0.5


def test_mixed_permutation_counts_are_pooled_to_the_same_span() -> None:
    assert rank_sum([1, 1], [1, 3]).p_value == pytest.approx(1 / 8)
    with pytest.raises(ValueError, match="coarser"):
        rank_sum([1] * 6, [96, 97, 100, 102, 106, 108])


@pytest.mark.parametrize(
    ("p_values", "m", "words"),
    [
        ([0.0], 19, "outside"),
        ([1.2], 19, "outside"),
        ([0.051], 19, "grid"),
        ([float("nan")], 19, "not finite"),
        ([], 19, "non-empty"),
        ([True], 19, "truth"),
        ([0.5], [19, 19], "one number of permutations"),
    ],
)
def test_p_values_off_their_declared_grid_are_refused(p_values, m, words) -> None:
    with pytest.raises(ValueError, match=words):
        ranks_of(p_values, m)


def test_ranks_come_back_from_p_values() -> None:
    assert ranks_of([0.05, 1.0, 0.3], 19) == [1, 20, 6]


@pytest.mark.parametrize(
    "call",
    [
        lambda: z_sum([]),
        lambda: z_sum([[1.0]]),
        lambda: z_sum([[1.0, float("nan")]]),
        lambda: z_sum([[1e200, -1e200], [0.0, 1e308]]),
        lambda: lattice_fisher([], 19),
        lambda: lattice_fisher([21], 19),
        lambda: lattice_fisher([1], 0),
        lambda: rank_sum([0], 19),
        lambda: fisher_chi2([0.0, 0.5]),
        lambda: oren_t([[1.0, 2.0]]),
        lambda: oren_t([[1.0, 0.0], [1.0, 0.0]]),
        lambda: pool_atoms("x", [], []),
        lambda: pool_atoms("x", [uniform([1, 2])], [1, 2]),
        lambda: tail_log_p([uniform([1, 2])], 3),
        lambda: Atoms((1,), (0,)),
    ],
)
def test_bad_pooling_input_is_an_error(call) -> None:
    with pytest.raises(ValueError):
        call()


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.lists(st.floats(-1e6, 1e6) | st.sampled_from([0.0, float("nan"), 1e300]), min_size=1, max_size=6),
        max_size=4,
    )
)
def test_any_shards_give_a_p_value_or_an_error(shards) -> None:
    try:
        pooled = z_sum(shards, scale=32)
    except ValueError:
        return
    assert pooled.log_floor - 1e-9 <= pooled.log_p <= 0
    assert exp(pooled.log_p) == pytest.approx(float(exact_p(pooled)), rel=1e-9)
