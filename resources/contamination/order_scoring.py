"""Scores orderings of a benchmark under a model, look by look, and keeps every finished one as a row.

Which orders, in what batches, is decided here from counts and seeds alone; the numbers come from a scorer; whether more
are needed is asked of ``strandline.contamination``. A kill loses at most the batches in hand.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import isfinite
from time import monotonic
from typing import Any, Protocol

import polars as pl

from resources.endpoints.completions import SERVED
from resources.warehouse.store import Replace, Warehouse
from strandline.contamination.levels import as_level
from strandline.contamination.orderings import (
    CANONICAL,
    REVERSED,
    PermutationGroup,
    Shard,
    batch_order,
    check_same_tokens,
    join_ids,
    judge_sentinel,
    order_of,
    order_seed,
)
from strandline.contamination.sequential import BESAG_CLIFFORD_MOST, LookDesign, besag_clifford, run_looks
from strandline.contamination.verdict import ShardScores
from strandline.scoring.engine import SCORER_VERSION
from strandline.scoring.prefix_tree import Request
from strandline.scoring.scores import SequenceScore
from strandline.scoring.windows import window_requests

TABLE = "contamination.order_logliks"
HALF_PRECISION_BATCH = 3
MOST_AT_ONCE = 8
DRAWS_AT_ONCE = 20
COMMIT_SECONDS = 1.0
SENTINEL_TOLERANCE = 0.01
SEPARATOR = "\n\n"
FP32 = "float32"
NEVER_RESCORED = (FP32, SERVED)


@dataclass(frozen=True)
class OrderJob:
    """Everything that fixes the orderings of one model and benchmark and their values.

    ``order_digest`` names the examples in published order, ``weights`` the model's weights (or its endpoint), ``dtype``
    the number format.
    """

    model: str
    benchmark: str
    order_digest: str
    shards: tuple[Shard, ...]
    weights: str
    dtype: str
    group: PermutationGroup
    run_seed: int

    @property
    def settings_digest(self) -> str:
        """A digest of all that a log-likelihood depends on; rows with another one are not reused."""
        edges = [(shard.index, shard.start, shard.stop) for shard in self.shards]
        facts = (self.order_digest, edges, SEPARATOR, self.weights, self.dtype, str(self.group), self.run_seed)
        return sha256(repr((*facts, SCORER_VERSION)).encode()).hexdigest()[:32]

    def order(self, shard: Shard, permutation: int) -> list[int]:
        """Positions of the examples in one order."""
        return order_of(shard, permutation, digest=self.order_digest, run_seed=self.run_seed, group=self.group)


@dataclass(frozen=True)
class Tokens:
    """Ids of each example by its position and of the separator, each tokenized alone and without specials.

    ``tokens_per_second`` is the measured rate of one worker.
    """

    examples: Mapping[int, Sequence[int]]
    separator: tuple[int, ...]
    bos_id: int | None
    context_length: int | None
    tokens_per_second: float | None = None

    def in_shard(self, shard: Shard) -> int:
        """Tokens of one ordering of a shard, BOS not counted."""
        return sum(len(self.examples[i]) + len(self.separator) for i in range(shard.start, shard.stop))

    def joined(self, order: Sequence[int]) -> list[int]:
        """The ids of one ordering, without BOS."""
        return join_ids(self.examples, order, self.separator, None)

    def requests(self, order: Sequence[int]) -> list[Request]:
        """The sequences that score every token of one ordering once: one, or windows where it exceeds the context."""
        return window_requests(self.joined(order), self.context_length, None, self.bos_id)


@dataclass(frozen=True)
class OrderBatch:
    """Orders of one shard that are computed together; ``windows`` holds, for each window, one sequence an order.

    In half precision a value may depend on the shape of its batch, so all batches have ``size`` sequences, filled up
    where there are fewer; in fp32 it does not, and nothing is filled up.
    """

    key: str
    shard: Shard
    orders: tuple[int, ...]
    windows: tuple[tuple[Request, ...], ...]
    dtype: str
    size: int


@dataclass(frozen=True)
class _Published:
    """A stored published order: its value, its number format, and what it has moved by when it was scored again."""

    loglik: float | None
    dtype: str
    moved: float


Scored = tuple[OrderBatch, Sequence[Sequence[SequenceScore]]]


class OrderScorer(Protocol):
    """What scores sequences: the engine on workers, or an endpoint."""

    device: str
    dtype: str
    weights: str
    libraries: str | None

    def tokenize(self, texts: Sequence[str]) -> tuple[list[list[int]], int | None, int | None, float | None]:
        """Ids of each text without specials; BOS, context length, and tokens a second of one worker."""

    def run(self, batches: Iterable[OrderBatch]) -> Iterator[Scored]:
        """Each batch with the scores of its windows, as they are finished."""


def tokens_of(job: OrderJob, texts: Sequence[str], scorer: OrderScorer) -> Tokens:
    """Tokenize the examples of the shards and the separator, once.

    Raises:
        ValueError: the tokenizer makes nothing of the separator.
    """
    positions = [i for shard in job.shards for i in range(shard.start, shard.stop)]
    ids, bos_id, context_length, rate = scorer.tokenize([*(texts[i] for i in positions), SEPARATOR])
    if not ids[-1]:
        raise ValueError(f"the tokenizer of {job.model} makes no token of the separator between examples")
    return Tokens(dict(zip(positions, ids[:-1], strict=True)), tuple(ids[-1]), bos_id, context_length, rate)


def score_design(
    job: OrderJob,
    tokens: Callable[[], Tokens],
    scorer: OrderScorer,
    store: Warehouse,
    design: LookDesign | None,
    alpha: str,
    told: Callable[[str], None] = lambda _: None,
) -> int:
    """Score what is missing until the design has decided; returns the orderings scored now.

    ``design`` None is Besag and Clifford's rule, for one shard. Stored rows of the same settings are reused, others go.
    ``tokens`` is asked for only where something is missing.
    """
    _drop_stale(job, store)
    scored = 0
    known: Tokens | None = None
    while (wanted := next_permutations(job, stored_orders(store, job), design, alpha)) is not None:
        known = known or tokens()
        scored += score_orders(job, known, scorer, store, wanted)
        told(f"{job.benchmark}: {wanted[-1]} shuffled orders a shard are scored")
    return scored


def next_permutations(
    job: OrderJob, stored: Mapping[int, Mapping[int, float | None]], design: LookDesign | None, alpha: str
) -> list[int] | None:
    """The permutations to have next, or None once the design has decided.

    Where it has rejected, the reversed order is wanted too: whether that one stands out as well tells a reader whether
    neighbours are alike. Where values that are not finite leave one shard, it is tested by Besag and Clifford's rule.
    """
    scores = [scores_of(shard.index, stored.get(shard.index, {})) for shard in job.shards]
    whole = [shard.values for shard in scores if all(isfinite(value) for value in shard.values)]
    done = min(len(shard.values) for shard in scores) - 1
    first = 1 if design is None else design.looks[0]
    if done < first:
        return list(range((DRAWS_AT_ONCE if design is None else first) + 1))
    if not whole:
        return None
    reached, rejected = _looked(whole, design, alpha) if design and len(whole) > 1 else _drawn(whole[0], alpha)
    if reached is not None:
        return list(range(reached + 1))
    turned = all(REVERSED in stored.get(shard.index, {}) for shard in job.shards)
    return [REVERSED] if rejected and not turned else None


def _looked(values: Sequence[Sequence[float]], design: LookDesign, alpha: str) -> tuple[int | None, bool]:
    """Shuffled orders to have at the next look, None once decided; and whether the design has rejected."""
    result = run_looks(values, design, alpha=alpha)
    return result.next_look, result.decision == "rejected"


def _drawn(values: Sequence[float], alpha: str) -> tuple[int | None, bool]:
    """The same for Besag and Clifford's rule."""
    p = besag_clifford(values[0], values[1:]).p_fraction
    if p is None:
        return min(len(values) - 1 + DRAWS_AT_ONCE, BESAG_CLIFFORD_MOST), False
    return None, p <= as_level(alpha)


