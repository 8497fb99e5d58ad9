"""Which estimators apply to a resource, and their results as dated rows with a status and a plain reason.

A panel (the same documents every month) gets ``panel`` for every reference and ``panel_noref`` without one; an unpaired
resource gets ``rise`` with and without references. The paper's lowest month is always there as ``trimmed95_minmax``, as
a description. A month stands in a row only where the status is ``found``. An estimator is one record (``Estimator``) in
the tuple ``ESTIMATORS``. What does NOT belong here: the estimators' arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np
import polars as pl

from strandline.perplexity.curves import bucket_curve, is_constant, lowest_month, trimmed_mean
from strandline.perplexity.differences import Floats, winsorised
from strandline.perplexity.panel_with_reference import MIN_MONTHS, MIN_TOPICS, panel_cutoff
from strandline.perplexity.panel_without_reference import noref_cutoff
from strandline.perplexity.rise import MIN_MONTHS as MIN_RISE_MONTHS
from strandline.perplexity.rise import rise_cutoff
from strandline.perplexity.score_matrices import Panel, ScoredResource

ESTIMATES_VERSION = "1"
"""Raise it when the same scores would give other cutoffs: tables made by it then show as stale."""

NO_REFERENCE = "none"
"""What stands in the column ``reference`` of an estimate without one."""

MIN_BUCKET = 5
"""Documents a month: a judgement. A winsorised mean of fewer is one document's, and news months are seldom thinner."""

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
"""What the estimators' own statuses mean, in the words of the rows."""

RISE_EDGES = {
    "edge-left": "a rise begins at the start of the range, before it could be told from the trend",
    "edge-right": "a rise begins in the last months of the range, too late to be told from noise",
}
"""The words of ``rise`` where its statuses mean something else than those of the panel estimators."""

SPARSE = ("too-few-topics", "too-few-months", "gaps")
"""Statuses of what has too few scores to be estimated at all."""

STATUSES = (*REASONS, "reference-dated", *SPARSE, "missing")
"""Every status of a row of ``perplexity.effective_cutoffs`` and ``perplexity.reference_tests``."""

# The reason of a row, which tests compare.
CONSTANT = "the curve has the same value in every month: no month is the lowest"
# The reason of a row, which tests compare and `rows` gives too.
NOT_SCORED = "no text of this resource has a score under the model"


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


@dataclass(frozen=True)
class Estimator:
    """One way of dating a resource.

    ``estimate`` takes the resource under the dated model, the same resource under a reference (None for an estimator
    that takes none), the reference's name and a seed. ``is_reported`` says that its row may be the default: of those
    with a reference the first usable one, else the one without. Others are stored beside it for comparison.
    """

    name: str
    kind: str
    takes_reference: bool
    is_reported: bool
    estimate: Callable[[ScoredResource, ScoredResource | None, str, int], EffectiveCutoff]


def cutoffs(
    target: ScoredResource,
    references: Mapping[str, ScoredResource],
    *,
    estimators: Sequence[Estimator] | None = None,
    seed: int = 1,
) -> list[EffectiveCutoff]:
    """All estimates for one model on one resource.

    Args:
        target: the resource under the model. Without any score it gets one row, ``missing``.
        references: the same resource under other models, by name, the preferred one first. One that has a cutoff of
            its own is refused (``reference-dated``).
        estimators: those to apply; ``ESTIMATORS`` by default.
        seed: of the random streams.

    Returns:
        A row for each estimator of the resource's kind, or for each of its references; one of them is the default.
    """
    applied = [each for each in (ESTIMATORS if estimators is None else estimators) if each.kind == target.kind]
    alone = next(each for each in applied if each.is_reported and not each.takes_reference)
    if not target.has_scores:
        return [EffectiveCutoff(alone.name, NO_REFERENCE, "missing", NOT_SCORED, is_default=True)]
    own = {name: own_cutoff(reference) for name, reference in references.items()}
    rows: list[EffectiveCutoff] = []
    for each in applied:
        if each.takes_reference:
            rows += [
                _unless_dated(each.estimate(target, reference, name, seed), own[name])
                for name, reference in references.items()
            ]
        else:
            rows.append(each.estimate(target, None, NO_REFERENCE, seed))
    return mark_default(rows, {each.name for each in applied if each.is_reported and each.takes_reference}, alone.name)


