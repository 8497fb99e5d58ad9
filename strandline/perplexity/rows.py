"""From a model's scored versions to the rows of the result tables: curves, references, cutoffs, topics.

Frames come in with the columns of ``perplexity.versions_of``, one row a version whatever its status; records go out
with the columns of the tables. What does NOT belong here: reading and writing, and the estimators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from itertools import pairwise

import numpy as np
import polars as pl

from strandline.numeric_input import whole_number
from strandline.perplexity.curves import MonthlyCurve, bucket_curve, panel_curve
from strandline.perplexity.differences import Floats
from strandline.perplexity.estimates import NOT_SCORED, SPARSE, Estimator, cutoffs, own_cutoff
from strandline.perplexity.figures import CurveLine
from strandline.perplexity.score_matrices import ScoredResource, resources_of, tokens_note
from strandline.perplexity.topic import STATUSES as TOPIC_STATUSES
from strandline.perplexity.topic import TopicCutoffs, topic_cutoffs

Row = dict[str, object]

TOPIC_REASONS = dict(
    zip(
        TOPIC_STATUSES,
        (None, "not resolved for this topic", "the topic was edited in fewer than six months of the range"),
        strict=True,
    )
)
"""What the statuses of a topic mean, in the words of the rows."""

CURVE_REASONS = {
    "ok": None,
    "empty": "no document of this month is averaged",
    "constant": "the mean perplexity is the same in every month, so that no month is relatively higher",
    "missing": NOT_SCORED,
}
"""The statuses of a point of a curve: a value, a month without one, a curve without a range, a resource without any."""

# The reason of a row, with the remedy.
LEFT_OUT = (
    "no topic has a score in every month of {resource} ({months} months), and topics that lack one are left out: begin "
    "`months` in data/spans.yaml later, or set complete_cases to false"
)


def curve_rows(model: str, versions: pl.DataFrame, *, complete_cases: bool = True) -> list[Row]:
    """The rows of ``perplexity.monthly_curves`` for one model, also of resources that it has no score of.

    ``complete_cases`` leaves out topics that lack any month of a panel, as the published analysis does. Every version
    that is not averaged counts as excluded, whatever the cause.
    """
    rows: list[Row] = []
    for resource in resources_of(versions):
        curve = _curve(resource, complete_cases)
        held = dict(resource.versions.group_by("month").len().iter_rows())
        said = {**resource.facts, "complete_cases": complete_cases if resource.is_panel else None}
        for place, month in enumerate(resource.months):
            status, reason = _point_status(resource, curve, place)
            documents = int(curve.n_documents[place])
            rows.append(
                {
                    "model": model,
                    "resource": resource.name,
                    "month": month,
                    "n_documents": documents,
                    "n_excluded": held.get(month, 0) - documents,
                    "mean_perplexity": _number(curve.mean_perplexity[place]),
                    "relative_perplexity": _number(curve.relative[place]),
                    "low95": _number(curve.low95[place]),
                    "high95": _number(curve.high95[place]),
                    "status": status,
                    "reason": reason,
                    **said,
                }
            )
    return rows


def curve_lines(curves: pl.DataFrame) -> dict[str, CurveLine]:
    """The curves of one model as lines to draw, by resource; none of a resource without a value."""
    known = curves.filter(pl.col("status") != "missing").sort("resource", "month")
    return {
        str(resource): CurveLine(
            str(resource),
            rows["month"].to_list(),
            rows["relative_perplexity"].to_list(),
            rows["low95"].to_list(),
            rows["high95"].to_list(),
            note=tokens_note(rows["max_tokens"][0], rows["context_tokens"][0]),
        )
        for (resource,), rows in known.group_by(["resource"], maintain_order=True)
    }


def reference_rows(model: str, resource: ScoredResource, scores: Sequence[tuple[str, pl.DataFrame]]) -> list[Row]:
    """The rows of ``perplexity.reference_tests`` for the listed references of one resource, in order of preference."""
    return [
        _reference_row(model, resource, name, frame)
        | {"rank": rank, "kind": "model", "tokenization": _tokenization(resource, frame)}
        for rank, (name, frame) in enumerate(scores, start=1)
    ]


def ngram_row(
    model: str,
    resource: ScoredResource,
    reference: str,
    scores: pl.DataFrame,
    rank: int,
    tokenization: str,
    texts_digest: str,
    n_texts: int,
) -> Row:
    """The row of ``perplexity.reference_tests`` for the n-gram reference of one resource."""
    fitted = {"tokenization": tokenization, "texts_digest": texts_digest, "n_texts": n_texts}
    return _reference_row(model, resource, reference, scores) | {"rank": rank, "kind": "ngram"} | fitted


def cutoff_rows(
    model: str,
    versions: pl.DataFrame,
    references: Mapping[str, Sequence[tuple[str, pl.DataFrame]]],
    *,
    estimators: Sequence[Estimator] | None = None,
) -> list[Row]:
    """The rows of ``perplexity.effective_cutoffs`` for one model, also of resources that it has no score of.

    Args:
        versions: of all resources.
        references: for each resource the references' names and versions, the preferred one first.
        estimators: those to apply; all by default.
    """
    rows: list[Row] = []
    for resource in resources_of(versions):
        others = {name: resource.under(frame) for name, frame in references.get(resource.name, ())}
        ends = {"first_month": resource.months[0], "last_month": resource.months[-1], **resource.facts}
        for cutoff in cutoffs(resource, others, estimators=estimators):
            rows.append({"model": model, "resource": resource.name, **ends, **asdict(cutoff)})
    return rows


def topic_rows(
    model: str,
    resource: ScoredResource,
    reference: str,
    reference_versions: pl.DataFrame,
    distances: Mapping[str, Floats],
) -> list[Row]:
    """The rows of ``perplexity.topic_cutoffs`` for one panel resource and one reference; none without a paired topic.

    Args:
        distances: for each topic the cumulative edit distance at each month of the resource. Where neither score
            changed from one month to the next the scored tokens are the same, and so is the distance.
    """
    mine, theirs = resource.panel.paired(resource.under(reference_versions).panel)
    kept = [row for row, topic in enumerate(mine.topics) if topic in distances]
    if not kept or len(resource.months) < 3:
        return []
    paths = np.stack([distances[mine.topics[row]] for row in kept])
    moved = (np.diff(mine.values[kept], axis=1) != 0) | (np.diff(theirs.values[kept], axis=1) != 0)
    steps = np.where(moved, np.diff(paths, axis=1), 0.0)
    travelled = np.concatenate([np.zeros((len(kept), 1)), steps.cumsum(axis=1)], axis=1)
    result = topic_cutoffs(mine.values[kept] - theirs.values[kept], travelled)
    return [
        {"model": model, "resource": resource.name, "reference": reference, "topic": mine.topics[row]}
        | _topic_row(result, number, resource.months)
        for number, row in enumerate(kept)
    ]


def edit_path(texts: Sequence[str | None], max_words: int) -> Floats | None:
    """Cumulative edit distance of a topic's monthly texts over their first ``max_words`` words and marks.

    Each step is the Levenshtein distance of neighbouring versions in words, over the longer one's length (0 to 1); None
    where a month has no text.
    """
    from re import findall

    from rapidfuzz.distance import Levenshtein

    whole_number(max_words, "max_words", 1)
    known = [text for text in texts if text is not None]
    if len(known) < len(texts) or not known:
        return None
    words = {text: findall(r"\w+|[^\w\s]", text)[:max_words] for text in set(known)}
    steps = [Levenshtein.normalized_distance(words[before], words[after]) for before, after in pairwise(known)]
    return np.cumsum([0.0, *steps])


def _curve(resource: ScoredResource, complete_cases: bool) -> MonthlyCurve:
    if resource.is_panel:
        return panel_curve(resource.panel.values, complete_cases=complete_cases)
    return bucket_curve(resource.buckets)


def _point_status(resource: ScoredResource, curve: MonthlyCurve, place: int) -> tuple[str, str | None]:
    """The status of one month of a curve, and the sentence that says why it has no relative value."""
    if not curve.n_documents.any():
        left_out = LEFT_OUT.format(resource=resource.name, months=len(resource.months))
        return "missing", left_out if resource.has_scores else NOT_SCORED
    status = "empty" if not curve.n_documents[place] else "constant" if np.isnan(curve.relative[place]) else "ok"
    return status, CURVE_REASONS[status]


def _reference_row(model: str, resource: ScoredResource, reference: str, scores: pl.DataFrame) -> Row:
    own = resource.under(scores)
    held = own.versions.drop_nulls("mean_nll")["text_sha256"].n_unique()
    row: Row = {"model": model, "resource": resource.name, "reference": reference, "n_texts": held}
    if not held:
        return row | {"status": "missing", "is_usable": False, "reason": f"{reference} has no score of this resource"}
    test = own_cutoff(own)
    dated = {name: getattr(test, name) for name in ("status", "reason", "month")}
    ends = {"low95": test.low95, "high95": test.high95} if test.status == "found" else {}
    lacks_scores = test.status in SPARSE and test.status != own_cutoff(resource).status
    return row | dated | ends | {"is_usable": test.status != "found" and not lacks_scores}


def _tokenization(resource: ScoredResource, scores: pl.DataFrame) -> str | None:
    """Whether a reference scored the same tokens of the same texts: another span adds noise to the difference."""
    mine, theirs = (
        frame.select("text_sha256", "token_digest").drop_nulls().unique()
        for frame in (resource.versions, resource.under(scores).versions)
    )
    both = mine.join(theirs, on="text_sha256", suffix="_of_reference")
    if both.is_empty():
        return None
    return "same" if (both["token_digest"] == both["token_digest_of_reference"]).all() else "other"


def _topic_row(result: TopicCutoffs, number: int, months: Sequence[date]) -> Row:
    found = result.status[number] == "found"

    def dated(index: int) -> date | None:
        return months[int(index)] if found else None

    return {
        "month": dated(result.months[number]),
        "low80": dated(result.intervals80[number, 0]),
        "high80": dated(result.intervals80[number, 1]),
        "low95": dated(result.intervals95[number, 0]),
        "high95": dated(result.intervals95[number, 1]),
        "p_value": _number(result.p_values[number]),
        "q_value": _number(result.q_values[number]),
        "n_edits": int(result.n_edits[number]),
        "status": result.status[number],
        "reason": TOPIC_REASONS[result.status[number]],
    }


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
