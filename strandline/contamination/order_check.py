"""Is the published order itself exchangeable? Statistics of an order that need no model, exact by permutation.

Where neighbours are alike (sorted by topic, runs of near-duplicates, growing difficulty), any language model finds the
published order more likely than a shuffled one without ever having seen it. The likelihood test's null is then false,
and its p-value is an order preference, never a proof of contamination.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from strandline.contamination.levels import Level, as_level
from strandline.contamination.orderings import PermutationGroup, Shard
from strandline.numeric_input import whole_number

ORDER_CHECK_VERSION = "2"
"""Raise it when the same texts would give other p-values: tables made by it then show as stale."""

Floats = NDArray[np.float64]

BUCKETS = 1024
"""Signed hash buckets of TF-IDF vectors: collisions add noise to a cosine, never a pattern in the order."""

LAG_WEIGHTS = (1.0, 0.5, 1 / 3)
"""Neighbours count in full, those two and three away for one over the distance: likeness fades with it."""

CACHE_WEIGHT, CACHE_DECAY, CACHE_EXAMPLES = 0.3, 0.98, 60
"""Share and fading of the word cache: those of cache language models, a memory of some fifty words. In shards of more
examples the running cache of all orders takes too long, and long-range likeness shows in the other statistics."""

PERMUTATIONS = 499
"""They reach p = .002, below the gate, in 0.1 to 1.1 seconds a file."""

GATE = "0.01"
"""One clean file in a hundred is refused by chance; files that are really sorted lie at the floor of .002."""

NOISE = 1e-9
"""Values of a statistic this close, relative to the largest, tie: sums of floats taken in another order differ so."""

RARE_SHARE = 0.02
"""A word is rare where at most this share of the examples holds it: names and topics, not the words of any sentence."""

WORD = re.compile(r"[^\W_]+")
"""Letters and digits of any script."""

NUMBER = re.compile(r"[0-9]+")
"""Digits as they stand in text; signs, points and commas end a number."""


@dataclass(frozen=True)
class OrderStatistic:
    """One statistic of the published order: its value, its z among shuffled orders (descriptive), its exact p."""

    name: str
    value: float
    z_score: float | None
    p_value: float


@dataclass(frozen=True)
class OrderCheck:
    """All statistics of one order under one permutation group, and their exact combination.

    ``combined`` sums max(z, 0)^2 over the statistics, each standardised over all orders, the published one included;
    ``p_value`` ranks it among the same orders (Westfall and Young), so it is exact whatever their dependence. Unlike a
    sum of -ln p on a permutation grid it does not saturate: one statistic far out is enough.
    """

    statistics: tuple[OrderStatistic, ...]
    combined: float
    p_value: float
    n_permutations: int
    group: str

    def fails(self, gate: Level = GATE) -> bool:
        """Whether the published order is told apart from shuffled ones without a model: p <= gate, in integers."""
        level = as_level(gate)
        exceedances = round(self.p_value * (self.n_permutations + 1))
        return exceedances * level.denominator <= level.numerator * (self.n_permutations + 1)

    def summary(self) -> str:
        """One line for a reader."""
        worst = min(self.statistics, key=lambda item: item.p_value)
        return (
            f"order check ({self.group}, {self.n_permutations} permutations): p = {self.p_value:.4g}; "
            f"most telling: {worst.name} (p = {worst.p_value:.4g})"
        )


def check_order(
    texts: Sequence[str],
    shards: Sequence[Shard],
    *,
    group: PermutationGroup | None = None,
    labels: Sequence[object] | None = None,
    n_permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> OrderCheck:
    """Test whether the published order is exchangeable under the permutation group and shards of the likelihood test.

    Statistics (larger = more clustered), summed over shards: neighbours' TF-IDF cosine and shared rare words at lags 1
    to 3, neighbours' product of ranks by length, by alphabet (numbers as numbers) and by the first and the last number
    in the text (numbered items, years), the correlation of length with position, equal first words, equal labels, and,
    in shards of at most 60 examples, the code length saved by a decaying word cache (the nearest model-free likeness
    of in-context benefit). Each gets an exact p; their combination is ranked among the same orders.

    Args:
        texts: examples in published order.
        shards: the shards that the likelihood test uses; one shard over everything checks the whole file.
        group: the permutation group of the likelihood test (default: all orders of a shard).
        labels: answers or categories, where the benchmark has them.
        n_permutations: shuffled orders drawn.
        seed: of the draws.

    Raises:
        ValueError: no shards, fewer than two examples in a shard, labels of another length.

    What it cannot show: it sees the surface only. An order by meaning or difficulty may pass, so passing is necessary
    for a verdict, not sufficient.
    """
    _refuse_unfit(texts, shards, labels, n_permutations)
    group = group or PermutationGroup()
    measures = _Measures(texts, labels)
    rng = np.random.default_rng(whole_number(seed, "a seed", 0))
    totals: dict[str, Floats] = {}
    for shard in shards:
        for name, values in measures.of(shard, _orders(shard, group, n_permutations, rng)).items():
            totals[name] = totals[name] + values if name in totals else values
    return _combine(totals, n_permutations, str(group))


def _refuse_unfit(
    texts: Sequence[str], shards: Sequence[Shard], labels: Sequence[object] | None, n_permutations: int
) -> None:
    """ValueError where the examples, their shards or their labels do not fit each other."""
    if not shards or whole_number(n_permutations, "the number of permutations", 0) < 1:
        raise ValueError("an order check needs shards and permutations")
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("the examples of an order check are texts")
    if any(not 0 <= shard.start <= shard.stop <= len(texts) for shard in shards):
        raise ValueError(f"a shard reaches beyond the {len(texts)} texts")
    if labels is not None and len(labels) != len(texts):
        raise ValueError(f"{len(labels)} labels for {len(texts)} texts")


class _Measures:
    """Features of the examples, and every statistic of many orders of a shard at once."""

    def __init__(self, texts: Sequence[str], labels: Sequence[object] | None) -> None:
        self.words = [WORD.findall(text.lower()) for text in texts]
        self.counts = [Counter(words) for words in self.words]
        self.lengths = np.array([len(text) for text in texts], dtype=float)
        numbers = [NUMBER.findall(text) for text in texts]
        self.sortable = {
            "length": self.lengths,
            "alphabet": _places([_sort_key(text) for text in texts]),
            "first number": _places([_number_key(next(iter(digits), "")) for digits in numbers]),
            "last number": _places([_number_key(next(reversed(digits), "")) for digits in numbers]),
        }
        self.first = [words[0] if words else "" for words in self.words]
        self.labels = labels
        frequency = Counter(word for count in self.counts for word in count)
        most = max(2, int(RARE_SHARE * len(texts)))
        self.idf = {word: log((1 + len(texts)) / (1 + n)) + 1 for word, n in frequency.items()}
        self.rare = [{w for w in count if 2 <= frequency[w] <= most} for count in self.counts]
        self.frequency = Counter(word for words in self.words for word in words)

    def of(self, shard: Shard, orders: NDArray[np.int64]) -> dict[str, Floats]:
        """Statistics of each order (rows: positions within the shard; row 0 is the published order)."""
        inside = range(shard.start, shard.stop)
        ranks = {name: _standardised(_ranks(keys[shard.start : shard.stop])) for name, keys in self.sortable.items()}
        statistics = {
            "tfidf": _neighbours(self._cosines(inside), orders, LAG_WEIGHTS),
            "rare words": _neighbours(self._shared_rare(inside), orders, LAG_WEIGHTS),
            **{name: np.sum(row[orders[:, 1:]] * row[orders[:, :-1]], axis=1) for name, row in ranks.items()},
            "drift": np.abs(ranks["length"][orders] @ _standardised(np.arange(shard.size, dtype=float))),
            "first word": _neighbours(_equal([self.first[i] for i in inside]), orders, (1.0,)),
        }
        if shard.size <= CACHE_EXAMPLES:
            statistics["word cache"] = self._cache_savings(inside, orders)
        if self.labels is not None:
            statistics["label runs"] = _neighbours(_equal([self.labels[i] for i in inside]), orders, (1.0,))
        return statistics

    def _cosines(self, inside: range) -> Floats:
        vectors = np.zeros((len(inside), BUCKETS))
        for row, i in enumerate(inside):
            for word, n in self.counts[i].items():
                bucket, sign = _bucket(word)
                vectors[row, bucket] += sign * (1 + log(n)) * self.idf[word]
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(norms > 0, norms, 1.0)
        return np.asarray(vectors @ vectors.T)

    def _shared_rare(self, inside: range) -> Floats:
        column = {word: k for k, word in enumerate(sorted(set().union(*(self.rare[i] for i in inside))))}
        present = np.zeros((len(inside), max(1, len(column))))
        for row, i in enumerate(inside):
            present[row, [column[word] for word in self.rare[i]]] = 1.0
        return np.asarray(present @ present.T)

    def _cache_savings(self, inside: range, orders: NDArray[np.int64]) -> Floats:
        """Bits saved by mixing a decaying cache of earlier words into a unigram model, for every order.

        Depends on pairs only through how many words lie between them, so it is computed example by example on the
        running cache of all orders at once.
        """
        vocabulary = {w: k for k, w in enumerate(sorted({w for i in inside for w in self.counts[i]}))}
        total = sum(self.frequency.values())
        base = np.array([self.frequency[word] / total for word in vocabulary]) if vocabulary else np.ones(1)
        usage = np.zeros((len(inside), max(1, len(vocabulary))))
        for row, i in enumerate(inside):
            for word, n in self.counts[i].items():
                usage[row, vocabulary[word]] = n
        sizes = usage.sum(axis=1)
        return _cache_code(usage, sizes, base, orders)


def _cache_code(usage: Floats, sizes: Floats, base: Floats, orders: NDArray[np.int64]) -> Floats:
    rows = [np.flatnonzero(row) for row in usage]
    cache = np.zeros((len(orders), usage.shape[1]))
    mass = np.zeros(len(orders))
    saved = np.zeros(len(orders))
    for position in range(orders.shape[1]):
        for example in np.unique(orders[:, position]):
            which = np.flatnonzero(orders[:, position] == example)
            columns = rows[example]
            if not len(columns):
                continue
            held = cache[np.ix_(which, columns)] / np.maximum(mass[which], 1e-300)[:, None]
            mixed = (1 - CACHE_WEIGHT) * base[columns] + CACHE_WEIGHT * np.where(
                mass[which, None] > 0, held, base[columns]
            )
            saved[which] += np.log(mixed / base[columns]) @ usage[example, columns]
            fade = CACHE_DECAY ** sizes[example]
            cache[which] *= fade
            cache[np.ix_(which, columns)] += usage[example, columns]
            mass[which] = mass[which] * fade + sizes[example]
    return saved


def _orders(shard: Shard, group: PermutationGroup, n_permutations: int, rng: np.random.Generator) -> NDArray[np.int64]:
    if shard.size < 2:
        raise ValueError(f"shard {shard.index} holds fewer than two examples")
    drawn = [group.draw(shard.size, rng) for _ in range(n_permutations)]
    return np.array([list(range(shard.size)), *drawn], dtype=np.int64)


def _neighbours(pairs: Floats, orders: NDArray[np.int64], lag_weights: Sequence[float]) -> Floats:
    total = np.zeros(len(orders))
    for lag, weight in enumerate(lag_weights, start=1):
        if lag < orders.shape[1]:
            total += weight * pairs[orders[:, lag:], orders[:, :-lag]].sum(axis=1)
    return total


def _equal(values: Sequence[object]) -> Floats:
    codes = np.array([str(value) for value in values])
    return np.asarray(codes[:, None] == codes[None, :], dtype=np.float64)


def _sort_key(text: str) -> tuple[tuple[int, str], ...]:
    """What sorts texts by alphabet and the numbers in them by size; words and numbers alternate in every key."""
    parts = re.split(f"({NUMBER.pattern})", text.lower())
    return tuple(_number_key(part) if i % 2 else (0, part) for i, part in enumerate(parts))


def _number_key(digits: str) -> tuple[int, str]:
    """What sorts numbers by size, however long they are; no digits come before all of them."""
    value = digits.lstrip("0")
    return (1 + len(value), value) if digits else (0, "")


def _places(keys: Sequence[object]) -> Floats:
    """The place of each key among all distinct ones, sorted."""
    place = {key: k for k, key in enumerate(sorted(set(keys)))}  # type: ignore[type-var]
    return np.array([place[key] for key in keys], dtype=float)


def _bucket(word: str) -> tuple[int, int]:
    """A signed hash bucket that is the same on every machine and run."""
    value = int.from_bytes(hashlib.blake2b(word.encode(errors="surrogatepass"), digest_size=4).digest(), "big")
    return value % BUCKETS, 1 if value & (1 << 31) else -1


def _standardised(values: Floats) -> Floats:
    centred = values - values.mean()
    norm = float(np.linalg.norm(centred))
    return np.asarray(centred / norm if norm > 0 else centred)


def _ranks(values: Floats) -> Floats:
    """Ranks from 1, equal values sharing their mean rank."""
    ordered = np.sort(values)
    low, high = np.searchsorted(ordered, values, side="left"), np.searchsorted(ordered, values, side="right")
    return np.asarray((low + 1 + high) / 2)


def _conservative_p(values: Floats) -> Floats:
    """p of every order among all of them: the share at least as large, ties (to a relative 1e-9) counted."""
    grid = max(1e-300, NOISE * float(np.max(np.abs(values))))
    coarse = np.sort(np.round(values / grid))
    below = np.searchsorted(coarse, np.round(values / grid), side="left")
    return np.asarray((len(values) - below) / len(values))


def _combine(totals: dict[str, Floats], n_permutations: int, group: str) -> OrderCheck:
    combined = np.zeros(n_permutations + 1)
    statistics = []
    for name, values in totals.items():
        varies = float(np.std(values)) > NOISE * max(1e-300, float(np.max(np.abs(values))))
        if varies:
            combined += np.maximum(0.0, (values - values.mean()) / values.std()) ** 2
        p_value = float(_conservative_p(values)[0])
        statistics.append(OrderStatistic(name, float(values[0]), _z(values) if varies else None, p_value))
    p_value = float(_conservative_p(combined)[0])
    return OrderCheck(tuple(statistics), float(combined[0]), p_value, n_permutations, group)


def _z(values: Floats) -> float | None:
    sd = float(np.std(values[1:], ddof=1)) if len(values) > 2 else 0.0
    return (float(values[0]) - float(np.mean(values[1:]))) / sd if sd > 0 else None