def own_cutoff(reference: ScoredResource) -> EffectiveCutoff:
    """Whether a reference itself has a cutoff, from all that it scored: ``found`` means that it must not be used."""
    if reference.is_panel:
        return panel_without_reference(reference, None, NO_REFERENCE, 1)
    return rise_estimate(reference, None, NO_REFERENCE, 1)


def mark_default(rows: list[EffectiveCutoff], referenced: set[str], alone: str) -> list[EffectiveCutoff]:
    """Mark the row to report: the first usable reference's, else the one without. The target's results do not count.

    A reference is not usable where it has a cutoff of its own, or scores of too little of what the target has.
    """
    fallback = next(row for row in rows if row.estimator == alone and row.reference == NO_REFERENCE)
    usable = [
        row
        for row in rows
        if row.estimator in referenced
        and row.reference != NO_REFERENCE
        and row.status != "reference-dated"
        and (row.status not in SPARSE or row.status == fallback.status)
    ]
    chosen = (usable or [fallback])[0]
    return [replace(row, is_default=row is chosen) for row in rows]


def lowest_of_panel(target: ScoredResource, reference: ScoredResource | None, name: str, seed: int) -> EffectiveCutoff:
    """The paper's statistic: the month in which the trimmed mean is lowest, a description."""
    panel, row = target.complete, _described()
    if sparse := _sparse(row, panel, 2, 2):
        return sparse
    if is_constant(trimmed_mean(np.exp(panel.values))):
        return replace(row, status="flat", reason=CONSTANT, n_topics=len(panel.topics))
    lowest = lowest_month(panel.values, seed=seed)
    return _dated(row, panel, lowest.month, lowest.interval80, lowest.interval95)


def panel_without_reference(
    target: ScoredResource, reference: ScoredResource | None, name: str, seed: int
) -> EffectiveCutoff:
    """``panel_noref``: a valley in the panel's own curve."""
    panel, row = target.complete, EffectiveCutoff("panel_noref", NO_REFERENCE, "", None)
    if sparse := _sparse(row, panel, MIN_TOPICS, MIN_MONTHS):
        return sparse
    valley = noref_cutoff(panel.values)
    row = replace(row, status=valley.status, reason=REASONS[valley.status])
    return _two_dips(_dated(row, panel, valley.month, valley.interval80, valley.interval95), panel, valley.second_month)


def panel_with_reference(
    target: ScoredResource, reference: ScoredResource | None, name: str, seed: int
) -> EffectiveCutoff:
    """``panel``: a valley in the difference to a reference, over the topics that are complete under both."""
    mine, theirs = target.panel.paired(_given(reference).panel)
    row = EffectiveCutoff("panel", name, "", None)
    if sparse := _sparse(row, mine, MIN_TOPICS, MIN_MONTHS):
        return sparse
    valley = panel_cutoff(mine.values, theirs.values, seed=seed)
    row = replace(row, status=valley.status, reason=REASONS[valley.status], p_flat=valley.p_flat)
    return _two_dips(_dated(row, mine, valley.month, valley.interval80, valley.interval95), mine, valley.second_month)


def lowest_of_buckets(
    target: ScoredResource, reference: ScoredResource | None, name: str, seed: int
) -> EffectiveCutoff:
    """The paper's statistic of an unpaired resource: a description without an interval."""
    curve, row = bucket_curve(target.buckets).mean_perplexity, _described()
    if not np.any(np.isfinite(curve)):
        return replace(row, status="missing", reason="no month has a scored document")
    if is_constant(curve):
        return replace(row, status="flat", reason=CONSTANT)
    return replace(row, lowest_month=target.months[int(np.nanargmin(curve))])


