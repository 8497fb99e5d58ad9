"""Corpus mining: which versions of a resource a corpus holds, how many copies, and why a cutoff lies where it does.

Here belong the records that reading, matching and counting share. Opening files and searching indexes is done in
`resources`; every method in this package takes texts and returns records or frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import sha256

SHARD_STATUSES = READ, EMPTY, FAILED = "ok", "empty", "failed"
"""What can become of a shard, as stored in `corpus.corpora.status`: read, without a document, or not reached."""

LONGEST_REASON = 300
"""Characters that a reason stays under: libraries quote whole records in theirs, and a table must be readable."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where a record stands: the file, its line, row or record counted from 1, and its byte offset where one exists.

    The offset is into the file as stored for WARC, and into the decompressed stream for JSONL and ARC; Parquet rows
    have none.
    """

    file: str
    unit: str
    position: int
    offset: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.unit} {self.position}" + ("" if self.offset is None else f"@{self.offset}")


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a corpus, with everything that is known about where it came from.

    `subcorpus` is the part of the corpus, `crawled_on` the day it was fetched, `source_id` and `url` the corpus's own
    names of it. `revision` is the version that the document is known to be, for corpora with known truth.
    `replaced` is the share of characters that could not be decoded and stand as U+FFFD.
    """

    text: str
    location: Location
    subcorpus: str
    crawled_on: date | None = None
    source_id: str | None = None
    url: str | None = None
    revision: str | None = None
    replaced: float = 0.0

    @property
    def document_id(self) -> str:
        """A unique name whose order is that of the content first, so that ties never depend on a corpus's order."""
        digest = sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return f"{digest}@{self.location.file}:{self.location.position}"


@dataclass(frozen=True, slots=True)
class BrokenRecord:
    """A record that could not be read, where it stands, and why, on one line of less than 300 characters.

    `kind` is one word for counting.
    """

    location: Location
    kind: str
    reason: str

    def __post_init__(self) -> None:
        reason = " ".join(self.reason.split())
        if len(reason) >= LONGEST_REASON:
            reason = f"{reason[: LONGEST_REASON - 3]} …"
        object.__setattr__(self, "reason", reason)


@dataclass(frozen=True, slots=True)
class TextVersion:
    """A distinct text of a topic and the months in which it was in force."""

    text: str
    months: tuple[date, ...]


@dataclass(frozen=True, slots=True)
class TopicVersions:
    """All distinct versions of one topic; `query` is the version at the reported month."""

    topic: str
    versions: tuple[TextVersion, ...]
    query: str

    @property
    def months(self) -> tuple[date, ...]:
        """The months in which the topic has a text, in order."""
        return tuple(sorted(month for version in self.versions for month in version.months))


def topic_versions(topic: str, texts: Sequence[tuple[date, str]], reported_month: date | None) -> TopicVersions:
    """Gather a topic's monthly texts into distinct versions and choose the query.

    Texts are compared in Unicode NFC, once each; empty texts are left out. The query is the version at
    `reported_month`; where the topic has none in that month, the last one before it, else the first one after it.
    Without a reported month it is the newest. Raises ValueError where no text remains.
    """
    from strandline.corpus.texts import nfc

    monthly = sorted((month, text) for month, text in ((month, nfc(text)) for month, text in texts) if text.strip())
    if not monthly:
        raise ValueError(f"{topic}: no version has a text")
    gathered: dict[str, list[date]] = {}
    for month, text in monthly:
        gathered.setdefault(text, []).append(month)
    before = [text for month, text in monthly if reported_month is None or month <= reported_month]
    versions = tuple(TextVersion(text, tuple(months)) for text, months in gathered.items())
    return TopicVersions(topic, versions, before[-1] if before else monthly[0][1])
