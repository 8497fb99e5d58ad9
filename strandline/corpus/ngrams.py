"""Algorithm 2: counting a resource's n-grams in retrieved documents, month by month.

For each n-gram of a document's first 512 words, each month's counter over all topics is added, less what is common to
all months (the multiset intersection, the smallest count of any month). It asks what text is in a corpus, whatever its
order: a copy with its sentences shuffled counts here and is ignored by Algorithm 1. It cannot say how many documents.

N-grams are compared by 64-bit hashes of hashed words; at a hundred million distinct n-grams a collision has a chance
of about 3 in 10,000.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from strandline.corpus import TopicVersions
from strandline.corpus.texts import WORD_RULE, words
from strandline.numeric_input import whole_number

SIZE = 5
"""Words of an n-gram, which the paper does not tell. A judgement: of shorter ones many stand in any text, and of longer
ones an edited copy keeps few."""

HIT_WORDS = 512
"""Words of a hit that are read: the paper's D[:512], and the context over which perplexity is measured."""

LONGEST = 64
"""Words of the longest n-gram: copies are told apart by far fewer."""

_CELLS = 64_000_000
"""Counts in memory at a time (months × n-grams of four bytes): a quarter of a gigabyte."""

Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class NgramCount:
    """The discounted n-gram count of a sub-corpus in a month."""

    subcorpus: str
    month: date
    weight: float


def normalisation(size: int = SIZE) -> str:
    """The counting rule as stored beside each count."""
    return f"{size}-grams of words ({WORD_RULE})"


class NgramHasher:
    """Turns texts into arrays of n-gram hashes, the same in every process. Word hashes are kept between texts."""

    def __init__(self, size: int = SIZE) -> None:
        self.size = whole_number(size, "the number of words of an n-gram", 0)
        if not 1 <= self.size <= LONGEST:
            raise ValueError(f"n-grams of {size} words do not exist here; they have 1 to {LONGEST}")
        self._words: dict[str, int] = {}
        self._factors = np.array(
            [int.from_bytes(blake2b(bytes([place]), digest_size=8).digest(), "little") | 1 for place in range(size)],
            dtype=np.uint64,
        )

    def hashes(self, text: str, first_words: int | None = None) -> Hashes:
        """The hashes of all n-grams in order; a text with fewer words than n has none."""
        found = words(text)[:first_words]
        ids = np.fromiter((self._word(word) for word in found), dtype=np.uint64, count=len(found))
        n_grams = len(found) - self.size + 1
        if n_grams <= 0:
            return np.empty(0, dtype=np.uint64)
        total = np.zeros(n_grams, dtype=np.uint64)
        for place, factor in enumerate(self._factors):
            total += ids[place : place + n_grams] * factor
        return total

    def _word(self, word: str) -> int:
        found = self._words.get(word)
        if found is None:
            found = int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
            self._words[word] = found
        return found


def count_ngrams(
    topics: Iterable[TopicVersions], hits: Iterable[tuple[str, str]], size: int = SIZE, hit_words: int = HIT_WORDS
) -> list[NgramCount]:
    """Algorithm 2 over all hits.

    Args:
        topics: the resource, gone through more than once; every version's whole text is counted in each of its months.
        hits: (sub-corpus, text) of each retrieved document, of which the first `hit_words` words are read. A document
            retrieved for two topics is counted twice, as printed.
        size: words of an n-gram.
        hit_words: words read of each hit.

    Returns:
        one count for each sub-corpus and month of the resource, zero included; nothing without topics.

    Raises:
        ValueError: a size below 1 or over 64, or a number of words below 1.
    """
    hit_words = whole_number(hit_words, "the number of words read of a hit", 1)
    hasher = NgramHasher(size)
    months = sorted({month for topic in topics for month in topic.months})
    by_subcorpus: dict[str, list[Hashes]] = {}
    for subcorpus, text in hits:
        by_subcorpus.setdefault(subcorpus, []).append(hasher.hashes(text, hit_words))
    wanted = _wanted(by_subcorpus)
    names = sorted(by_subcorpus)
    weights = np.zeros((len(names), len(months)))
    step = max(1, _CELLS // max(1, len(months)))
    for start in range(0, len(wanted), step):
        part = wanted[start : start + step]
        discounted = _discounted(topics, months, part, hasher)
        for place, name in enumerate(names):
            weights[place] += discounted @ _multiplicities(np.concatenate(by_subcorpus[name]), part)
    return [
        NgramCount(name, month, float(weights[row, column]))
        for row, name in enumerate(names)
        for column, month in enumerate(months)
    ]


def _wanted(by_subcorpus: dict[str, list[Hashes]]) -> Hashes:
    arrays = [array for group in by_subcorpus.values() for array in group]
    return np.unique(np.concatenate(arrays)) if arrays else np.empty(0, dtype=np.uint64)


def _discounted(
    topics: Iterable[TopicVersions], months: Sequence[date], wanted: Hashes, hasher: NgramHasher
) -> NDArray[np.float64]:
    """Months × n-grams: each month's count less the count common to all months."""
    row = {month: place for place, month in enumerate(months)}
    counts = np.zeros((len(months), len(wanted)), dtype=np.int32)
    for topic in topics:
        for version in topic.versions:
            multiplicity = _multiplicities(hasher.hashes(version.text), wanted)
            for month in version.months:
                counts[row[month]] += multiplicity
    return (counts - counts.min(axis=0)).astype(np.float64) if len(months) else counts.astype(np.float64)


def _multiplicities(hashes: Hashes, wanted: Hashes) -> NDArray[np.int32]:
    """How often each wanted hash occurs. `wanted` is sorted and distinct."""
    places = np.searchsorted(wanted, hashes)
    places[places == len(wanted)] = 0
    found = places[wanted[places] == hashes] if len(wanted) else places[:0]
    return np.bincount(found, minlength=len(wanted)).astype(np.int32)
