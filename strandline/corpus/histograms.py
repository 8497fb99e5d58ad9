"""Counts of mined copies by sub-corpus and month, from what was attributed.

A copy whose versions tie over n months gives each 1/n, so that a histogram sums to the number of copies. A document
that is near to several topics is a copy of the nearest one; where topics tie, they share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from strandline.numeric_input import real_number

COUNT_METHODS = BY_EDITS, BY_NGRAMS = "edit_distance", "ngram"
"""How copies are counted, as stored in `corpus.version_counts.method`: by Algorithm 1 and by Algorithm 2."""

HEAVIEST = 1e12
"""The largest weight of a copy: far over every corpus, and far under where sums of them lose single copies."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A corpus document that is a copy of a topic's version: the months that tie, where it came from, its weight."""

    document_id: str
    topic: str
    subcorpus: str
    months: tuple[date, ...]
    crawled_on: date | None = None
    weight: float = 1.0


def monthly_weights(copies: Iterable[Copy], months: Sequence[date]) -> dict[tuple[str, date], float]:
    """The weight of each sub-corpus and month.

    Args:
        copies: what was attributed.
        months: the months of the resource; each sub-corpus gets a value for every one, zero included.

    Raises:
        ValueError: a copy outside `months`, one without months, or one of a weight that is none.
    """
    known = set(months)
    counted: dict[tuple[str, date], float] = {}
    for copy in copies:
        if not copy.months or not known.issuperset(copy.months):
            raise ValueError(f"{copy.document_id}: its months {copy.months} are not among those of the resource")
        refuse_strange_weight(copy)
        for month in months:
            counted.setdefault((copy.subcorpus, month), 0.0)
        for month in copy.months:
            counted[copy.subcorpus, month] += copy.weight / len(copy.months)
    return counted


def refuse_strange_weight(copy: Copy) -> None:
    """ValueError for a weight that is no finite number from 0 to a million million."""
    if not 0 <= real_number(copy.weight, f"the weight of {copy.document_id}") <= HEAVIEST:
        raise ValueError(f"the weight of {copy.document_id} is {copy.weight}; it must lie between 0 and {HEAVIEST:g}")


def summed(counted: Mapping[tuple[str, date], float], months: Sequence[date]) -> list[float]:
    """The histogram over all sub-corpora, in the order of `months`. ValueError for a count of another month."""
    total = dict.fromkeys(months, 0.0)
    for (_, month), weight in counted.items():
        if month not in total:
            raise ValueError(f"the month {month} is not among those of the resource")
        total[month] += real_number(weight, f"the count of {month}")
    return [total[month] for month in months]
