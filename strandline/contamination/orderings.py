"""Shards, permutations and token sequences whose log-likelihoods may be compared.

Everything that decides WHICH orders are scored depends on counts and seeds only, never on a score. Scoring itself is
the caller's.
"""

import hashlib
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import factorial, prod
from typing import Literal

import numpy as np

from strandline.contamination.exact import checked_tolerance
from strandline.numeric_input import real_number, whole_number

CANONICAL = 0
"""The published order."""

REVERSED = -1
"""The published order backwards, a diagnostic; shuffled orders are 1, 2, ..."""

EXAMPLES_PER_SHARD = 25
"""Power grows with the examples of a shard while it fits one context window: 25 short ones are 260 to 450 tokens."""

CHARACTERS_PER_SHARD = 5000
"""About 1,500 tokens: within the context window of most models, so that neighbours stand in one window."""

FEWEST_SHARDS = 8
"""With eight shards the smallest p at the first look lies below any usual level, so the floor is no limit."""

FEWEST_EXAMPLES = 4
"""Four examples have 24 orders, more than the 19 that are drawn; three would have six."""


@dataclass(frozen=True)
class Shard:
    """Examples ``start`` to ``stop`` (exclusive) of the published order."""

    index: int
    start: int
    stop: int

    @property
    def size(self) -> int:
        """Examples in the shard."""
        return self.stop - self.start


@dataclass(frozen=True)
class PermutationGroup:
    """Which orders count as equally natural: any order of the shard, or any order within windows of ``width``."""

    width: int | None = None

    def __post_init__(self) -> None:
        if self.width is not None:
            whole_number(self.width, "the width of a window", 2)

    @classmethod
    def parse(cls, text: str) -> "PermutationGroup":
        """``all`` or ``window:w`` with w at least 2. ValueError otherwise."""
        if text == "all":
            return cls()
        kind, _, width = text.partition(":")
        if kind != "window" or not width.isdecimal() or int(width) < 2:
            raise ValueError(f"a permutation group is 'all' or 'window:w' with w of at least 2, not {text!r}")
        return cls(int(width))

    def __str__(self) -> str:
        return "all" if self.width is None else f"window:{self.width}"

    def n_orders(self, size: int) -> int:
        """How many orders ``size`` examples have: a shard of two has two, however many are drawn."""
        width = self.width or whole_number(size, "a number of examples", 1)
        return prod(factorial(min(width, size - start)) for start in range(0, size, width))

    def distinct_orders(self, examples: Sequence[Hashable]) -> int:
        """How many orders of these examples can be told apart: equal ones may change places unseen."""
        width = self.width or max(1, len(examples))
        windows = [examples[start : start + width] for start in range(0, len(examples), width)]
        return prod(_arrangements(list(Counter(window).values())) for window in windows)

    def draw(self, size: int, rng: np.random.Generator) -> list[int]:
        """A uniformly drawn order of ``size`` examples; the published one may come up, which keeps p exact."""
        width = self.width or whole_number(size, "a number of examples", 1)
        return [start + int(i) for start in range(0, size, width) for i in rng.permutation(min(width, size - start))]


