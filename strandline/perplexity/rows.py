"""From a model's scored versions to the rows of the result tables: curves, cutoffs, topics.

Frames come in with the columns of ``perplexity.versions_of`` (resource, kind, topic, month, text_sha256, mean_nll,
token_digest), one row a version whatever its status, and go out with the columns of the tables. What does NOT belong
here: reading and writing, and the estimators.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from itertools import pairwise

import numpy as np
import polars as pl

from strandline.perplexity.curves import bucket_curve, panel_curve
from strandline.perplexity.differences import Floats
from strandline.perplexity.estimates import (
    SPARSE,
    EffectiveCutoff,
    bucket_cutoffs,
    bucket_test,
    panel_cutoffs,
    reference_test,
)
from strandline.perplexity.figures import CurveLine
from strandline.perplexity.score_matrices import Panel, buckets_of, panel_of
from strandline.perplexity.topic import TopicCutoffs, topic_cutoffs
from strandline.spans.months import month_range

TOPIC_REASONS = {
    "found": None,
    "unresolved": "not resolved for this topic",
    "too-few-edits": "the topic was edited in fewer than six months of the range",
}
CURVE_COLUMNS = {
    "model": pl.String,
    "resource": pl.String,
    "month": pl.Date,
    "n_documents": pl.Int64,
    "n_excluded": pl.Int64,
    "mean_perplexity": pl.Float64,
    "relative_perplexity": pl.Float64,
    "low95": pl.Float64,
    "high95": pl.Float64,
}
REFERENCE_COLUMNS = {
    "model": pl.String,
    "resource": pl.String,
    "reference": pl.String,
    "rank": pl.Int64,
    "kind": pl.String,
    "tokenization": pl.String,
    "texts_digest": pl.String,
    "n_texts": pl.Int64,
    "is_usable": pl.Boolean,
    "status": pl.String,
    "reason": pl.String,
    "month": pl.Date,
    "low95": pl.Date,
    "high95": pl.Date,
}
TOPIC_COLUMNS = {
    "model": pl.String,
    "resource": pl.String,
    "reference": pl.String,
    "topic": pl.String,
    "month": pl.Date,
    "low80": pl.Date,
    "high80": pl.Date,
    "low95": pl.Date,
    "high95": pl.Date,
    "p_value": pl.Float64,
    "q_value": pl.Float64,
    "n_edits": pl.Int64,
    "status": pl.String,
    "reason": pl.String,
}
CUTOFF_COLUMNS = {
    "model": pl.String,
    "resource": pl.String,
    "first_month": pl.Date,
    "last_month": pl.Date,
    "estimator": pl.String,
    "reference": pl.String,
    "status": pl.String,
    "reason": pl.String,
    "month": pl.Date,
    "lowest_month": pl.Date,
    "second_month": pl.Date,
    "low80": pl.Date,
    "high80": pl.Date,
    "low95": pl.Date,
    "high95": pl.Date,
    "p_flat": pl.Float64,
    "n_topics": pl.Int64,
    "is_default": pl.Boolean,
}


@dataclass(frozen=True)
class ScoredResource:
    """One resource under one model: its name, kind, months in order, and its versions."""

    name: str
    kind: str
    months: tuple[date, ...]
    versions: pl.DataFrame

    @property
    def is_panel(self) -> bool:
        return self.kind == "panel"


def scored_resources(versions: pl.DataFrame) -> Iterator[ScoredResource]:
    """The resources of which the model has any score, by name."""
    for (name, kind), group in versions.group_by(["resource", "kind"], maintain_order=True):
        if group["mean_nll"].null_count() < group.height:
            yield ScoredResource(str(name), str(kind), _months(str(kind), group["month"]), group)


def _months(kind: str, held: pl.Series) -> tuple[date, ...]:
    """The months of the range. In an unpaired resource a month without any document counts: it is a gap in a series."""
    months = tuple(held.unique().sort())
    return month_range(months[0], months[-1]) if kind == "unpaired" else months


def curve_rows(model: str, versions: pl.DataFrame, *, complete_cases: bool = True) -> pl.DataFrame:
    """The rows of ``perplexity.monthly_curves`` for one model.

    ``complete_cases`` leaves out topics that lack any month of a panel, as the published analysis does. Every version
    that is not averaged counts as excluded, whatever the cause.
    """
    frames = []
    for resource in scored_resources(versions):
        if resource.is_panel:
            curve = panel_curve(panel_of(resource.versions, resource.months).values, complete_cases=complete_cases)
        else:
            curve = bucket_curve(buckets_of(resource.versions, resource.months))
        held = dict(resource.versions.group_by("month").len().iter_rows())
        frames.append(
            pl.DataFrame(
                {
                    "model": model,
                    "resource": resource.name,
                    "month": resource.months,
                    "n_documents": curve.n_documents,
                    "n_excluded": [held.get(month, 0) for month in resource.months] - curve.n_documents,
                    "mean_perplexity": curve.mean_perplexity,
                    "relative_perplexity": curve.relative,
                    "low95": curve.low95,
                    "high95": curve.high95,
                },
                schema=CURVE_COLUMNS,
            ).with_columns(pl.selectors.float().fill_nan(None))
        )
    return pl.concat([pl.DataFrame(schema=CURVE_COLUMNS), *frames])


def curve_lines(curves: pl.DataFrame) -> dict[str, CurveLine]:
    """The curves of one model as lines to draw, by resource."""
    return {
        str(resource): CurveLine(
            str(resource),
            rows["month"].to_list(),
            rows["relative_perplexity"].to_list(),
            rows["low95"].to_list(),
            rows["high95"].to_list(),
        )
        for (resource,), rows in curves.sort("resource", "month").group_by(["resource"], maintain_order=True)
    }


def reference_rows(model: str, resource: ScoredResource, scores: Sequence[tuple[str, pl.DataFrame]]) -> pl.DataFrame:
    """The rows of ``perplexity.reference_tests`` for the listed references of one resource, in order of preference."""
    rows = [
        _reference_row(model, resource, name, frame)
        | {"rank": rank, "kind": "model", "tokenization": _tokenization(resource, frame)}
        for rank, (name, frame) in enumerate(scores, start=1)
    ]
    return pl.DataFrame(rows, schema=REFERENCE_COLUMNS)


def ngram_row(
    model: str,
    resource: ScoredResource,
    reference: str,
    scores: pl.DataFrame,
    rank: int,
    tokenization: str,
    texts_digest: str,
    n_texts: int,
) -> pl.DataFrame:
    """The row of ``perplexity.reference_tests`` for the n-gram reference of one resource."""
    said = {"tokenization": tokenization, "texts_digest": texts_digest, "n_texts": n_texts}
    row = _reference_row(model, resource, reference, scores) | {"rank": rank, "kind": "ngram"} | said
    return pl.DataFrame([row], schema=REFERENCE_COLUMNS)


def cutoff_rows(
    model: str, versions: pl.DataFrame, references: Mapping[str, Sequence[tuple[str, pl.DataFrame]]]
) -> pl.DataFrame:
    """The rows of ``perplexity.effective_cutoffs`` for one model.

    Args:
        versions: of all resources.
        references: for each resource the references' names and versions, the preferred one first.
    """
    rows = []
    for resource in scored_resources(versions):
        others = {name: _same(resource, frame) for name, frame in references.get(resource.name, ())}
        ends = {"first_month": resource.months[0], "last_month": resource.months[-1]}
        for cutoff in _cutoffs(resource, others):
            rows.append({"model": model, "resource": resource.name, **ends, **asdict(cutoff)})
    return pl.DataFrame(rows, schema=CUTOFF_COLUMNS)


def topic_rows(
    model: str,
    resource: ScoredResource,
    reference: str,
    reference_versions: pl.DataFrame,
    distances: Mapping[str, Floats],
) -> pl.DataFrame:
    """The rows of ``perplexity.topic_cutoffs`` for one panel resource and one reference; none without a paired topic.

    Args:
        distances: for each topic the cumulative edit distance at each month of the resource. Where neither score
            changed from one month to the next the scored tokens are the same, and so is the distance.
    """
    target = panel_of(resource.versions, resource.months)
    mine, theirs = target.paired(panel_of(_same(resource, reference_versions), resource.months))
    kept = [row for row, topic in enumerate(mine.topics) if topic in distances]
    if not kept or len(resource.months) < 3:
        return pl.DataFrame(schema=TOPIC_COLUMNS)
    differences = mine.values[kept] - theirs.values[kept]
    paths = np.stack([distances[mine.topics[row]] for row in kept])
    moved = (np.diff(mine.values[kept], axis=1) != 0) | (np.diff(theirs.values[kept], axis=1) != 0)
    steps = np.where(moved, np.diff(paths, axis=1), 0.0)
    result = topic_cutoffs(differences, np.concatenate([np.zeros((len(kept), 1)), steps.cumsum(axis=1)], axis=1))
    topics = [mine.topics[row] for row in kept]
    return pl.DataFrame(
        [
            {"model": model, "resource": resource.name, "reference": reference, "topic": topic}
            | _topic_row(result, number, resource.months)
            for number, topic in enumerate(topics)
        ],
        schema=TOPIC_COLUMNS,
    )


def edit_path(texts: Sequence[str | None], max_words: int) -> Floats | None:
    """Cumulative edit distance of a topic's monthly texts over their first ``max_words`` words and marks.

    Each step is the Levenshtein distance of neighbouring versions in words, over the longer one's length (0 to 1); None
    where a month has no text.
    """
    from re import findall

    from rapidfuzz.distance import Levenshtein

    known = [text for text in texts if text is not None]
    if len(known) < len(texts) or not known:
        return None
    words = {text: findall(r"\w+|[^\w\s]", text)[:max_words] for text in set(known)}
    steps = [Levenshtein.normalized_distance(words[before], words[after]) for before, after in pairwise(known)]
    return np.cumsum([0.0, *steps])


def _reference_row(model: str, resource: ScoredResource, reference: str, scores: pl.DataFrame) -> dict[str, object]:
    own = ScoredResource(resource.name, resource.kind, resource.months, _same(resource, scores))
    held = own.versions.drop_nulls("mean_nll")["text_sha256"].n_unique()
    row: dict[str, object] = {"model": model, "resource": resource.name, "reference": reference, "n_texts": held}
    if not held:
        return row | {"status": "missing", "is_usable": False, "reason": f"{reference} has no score of this resource"}
    test = _own_cutoff(own)
    dated = {name: getattr(test, name) for name in ("status", "reason", "month")}
    ends = {"low95": test.low95, "high95": test.high95} if test.status == "found" else {}
    lacks_scores = test.status in SPARSE and test.status != _own_cutoff(resource).status
    return row | dated | ends | {"is_usable": test.status != "found" and not lacks_scores}


def _tokenization(resource: ScoredResource, scores: pl.DataFrame) -> str | None:
    """Whether a reference scored the same tokens of the same texts: another span adds noise to the difference."""
    mine, theirs = (
        frame.select("text_sha256", "token_digest").drop_nulls().unique()
        for frame in (resource.versions, _same(resource, scores))
    )
    both = mine.join(theirs, on="text_sha256", suffix="_of_reference")
    if both.is_empty():
        return None
    return "same" if (both["token_digest"] == both["token_digest_of_reference"]).all() else "other"


def _own_cutoff(resource: ScoredResource) -> EffectiveCutoff:
    if resource.is_panel:
        return reference_test(panel_of(resource.versions, resource.months))
    return bucket_test(resource.versions, resource.months)


def _cutoffs(resource: ScoredResource, references: Mapping[str, pl.DataFrame]) -> list[EffectiveCutoff]:
    if resource.is_panel:
        panels: dict[str, Panel] = {name: panel_of(frame, resource.months) for name, frame in references.items()}
        return panel_cutoffs(panel_of(resource.versions, resource.months), panels)
    return bucket_cutoffs(resource.versions, references, resource.months)


def _same(resource: ScoredResource, versions: pl.DataFrame) -> pl.DataFrame:
    return versions.filter(pl.col("resource") == resource.name)


def _topic_row(result: TopicCutoffs, number: int, months: Sequence[date]) -> dict[str, object]:
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
