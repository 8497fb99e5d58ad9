"""The versions of a resource as the warehouse holds them, topic by topic, a batch of texts in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from hashlib import sha256

import polars as pl

from resources.warehouse.store import Warehouse
from strandline.corpus import TopicVersions, topic_versions

TOPICS_A_BATCH = 50
"""Topics whose texts are in memory together: with a hundred versions of 40 KB each, some 200 MB."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some topics of a resource; `digest` changes when any of their texts or months or the reported month does."""

    topics: tuple[str, ...]
    digest: str


class ResourceTopics:
    """All topics of a resource that have a text in some month.

    Iterating gives the versions of one topic after the other, as often as wanted.

    Args:
        warehouse: where `spans.revisions` and `spans.texts` are.
        resource: the versioned resource.
        reported: the month that is advertised for it; its newest month where that is None.
    """

    def __init__(self, warehouse: Warehouse, resource: str, reported: date | None = None) -> None:
        self._warehouse = warehouse
        self.resource = resource
        rows = warehouse.query(
            "select topic, month, revision, text_sha256 from spans.revisions "
            "where resource = ? and status = 'ok' and text_sha256 is not null order by topic, month",
            [resource],
        )
        self.revisions = rows
        self.months: tuple[date, ...] = tuple(sorted(rows["month"].unique().to_list()))
        self.reported = reported or (self.months[-1] if self.months else None)
        self.topics: tuple[str, ...] = tuple(rows["topic"].unique(maintain_order=True).to_list())

    def __len__(self) -> int:
        return len(self.topics)

    def __iter__(self) -> Iterator[TopicVersions]:
        for batch in self.batches():
            yield from self.load(batch)

    def batches(self, size: int = TOPICS_A_BATCH) -> list[Batch]:
        """The topics in batches, each with a digest of everything that matching them depends on."""
        starts = range(0, len(self.topics), size)
        return [self._batch(self.topics[start : start + size]) for start in starts]

    def load(self, batch: Batch) -> list[TopicVersions]:
        """The versions of a batch's topics; a topic whose texts are all blank is left out."""
        chosen = self.revisions.filter(pl.col("topic").is_in(list(batch.topics)))
        texts = self._texts(chosen["text_sha256"].unique().to_list())
        found = []
        for topic in batch.topics:
            rows = chosen.filter(pl.col("topic") == topic)
            monthly = [(month, texts[name]) for month, name in rows.select("month", "text_sha256").iter_rows()]
            if any(text.strip() for _, text in monthly):
                found.append(topic_versions(topic, monthly, self.reported))
        return found

    def _batch(self, topics: tuple[str, ...]) -> Batch:
        rows = self.revisions.filter(pl.col("topic").is_in(list(topics))).select("topic", "month", "text_sha256")
        digest = sha256(f"{self.resource}\x1f{self.reported}".encode())
        for row in rows.iter_rows():
            digest.update("\x1f".join(map(str, row)).encode("utf-8", "surrogatepass"))
        return Batch(topics, digest.hexdigest()[:24])

    def _texts(self, names: list[str]) -> dict[str, str]:
        found = self._warehouse.query(
            "select text_sha256, text from spans.texts where text_sha256 in (select unnest(?))", [names]
        )
        return dict(found.iter_rows())
