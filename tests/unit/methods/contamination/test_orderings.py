"""Shards, orders, joined ids: what may be compared, and that no score decides it."""

from collections import Counter
from itertools import pairwise, permutations

import numpy as np
import pytest

from strandline.contamination.orderings import (
    CANONICAL,
    REVERSED,
    PermutationGroup,
    Shard,
    affordable,
    batch_order,
    check_same_tokens,
    evenly_spaced,
    join_ids,
    judge_sentinel,
    make_shards,
    order_of,
    order_seed,
)


def drawn(shard, permutation, group="all"):
    return order_of(shard, permutation, digest="d", run_seed=0, group=PermutationGroup.parse(group))


def test_shards_cover_the_benchmark_in_order() -> None:
    shards = make_shards([100] * 1319)
    assert shards[0].start == 0
    assert shards[-1].stop == 1319
    assert all(left.stop == right.start for left, right in pairwise(shards))
    assert {shard.size for shard in shards} <= {24, 25}


def test_shards_hold_five_thousand_characters_on_average() -> None:
    assert {shard.size for shard in make_shards([500] * 400)} == {10}
    assert {shard.size for shard in make_shards([2000] * 400)} == {4}


def test_small_benchmarks_still_get_eight_shards_where_they_can() -> None:
    assert len(make_shards([10] * 100)) == 8
    assert len(make_shards([10] * 33)) == 8
    assert len(make_shards([10] * 14)) == 3
    assert len(make_shards([10] * 5)) == 1


def test_shard_edges_do_not_move_when_examples_move() -> None:
    rng = np.random.default_rng(0)
    for limit in (200, 900, 3000):
        lengths = list(rng.integers(20, limit, size=300))
        assert all(make_shards(list(rng.permutation(lengths))) == make_shards(lengths) for _ in range(20))


@pytest.mark.parametrize(
    ("lengths", "wish", "words"),
    [
        ([5], {}, "at least two examples"),
        ([], {}, "at least two examples"),
        ([5] * 10, {"n_shards": 6}, "cannot make 6 shards"),
        ([5] * 10, {"n_shards": 0}, "cannot make 0 shards"),
        ([5] * 10, {"examples_per_shard": 1}, "at least two"),
    ],
)
def test_benchmarks_that_cannot_be_split_are_refused(lengths, wish, words) -> None:
    with pytest.raises(ValueError, match=words):
        make_shards(lengths, **wish)


def test_a_wished_shard_size_is_kept() -> None:
    assert {shard.size for shard in make_shards([5] * 100, examples_per_shard=10)} == {10}


def test_a_budget_picks_shards_spread_over_the_file() -> None:
    shards = make_shards([100] * 1000)
    assert [shard.index for shard in evenly_spaced(shards, 4)] == [5, 15, 25, 35]
    assert evenly_spaced(shards, None) == shards
    assert evenly_spaced(shards, 99) == shards
    with pytest.raises(ValueError):
        evenly_spaced(shards, 0)
    assert affordable(1000, 5.3, 53_000) == 10
    assert affordable(1000, 5.3, 1) == 1


def test_orders_are_permutations_that_only_the_seed_decides() -> None:
    shard = Shard(3, 40, 65)
    assert drawn(shard, CANONICAL) == list(range(40, 65))
    assert drawn(shard, REVERSED) == list(range(64, 39, -1))
    assert sorted(drawn(shard, 1)) == list(range(40, 65))
    assert drawn(shard, 1) == drawn(shard, 1)
    assert drawn(shard, 1) != drawn(shard, 2)
    seeds = {order_seed(d, s, p, r) for d in "ab" for s in range(5) for p in range(5) for r in range(3)}
    assert len(seeds) == 150
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_every_order_of_a_shard_is_equally_likely() -> None:
    rng = np.random.default_rng(1)
    counts = Counter(tuple(PermutationGroup().draw(4, rng)) for _ in range(24_000))
    assert set(counts) == set(permutations(range(4)))
    assert max(abs(count - 1000) for count in counts.values()) < 4.5 * np.sqrt(1000)


def test_a_window_group_moves_examples_inside_their_window_only() -> None:
    order = drawn(Shard(0, 0, 25), 1, "window:3")
    assert all(position // 3 == example // 3 for position, example in enumerate(order))
    assert order != list(range(25))
    assert str(PermutationGroup.parse("window:3")) == "window:3"
    assert str(PermutationGroup.parse("all")) == "all"


def test_a_group_counts_its_orders() -> None:
    assert [PermutationGroup().n_orders(size) for size in (1, 2, 4)] == [1, 2, 24]
    assert [PermutationGroup(3).n_orders(size) for size in (3, 4, 7)] == [6, 6, 36]


@pytest.mark.parametrize("text", ["", "window", "window:1", "window:x", "some"])
def test_unknown_groups_are_refused(text) -> None:
    with pytest.raises(ValueError, match="window:w"):
        PermutationGroup.parse(text)


def test_every_ordering_has_the_same_tokens() -> None:
    examples = [[5, 6], [7], [8, 9, 10]]
    sequences = [join_ids(examples, order, [2], 1) for order in permutations(range(3))]
    assert sequences[0] == [1, 5, 6, 2, 7, 2, 8, 9, 10, 2]
    assert check_same_tokens(sequences) == 10
    assert join_ids(examples, [1], [2], None) == [7, 2]
    with pytest.raises(ValueError, match="ordering 1"):
        check_same_tokens([[1, 2], [1, 3]])


def test_the_published_order_sits_anywhere_in_its_batch() -> None:
    places = Counter(batch_order(6, "d", shard, 0, 0).index(0) for shard in range(3000))
    assert set(places) == set(range(6))
    assert max(abs(count - 500) for count in places.values()) < 5 * np.sqrt(500)


def test_a_sentinel_that_moved_calls_for_scoring_again() -> None:
    assert judge_sentinel(-100.0, -100.0, 0.0) == "equal"
    assert judge_sentinel(-100.0, -100.6, 0.5) == "rescore"