def make_shards(
    lengths: Sequence[int], *, examples_per_shard: int | None = None, n_shards: int | None = None
) -> list[Shard]:
    """Split a benchmark into consecutive shards of nearly equal counts.

    By default, shards hold up to 25 examples and 5,000 characters on average, but there are at least 8 where each
    can hold 4. The number of shards depends on the number of examples and their total length only, which no reordering
    changes, so the permutation null stays exact. (The smallest number at which every shard fits a limit would not do:
    reordering examples inside their shards can change it.)

    Args:
        lengths: characters (or tokens) of each example, in published order.
        examples_per_shard: a wished size, in examples.
        n_shards: a wished number of shards.

    Raises:
        ValueError: fewer than two examples; more shards than pairs of examples; a shard size below 2.
    """
    n = len(lengths)
    lengths = [whole_number(length, "the length of an example", 0) for length in lengths]
    if n < 2:
        raise ValueError(f"a permutation test needs at least two examples, this benchmark has {n}")
    if n_shards is None:
        n_shards = _shard_count(lengths, examples_per_shard)
    if whole_number(n_shards, "the number of shards", 0) < 1 or 2 * n_shards > n:
        raise ValueError(f"{n} examples cannot make {n_shards} shards of at least two")
    edges = [n * k // n_shards for k in range(n_shards + 1)]
    return [Shard(k, edges[k], edges[k + 1]) for k in range(n_shards)]


def evenly_spaced(shards: Sequence[Shard], most: int | None) -> list[Shard]:
    """At most ``most`` of the shards, evenly spread over the benchmark, chosen by count alone."""
    if most is None or whole_number(most, "the number of shards", 0) >= len(shards):
        return list(shards)
    if most < 1:
        raise ValueError(f"a test needs at least one shard, not {most}")
    return [shards[(2 * k + 1) * len(shards) // (2 * most)] for k in range(most)]


def affordable(tokens_per_shard: float, passes: float, token_budget: int) -> int:
    """How many shards a budget of tokens pays for at this many passes (at least 1).

    Raises:
        ValueError: a size, a number of passes or a budget that is negative or no finite number.
    """
    numbers = (tokens_per_shard, passes, token_budget)
    if any(real_number(number, "a size or a budget") < 0 for number in numbers):
        raise ValueError("sizes, passes and budgets are not negative")
    return max(1, int(token_budget / max(1.0, tokens_per_shard * passes)))


def order_seed(digest: str, shard: int, permutation: int, run_seed: int) -> int:
    """A 63-bit seed of one order: a hash of the data set's digest, the shard, the permutation and the run's seed."""
    text = f"{digest}/{shard}/{permutation}/{run_seed}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def order_of(shard: Shard, permutation: int, *, digest: str, run_seed: int, group: PermutationGroup) -> list[int]:
    """Example indices of one order: 0 is the published order, -1 its reverse, 1.. are drawn from the group."""
    whole_number(permutation, "a permutation", REVERSED)
    if permutation == CANONICAL:
        return list(range(shard.start, shard.stop))
    if permutation == REVERSED:
        return list(range(shard.stop - 1, shard.start - 1, -1))
    rng = np.random.default_rng(order_seed(digest, shard.index, permutation, run_seed))
    return [shard.start + i for i in group.draw(shard.size, rng)]


def join_ids(
    examples: Sequence[Sequence[int]] | Mapping[int, Sequence[int]],
    order: Sequence[int],
    separator: Sequence[int],
    bos: int | None,
) -> list[int]:
    """One ordering as token ids: BOS if there is one, then each example's ids and the separator's, also after the last.

    Ids are joined, never strings, so every ordering has the same tokens.
    """
    ids = [] if bos is None else [bos]
    for index in order:
        try:
            ids.extend(examples[index])
        except LookupError as error:
            raise ValueError(f"there is no example {index!r} to put in order") from error
        ids.extend(separator)
    return ids


def check_same_tokens(sequences: Sequence[Sequence[int]]) -> int:
    """The common length of a shard's orderings. ValueError where two do not hold the same tokens, or there is none."""
    if not sequences:
        raise ValueError("there is no ordering to compare")
    reference = sorted(sequences[0])
    for k, sequence in enumerate(sequences):
        if sorted(sequence) != reference:
            raise ValueError(f"ordering {k} does not hold the same tokens as ordering 0")
    return len(reference)


def batch_order(n_orders: int, digest: str, shard: int, look: int, run_seed: int) -> list[int]:
    """A seeded shuffle of a look's orders, so that the published one sits at a random place in its batches."""
    whole_number(n_orders, "the number of orders", 1)
    rng = np.random.default_rng(order_seed(digest, shard, -1000 - look, run_seed))
    return [int(i) for i in rng.permutation(n_orders)]


def judge_sentinel(published: float, again: float, tolerance: float) -> Literal["equal", "rescore"]:
    """Whether the published order scored again in a later batch agrees with its first score.

    If not, the whole shard is scored again in fp32: the two scores are never averaged and the larger is never taken.
    """
    published, again = (real_number(value, "a log-likelihood") for value in (published, again))
    return "equal" if abs(published - again) <= checked_tolerance(tolerance) else "rescore"


def _arrangements(counts: Sequence[int]) -> int:
    """Different orders of things of which there are so many of each kind."""
    return factorial(sum(counts)) // prod(map(factorial, counts))


def _shard_count(lengths: Sequence[int], examples_per_shard: int | None) -> int:
    n = len(lengths)
    if examples_per_shard is not None:
        if whole_number(examples_per_shard, "the number of examples in a shard", 0) < 2:
            raise ValueError(f"a shard holds at least two examples, not {examples_per_shard}")
        return max(1, n // examples_per_shard)
    fewest = max(1, min(FEWEST_SHARDS, n // FEWEST_EXAMPLES))
    wanted = max(fewest, -(-n // EXAMPLES_PER_SHARD), -(-sum(lengths) // CHARACTERS_PER_SHARD))
    return min(wanted, max(1, n // FEWEST_EXAMPLES))
