"""Which estimator applies to a resource, and its result as a dated row with a status and a plain reason.

A panel (the same documents every month) gets ``panel`` for every reference and ``panel_noref`` without one; an unpaired
resource gets ``rise`` with and without references. The paper's lowest month is always there as ``trimmed95_minmax``, as
a description. A month stands in a row only where the status is ``found``. What does NOT belong here: the estimators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np
import polars as pl

from strandline.perplexity.curves import bucket_curve, lowest_month
from strandline.perplexity.differences import Floats, winsorised
from strandline.perplexity.panel_with_reference import MIN_MONTHS, MIN_TOPICS, panel_cutoff
from strandline.perplexity.panel_without_reference import noref_cutoff
from strandline.perplexity.rise import MIN_MONTHS as MIN_RISE_MONTHS
from strandline.perplexity.rise import rise_cutoff
from strandline.perplexity.score_matrices import Panel, buckets_of

NO_REFERENCE = "none"
MIN_BUCKET = 5
SPARSE = frozenset({"too-few-topics", "too-few-months", "gaps"})
"""Statuses of what has too few scores to be estimated at all."""

REASONS = {
    "found": None,
    "descriptive": "the lowest month of the curve: common changes of the texts move it as much as memory does",
    "flat": "the curve does not move more than chance and common changes of the texts do",
    "flat-or-unclear": "without a reference no valley stands out of the common changes of the texts",
    "no-rise": "the monthly mean does not rise above a straight trend",
    "edge-left": "the curve is lowest at the start of the range, which says nothing about a cutoff",
    "edge-right": "the curve is lowest at the end of the range, which says nothing about a cutoff",
    "two-valley": "the curve has two dips",
    "inconclusive": "the evidence does not narrow the month down enough",
}
RISE_EDGES = {
    "edge-left": "a rise begins at the start of the range, before it could be told from the trend",
    "edge-right": "a rise begins in the last months of the range, too late to be told from noise",
}


@dataclass(frozen=True)
class EffectiveCutoff:
    """One estimate, as data and, where ``status`` is ``found``, as a finding (``month``).

    ``lowest_month`` is the point estimate whatever the status and ``second_month`` the other dip of ``two-valley``;
    both and the intervals are data, not findings. ``n_topics`` is the number of topics (panels) or documents a month at
    the least (unpaired). ``is_default`` marks the one row that the product reports for a model and a resource.
    """

    estimator: str
    reference: str
    status: str
    reason: str | None
    month: date | None = None
    lowest_month: date | None = None
    second_month: date | None = None
    low80: date | None = None
    high80: date | None = None
    low95: date | None = None
    high95: date | None = None
    p_flat: float | None = None
    n_topics: int | None = None
    is_default: bool = False


def panel_cutoffs(target: Panel, references: Mapping[str, Panel], *, seed: int = 1) -> list[EffectiveCutoff]:
    """All estimates for one model on a panel resource.

    Args:
        target: the model's scores.
        references: scores of the same token spans under other models, by name, the preferred one first. A reference
            that has a cutoff of its own, by ``panel_noref``, is refused (``reference-dated``).
        seed: of the random streams.

    Returns:
        ``trimmed95_minmax``, ``panel_noref`` and one ``panel`` row a reference. The default is the first usable
        reference's row, and ``panel_noref`` where there is none.
    """
    complete = target.complete()
    rows = [
        _estimate(complete, "trimmed95_minmax", NO_REFERENCE, lambda: _described(complete, seed), 2, 2),
        _estimate(complete, "panel_noref", NO_REFERENCE, lambda: _without(complete), MIN_TOPICS, MIN_MONTHS),
    ]
    rows += [_with(target, name, reference, seed) for name, reference in references.items()]
    return _marked(rows, "panel", "panel_noref")


def reference_test(reference: Panel) -> EffectiveCutoff:
    """Whether a reference itself has a cutoff: its ``panel_noref`` estimate. ``found`` means: do not use it."""
    complete = reference.complete()
    return _estimate(complete, "panel_noref", NO_REFERENCE, lambda: _without(complete), MIN_TOPICS, MIN_MONTHS)


def bucket_cutoffs(
    target: pl.DataFrame, references: Mapping[str, pl.DataFrame], months: Sequence[date], *, seed: int = 1
) -> list[EffectiveCutoff]:
    """All estimates for one model on an unpaired resource.

    Args:
        target: rows of ``month``, ``topic`` (the document) and ``mean_nll``.
        references: the same documents under other models, by name, the preferred one first.
        months: the range, in order.
        seed: of the random streams.

    Returns:
        ``trimmed95_minmax`` and ``rise`` without a reference and with each. The default is the first reference's row.
    """
    rows = [_lowest_bucket(target, months), _risen(target, NO_REFERENCE, months, seed)]
    for name, reference in references.items():
        own = bucket_test(reference, months, seed=seed)
        keys = ["month", "topic"]
        both = target.join(reference.select(*keys, other="mean_nll"), on=keys).with_columns(
            mean_nll=pl.col("mean_nll") - pl.col("other")
        )
        rows.append(_unless_dated(_risen(both, name, months, seed), own))
    return _marked(rows, "rise", "rise")


def bucket_test(reference: pl.DataFrame, months: Sequence[date], *, seed: int = 1) -> EffectiveCutoff:
    """Whether a reference's own scores of an unpaired resource rise: ``found`` means: do not use it."""
    return _risen(reference, NO_REFERENCE, months, seed)


