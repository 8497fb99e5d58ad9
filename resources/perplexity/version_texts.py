"""Reading scored versions and their texts out of the warehouse, as the cutoff methods take them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import polars as pl

from resources.warehouse.store import Warehouse
from strandline.perplexity.differences import Floats
from strandline.perplexity.rows import edit_path

READ_CHARACTERS_PER_TOKEN = 16
"""Characters read of a text for each token that is scored: more than words and marks take on the mean, so that every
word of the scored span is there. A bound on memory, no estimate."""

TOPICS_AT_ONCE = 50
"""Topics whose texts are read together: a trade-off between memory and queries."""


def versions(store: Warehouse, model: str, resource: str | None = None) -> pl.DataFrame:
    """All versions with their scores under the model (or those of one resource), ordered by resource, month, topic."""
    where = "where resource = ?" if resource is not None else ""
    named = [model] if resource is None else [model, resource]
    return store.query(f"select * from perplexity.versions_of(?) {where} order by resource, month, topic", named)


def edit_paths(store: Warehouse, resource: str, months: Sequence[date], topics: Sequence[str]) -> dict[str, Floats]:
    """Cumulative edit distances of the topics that have a text in every month, over the words that are scored."""
    max_tokens = store.query("select max_tokens from spans.resources where resource = ?", [resource]).item()
    paths: dict[str, Floats] = {}
    for first in range(0, len(topics), TOPICS_AT_ONCE):
        part = list(topics[first : first + TOPICS_AT_ONCE])
        held = store.query(
            "select topic, month, text_sha256 from spans.revisions "
            "where resource = ? and list_contains(?, topic) and text_sha256 is not null",
            [resource, part],
        )
        texts = store.query(
            "select text_sha256, left(text, ?) as text from spans.texts "
            "where text_sha256 in (select text_sha256 from spans.revisions where resource = ? "
            "and list_contains(?, topic))",
            [READ_CHARACTERS_PER_TOKEN * max_tokens, resource, part],
        )
        paths |= _paths(held, dict(texts.iter_rows()), months, max_tokens)
    return paths


def _paths(held: pl.DataFrame, texts: dict[str, str], months: Sequence[date], max_tokens: int) -> dict[str, Floats]:
    paths: dict[str, Floats] = {}
    for (topic,), rows in held.group_by(["topic"], maintain_order=True):
        by_month = dict(rows.select("month", "text_sha256").iter_rows())
        path = edit_path([texts.get(by_month.get(month, "")) for month in months], max_tokens)
        if path is not None:
            paths[str(topic)] = path
    return paths
