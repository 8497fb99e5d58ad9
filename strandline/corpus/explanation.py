"""Why a cutoff lies where it does: mined copies against the perplexity curve, and what moves their typical month.

* The typical month of a histogram is the weighted median of the shortest run of months that holds half of all copies.
  It follows the densest part, as the minimum of a perplexity curve does, and needs no bandwidth. Where that run spans
  40 % of the months or more, the histogram has no typical month: `flat`.
* Two causes are undone, alone and together. Old crawl data: a crawled copy whose newest possible month lies more than
  three months before its crawl is counted at its crawl. Duplicates: each group of duplicates counts as one copy, spread
  evenly over its members, which is the histogram expected if one of each group were kept at random. The gap between
  reported and typical month is split by Shapley's rule (the mean over both orders), so that no order is favoured; what
  both together leave is the remainder, such as older dumps in the mix.
* Intervals come from a bootstrap over topics.
* Copies and curve are compared by the rank correlation under all circular shifts, which keeps each series' own
  autocorrelation: p = (shifts at least as negative as none) ÷ months. Its resolution is one over the months, and two
  series that both merely trend can look related.

A share says what the mined copies would look like without a cause. It does not say what a model trained on them does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from strandline.corpus.histograms import Copy, refuse_strange_weight
from strandline.numeric_input import real_array, real_number, whole_number
from strandline.spans.months import month_range

EXPLANATION_VERSION = "1"
"""Raise it when the same copies would give other explanations: tables made by it then show as stale."""

FLAT = 0.4
"""Share of the months from which on half of the copies are spread out: the widest bump of the planted worlds of
`simulation` has a fifth, an even spread a half."""

STALE_MONTHS = 3
"""Months that a page may be older than its crawl: crawls take one to two months, and pages are seldom newer than the
last snapshot. A judgement between calling fresh pages old and old ones fresh."""

BOOTSTRAPS = 400
"""Draws of topics: ten lie beyond each end of a 95 % interval."""

LARGEST_WEIGHT = 1e300
"""Weights of months stay under it, so that their sum is finite."""

LEAST_MONTHS = 8
"""Months of a shift test: with fewer the smallest p, one over the months, is over 12 %."""

GAP_STATUSES = ("ok", "flat", "missing")
"""What can become of a gap, as stored in `corpus.explanations.status`: copies without a typical month are `flat`."""

SHIFT_STATUSES = ("ok", "flat", "too_short")
"""What can become of a shift test: series that do not vary are `flat`."""

Weights = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TypicalMonth:
    """Where half of all copies lie: `first` to `last`, and the month in their middle. Places count from 0."""

    middle: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ShiftTest:
    """The rank correlation of copies and curve, the share of shifts as negative, and the shift that is most negative.

    `lag` is in months: positive where the curve's minimum comes after the copies' peak.
    """

    correlation: float | None
    p_value: float | None
    lag: int | None
    n_months: int
    status: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class GapShares:
    """The gap in months between the reported and the typical month of the copies, and its parts.

    Each interval holds 95 % of the bootstraps over topics. Shares exist where the gap is positive and no part negative.
    """

    status: str
    reason: str | None
    n_copies: int
    typical: date | None = None
    bulk_from: date | None = None
    bulk_to: date | None = None
    low95: date | None = None
    high95: date | None = None
    gap: float | None = None
    old_crawl: float | None = None
    old_crawl_low95: float | None = None
    old_crawl_high95: float | None = None
    duplicates: float | None = None
    duplicates_low95: float | None = None
    duplicates_high95: float | None = None
    remainder: float | None = None

    def share(self, months: float | None) -> float | None:
        """A part as a share of the gap, None where a share makes no sense. ValueError for what is no number."""
        months = None if months is None else real_number(months, "a part of the gap")
        parts = (self.old_crawl, self.duplicates, self.remainder)
        if months is None or self.gap is None or self.gap <= 0 or any(part is None or part < 0 for part in parts):
            return None
        return months / self.gap


def typical_month(weights: Sequence[float] | Weights) -> TypicalMonth:
    """The shortest run of months that holds half of the weight, and its weighted median.

    Of equally short runs the heaviest counts, then the earliest. Raises ValueError for weights that are negative, not
    finite or all zero.
    """
    values = real_array(weights, "the weights of a typical month")
    if values.ndim != 1 or not ((values >= 0) & (values < LARGEST_WEIGHT)).all() or not values.sum() > 0:
        raise ValueError("a typical month needs finite weights, none negative and one positive")
    before = np.concatenate([[0.0], np.cumsum(values)])
    half = before[-1] / 2
    ends = np.searchsorted(before, before[:-1] + half * (1 - 1e-12))
    starts = np.flatnonzero(ends <= len(values))
    lengths = ends[starts] - starts
    shortest = starts[lengths == lengths.min()]
    masses = np.round(before[ends[shortest]] - before[shortest], 12)
    first = int(shortest[np.argmax(masses)])
    end = int(ends[first])
    inside = before[first + 1 : end + 1] - before[first]
    middle = first + int(np.searchsorted(inside, inside[-1] / 2 * (1 - 1e-12)))
    return TypicalMonth(middle, first, end - 1)


def circular_shift_test(copies: Sequence[float], curve: Sequence[float | None]) -> ShiftTest:
    """Whether months with many copies have low perplexity, beyond what each series' own drift brings about.

    Args:
        copies: weight of the copies, month by month.
        curve: (relative) perplexity of the same months; months without a value are left out of both.

    Returns:
        a negative `correlation` is agreement. `too_short` below 8 months, `flat` where a series does not vary.

    Raises:
        ValueError: series of different lengths, or values that are no numbers.
    """
    counted = real_array(copies, "the copies")
    known = real_array([np.nan if value is None else value for value in curve], "the perplexities")
    if counted.ndim != 1 or known.shape != counted.shape:
        raise ValueError(f"copies and perplexities are two series of one length, got {counted.shape} and {known.shape}")
    pairs = [pair for pair in zip(counted.tolist(), known.tolist(), strict=True) if np.isfinite(pair).all()]
    n = len(pairs)
    if n < LEAST_MONTHS:
        why = f"{n} months have both a count and a perplexity; {LEAST_MONTHS} are needed"
        return ShiftTest(None, None, None, n, "too_short", why)
    left, right = (_standard_ranks([pair[side] for pair in pairs]) for side in (0, 1))
    if left is None or right is None:
        what = "the copies do" if left is None else "the perplexity does"
        return ShiftTest(None, None, None, n, "flat", f"{what} not vary over the months")
    shifted = np.array([left @ np.roll(right, -shift) for shift in range(n)])
    p_value = float(np.mean(shifted <= shifted[0] + 1e-12))
    lag = int(np.argmin(np.round(shifted, 12)))
    return ShiftTest(float(shifted[0]), p_value, lag if lag <= n // 2 else lag - n, n, "ok")


def gap_shares(
    copies: Sequence[Copy],
    months: Sequence[date],
    reported: date,
    crawled: Sequence[str],
    groups: Mapping[str, str],
    seed: int = 0,
) -> GapShares:
    """Split the gap between the reported and the copies' typical month into old crawl data, duplicates and the rest.

    Args:
        copies: what was attributed; ties share a copy.
        months: the months of the resource, in order; where some are missing between them, they count as months too.
        reported: the month that is advertised for the resource.
        crawled: the sub-corpora that come from crawls; only their copies can be old crawl data.
        groups: the duplicate group of each document that has one.
        seed: of the bootstrap over topics.

    Returns:
        `missing` without copies, `flat` where half of them are spread over 40 % of the months or more, else `ok`.

    Raises:
        ValueError: months out of order, a copy of none of them or of a weight below zero, or copies that weigh nothing.
    """
    seed = whole_number(seed, "the seed", 0)
    if not copies:
        return GapShares("missing", "no copy of the resource was found", 0)
    months = calendar(months)
    _refuse_strange(copies, months)
    if not isinstance(reported, date):
        raise ValueError(f"the reported month is a date, got {reported!r}")
    n_copies = round(sum(copy.weight for copy in copies))
    panels = _coalitions(copies, months, frozenset(crawled), groups)
    typical = typical_month(panels.sum(axis=1)[0])
    if typical.last - typical.first + 1 >= max(2, FLAT * len(months)):
        return GapShares("flat", "the copies are spread over the months without a typical one", n_copies)
    return _split(panels, typical, months, reported, n_copies, seed)


def _split(
    panels: Weights, typical: TypicalMonth, months: Sequence[date], reported: date, n_copies: int, seed: int
) -> GapShares:
    """The gap and its parts, with intervals from a bootstrap over topics."""
    place = _place(reported, months)
    gap, old, double, rest = _shapley(place, panels.sum(axis=1))
    drawn, parts = _bootstrap(panels, place, seed)
    return GapShares(
        status="ok",
        reason=None,
        n_copies=n_copies,
        typical=months[typical.middle],
        bulk_from=months[typical.first],
        bulk_to=months[typical.last],
        low95=months[_quantile(drawn, 0.025)],
        high95=months[_quantile(drawn, 0.975)],
        gap=gap,
        old_crawl=old,
        old_crawl_low95=float(np.quantile(parts[:, 1], 0.025)),
        old_crawl_high95=float(np.quantile(parts[:, 1], 0.975)),
        duplicates=double,
        duplicates_low95=float(np.quantile(parts[:, 2], 0.025)),
        duplicates_high95=float(np.quantile(parts[:, 2], 0.975)),
        remainder=rest,
    )


def reweighted(
    copies: Sequence[Copy], months: Sequence[date], groups_by_kind: Mapping[str, Mapping[str, str]]
) -> dict[str, TypicalMonth]:
    """The typical month after each class of duplicates counts once, each alone; `none` is the histogram as mined.

    Places are those of `calendar(months)`. Raises ValueError as `gap_shares` does, and without copies.
    """
    found, axis = {}, calendar(months)
    _refuse_strange(copies, axis)
    for kind, groups in {"none": {}, **groups_by_kind}.items():
        found[kind] = typical_month(_coalitions(copies, axis, frozenset(), groups)[2].sum(axis=0))
    return found


def calendar(months: Sequence[date]) -> list[date]:
    """Every month from the first to the last, also those of which a resource has no version: gaps are counted in it.

    Raises ValueError for no months, and for months that are not first days in ascending order.
    """
    if not months or not all(isinstance(month, date) and month.day == 1 for month in months):
        raise ValueError("the months of a resource are first days of months, at least one")
    if any(later <= month for month, later in pairwise(months)) or months[-1].year == date.max.year:
        raise ValueError("the months of a resource stand in ascending order, each once, and before the year 9999")
    return list(month_range(months[0], months[-1]))


def _refuse_strange(copies: Sequence[Copy], months: Sequence[date]) -> None:
    """ValueError for copies that no histogram over these months can hold."""
    known = set(months)
    for copy in copies:
        if not copy.months or not known.issuperset(copy.months):
            raise ValueError(f"{copy.document_id}: its months {copy.months} are not among those of the resource")
        refuse_strange_weight(copy)
    if not sum(copy.weight for copy in copies) > 0:
        raise ValueError("the copies have no weight together")


def _standard_ranks(values: Sequence[float]) -> Weights | None:
    ranks = rankdata(values)
    centred = ranks - ranks.mean()
    norm = float(np.sqrt(centred @ centred))
    return centred / norm if norm > 0 else None


def _place(month: date, months: Sequence[date]) -> float:
    """The place of a month on the axis of `months`, also before and after them."""
    return float((month.year - months[0].year) * 12 + month.month - months[0].month)


def _coalitions(
    copies: Sequence[Copy], months: list[date], crawled: frozenset[str], groups: Mapping[str, str]
) -> Weights:
    """Histograms by topic: as mined, without old crawl data, without duplicates, without both (4 × topics × months)."""
    topics = {topic: row for row, topic in enumerate(sorted({copy.topic for copy in copies}))}
    column = {month: place for place, month in enumerate(months)}
    sizes: dict[tuple[str, str], int] = {}
    for copy in copies:
        key = (copy.topic, groups.get(copy.document_id, copy.document_id))
        sizes[key] = sizes.get(key, 0) + 1
    panels = np.zeros((4, len(topics), len(months)))
    for copy in copies:
        row = topics[copy.topic]
        once = copy.weight / sizes[copy.topic, groups.get(copy.document_id, copy.document_id)]
        actual = [column[month] for month in copy.months]
        moved = _at_crawl(copy, months, crawled) or actual
        for panel, places, weight in (
            (0, actual, copy.weight),
            (1, moved, copy.weight),
            (2, actual, once),
            (3, moved, once),
        ):
            panels[panel, row, places] += weight / len(places)
    return panels


def _at_crawl(copy: Copy, months: Sequence[date], crawled: frozenset[str]) -> list[int] | None:
    """The place of the crawl's month for a copy that was old when it was crawled, else None."""
    if copy.subcorpus not in crawled or copy.crawled_on is None:
        return None
    crawl = _place(copy.crawled_on, months)
    if crawl - _place(max(copy.months), months) <= STALE_MONTHS:
        return None
    return [int(min(max(crawl, 0), len(months) - 1))]


def _shapley(reported: float, totals: Weights) -> tuple[float, float, float, float]:
    """The gap as mined, its two parts and the remainder, from the four histograms."""
    mined, fresh, single, both = (reported - typical_month(histogram).middle for histogram in totals)
    old = ((mined - fresh) + (single - both)) / 2
    double = ((mined - single) + (fresh - both)) / 2
    return mined, old, double, both


def _bootstrap(panels: Weights, reported: float, seed: int) -> tuple[Weights, Weights]:
    rng = np.random.default_rng(seed)
    n_topics = panels.shape[1]
    drawn = []
    for counts in rng.multinomial(n_topics, np.full(n_topics, 1 / n_topics), size=BOOTSTRAPS):
        totals = np.einsum("t,ptm->pm", counts.astype(np.float64), panels)
        drawn.append((typical_month(totals[0]).middle, *_shapley(reported, totals)[:3]))
    table = np.array(drawn, dtype=np.float64)
    return table[:, 0], table[:, 1:]


def _quantile(places: Weights, share: float) -> int:
    return int(np.quantile(places, share, method="nearest"))
