"""Which values of a batch may stand: one format a shard, sentinels that hold still, and no stand-ins."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from strandline.contamination.order_batches import (
    HALF_PRECISION_BATCH,
    SENTINEL_TOLERANCE,
    OrderBatch,
    OrderJob,
    OrderScore,
    StoredShard,
    Tokens,
    missing_batches,
    repeated_batches,
    settled,
)
from strandline.contamination.orderings import PermutationGroup, Shard
from strandline.scoring.prefix_tree import Request
from strandline.scoring.scores import SequenceScore

SHARDS = (Shard(0, 0, 4), Shard(1, 4, 8))
JOB = OrderJob("m", "b", "digest", SHARDS, "weights", "bfloat16", PermutationGroup(), 0)
TOKENS = Tokens({i: [10 + i] for i in range(8)}, (1,), 0, None)


def sequence(nll: float | None, dtype: str = "bfloat16", n: int = 10) -> SequenceScore:
    request = Request(tuple(range(n + 1)), 1)
    return SequenceScore(request, nll, "nonfinite" if nll is None else "ok", dtype, "m", n, 0, n)


def batch(orders: Sequence[int], dtype: str = "bfloat16") -> OrderBatch:
    return OrderBatch("key", SHARDS[0], tuple(orders), (), dtype, HALF_PRECISION_BATCH)


def values(scores: Sequence[OrderScore] | None) -> list[float | None] | None:
    return None if scores is None else [score.loglik for score in scores]


@pytest.mark.parametrize(
    ("nll", "dtype", "loglik", "words"),
    [
        (30.0, "bfloat16", -30.0, None),
        (500.0, "bfloat16", -500.0, None),
        (500.1, "bfloat16", None, "more than 50 nats a token"),
        (1e30, "served", None, "more than 50 nats a token"),
        (9999.0, "served", None, "stand-ins"),
        (1e-9, "bfloat16", -1e-9, None),
        (0.0, "bfloat16", None, "no token costs anything"),
        (-1.0, "served", None, "no token costs anything"),
        (None, "float32", None, "the model's logits are not finite, also in fp32"),
        (None, "served", None, "the server gave values that are not finite, or stand-ins"),
    ],
)
def test_a_value_is_a_log_likelihood_or_none_with_its_reason(
    nll: float | None, dtype: str, loglik: float | None, words: str | None
) -> None:
    scores = settled((batch([1], dtype), [[sequence(nll, dtype)]]), StoredShard({}))
    assert scores is not None
    assert values(scores) == [loglik]
    assert (words is None and scores[0].reason is None) or (words is not None and words in str(scores[0].reason))


def test_windows_are_added_and_one_that_is_not_finite_spoils_the_order() -> None:
    both = [[sequence(30.0), sequence(31.0)], [sequence(5.0), sequence(None)]]
    scores = settled((batch([0, 1]), both), StoredShard({}))
    assert values(scores) == [-35.0, None]
    assert scores is not None
    assert [score.n_tokens for score in scores] == [20, 20]


@pytest.mark.parametrize(
    ("moved_by", "dtype", "expected"),
    [
        (0.0, "bfloat16", [-30.0]),
        (SENTINEL_TOLERANCE / 2, "bfloat16", [-30.0]),
        (SENTINEL_TOLERANCE * 2, "bfloat16", None),
        (-SENTINEL_TOLERANCE * 2, "float16", None),
        (None, "bfloat16", None),
        (7.0, "float32", [-30.0]),
        (7.0, "served", [-30.0]),
    ],
)
def test_a_published_order_that_moved_is_scored_anew_where_there_is_a_better_format(
    moved_by: float | None, dtype: str, expected: list[float] | None
) -> None:
    again = sequence(None if moved_by is None else 30.0 + moved_by, dtype)
    scores = settled((batch([0], dtype), [[again]]), StoredShard({0: -30.0}, dtype, 0.5))
    assert values(scores) == expected
    if scores is not None:
        assert scores[0].sentinel_difference == max(0.5, abs(moved_by or 0.0))


def test_a_value_in_another_format_than_its_batch_does_not_stand() -> None:
    assert settled((batch([1, 2]), [[sequence(30.0), sequence(30.0, "float32")]]), StoredShard({})) is None


def test_missing_orders_are_scored_beside_the_published_one_in_the_format_of_their_shard() -> None:
    stored = {0: StoredShard({0: -1.0, 1: -2.0}, "bfloat16"), 1: StoredShard({0: -1.0, 1: -2.0}, "float32")}
    made = list(missing_batches(JOB, TOKENS, stored, [0, 1, 2]))
    assert [(b.shard.index, b.dtype, sorted(b.orders)) for b in made] == [
        (0, "bfloat16", [0, 2]),
        (1, "float32", [0, 2]),
    ]
    assert list(missing_batches(JOB, TOKENS, stored, [0, 1])) == []
    turned = list(missing_batches(JOB, TOKENS, stored, [-1]))
    assert [b.orders for b in turned] == [(-1,), (-1,)]


def test_a_shard_that_is_scored_again_has_all_its_orders_in_fp32() -> None:
    stored = {0: StoredShard({0: -1.0, 1: -2.0, -1: -3.0}, "bfloat16")}
    made = list(repeated_batches(JOB, TOKENS, stored, [0, 1, 2], SHARDS[0]))
    assert sorted(k for b in made for k in b.orders) == [-1, 0, 1, 2]
    assert {b.dtype for b in made} == {"float32"}


def test_equal_examples_are_told_apart_by_no_order() -> None:
    same = replace(TOKENS, examples={0: [5], 1: [5], 2: [6], 3: [7], 4: [5], 5: [5], 6: [5], 7: [5]})
    assert [same.distinct_orders(shard, PermutationGroup()) for shard in SHARDS] == [12, 1]
    assert [same.distinct_orders(shard, PermutationGroup(2)) for shard in SHARDS] == [2, 1]
    assert TOKENS.distinct_orders(SHARDS[0], PermutationGroup()) == PermutationGroup().n_orders(4) == 24
