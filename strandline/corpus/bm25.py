"""BM25 over a corpus that lies in many files: one set of statistics, and scores that depend on it alone.

Okapi BM25 with k1 = 1.2, b = 0.75 and the inverse document frequency ln(1 + (N - n + ½) / (n + ½)), which is never
negative. A document's score depends on its own words and on the statistics of the whole corpus, so it is the same
however the corpus is cut into files. Lengths are rounded down as the search engine stores them (steps of at most an
eighth above 40 words), so that scores are the engine's own where a corpus is one file. Finding candidates is done in
`resources.corpus.search_index`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import log

from strandline.corpus.texts import search_words
from strandline.numeric_input import whole_number

K1, B = 1.2, 0.75
"""The saturation of a word's count and the weight of a document's length: the engine's, which are the usual ones."""

_FREE_LENGTHS = 24
"""Lengths below 24 are stored as they are, and the others in a byte by their four leading bits, counted from 24: the
encoding of Lucene, `SmallFloat.intToByte4`, which the engine shares."""


@dataclass(frozen=True)
class CorpusStatistics:
    """What scores depend on: the documents of a corpus, their words, and in how many documents each word occurs."""

    n_documents: int
    n_words: int
    frequencies: Mapping[str, int]

    @property
    def mean_length(self) -> float:
        """The words of a mean document; 1 where there are none, which no score then uses."""
        return self.n_words / self.n_documents if self.n_documents and self.n_words else 1.0

    @property
    def digest(self) -> str:
        """Changes when any score may change."""
        parts = [f"{self.n_documents} {self.n_words}", *(f"{word} {n}" for word, n in sorted(self.frequencies.items()))]
        return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]

    def idf(self, word: str) -> float:
        """The inverse document frequency of a word, never negative."""
        n = min(self.frequencies.get(word, 0), self.n_documents)
        return log(1 + (self.n_documents - n + 0.5) / (n + 0.5))


def joined_statistics(parts: Iterable[CorpusStatistics]) -> CorpusStatistics:
    """The statistics of several files as those of one corpus."""
    n_documents = n_words = 0
    frequencies: Counter[str] = Counter()
    for part in parts:
        n_documents += part.n_documents
        n_words += part.n_words
        frequencies.update(part.frequencies)
    return CorpusStatistics(n_documents, n_words, dict(frequencies))


def query_words(text: str, most: int) -> Counter[str]:
    """The first words of a query, each with how often it counts. ValueError for a number below 1."""
    return Counter(search_words(text)[: whole_number(most, "the words of a query", 1)])


def score(words: Sequence[str], query: Mapping[str, int], statistics: CorpusStatistics) -> float:
    """The BM25 score of a document, given as its words in any order; 0 where it shares none with the query."""
    counts = Counter(word for word in words if word in query)
    saturation = K1 * (1 - B + B * stored_length(len(words)) / statistics.mean_length)
    parts = (
        query[word] * statistics.idf(word) * counts[word] * (K1 + 1) / (counts[word] + saturation)
        for word in sorted(counts)
    )
    return sum(parts)


def stored_length(words: int) -> int:
    """A document's length as the engine keeps it in a byte: rounded down to four leading bits, from 24 on."""
    above = words - _FREE_LENGTHS
    if above < 8:
        return words
    shift = above.bit_length() - 4
    return _FREE_LENGTHS + ((above >> shift) << shift if shift > 0 else above)


def largest_ratio(here: CorpusStatistics, whole: CorpusStatistics) -> float:
    """By how much a score with the statistics of the whole corpus can exceed one with the mean length of a file.

    A word's part is count ÷ (count + s) with s linear in 1 ÷ mean length, so the ratio of two is at most that of the
    mean lengths.
    """
    return max(1.0, whole.mean_length / here.mean_length)
