"""Algorithm 1: which version of a topic a retrieved document is.

A document is the topic's if its smallest Levenshtein distance to any version, divided by the document's characters, is
strictly under the limit (0.2); it is then counted for all months whose versions tie, each with an equal share.

The result equals comparing the document with every month's text. It costs far less because distinct versions are
compared once, versions that cannot win are dropped by a lower bound from their four-letter runs (the q-gram lemma), and
each comparison stops at the best so far.
Retrieval and counting live elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from strandline.corpus import TopicVersions
from strandline.corpus.texts import nfc
from strandline.numeric_input import real_number, whole_number

LIMIT = 0.2
"""Edits of a character of the document that a copy stays under: the paper's Algorithm 1."""

_GRAM, _BUCKETS = 4, 4096
"""Letters of a run, and counts of runs that are kept for each text: a text of 3,000 characters fills half of them, so
that its bound loses little to runs that share a count."""

_FACTORS = (np.uint32(0x9E3779B1), np.uint32(0x85EBCA77), np.uint32(0xC2B2AE3D))
"""Odd multipliers of the hash of a run, those of xxHash32."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """The version months that a document is a copy of.

    `distance` is `edits` divided by the characters of the document; every one of `months` gets `share` of the copy.
    """

    edits: int
    distance: float
    months: tuple[date, ...]

    @property
    def share(self) -> float:
        """What each month is counted: one copy divided by the months that tie."""
        return 1.0 / len(self.months)


def edits_allowed(n_chars: int, limit: float = LIMIT) -> int:
    """The largest number of edits strictly under `limit` times `n_chars`; -1 where there is none.

    Decided in rational numbers on the limit as written, so that 0.2 × 15 = 3 edits is not a match. Raises ValueError
    for a limit that is no finite number and for a count of characters that is no whole number.
    """
    n_chars, limit = whole_number(n_chars, "the number of characters", 0), real_number(limit, "the limit")
    bound = Fraction(str(limit)) * n_chars
    return -(-bound.numerator // bound.denominator) - 1


class VersionMatcher:
    """Compares documents with all versions of one topic.

    Args:
        topic: the topic's distinct versions.
        limit: the distance that a match stays strictly under; greater than 0, at most 1.
    """

    def __init__(self, topic: TopicVersions, limit: float = LIMIT) -> None:
        if not 0 < real_number(limit, "the limit") <= 1:
            raise ValueError(f"the limit is {limit}; it must lie above 0 and not above 1")
        self.limit = limit
        self._texts = [nfc(version.text) for version in topic.versions]
        self._months = [version.months for version in topic.versions]
        self._places = {text: place for place, text in enumerate(self._texts)}
        self._lengths = np.array([len(text) for text in self._texts])
        self._changes = _Changes([_gram_counts(text) for text in self._texts])

    def attribute(self, document: str) -> Attribution | None:
        """The nearest versions of a document, or None where none is strictly under the limit.

        An empty document is never matched. A document that equals a version is that version and no other.
        """
        text = nfc(document)
        if not text or text.isspace():
            return None
        if (place := self._places.get(text)) is not None:
            return Attribution(0, 0.0, self._months[place])
        edits, winners = self._nearest(text)
        if not winners:
            return None
        months = sorted(month for place in winners for month in self._months[place])
        return Attribution(edits, edits / len(text), tuple(months))

    def _nearest(self, text: str) -> tuple[int, list[int]]:
        """The smallest number of edits under the limit and the versions at it, by increasing lower bound."""
        best = edits_allowed(len(text), self.limit)
        bounds = self._lower_bounds(text)
        winners: list[int] = []
        for place in np.argsort(bounds, kind="stable").tolist():
            bound = int(bounds[place])
            if bound > best:
                break
            edits = Levenshtein.distance(text, self._texts[place], score_cutoff=best, score_hint=_hint(bound, best))
            if edits < best:
                best, winners = edits, [place]
            elif edits == best:
                winners.append(place)
        return best, winners

    def _lower_bounds(self, text: str) -> NDArray[np.int64]:
        """At least this many edits separate the document from each version, from counts of four-letter runs alone.

        One edit takes away at most four runs and adds at most four, so neither those in excess nor those missing can
        outnumber four times the edits. Runs that share a bucket hide a difference and never make one.
        """
        longer = np.abs(self._lengths - len(text))
        apart = self._changes.distances(_gram_counts(text))
        bounds: NDArray[np.int64] = np.maximum(longer, -(-(apart + longer) // (2 * _GRAM)))
        return bounds


class _Changes:
    """Gram counts of all versions, stored as differences from the version before."""

    def __init__(self, counts: Sequence[NDArray[np.int64]]) -> None:
        pairs = list(zip([np.zeros(_BUCKETS, dtype=np.int64), *counts], counts, strict=False))
        places = [np.flatnonzero(last != this) for last, this in pairs]
        self._ends = np.cumsum([len(place) for place in places])
        self._places = np.concatenate(places)
        self._last, self._this = (
            np.concatenate([pair[side][place] for pair, place in zip(pairs, places, strict=True)]) for side in (0, 1)
        )

    def distances(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sum of absolute differences of these counts and each version's."""
        ours = counts[self._places]
        steps = np.abs(self._this - ours) - np.abs(self._last - ours)
        found: NDArray[np.int64] = counts.sum() + np.concatenate([[0], np.cumsum(steps)])[self._ends]
        return found


def _hint(bound: int, best: int) -> int:
    """The distance that rapidfuzz tries first; it doubles the hint until the distance lies under it.

    Where the bound is far below the best so far, a quarter over it is usually enough; else nothing below the best is
    worth trying.
    """
    return bound + bound // 4 + 8 if 4 * bound < best else best


def _gram_counts(text: str) -> NDArray[np.int64]:
    """How many of a text's runs of four letters fall into each bucket."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    pairs = points[:-1] * _FACTORS[0] + points[1:]
    runs = pairs[:-2] * _FACTORS[1] + pairs[2:] * _FACTORS[2]
    return np.bincount(runs >> np.uint32(20), minlength=_BUCKETS)


def attribute_plainly(document: str, texts: Sequence[tuple[date, str]], limit: float = LIMIT) -> Attribution | None:
    """Algorithm 1 as printed: the full distance to every month's text. The reference that tests compare with."""
    limit = real_number(limit, "the limit")
    text = nfc(document)
    versions = [(month, nfc(version)) for month, version in texts if version.strip()]
    if not text.strip() or not versions:
        return None
    edits = [Levenshtein.distance(text, version) for _, version in versions]
    least = min(edits)
    if Fraction(least, len(text)) >= Fraction(str(limit)):
        return None
    months = sorted(month for (month, _), distance in zip(versions, edits, strict=True) if distance == least)
    return Attribution(least, least / len(text), tuple(months))
