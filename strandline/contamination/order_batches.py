"""What is computed together when the orders of a benchmark are scored, and which of the values may stand.

Everything here follows from counts, seeds and values. Which orders are needed next belongs to ``schedule``; computing
and storing them to ``resources``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from strandline.contamination.orderings import (
    CANONICAL,
    PermutationGroup,
    Shard,
    batch_order,
    check_same_tokens,
    join_ids,
    judge_sentinel,
    order_of,
)
from strandline.perplexity.plausible import LARGEST_MEAN_NLL
from strandline.scoring.engine import SCORER_VERSION
from strandline.scoring.prefix_tree import Request
from strandline.scoring.scores import FP32, SERVED, SequenceScore
from strandline.scoring.windows import window_requests

HALF_PRECISION_BATCH = 3
"""Orders in a batch of half precision: the first look has three, and a larger batch would be filled up with repeats."""

MOST_AT_ONCE = 8
"""Orders in a batch of fp32. Measured on one core, 8 at once are a third faster than one; more gain little and take
more memory."""

SEPARATOR = "\n\n"
"""Between examples stands a blank line, as between the paragraphs of a text file."""

SENTINEL_TOLERANCE = 0.01
"""Nats by which a published order may move when it is scored again in half precision. Batches of another shape moved a
sequence by up to 1.2 nats and batches of one shape by none, so any real change lies far above it."""

NEVER_RESCORED = (FP32, SERVED)
"""Formats for which there is no better one to turn to: fp32, and whatever a server computes in."""


@dataclass(frozen=True)
class OrderJob:
    """Everything that fixes the orderings of one model and benchmark and their values.

    ``order_digest`` names the examples in published order, ``weights`` what an entry's numbers count for
    (``strandline.models.digests``), ``dtype`` the number format.
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

    ``tokens_per_second`` is the measured rate of one worker; ``device`` and ``libraries`` say what computes.
    """

    examples: Mapping[int, Sequence[int]]
    separator: tuple[int, ...]
    bos_id: int | None
    context_length: int | None
    tokens_per_second: float | None = None
    device: str = "unknown"
    libraries: str | None = None

    def in_shard(self, shard: Shard) -> int:
        """Tokens of one ordering of a shard, BOS not counted."""
        return sum(len(self.examples[i]) + len(self.separator) for i in range(shard.start, shard.stop))

    def joined(self, order: Sequence[int]) -> list[int]:
        """The ids of one ordering, without BOS."""
        return join_ids(self.examples, order, self.separator, None)

    def requests(self, order: Sequence[int]) -> list[Request]:
        """The sequences that score every token of one ordering once: one, or windows where it exceeds the context."""
        return window_requests(self.joined(order), self.context_length, None, self.bos_id)

    def distinct_orders(self, shard: Shard, group: PermutationGroup) -> int:
        """How many different sequences the orders of a shard have: equal examples may change places unseen."""
        return group.distinct_orders([tuple(self.examples[i]) for i in range(shard.start, shard.stop)])


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


Scored = tuple[OrderBatch, Sequence[Sequence[SequenceScore]]]
"""A batch with the scores of its windows."""


@dataclass(frozen=True)
class OrderScore:
    """One ordering's log-likelihood in nats; None where it is no number to be used, which ``reason`` explains.

    ``sentinel_difference`` is the largest change seen when this published order was scored again.
    """

    permutation: int
    loglik: float | None
    n_tokens: int
    dtype: str
    batch_rows: int
    reason: str | None = None
    sentinel_difference: float | None = None


@dataclass(frozen=True)
class StoredShard:
    """What is stored of a shard: log-likelihoods by permutation (None where there is none), and how its published order
    was scored: the number format, and by how much it has moved when it was scored again."""

    logliks: Mapping[int, float | None]
    dtype: str | None = None
    moved: float = 0.0


NOTHING_STORED = StoredShard({})
"""A shard of which no ordering has been scored."""


def missing_batches(
    job: OrderJob, tokens: Tokens, stored: Mapping[int, StoredShard], permutations: Sequence[int]
) -> Iterator[OrderBatch]:
    """Batches of those permutations that are not stored, shard by shard.

    Beside later looks the published order is scored again. A shard whose published order was computed in fp32 goes on
    in fp32.
    """
    for shard in job.shards:
        have = stored.get(shard.index, NOTHING_STORED)
        missing = [k for k in permutations if k not in have.logliks]
        if missing:
            again = CANONICAL in have.logliks and max(missing) > CANONICAL
            dtype = FP32 if have.dtype == FP32 else job.dtype
            yield from order_batches(job, tokens, shard, [*missing, CANONICAL] if again else missing, dtype)


def repeated_batches(
    job: OrderJob, tokens: Tokens, stored: Mapping[int, StoredShard], permutations: Sequence[int], shard: Shard
) -> Iterator[OrderBatch]:
    """Batches that score all orders of a shard in fp32: those that are stored and those that are wanted."""
    have = stored.get(shard.index, NOTHING_STORED)
    return order_batches(job, tokens, shard, sorted({*have.logliks, *permutations}), FP32)


def order_batches(
    job: OrderJob, tokens: Tokens, shard: Shard, orders: Sequence[int], dtype: str
) -> Iterator[OrderBatch]:
    """Batches of one shape, the orders at random places in them, so that no place marks the published one."""
    places = batch_order(len(orders), job.order_digest, shard.index, max(orders), job.run_seed)
    shuffled = [orders[place] for place in places]
    together = MOST_AT_ONCE if dtype == FP32 else HALF_PRECISION_BATCH
    for start in range(0, len(shuffled), together):
        chosen = tuple(shuffled[start : start + together])
        split = [tokens.requests(job.order(shard, permutation)) for permutation in chosen]
        check_same_tokens([tokens.joined(job.order(shard, k)) for k in (CANONICAL, *chosen)])
        key = sha256(repr((job.settings_digest, shard.index, chosen, dtype)).encode()).hexdigest()
        size = len(chosen) if dtype == FP32 else together
        yield OrderBatch(key, shard, chosen, tuple(zip(*split, strict=True)), dtype, size)


def settled(scored: Scored, stored: StoredShard) -> list[OrderScore] | None:
    """The values of a batch that may stand; None where its whole shard must be scored in fp32.

    That is so where an order had to be repeated in fp32 because half precision was not finite, and where the published
    order has moved: all values of a shard have one format, they are never averaged, and the larger is never taken.
    Where there is no better format to turn to, the first value stays, and the largest difference is kept with it.
    """
    batch, parts = scored
    if any(score.dtype != batch.dtype for part in parts for score in part):
        return None
    scores = [_order_score(k, [part[i] for part in parts]) for i, k in enumerate(batch.orders)]
    before = stored.logliks.get(CANONICAL)
    if before is None:
        return scores
    if any(_has_moved(score, before, batch.dtype) for score in scores):
        return None
    return [
        _kept_sentinel(score, before, stored.moved) if score.permutation == CANONICAL else score for score in scores
    ]


def unsettled(scored: Scored) -> list[OrderScore]:
    """The values of a batch whose shard is scored anew, with nothing to be compared with."""
    batch, parts = scored
    return [_order_score(k, [part[i] for part in parts]) for i, k in enumerate(batch.orders)]


def _has_moved(score: OrderScore, before: float, dtype: str) -> bool:
    """Whether this is the published order again, off its first value in a format that allows of a better one."""
    if score.permutation != CANONICAL or dtype in NEVER_RESCORED:
        return False
    return score.loglik is None or judge_sentinel(before, score.loglik, SENTINEL_TOLERANCE) == "rescore"


def _kept_sentinel(score: OrderScore, before: float, moved: float) -> OrderScore:
    """The published order's first value, with the largest move; one that was not finite again moved without bound."""
    apart = float("inf") if score.loglik is None else abs(score.loglik - before)
    return replace(score, loglik=before, reason=None, sentinel_difference=max(moved, apart))


def _order_score(permutation: int, scores: Sequence[SequenceScore]) -> OrderScore:
    """The sum over windows, unless one of them is not finite or holds stand-ins for log-probabilities."""
    sums = [score.sum_nll for score in scores if score.sum_nll is not None]
    n_tokens = sum(score.n_scored for score in scores)
    reason = _not_usable(scores, sums, n_tokens)
    loglik = None if reason else -sum(sums)
    return OrderScore(permutation, loglik, n_tokens, scores[0].dtype, scores[0].batch_rows, reason)


def _not_usable(scores: Sequence[SequenceScore], sums: Sequence[float], n_tokens: int) -> str | None:
    """Why the sum is no log-likelihood, or None."""
    if len(sums) < len(scores):
        if scores[0].dtype == SERVED:
            return "the server gave values that are not finite, or stand-ins for log-probabilities"
        return "the model's logits are not finite, also in fp32"
    if sum(sums) > LARGEST_MEAN_NLL * n_tokens:
        return f"more than {LARGEST_MEAN_NLL:g} nats a token: these are stand-ins, no log-probabilities"
    if sum(sums) <= 0:
        return "no token costs anything: these are stand-ins, no log-probabilities"
    return None