def score_orders(
    job: OrderJob, tokens: Tokens, scorer: OrderScorer, store: Warehouse, permutations: Sequence[int]
) -> int:
    """Score those permutations of every shard that are not stored, and commit them as they come.

    Beside later looks each published order is scored again. If its value has moved in half precision, or an order had
    to be repeated in fp32 because half precision was not finite, the whole shard is scored again in fp32, so that all
    its values have one format: values are never averaged and the larger is never taken.
    """

    def facts() -> dict[str, Any]:
        return {"device": scorer.device, "library_versions": scorer.libraries, "prefix_token": tokens.bos_id}

    stored, published = stored_orders(store, job), _published(store, job)
    batches = _missing_batches(job, tokens, stored, _in_float32(published), permutations)
    moved: set[int] = set()
    pending: list[dict[str, Any]] = []
    committed, scored = monotonic(), 0
    try:
        for batch, parts in scorer.run(batches):
            rows = _rows(job, batch, parts, facts())
            if not _one_format(batch, parts) or not _sentinel_held(rows, published.get(batch.shard.index), batch.dtype):
                moved.add(batch.shard.index)
                continue
            pending, scored = pending + rows, scored + len(rows)
            if monotonic() - committed > COMMIT_SECONDS:
                pending, committed = _commit(store, pending), monotonic()
    finally:
        _commit(store, pending)
    for shard in job.shards:
        if shard.index in moved:
            orders = _shuffled(job, shard, sorted({*stored.get(shard.index, {}), *permutations}))
            again = scorer.run(order_batches(job, tokens, shard, orders, FP32))
            rows = [row for batch, parts in again for row in _rows(job, batch, parts, facts())]
            scored += len(rows)
            _commit(store, rows)
    return scored


