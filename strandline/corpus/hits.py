"""Hits of topics' queries: the best of all files, and what each counts as a copy.

Searching is done in `resources.corpus`; which version a hit is, in `attribution`.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

HIT_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "subcorpus": pl.String,
    "topic": pl.String,
    "document_id": pl.String,
    "location": pl.String,
    "url": pl.String,
    "source_id": pl.String,
    "revision": pl.String,
    "crawled_on": pl.Date,
    "n_chars": pl.Int32,
    "bm25_score": pl.Float64,
    "edits": pl.Int32,
    "distance": pl.Float64,
    "months": pl.List(pl.Date),
    "replaced_share": pl.Float64,
    "head": pl.String,
}
"""The columns of a hit: those of `corpus.matches`, and two that stay out of the warehouse: the version that the
document says it is, and its first words, which Algorithm 2 counts."""


def merged_hits(frames: Sequence[pl.DataFrame], top: int) -> pl.DataFrame:
    """The best hits of each topic over all shards with their rank; ties stand in order of document id."""
    if not frames:
        return pl.DataFrame(schema={**HIT_SCHEMA, "bm25_rank": pl.Int32})
    ordered = pl.concat(frames).sort(["topic", "bm25_score", "document_id"], descending=[False, True, False])
    ranked = ordered.with_columns(bm25_rank=pl.int_range(1, pl.len() + 1).over("topic").cast(pl.Int32))
    return ranked.filter(pl.col("bm25_rank") <= top)


def weighted(hits: pl.DataFrame, every_topic: bool = False) -> pl.DataFrame:
    """Hits with what each counts: a copy counts once, for the topic that it is nearest to; topics that tie share it.

    With `every_topic` a document counts fully for each topic that it is near to, as Algorithm 1 is printed.
    """
    if every_topic:
        return hits.with_columns(weight=pl.col("distance").is_not_null().cast(pl.Float64))
    nearest = (pl.col("edits") == pl.col("edits").min().over("document_id")).fill_null(False)
    ranked = hits.with_columns(nearest=nearest)
    share = pl.col("nearest").cast(pl.Float64) / pl.col("nearest").sum().over("document_id").clip(1)
    return ranked.with_columns(weight=share).drop("nearest")
