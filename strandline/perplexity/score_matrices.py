"""From rows of scores to matrices: topics by months, complete or not, paired with a reference.

What does NOT belong here: estimators, and the reading of tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import polars as pl

from strandline.perplexity.differences import Floats


@dataclass(frozen=True)
class Panel:
    """Mean negative log-likelihoods of versions, topics by months; NaN where a month has no score."""

    topics: tuple[str, ...]
    months: tuple[date, ...]
    values: Floats

    def complete(self) -> Panel:
        """The panel without topics that lack any month."""
        keep = np.all(np.isfinite(self.values), axis=1)
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
    """The scores of each month's documents, for resources whose months hold different documents."""
    kept = scores.drop_nulls("mean_nll").sort("month", "topic")
    by_month = {key[0]: frame["mean_nll"].to_numpy() for key, frame in kept.group_by("month", maintain_order=True)}
    return [np.asarray(by_month.get(month, np.zeros(0)), dtype=np.float64) for month in months]