def bucket_series(buckets: Sequence[Floats]) -> Floats:
    """The winsorised (2.5 %) mean of each month's documents."""
    return np.array([float(winsorised(bucket[:, None]).mean()) for bucket in buckets])


def _with(target: Panel, name: str, reference: Panel, seed: int) -> EffectiveCutoff:
    mine, theirs = target.paired(reference)
    row = _estimate(mine, "panel", name, lambda: _referenced(mine, theirs, name, seed), MIN_TOPICS, MIN_MONTHS)
    return _unless_dated(row, reference_test(reference))


def _unless_dated(row: EffectiveCutoff, test: EffectiveCutoff) -> EffectiveCutoff:
    if test.status != "found" or test.month is None:
        return row
    reason = f"the reference has a cutoff of its own at {test.month:%Y-%m}: it cannot be used"
    return replace(row, status="reference-dated", reason=reason, month=None)


def _estimate(
    panel: Panel,
    estimator: str,
    reference: str,
    estimate: Callable[[], EffectiveCutoff],
    min_topics: int,
    min_months: int,
) -> EffectiveCutoff:
    n_topics, n_months = len(panel.topics), len(panel.months)
    if n_topics < min_topics:
        reason = f"{n_topics} topics have a score in every month; {min_topics} are needed"
        return EffectiveCutoff(estimator, reference, "too-few-topics", reason, n_topics=n_topics)
    if n_months < min_months:
        reason = f"the range has {n_months} months; {min_months} are needed"
        return EffectiveCutoff(estimator, reference, "too-few-months", reason, n_topics=n_topics)
    return estimate()


def _described(panel: Panel, seed: int) -> EffectiveCutoff:
    result = lowest_month(panel.values, seed=seed)
    row = EffectiveCutoff("trimmed95_minmax", NO_REFERENCE, "descriptive", REASONS["descriptive"])
    return _dated(row, panel, result.month, result.interval80, result.interval95)


def _without(panel: Panel) -> EffectiveCutoff:
    result = noref_cutoff(panel.values)
    row = EffectiveCutoff("panel_noref", NO_REFERENCE, result.status, REASONS[result.status])
    return _two_dips(_dated(row, panel, result.month, result.interval80, result.interval95), panel, result.second_month)


