"""MinHash signatures of many texts at once, and the pairs of texts that they bring together.

The similarity of two texts is the Jaccard index of their sets of five-word shingles. A signature is a one-permutation
MinHash: each shingle falls into one of 128 bins, each bin keeps its smallest value, empty bins borrow from others by a
fixed rule, so that equal sets have equal signatures and the share of equal bins estimates the Jaccard index. All of it
is array work over a batch of texts: words, shingles and minima are never Python objects.

Words are runs of ASCII letters and digits or of any other UTF-8 bytes, in lower case. Pairs are candidates: they share
a whole band of five bins. What is a near duplicate is decided by `jaccard`, exactly (up to 64-bit hashes).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from strandline.corpus.texts import nfc

SHINGLE = 5
"""Words of a shingle: RefinedWeb's and the Pile's fuzzy deduplication use five."""

BINS = 128
"""Values of a signature: its estimate of a Jaccard index of 0.8 is then off by 0.035 (one standard deviation)."""

BANDS, ROWS = 25, 5
"""Bands and their values: at a Jaccard index of 0.8 a pair shares one with probability 1 - (1 - 0.8⁵)²⁵ = 0.99995."""

_EMPTY = np.uint32(0xFFFFFFFF)
"""An empty bin: the largest value, so that every shingle's is smaller."""

_CHUNK = 1 << 20
"""Characters of a batch: its arrays take some hundred megabytes, and larger ones are no faster."""

_CROWD = 40
"""Rows of a group up to which all pairs are listed: 780 of them. Groups of thousands are boilerplate."""

Hashes = NDArray[np.uint64]
Signatures = NDArray[np.uint32]

_PRIME = 0x9E3779B97F4A7C15
"""The odd multiplier of splitmix64, 2⁶⁴ divided by the golden ratio."""

_INVERSE = pow(_PRIME, -1, 1 << 64)
"""Undoes a multiplication by `_PRIME` modulo 2⁶⁴."""

_BORROWED = 16
"""Fixed permutations from which empty bins borrow; of a signature with a tenth of its bins filled, a fifth stays empty
after them and takes the next filled bin."""


def signatures(texts: Sequence[str]) -> Signatures:
    """One row of 128 values a text. A text without words has the row of the empty set, all bins at their maximum."""
    rows = [_batch(batch) for batch in _batches(texts)]
    return np.concatenate(rows) if rows else np.empty((0, BINS), dtype=np.uint32)


def shingle_hashes(text: str) -> Hashes:
    """The sorted distinct hashes of a text's shingles; of a text of one to four words, its one short shingle."""
    hashes, _ = _shingles([text])
    return np.unique(hashes)


def jaccard(left: Hashes, right: Hashes) -> float:
    """Shared shingles divided by all shingles of two texts; 0 where either has none."""
    shared = len(np.intersect1d(left, right, assume_unique=True))
    return shared / (len(left) + len(right) - shared) if shared else 0.0