def stored_orders(store: Warehouse, job: OrderJob) -> dict[int, dict[int, float | None]]:
    """Stored log-likelihoods by shard and permutation, for these settings only; None where they are not finite."""
    found: dict[int, dict[int, float | None]] = {}
    rows = store.query(
        f"select shard, permutation, loglik from {TABLE} where model = ? and benchmark = ? and settings_digest = ?",
        [job.model, job.benchmark, job.settings_digest],
    )
    for shard, permutation, loglik in rows.iter_rows():
        found.setdefault(shard, {})[permutation] = loglik
    return found


def scores_of(shard: int, values: Mapping[int, float | None], n_tokens: int = 0) -> ShardScores:
    """A shard's published value and its shuffled ones in the order they were drawn, as far as they go unbroken.

    A value that is not finite stands as NaN, so that the shard is left out of the verdict and named.
    """
    unbroken: list[float] = []
    while len(unbroken) in values:
        value = values[len(unbroken)]
        unbroken.append(float("nan") if value is None else value)
    return ShardScores(shard, tuple(unbroken), n_tokens)


def _missing_batches(
    job: OrderJob,
    tokens: Tokens,
    stored: Mapping[int, Mapping[int, float | None]],
    exact: set[int],
    permutations: Sequence[int],
) -> Iterator[OrderBatch]:
    for shard in job.shards:
        have = stored.get(shard.index, {})
        missing = [k for k in permutations if k not in have]
        if missing:
            todo = [*missing, CANONICAL] if CANONICAL in have and max(missing) > CANONICAL else missing
            dtype = FP32 if shard.index in exact else job.dtype
            yield from order_batches(job, tokens, shard, _shuffled(job, shard, todo), dtype)


def _shuffled(job: OrderJob, shard: Shard, orders: Sequence[int]) -> list[int]:
    """The orders at random places, so that nothing about its place in a batch marks the published one."""
    places = batch_order(len(orders), job.order_digest, shard.index, max(orders), job.run_seed)
    return [orders[place] for place in places]


def order_batches(
    job: OrderJob, tokens: Tokens, shard: Shard, orders: Sequence[int], dtype: str
) -> Iterator[OrderBatch]:
    together = MOST_AT_ONCE if dtype == FP32 else HALF_PRECISION_BATCH
    for start in range(0, len(orders), together):
        chosen = tuple(orders[start : start + together])
        split = [tokens.requests(job.order(shard, permutation)) for permutation in chosen]
        check_same_tokens([tokens.joined(job.order(shard, k)) for k in (CANONICAL, *chosen)])
        key = sha256(repr((job.settings_digest, shard.index, chosen, dtype)).encode()).hexdigest()
        size = len(chosen) if dtype == FP32 else together
        yield OrderBatch(key, shard, chosen, tuple(zip(*split, strict=True)), dtype, size)


