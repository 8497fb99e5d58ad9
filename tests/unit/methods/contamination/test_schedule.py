"""Which orders are asked for next, from the values at hand."""

from collections.abc import Mapping

import pytest

from strandline.contamination.order_batches import StoredShard
from strandline.contamination.orderings import REVERSED, Shard
from strandline.contamination.schedule import next_permutations, scores_of
from strandline.contamination.sequential import THREE_LOOKS

SHARDS = tuple(Shard(k, 4 * k, 4 * k + 4) for k in range(3))
Values = Mapping[int, float | None]


def wanted(rows: Mapping[int, Values], n_shards: int = 3) -> list[int] | None:
    """What is asked for next; one shard is tested by Besag and Clifford's rule."""
    stored = {k: StoredShard(values) for k, values in rows.items()}
    return next_permutations(SHARDS[:n_shards], stored, THREE_LOOKS if n_shards > 1 else None, "0.05")


def rising(n: int, published: float = 0.0) -> dict[int, float | None]:
    """A published value, and shuffled ones of -1, -2, ..."""
    return {0: published} | {k: -float(k) for k in range(1, n + 1)}


def ahead(n: int) -> dict[int, float | None]:
    """A published order that is far more likely than the shuffled ones."""
    return rising(n, 1000.0)


EIGHT = tuple(Shard(k, 4 * k, 4 * k + 4) for k in range(8))


@pytest.mark.parametrize(
    ("case", "rows", "n_shards", "expected"),
    [
        ("nothing is stored", {}, 3, [0, 1, 2]),
        ("a shard lacks its last order", {0: rising(2), 1: rising(2), 2: rising(1)}, 3, [0, 1, 2]),
        ("all orders tie: given up", {k: dict.fromkeys(range(3), -5.0) for k in range(3)}, 3, None),
        ("no shard is finite", {k: {0: None, 1: -1.0, 2: -2.0} for k in range(3)}, 3, None),
        ("one shard is finite", {k: {0: 0.0, 1: -1.0, 2: None if k else -2.0} for k in range(3)}, 3, list(range(23))),
        ("one shard, nothing stored", {}, 1, list(range(21))),
        ("one shard, no exceedance in 20", {0: rising(20)}, 1, list(range(41))),
        ("one shard, ten exceedances", {0: {k: float(k) for k in range(21)}}, 1, None),
        ("one shard, nine exceedances in 20", {0: {0: 0.5} | {k: float(k < 10) for k in range(1, 21)}}, 1,
         list(range(41))),
        ("one shard, almost all drawn", {0: rising(990)}, 1, list(range(1000))),
        ("one shard, all drawn, reversed order missing", {0: rising(999)}, 1, [REVERSED]),
        ("one shard, all drawn, reversed order there", {0: rising(999) | {REVERSED: -7.0}}, 1, None),
    ],
)  # fmt: skip
def test_what_is_asked_for_next(
    case: str, rows: Mapping[int, Values], n_shards: int, expected: list[int] | None
) -> None:
    assert wanted(rows, n_shards) == expected


def test_the_reversed_order_is_wanted_once_where_a_design_has_rejected() -> None:
    rows = {k: StoredShard(ahead(2)) for k in range(8)}
    assert next_permutations(EIGHT, rows, THREE_LOOKS, "0.05") == [REVERSED]
    turned = {k: StoredShard(ahead(2) | {REVERSED: -1.0}) for k in range(8)}
    assert next_permutations(EIGHT, turned, THREE_LOOKS, "0.05") is None
    turned[7] = StoredShard(ahead(2))
    assert next_permutations(EIGHT, turned, THREE_LOOKS, "0.05") == [REVERSED]


def test_a_shard_ends_before_its_first_gap_and_what_is_not_finite_is_nan() -> None:
    scores = scores_of(4, {0: -1.0, 1: None, 3: -3.0}, 7)
    assert (scores.shard, scores.n_tokens, len(scores.values)) == (4, 7, 2)
    assert scores.values[1] != scores.values[1]
