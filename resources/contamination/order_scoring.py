"""Scores orderings of a benchmark under a model, look by look, and keeps every finished one as a row.

Ask, score, store: which orders are needed and what may be computed together is asked of ``strandline.contamination``;
the numbers come from a scorer. A kill loses at most the batches in hand.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, Protocol

import polars as pl

from resources.warehouse.store import Replace, Warehouse
from strandline.contamination.order_batches import (
    NOTHING_STORED,
    SEPARATOR,
    OrderBatch,
    OrderJob,
    OrderScore,
    Scored,
    StoredShard,
    Tokens,
    missing_batches,
    repeated_batches,
    settled,
    unsettled,
)
from strandline.contamination.orderings import CANONICAL, Shard, order_seed
from strandline.contamination.schedule import next_permutations
from strandline.contamination.sequential import LookDesign
from strandline.scoring.engine import SCORER_VERSION

# The table that this module writes its scores to.
TABLE = "contamination.order_logliks"

COMMIT_SECONDS = 1.0
"""Rows are stored at most this often: a kill loses about a second of work, and the warehouse is not locked for every
batch."""

MOST_ORDERS_COUNTED = 1_000_000
"""A number of orders fits its column: 999 are drawn at most, so a larger number means the same."""


@dataclass(frozen=True)
class Tokenization:
    """What a tokenizer made of texts, each alone and without specials, and what will compute their scores.

    ``tokens_per_second`` is the measured rate of one worker, None where nothing could be measured.
    """

    ids: Sequence[Sequence[int]]
    bos_id: int | None
    context_length: int | None
    tokens_per_second: float | None
    device: str
    libraries: str | None


class OrderScorer(Protocol):
    """What scores sequences: the engine on workers, or an endpoint."""

    dtype: str
    weights: str

    def tokenize(self, texts: Sequence[str]) -> Tokenization:
        """Ids of each text without specials, and what belongs beside them."""

    def run(self, batches: Iterable[OrderBatch]) -> Iterator[Scored]:
        """Each batch with the scores of its windows, as they are finished."""


def tokens_of(job: OrderJob, texts: Sequence[str], scorer: OrderScorer) -> Tokens:
    """Tokenize the examples of the shards and the separator, once.

    Raises:
        ValueError: the tokenizer makes nothing of the separator, or the context holds no two tokens.
    """
    positions = [i for shard in job.shards for i in range(shard.start, shard.stop)]
    made = scorer.tokenize([*(texts[i] for i in positions), SEPARATOR])
    if not made.ids[-1]:
        raise ValueError(f"the tokenizer of {job.model} makes no token of the separator between examples")
    if made.context_length is not None and made.context_length < 2:
        raise ValueError(f"the context of {job.model} holds {made.context_length} token(s); two are needed")
    return Tokens(
        dict(zip(positions, made.ids[:-1], strict=True)),
        tuple(made.ids[-1]),
        made.bos_id,
        made.context_length,
        made.tokens_per_second,
        made.device,
        made.libraries,
    )


def score_design(
    job: OrderJob,
    tokens: Callable[[], Tokens],
    scorer: OrderScorer,
    store: Warehouse,
    design: LookDesign | None,
    alpha: str,
    tell: Callable[[str], None] = lambda _: None,
) -> int:
    """Score what is missing until the design has decided; returns the orderings scored now.

    ``design`` None is Besag and Clifford's rule, for one shard. Stored rows of the same settings are reused, others go.
    ``tokens`` is asked for only where something is missing.
    """
    _drop_stale(job, store)
    n_scored = 0
    known: Tokens | None = None
    while (wanted := next_permutations(job.shards, stored_orders(store, job), design, alpha)) is not None:
        known = known or tokens()
        n_scored += score_orders(job, known, scorer, store, wanted)
        tell(f"{job.benchmark}: {wanted[-1]} shuffled orders a shard are scored")
    return n_scored


def score_orders(
    job: OrderJob, tokens: Tokens, scorer: OrderScorer, store: Warehouse, permutations: Sequence[int]
) -> int:
    """Score those permutations of every shard that are not stored, and commit them as they come.

    A shard whose values may not stand (see ``order_batches.settled``) is scored again in fp32, all its orders.
    """
    stored, pending = stored_orders(store, job), _Pending(store)
    moved: list[Shard] = []
    try:
        for scored in scorer.run(missing_batches(job, tokens, stored, permutations)):
            shard = scored[0].shard
            scores = settled(scored, stored.get(shard.index, NOTHING_STORED))
            if scores is None:
                moved.append(shard)
            else:
                pending.add(_rows(job, tokens, shard, scores))
    finally:
        pending.commit()
    for shard in dict.fromkeys(moved):
        again = scorer.run(repeated_batches(job, tokens, stored, permutations, shard))
        rows = [row for scored in again for row in _rows(job, tokens, shard, unsettled(scored))]
        pending.add(rows)
        pending.commit()
    return pending.n_added


def stored_orders(store: Warehouse, job: OrderJob) -> dict[int, StoredShard]:
    """What is stored of each shard, for these settings only."""
    rows = store.query(
        f"select shard, permutation, loglik, dtype, coalesce(sentinel_difference, 0) as moved from {TABLE} "
        "where model = ? and benchmark = ? and settings_digest = ?",
        [job.model, job.benchmark, job.settings_digest],
    )
    stored: dict[int, StoredShard] = {}
    for (shard,), part in rows.group_by("shard", maintain_order=True):
        logliks = dict(zip(part["permutation"], part["loglik"], strict=True))
        dtype, moved = next(part.filter(permutation=CANONICAL).select("dtype", "moved").iter_rows(), (None, 0.0))
        stored[int(str(shard))] = StoredShard(logliks, dtype, moved)
    return stored


class _Pending:
    """Rows that wait to be stored; ``add`` stores them where the last time was a while ago."""

    def __init__(self, store: Warehouse) -> None:
        self._store, self._since = store, monotonic()
        self._rows: list[dict[str, Any]] = []
        self.n_added = 0

    def add(self, rows: Sequence[dict[str, Any]]) -> None:
        self._rows += rows
        self.n_added += len(rows)
        if monotonic() - self._since > COMMIT_SECONDS:
            self.commit()

    def commit(self) -> None:
        if self._rows:
            self._store.merge(TABLE, self._rows)
        self._rows, self._since = [], monotonic()


def _rows(job: OrderJob, tokens: Tokens, shard: Shard, scores: Sequence[OrderScore]) -> list[dict[str, Any]]:
    facts = {
        "model": job.model,
        "benchmark": job.benchmark,
        "shard": shard.index,
        "permutation_group": str(job.group),
        "order_digest": job.order_digest,
        "first_example": shard.start,
        "n_examples": shard.size,
        "n_distinct_orders": min(MOST_ORDERS_COUNTED, tokens.distinct_orders(shard, job.group)),
        "context_length": tokens.context_length,
        "device": tokens.device,
        "library_versions": tokens.libraries,
        "prefix_token": tokens.bos_id,
        "scorer_version": SCORER_VERSION,
        "settings_digest": job.settings_digest,
    }
    return [facts | _row(job, shard, score) for score in scores]


def _row(job: OrderJob, shard: Shard, score: OrderScore) -> dict[str, Any]:
    seed = order_seed(job.order_digest, shard.index, score.permutation, job.run_seed)
    return {
        "permutation": score.permutation,
        "seed": seed if score.permutation > CANONICAL else None,
        "loglik": score.loglik,
        "n_tokens": score.n_tokens,
        "sentinel_difference": score.sentinel_difference,
        "dtype": score.dtype,
        "batch_rows": score.batch_rows,
        "status": "ok" if score.loglik is not None else "nonfinite",
        "reason": score.reason,
    }


def _drop_stale(job: OrderJob, store: Warehouse) -> None:
    """Drop the rows of other settings, where there are any."""
    where = {"model": job.model, "benchmark": job.benchmark}
    rows = store.query(f"select * from {TABLE} where model = ? and benchmark = ?", list(where.values()))
    kept = rows.filter(pl.col("settings_digest") == job.settings_digest)
    if kept.height < rows.height:
        store.write(Replace(TABLE, kept, where))