def _referenced(mine: Panel, theirs: Panel, name: str, seed: int) -> EffectiveCutoff:
    result = panel_cutoff(mine.values, theirs.values, seed=seed)
    row = EffectiveCutoff("panel", name, result.status, REASONS[result.status], p_flat=result.p_flat)
    return _two_dips(_dated(row, mine, result.month, result.interval80, result.interval95), mine, result.second_month)


def _two_dips(row: EffectiveCutoff, panel: Panel, second: int | None) -> EffectiveCutoff:
    if row.status != "two-valley" or second is None or row.lowest_month is None:
        return row
    first, last = sorted((row.lowest_month, panel.months[second]))
    return replace(
        row, second_month=panel.months[second], reason=f"the curve has two dips, at {first:%Y-%m} and {last:%Y-%m}"
    )


def _dated(
    row: EffectiveCutoff, panel: Panel, month: int, interval80: tuple[int, int], interval95: tuple[int, int]
) -> EffectiveCutoff:
    dated = _with_months(row, panel.months, month, interval80, interval95)
    return replace(dated, n_topics=len(panel.topics))


def _with_months(
    row: EffectiveCutoff,
    months: Sequence[date],
    month: int,
    interval80: tuple[int, int],
    interval95: tuple[int, int],
) -> EffectiveCutoff:
    return replace(
        row,
        month=months[month] if row.status == "found" else None,
        lowest_month=months[month],
        low80=months[interval80[0]],
        high80=months[interval80[1]],
        low95=months[interval95[0]],
        high95=months[interval95[1]],
    )


def _lowest_bucket(scores: pl.DataFrame, months: Sequence[date]) -> EffectiveCutoff:
    curve = bucket_curve(buckets_of(scores, months)).mean_perplexity
    row = EffectiveCutoff("trimmed95_minmax", NO_REFERENCE, "descriptive", REASONS["descriptive"])
    if not np.any(np.isfinite(curve)):
        return replace(row, status="missing", reason="no month has a scored document")
    return replace(row, lowest_month=months[int(np.nanargmin(curve))])


def _risen(scores: pl.DataFrame, reference: str, months: Sequence[date], seed: int) -> EffectiveCutoff:
    buckets = buckets_of(scores, months)
    smallest = min((len(bucket) for bucket in buckets), default=0)
    row = EffectiveCutoff("rise", reference, "", None, n_topics=smallest)
    if len(months) < MIN_RISE_MONTHS:
        reason = f"the range has {len(months)} months; {MIN_RISE_MONTHS} are needed"
        return replace(row, status="too-few-months", reason=reason)
    if smallest < MIN_BUCKET:
        thin = [f"{month:%Y-%m}" for month, bucket in zip(months, buckets, strict=True) if len(bucket) < MIN_BUCKET]
        reason = f"{len(thin)} months have under {MIN_BUCKET} scored documents, the first is {thin[0]}"
        return replace(row, status="gaps", reason=reason)
    series = bucket_series(buckets)
    try:
        result = rise_cutoff(series, seed=seed)
    except ValueError as error:
        return replace(row, status="no-rise", reason=str(error))
    words = RISE_EDGES.get(result.status, REASONS[result.status])
    row = replace(row, status=result.status, reason=words, p_flat=result.p_flat)
    return _with_months(row, months, result.month, result.interval80, result.interval95)


def _marked(rows: list[EffectiveCutoff], referenced: str, alone: str) -> list[EffectiveCutoff]:
    """Mark the row to report: the first usable reference's, else the one without. The target's results do not count.

    A reference is not usable where it has a cutoff of its own, or scores of too little of what the target has.
    """
    fallback = next(row for row in rows if row.estimator == alone and row.reference == NO_REFERENCE)
    usable = [
        row
        for row in rows
        if row.estimator == referenced
        and row.reference != NO_REFERENCE
        and row.status != "reference-dated"
        and (row.status not in SPARSE or row.status == fallback.status)
    ]
    chosen = (usable or [fallback])[0]
    return [replace(row, is_default=row is chosen) for row in rows]
