"""Verdicts in words: the gate, the floor, fragility, exclusions, comparisons, q-values and the picture."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from strandline.contamination.figures import published_among_shuffled
from strandline.contamination.planner import needed_effect
from strandline.contamination.sequential import FIXED_19, LookDesign
from strandline.contamination.verdict import ShardScores, comparisons, judge


def scored(effect=0.0, n_shards=8, m=19, seed=0):
    values = np.random.default_rng(seed).normal(-400, 10, size=(n_shards, m + 1))
    values[:, 0] += 10 * effect
    return [ShardScores(k, tuple(row), 100) for k, row in enumerate(values.tolist())]


def judged(shards, order_p=0.4, **more):
    return judge("m", "b", shards, order_p=order_p, **more)


def test_a_memorised_order_is_called_so() -> None:
    verdict = judged(scored(2.0))
    assert verdict.verdict == "order_memorised"
    assert verdict.p_value <= 0.05
    assert verdict.alpha == Fraction(1, 20)
    assert verdict.n_shards == 8


def test_a_clean_model_gets_no_evidence_and_the_caution() -> None:
    verdict = judged(scored(-0.5))
    assert verdict.verdict == "no_evidence"
    assert "given up after 2 shuffled orders a shard, where this look alone has p = 0." in verdict.reason
    text = verdict.summary()
    for part in ("no proof of a clean model", "another order", "rewordings", "smallest reachable", "order check"):
        assert part in text


def test_a_failed_order_check_blocks_the_verdict_and_renames_the_p_value() -> None:
    verdict = judged(scored(3.0), order_p=0.002)
    assert verdict.verdict == "order_not_exchangeable"
    assert "order preference, p" in verdict.summary()
    assert "contaminated" not in verdict.summary()
    assert judged(scored(3.0), order_p=0.01).verdict == "order_not_exchangeable"
    assert judged(scored(3.0), order_p=0.0101).verdict == "order_memorised"


def test_no_verdict_before_the_order_check() -> None:
    assert judged(scored(3.0), order_p=None).verdict == "inconclusive"
    with pytest.raises(ValueError, match="order check"):
        judged(scored(), order_p=0.0)


def test_the_floor_is_read_as_a_budget() -> None:
    shards = [ShardScores(k, (0.0, *(-1.0 - i for i in range(19)))) for k in range(4)]
    verdict = judged(shards, design=FIXED_19)
    assert verdict.at_floor
    assert verdict.resolution == pytest.approx(20.0**-4)
    assert "floor of the orders scored" in verdict.summary()


def test_the_floor_of_an_early_stop_is_that_of_the_orders_scored() -> None:
    """All eight published orders come first: the first look rejects at the smallest p that two orders can give."""
    shards = [ShardScores(k, (0.0, -1.0, -2.0)) for k in range(8)]
    verdict = judged(shards)
    assert (verdict.verdict, verdict.n_permutations) == ("order_memorised", 2)
    assert verdict.p_value == pytest.approx(3.0**-8 / 0.05)
    assert verdict.p_value > 1000 * verdict.resolution
    assert verdict.at_floor
    assert "floor of the orders scored" in verdict.summary()
    shards[0] = ShardScores(0, (0.0, 1.0, -2.0))
    assert not judged(shards).at_floor


def test_a_p_value_of_one_is_at_no_floor() -> None:
    """Two shards cannot go below 1 at the first look: giving up there says nothing of a floor."""
    verdict = judged([ShardScores(k, (0.0, 1.0, 2.0)) for k in range(2)])
    assert (verdict.p_value, verdict.at_floor) == (1.0, False)


def test_a_budget_that_cannot_reach_the_level_is_inconclusive() -> None:
    one_look = LookDesign("one", (1,), (Fraction(1),), ())
    verdict = judged(scored(0.0, n_shards=2, m=1), alpha="0.01", design=one_look)
    assert verdict.verdict == "inconclusive"
    assert "cannot reach" in verdict.reason


def test_unfinished_scoring_says_what_is_missing() -> None:
    verdict = judged(scored(0.6, m=2, seed=5))
    if verdict.verdict == "inconclusive":
        assert "next look needs 5" in verdict.reason
    short = judged(scored(m=1))
    assert (short.verdict, short.log_p, short.n_shards) == ("inconclusive", None, 0)
    assert "next look needs 2" in short.reason


def test_shards_with_values_that_are_not_finite_are_left_out_whole_and_named() -> None:
    shards = scored(2.0)
    shards[3] = ShardScores(3, (float("nan"), *shards[3].values[1:]))
    verdict = judged(shards)
    assert verdict.excluded == (3,)
    assert verdict.n_shards == 7
    assert "shard(s) 3" in verdict.summary()
    nothing = judged([shards[3]])
    assert nothing.verdict == "inconclusive"
    assert "not all finite" in nothing.reason
    assert judged([]).reason == "no shard has been scored"


def test_a_verdict_inside_the_scoring_noise_is_fragile() -> None:
    base = np.tile([0.0, -0.02, -0.03, -0.5], (6, 1)).tolist()
    shards = [ShardScores(k, tuple(row)) for k, row in enumerate(base)]
    design = LookDesign("one", (3,), (Fraction(1),), ())
    assert judged(shards, design=design).verdict == "order_memorised"
    assert judged(shards, design=design, sentinel_difference=0.4).verdict == "numerically_fragile"
    with pytest.raises(ValueError, match="sentinel"):
        judged(shards, sentinel_difference=float("nan"))


def test_one_shard_is_tested_by_drawing_until_ten_exceedances() -> None:
    rng = np.random.default_rng(3)
    clean = judged([ShardScores(0, (0.0, *rng.normal(size=200)))])
    assert clean.method == "Besag-Clifford"
    assert clean.verdict == "no_evidence"
    assert clean.stopped_early
    strong = judged([ShardScores(0, (9.0, *rng.normal(size=999)))])
    assert strong.verdict == "order_memorised"
    assert strong.p_value == pytest.approx(1 / 1000)
    unfinished = judged([ShardScores(0, (9.0, *rng.normal(size=99)))])
    assert unfinished.verdict == "inconclusive"
    assert unfinished.log_p is None
    with pytest.raises(ValueError, match="no permutations"):
        judged([ShardScores(0, (9.0,))])


def test_too_few_examples_to_reach_the_level_are_inconclusive() -> None:
    alone = [ShardScores(0, (0.0, *[0.0, -1.0] * 20))]
    assert judged(alone).verdict == "no_evidence"
    few = judged([replace(shard, n_orders=2) for shard in alone])
    assert (few.verdict, few.resolution) == ("inconclusive", 0.5)
    assert "more examples in a shard" in few.reason
    several = [ShardScores(k, (0.0, *[0.0, -1.0] * 10)) for k in range(4)]
    assert judged([replace(shard, n_orders=2) for shard in several]).verdict == "inconclusive"
    impossible = judged([replace(shard, n_orders=2) for shard in scored(2.0)], alpha="0.001")
    assert impossible.verdict == "inconclusive"
    assert impossible.resolution <= impossible.p_value


def test_identical_examples_are_inconclusive_because_no_order_can_reach_the_level() -> None:
    verdict = judged([ShardScores(k, (-5.0,) * 20) for k in range(8)])
    assert (verdict.verdict, verdict.p_value, verdict.resolution) == ("inconclusive", 1.0, 1.0)
    assert verdict.needed_effect is None


def test_verdicts_keep_their_level_after_early_stops() -> None:
    found = [judged(scored(seed=seed)).verdict == "order_memorised" for seed in range(500)]
    assert np.mean(found) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 500)


def test_comparisons_are_the_named_statistics() -> None:
    names = [pooled.method for pooled in comparisons(scored(1.0), 19)]
    assert names == ["lattice_fisher", "rank_sum", "fisher_chi2", "oren_t"]
    assert [pooled.method for pooled in comparisons(scored(n_shards=1), 19)] == names[:3]
    assert comparisons([], 19) == []


def test_orders_beyond_the_deciding_look_change_no_verdict_and_no_comparison() -> None:
    """The first look rejects; what was stored of later looks, however large, is not read."""
    decided = [ShardScores(k, (0.0, -1.0 - k, -2.0)) for k in range(8)]
    more = [replace(shard, values=(*shard.values, 5e6, 7e6, 9e6)) for shard in decided]
    first, second = judged(decided), judged(more)
    assert (first.verdict, first.n_permutations) == ("order_memorised", 2)
    assert first == second
    assert comparisons(decided, 2) == comparisons(more, 2)
    assert comparisons(decided, 2) != comparisons(more, 5)


EXACT = LookDesign("one look", (19,), (Fraction(1),), ())


def ranked(rank: int, n_shards: int = 2) -> list[ShardScores]:
    """Shards whose published order has this rank among 20."""
    values = [-100.0 - 3 * k for k in range(20)]
    published = values.pop(rank - 1)
    return [ShardScores(k, (published, *values), 100) for k in range(n_shards)]


@pytest.mark.parametrize(
    ("case", "shards", "more", "word"),
    [
        ("p is the level", ranked(1), {"alpha": "1/400"}, "order_memorised"),
        ("p is a little above it", ranked(2), {"alpha": "1/400"}, "no_evidence"),
        ("the level is below the smallest p", ranked(1), {"alpha": "0.002499"}, "inconclusive"),
        ("the order check is at its gate", ranked(1), {"order_p": 0.01}, "order_not_exchangeable"),
        ("and just above it", ranked(1), {"order_p": 0.010000001}, "order_memorised"),
        ("the order check blocks", ranked(1), {"order_p": 0.001}, "order_not_exchangeable"),
        ("there is no order check", ranked(1), {"order_p": None}, "inconclusive"),
        ("as many orders as the level needs", [replace(s, n_orders=20) for s in ranked(1)], {"alpha": "1/400"},
         "order_memorised"),
        ("one order too few", [replace(s, n_orders=19) for s in ranked(1)], {"alpha": "1/400"}, "inconclusive"),
        ("one order too few, and a low rank", [replace(s, n_orders=19) for s in ranked(9)], {"alpha": "1/400"},
         "inconclusive"),
        ("no order differs", [ShardScores(k, (-5.0,) * 20) for k in range(2)], {}, "inconclusive"),
        ("all orders tie but one", [ShardScores(k, (-5.0,) * 19 + (-6.0,)) for k in range(2)], {}, "inconclusive"),
        ("the sentinel moved less than the gap", ranked(1), {"sentinel_difference": 2.0}, "order_memorised"),
        ("the sentinel moved by two gaps", ranked(1), {"sentinel_difference": 60.0}, "numerically_fragile"),
        ("an order is missing", [replace(s, values=s.values[:19]) for s in ranked(1)], {}, "inconclusive"),
    ],
)  # fmt: skip
def test_every_verdict_at_its_edge(case: str, shards: list[ShardScores], more: dict, word: str) -> None:
    assert judged(shards, **({"design": EXACT, "order_p": 0.5} | more)).verdict == word, case


@pytest.mark.parametrize(
    ("case", "published", "others", "more", "word"),
    [
        ("no exceedance in 999", 0.0, [-1.0] * 999, {}, "order_memorised"),
        ("49 in 999 are not drawn: ten stop it", 0.0, [1.0] * 10, {}, "no_evidence"),
        ("ten in 200 are p = .05", 0.0, [-1.0] * 190 + [1.0] * 10, {}, "order_memorised"),
        ("ten in 199 are more", 0.0, [-1.0] * 189 + [1.0] * 10, {}, "no_evidence"),
        ("nine in 998: not finished", 0.0, [1.0] * 9 + [-1.0] * 989, {}, "inconclusive"),
        ("nine in 999 are p = .01", 0.0, [1.0] * 9 + [-1.0] * 990, {"alpha": "0.01"}, "order_memorised"),
        ("nine in 999 at a lower level", 0.0, [1.0] * 9 + [-1.0] * 990, {"alpha": "0.0099"}, "no_evidence"),
        ("the level is below 1/1000", 0.0, [-1.0] * 999, {"alpha": "0.000999"}, "inconclusive"),
        ("all orders tie", 0.0, [0.0] * 10, {}, "inconclusive"),
        ("noise in fp32", -1000.0, [-1000.0001] * 999, {}, "numerically_fragile"),
        ("more than noise in fp32", -1000.0, [-1000.001] * 999, {}, "order_memorised"),
    ],
)
def test_every_verdict_on_one_shard_at_its_edge(
    case: str, published: float, others: list[float], more: dict, word: str
) -> None:
    assert judged([ShardScores(0, (published, *others), 300)], **more).verdict == word, case


def ahead_by(nats: float, dtype: str | None, n_tokens: int = 230) -> list[ShardScores]:
    """Eight shards whose published order is ahead of nineteen equal ones by so much, as noise would have it."""
    row = (-700.0 + nats, *[-700.0 - nats * k / 100 for k in range(19)])
    return [ShardScores(k, row, n_tokens, dtype=dtype) for k in range(8)]


@pytest.mark.parametrize(
    ("dtype", "noise", "real"),
    [
        ("float32", 1e-4, 1e-2),
        (None, 1e-4, 1e-2),
        ("served", 1e-4, 1e-2),
        ("bfloat16", 1.0, 6.0),
        ("float16", 0.1, 1.0),
    ],
)
def test_noise_of_the_number_formats_own_size_never_makes_an_accusation(
    dtype: str | None, noise: float, real: float
) -> None:
    assert judged(ahead_by(noise, dtype)).verdict == "numerically_fragile"
    assert judged(ahead_by(real, dtype)).verdict == "order_memorised"
    assert judged(ahead_by(noise, dtype, n_tokens=0)).verdict == "numerically_fragile"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_values_rounded_to_their_format_accuse_nobody_whose_examples_are_all_alike(dtype: str) -> None:
    """One true value, rounded noise on top, the published order always the luckiest of its shard."""
    rng = np.random.default_rng(7)
    unit = {"float32": 2.0**-24, "bfloat16": 2.0**-8, "float16": 2.0**-11}[dtype]
    for _ in range(20):
        noise = np.sort(rng.normal(0, unit * 5 * np.sqrt(230), size=(8, 20)), axis=1)[:, ::-1]
        rows = (-700.0 + noise).tolist()
        shards = [ShardScores(k, tuple(row), 230, dtype=dtype) for k, row in enumerate(rows)]
        assert judged(shards).verdict != "order_memorised"


def test_a_verdict_says_what_effect_it_would_have_found() -> None:
    assert judged(scored(-0.5)).needed_effect == needed_effect(19, Fraction(85, 2000))
    assert judged(ranked(1), design=EXACT).needed_effect == needed_effect(19, "0.05")
    assert judged(ranked(1), design=EXACT, alpha="0.001").needed_effect is None
    assert judged([ShardScores(0, (0.0, *[1.0] * 10))]).needed_effect == needed_effect(999, "0.05")


def test_the_picture_shows_every_shard_that_varies() -> None:
    shards = [*scored(1.5), ShardScores(8, (-5.0,) * 20), ShardScores(9, (float("nan"),) * 20)]
    figure = published_among_shuffled(judged(shards), shards)
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [str(k) for k in range(8)]
    assert "order memorised" in axes.get_title()
    assert published_among_shuffled(judged([]), []).axes


def test_the_picture_shows_log_likelihoods_as_scored_and_not_multiples_of_a_spread_of_two() -> None:
    shards = [ShardScores(k, (10.0, 0.0, 0.002)) for k in range(3)]
    (axes,) = published_among_shuffled(judged(shards), shards).axes
    drawn = [float(x) for line in axes.lines[1:] for x in line.get_xdata()]
    assert max(drawn) < 10.1
