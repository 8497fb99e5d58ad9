"""From rows of scores to matrices: one resource under one model, and its panel of topics by months or its buckets.

What does NOT belong here: estimators, and the reading of tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import numpy as np
import polars as pl

from strandline.perplexity.differences import LARGEST_LOGARITHM, Floats
from strandline.spans.months import month_range


@dataclass(frozen=True)
class Panel:
    """Mean negative log-likelihoods of versions, topics by months; NaN where a month has no score."""

    topics: tuple[str, ...]
    months: tuple[date, ...]
    values: Floats

    def complete(self) -> Panel:
        """The panel without topics that lack any month, or whose perplexity in any is beyond the largest float."""
        keep = np.all(np.abs(self.values) < LARGEST_LOGARITHM, axis=1)
        return self._rows(np.flatnonzero(keep).tolist())

    def paired(self, other: Panel) -> tuple[Panel, Panel]:
        """Both panels cut to the topics that are complete in both, in this panel's order and months.

        Raises:
            ValueError: where the other panel covers other months.
        """
        if self.months != other.months:
            raise ValueError("target and reference cover different months")
        mine, theirs = self.complete(), other.complete()
        place = {topic: row for row, topic in enumerate(theirs.topics)}
        shared = [row for row, topic in enumerate(mine.topics) if topic in place]
        return mine._rows(shared), theirs._rows([place[mine.topics[row]] for row in shared])

    def _rows(self, rows: Sequence[int]) -> Panel:
        return Panel(tuple(self.topics[row] for row in rows), self.months, self.values[list(rows)])


@dataclass(frozen=True)
class ScoredResource:
    """One resource under one model or reference: its name, kind, months in order, and its versions with their scores.

    ``versions`` has the columns of ``perplexity.versions_of``, one row a version whatever its status; values that are
    NULL or not finite are missing. Its matrices are made once.
    """

    name: str
    kind: str
    months: tuple[date, ...]
    versions: pl.DataFrame

    @property
    def is_panel(self) -> bool:
        """Whether the months hold the same documents."""
        return self.kind == "panel"

    @property
    def has_scores(self) -> bool:
        """Whether any version has a score."""
        return self.versions["mean_nll"].null_count() < self.versions.height

    @cached_property
    def panel(self) -> Panel:
        """Topics by months."""
        return panel_of(self.versions, self.months)

    @cached_property
    def complete(self) -> Panel:
        """The topics that have a score in every month."""
        return self.panel.complete()

    @cached_property
    def buckets(self) -> list[Floats]:
        """Each month's documents."""
        return buckets_of(self.versions, self.months)

    @property
    def facts(self) -> dict[str, object]:
        """How its texts were scored: the number format, the limit in tokens, and the tokens that were scored at most
        where the model's context ended before the limit did."""
        cut = self.versions.filter(_column(self.versions, "is_context_limited").fill_null(False))
        return {
            "dtype": _first(self.versions, "dtype"),
            "max_tokens": _first(self.versions, "max_tokens"),
            "context_tokens": cut["n_tokens"].max() if cut.height and "n_tokens" in cut.columns else None,
        }

    def under(self, versions: pl.DataFrame) -> ScoredResource:
        """The same resource and months with the scores that another model gave, out of a frame of any resources."""
        return ScoredResource(self.name, self.kind, self.months, versions.filter(pl.col("resource") == self.name))


def resources_of(versions: pl.DataFrame) -> Iterator[ScoredResource]:
    """The resources in a frame of versions, in its order, those without any score among them."""
    for (name, kind), group in versions.group_by(["resource", "kind"], maintain_order=True):
        yield ScoredResource(str(name), str(kind), _months(str(kind), group["month"]), group)


def tokens_note(max_tokens: int | None, context_tokens: int | None) -> str | None:
    """That fewer tokens were scored than asked for, as people read it; None where they were not."""
    if context_tokens is None or max_tokens is None or context_tokens >= max_tokens:
        return None
    return f"only the first {context_tokens} of {max_tokens} tokens were scored: the model's context ends there"


def panel_of(scores: pl.DataFrame, months: Sequence[date] | None = None) -> Panel:
    """The matrix of a long frame with columns ``topic``, ``month`` and ``mean_nll`` (one row a version, NULL allowed).

    Args:
        months: the columns wanted, in order; all months of the frame by default.

    Raises:
        ValueError: where a topic has two rows for a month.
    """
    if scores.select(pl.struct("topic", "month").is_duplicated().any()).item():
        raise ValueError("a topic has two scores for one month")
    columns = tuple(months) if months is not None else tuple(scores["month"].unique().sort())
    topics = tuple(scores["topic"].unique().sort())
    row = {topic: index for index, topic in enumerate(topics)}
    column = {month: index for index, month in enumerate(columns)}
    values = np.full((len(topics), len(columns)), np.nan)
    for topic, month, nll in scores.select("topic", "month", "mean_nll").iter_rows():
        if month in column and nll is not None:
            values[row[topic], column[month]] = nll
    return Panel(topics, columns, values)


def buckets_of(scores: pl.DataFrame, months: Sequence[date]) -> list[Floats]:
    """The scores of each month's documents, for resources whose months hold different documents.

    A document without a score, or with one that is not finite, is left out.
    """
    kept = scores.filter(pl.col("mean_nll").is_finite().fill_null(False)).sort("month", "topic")
    by_month = {key[0]: frame["mean_nll"].to_numpy() for key, frame in kept.group_by("month", maintain_order=True)}
    return [np.asarray(by_month.get(month, np.zeros(0)), dtype=np.float64) for month in months]


def _months(kind: str, held: pl.Series) -> tuple[date, ...]:
    """The months of the range. In an unpaired resource a month without any document counts: it is a gap in a series."""
    months = tuple(held.unique().sort())
    return month_range(months[0], months[-1]) if kind == "unpaired" else months


def _column(frame: pl.DataFrame, name: str) -> pl.Expr:
    return pl.col(name) if name in frame.columns else pl.lit(None, dtype=pl.Boolean)


def _first(frame: pl.DataFrame, name: str) -> object:
    values = frame[name].drop_nulls().to_list() if name in frame.columns else []
    return values[0] if values else None