def _one_format(batch: OrderBatch, parts: Sequence[Sequence[SequenceScore]]) -> bool:
    """Whether every value of the batch was computed in the batch's own format."""
    return all(score.dtype == batch.dtype for part in parts for score in part)


def _sentinel_held(rows: Sequence[dict[str, Any]], published: _Published | None, dtype: str) -> bool:
    """Whether the published order, where it was scored again, has kept its value; its row then keeps the first one.

    In fp32, and in whatever a server computes in, there is nothing better to turn to: the largest difference is kept,
    and values within it count as ties.
    """
    for row in rows:
        if row["permutation"] == CANONICAL and published is not None and published.loglik is not None:
            again = float("inf") if row["loglik"] is None else row["loglik"]
            judged = judge_sentinel(published.loglik, again, SENTINEL_TOLERANCE)
            if judged == "rescore" and dtype not in NEVER_RESCORED:
                return False
            row["sentinel_difference"] = max(published.moved, abs(again - published.loglik))
            row["loglik"] = published.loglik
    return True


def _rows(
    job: OrderJob, batch: OrderBatch, parts: Sequence[Sequence[SequenceScore]], facts: dict[str, Any]
) -> list[dict[str, Any]]:
    return [
        _row(job, batch.shard, permutation, [part[i] for part in parts]) | facts
        for i, permutation in enumerate(batch.orders)
    ]


def _row(job: OrderJob, shard: Shard, permutation: int, scores: Sequence[SequenceScore]) -> dict[str, Any]:
    sums = [score.sum_nll for score in scores]
    whole = [value for value in sums if value is not None]
    finite = len(whole) == len(sums)
    seed = order_seed(job.order_digest, shard.index, permutation, job.run_seed)
    return {
        "model": job.model,
        "benchmark": job.benchmark,
        "shard": shard.index,
        "permutation": permutation,
        "seed": seed if permutation > CANONICAL else None,
        "loglik": -sum(whole) if finite else None,
        "n_tokens": sum(score.n_scored for score in scores),
        "permutation_group": str(job.group),
        "order_digest": job.order_digest,
        "first_example": shard.start,
        "n_examples": shard.size,
        "sentinel_difference": None,
        "dtype": scores[0].dtype,
        "batch_rows": scores[0].batch_rows,
        "scorer_version": SCORER_VERSION,
        "settings_digest": job.settings_digest,
        "status": "ok" if finite else "nonfinite",
        "reason": None if finite else "the model's logits are not finite, also in fp32",
    }


def _published(store: Warehouse, job: OrderJob) -> dict[int, _Published]:
    """The stored published order of each shard."""
    rows = store.query(
        f"select shard, loglik, dtype, coalesce(sentinel_difference, 0) from {TABLE} "
        f"where model = ? and benchmark = ? and settings_digest = ? and permutation = {CANONICAL}",
        [job.model, job.benchmark, job.settings_digest],
    )
    return {shard: _Published(*facts) for shard, *facts in rows.iter_rows()}


def _in_float32(published: Mapping[int, _Published]) -> set[int]:
    """Shards whose published order was computed in fp32: the rest of such a shard is too."""
    return {shard for shard, found in published.items() if found.dtype == FP32}


def _commit(store: Warehouse, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Store the rows; gives the empty list that takes their place."""
    if rows:
        store.merge(TABLE, pl.DataFrame(rows, infer_schema_length=None))
    return []


def _drop_stale(job: OrderJob, store: Warehouse) -> None:
    """Drop the rows of other settings, where there are any."""
    where = {"model": job.model, "benchmark": job.benchmark}
    rows = store.query(f"select * from {TABLE} where model = ? and benchmark = ?", list(where.values()))
    kept = rows.filter(pl.col("settings_digest") == job.settings_digest)
    if kept.height < rows.height:
        store.write(Replace(TABLE, kept, where))