def rise_estimate(target: ScoredResource, reference: ScoredResource | None, name: str, seed: int) -> EffectiveCutoff:
    """``rise``: the month before the monthly mean of the documents, or of their differences, begins to rise."""
    buckets, months = (target if reference is None else _differences(target, reference)).buckets, target.months
    smallest = min((len(bucket) for bucket in buckets), default=0)
    row = EffectiveCutoff("rise", name, "", None, n_topics=smallest)
    if len(months) < MIN_RISE_MONTHS:
        reason = f"the range has {len(months)} months; {MIN_RISE_MONTHS} are needed"
        return replace(row, status="too-few-months", reason=reason)
    if smallest < MIN_BUCKET:
        thin = [f"{month:%Y-%m}" for month, bucket in zip(months, buckets, strict=True) if len(bucket) < MIN_BUCKET]
        reason = f"{len(thin)} months have under {MIN_BUCKET} scored documents, the first is {thin[0]}"
        return replace(row, status="gaps", reason=reason)
    try:
        rise = rise_cutoff(bucket_series(buckets), seed=seed)
    except ValueError as error:
        return replace(row, status="no-rise", reason=str(error))
    words = RISE_EDGES.get(rise.status, REASONS[rise.status])
    row = replace(row, status=rise.status, reason=words, p_flat=rise.p_flat)
    return _with_months(row, months, rise.month, rise.interval80, rise.interval95)


def bucket_series(buckets: Sequence[Floats]) -> Floats:
    """The winsorised (2.5 %) mean of each month's documents."""
    return np.array([float(winsorised(bucket[:, None]).mean()) for bucket in buckets])


ESTIMATORS: tuple[Estimator, ...] = (
    Estimator("trimmed95_minmax", "panel", False, False, lowest_of_panel),
    Estimator("panel_noref", "panel", False, True, panel_without_reference),
    Estimator("panel", "panel", True, True, panel_with_reference),
    Estimator("trimmed95_minmax", "unpaired", False, False, lowest_of_buckets),
    Estimator("rise", "unpaired", False, True, rise_estimate),
    Estimator("rise", "unpaired", True, True, rise_estimate),
)
"""Every estimator, in the order of the rows; a new one is one function and one line here."""


def _described() -> EffectiveCutoff:
    return EffectiveCutoff("trimmed95_minmax", NO_REFERENCE, "descriptive", REASONS["descriptive"])


def _given(reference: ScoredResource | None) -> ScoredResource:
    if reference is None:
        raise ValueError("this estimator needs a reference")
    return reference


def _differences(target: ScoredResource, reference: ScoredResource) -> ScoredResource:
    """The documents that both scored, with the difference of their scores."""
    keys = ["month", "topic"]
    both = target.versions.join(reference.versions.select(*keys, other="mean_nll"), on=keys)
    return replace(target, versions=both.with_columns(mean_nll=pl.col("mean_nll") - pl.col("other")))


def _unless_dated(row: EffectiveCutoff, own: EffectiveCutoff) -> EffectiveCutoff:
    """The row, refused where its reference has a cutoff of its own."""
    if own.status != "found" or own.month is None:
        return row
    reason = f"the reference has a cutoff of its own at {own.month:%Y-%m}: it cannot be used"
    return replace(row, status="reference-dated", reason=reason, month=None)


def _sparse(row: EffectiveCutoff, panel: Panel, min_topics: int, min_months: int) -> EffectiveCutoff | None:
    """The row of a panel with too few topics or months to be estimated; None where there are enough."""
    n_topics, n_months = len(panel.topics), len(panel.months)
    if n_topics < min_topics:
        reason = f"{n_topics} topics have a score in every month; {min_topics} are needed"
        return replace(row, status="too-few-topics", reason=reason, n_topics=n_topics)
    if n_months < min_months:
        reason = f"the range has {n_months} months; {min_months} are needed"
        return replace(row, status="too-few-months", reason=reason, n_topics=n_topics)
    return None


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