def band_keys(rows: Signatures) -> Hashes:
    """25 keys a text. Two texts of Jaccard index 0.8 share at least one with probability 0.9999, of 0.3 with 0.06."""
    keys = np.empty((len(rows), BANDS), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for band in range(BANDS):
            key = np.full(len(rows), band + 1, dtype=np.uint64)
            for column in range(band * ROWS, band * ROWS + ROWS):
                key = _mixed(key * np.uint64(_PRIME) + rows[:, column])
            keys[:, band] = key
    return keys


def candidate_pairs(keys: Hashes) -> list[tuple[int, int]]:
    """Pairs of rows (smaller first, in order) that share a key.

    In a group of more than 40 rows with one key, each row is paired with the group's first row and with its neighbour
    only, so that thousands of copies of one page do not become millions of pairs: groups stay connected.
    """
    pairs: set[tuple[int, int]] = set()
    for band in range(keys.shape[1]):
        for group in equal_groups(keys[:, band]):
            pairs.update(group_pairs(group.tolist()))
    return sorted(pairs)


def equal_groups(values: Hashes) -> Iterator[NDArray[np.int64]]:
    """Places of equal values, a group of at least two at a time, each in ascending order."""
    order = np.argsort(values, kind="stable")
    edges = np.flatnonzero(np.diff(values[order])) + 1
    for start, end in pairwise([0, *edges.tolist(), len(values)]):
        if end - start > 1:
            yield order[start:end]


def group_pairs(group: list[int]) -> Iterable[tuple[int, int]]:
    """All pairs of a group of up to 40 rows; of a larger one, each row with the first and with its neighbour."""
    if len(group) <= _CROWD:
        return ((left, right) for place, left in enumerate(group) for right in group[place + 1 :])
    return {(group[0], row) for row in group[1:]} | set(pairwise(group))


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(nfc(text))
        size += len(text)
        if size >= _CHUNK:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _batch(texts: Sequence[str]) -> Signatures:
    hashes, owners = _shingles(texts)
    rows = np.full(len(texts) * BINS, _EMPTY, dtype=np.uint32)
    bins = owners * BINS + (hashes >> np.uint64(57)).astype(np.int64)
    values = np.minimum((hashes >> np.uint64(16)).astype(np.uint32), _EMPTY - np.uint32(1))
    np.minimum.at(rows, bins, values)
    return _densified(rows.reshape(len(texts), BINS))


def _densified(rows: Signatures) -> Signatures:
    """Fill empty bins from others of the same row: by sixteen fixed permutations, then from the next filled bin."""
    sparse = np.flatnonzero(((rows == _EMPTY).any(axis=1)) & (rows != _EMPTY).any(axis=1))
    if not len(sparse):
        return rows
    original = rows[sparse]
    filled = original.copy()
    for attempt in range(_BORROWED):
        donors = np.random.default_rng(attempt).permutation(BINS)
        empty = filled == _EMPTY
        filled[empty] = original[:, donors][empty]
    rows[sparse] = np.take_along_axis(filled, _next_filled(filled != _EMPTY), axis=1)
    return rows


def _next_filled(there: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each bin its own place where it is filled, else that of the next filled bin, around the end."""
    place = np.where(there, np.arange(BINS), 2 * BINS)
    around = BINS + np.argmax(there, axis=1)[:, None]
    nearest = np.minimum.accumulate(np.concatenate([place, around], axis=1)[:, ::-1], axis=1)[:, ::-1]
    found: NDArray[np.int64] = nearest[:, :BINS] % BINS
    return found


def _shingles(texts: Sequence[str]) -> tuple[Hashes, NDArray[np.int64]]:
    """Hashes of all shingles of all texts, and which text each belongs to."""
    words, owners = _word_hashes(texts)
    counts = np.bincount(owners, minlength=len(texts))
    lengths = np.minimum(counts, SHINGLE)
    n = len(words) - SHINGLE + 1
    with np.errstate(over="ignore"):
        hashes = np.zeros(max(n, 0), dtype=np.uint64)
        for place in range(SHINGLE if n > 0 else 0):
            hashes = hashes * np.uint64(_PRIME) + words[place : place + n]
        whole = owners[:n] == owners[SHINGLE - 1 :] if n > 0 else np.empty(0, dtype=np.bool_)
        short = np.flatnonzero((lengths > 0) & (lengths < SHINGLE))
        starts = np.cumsum(counts) - counts
        short_hashes = np.array(
            [_fold(words[starts[row] : starts[row] + counts[row]]) for row in short.tolist()], dtype=np.uint64
        )
        mixed = _mixed(np.concatenate([hashes[whole], short_hashes]))
    return mixed, np.concatenate([owners[:n][whole] if n > 0 else owners[:0], short])


def _fold(words: Hashes) -> int:
    total = 0
    for word in words.tolist():
        total = (total * _PRIME + word) % (1 << 64)
    return total


def _word_hashes(texts: Sequence[str]) -> tuple[Hashes, NDArray[np.int64]]:
    """The hash of each word of all texts, from differences of one running polynomial over their bytes."""
    encoded = [nfc(text).lower().encode("utf-8", "surrogatepass") for text in texts]
    data = np.frombuffer(b"\n" + b"\n".join(encoded) + b"\n", dtype=np.uint8)
    inside = _IS_WORD[data]
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    starts, ends = edges[0::2], edges[1::2]
    powers, inverses = _power_tables(len(data))
    with np.errstate(over="ignore"):
        running = np.cumsum(data * powers, dtype=np.uint64)
        hashes = (running[ends - 1] - running[starts - 1]) * inverses[starts]
        hashes = _mixed(hashes + (ends - starts).astype(np.uint64))
    firsts = np.cumsum([1] + [len(text) + 1 for text in encoded])[:-1]
    return hashes, np.searchsorted(firsts, starts, side="right") - 1


def _power_tables(size: int) -> tuple[Hashes, Hashes]:
    global _TABLES
    if len(_TABLES[0]) < size:
        grown = max(size, 2 * _CHUNK)
        _TABLES = (_powers(_PRIME, grown), _powers(_INVERSE, grown))
    return _TABLES[0][:size], _TABLES[1][:size]


def _powers(base: int, size: int) -> Hashes:
    factors = np.full(size, base, dtype=np.uint64)
    factors[:1] = 1
    with np.errstate(over="ignore"):
        return np.cumprod(factors, dtype=np.uint64)


def _mixed(values: Hashes) -> Hashes:
    """Spread each value over all 64 bits (the finaliser of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


# For each byte whether it belongs to a word; every byte of a non-ASCII character does.
_IS_WORD: NDArray[np.bool_] = np.array([chr(byte).isalnum() or byte >= 128 for byte in range(256)], dtype=np.bool_)
_TABLES: tuple[Hashes, Hashes] = (np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint64))
"""Powers of `_PRIME` and of `_INVERSE`, as many as the longest batch needed so far."""
