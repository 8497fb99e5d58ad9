"""A BM25 index over one shard of a corpus, on disk: built from a stream once, searched many times.

The engine is tantivy: Okapi BM25 (k1 = 1.2, b = 0.75) whose inverse document frequency ln(1 + (N - n + ½) / (n + ½)) is
never negative, over words in lower case of at most 40 bytes. A query is words alone: no character in a text has a
meaning of its own. Statistics are those of the shard. The result does not depend on the order of the documents: scores
are compared to four decimals and ties stand in order of document id.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any
from uuid import uuid4

from strandline.corpus import BrokenRecord, Document, Location

HEAP_BYTES = 64_000_000
LONGEST_WORD = 40
DECIMALS = 4
BROKEN_ROWS = 10_000
"""Broken records of a shard that are kept one by one; beyond, they are counted only."""


@dataclass(slots=True)
class IndexReport:
    """What a shard holds: documents and bytes by sub-corpus, and every broken record."""

    documents: dict[str, int] = field(default_factory=dict)
    n_bytes: dict[str, int] = field(default_factory=dict)
    n_broken: int = 0
    broken: list[BrokenRecord] = field(default_factory=list)


def build(folder: Path, records: Iterable[Document | BrokenRecord]) -> IndexReport:
    """Index a stream of records into `folder`, which exists only once it is complete. Memory stays flat.

    Where the folder is there already nothing is done, and its report is returned.
    """
    if folder.exists():
        return read_report(folder)
    making = folder.with_name(f".{folder.name}.{uuid4().hex}")
    making.mkdir(parents=True)
    try:
        report = _fill(making, records)
        (making / "report.json").write_text(json.dumps(asdict(report), default=str), encoding="utf-8")
        making.replace(folder)
    except OSError:
        if not folder.exists():
            raise
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return read_report(folder)


def read_report(folder: Path) -> IndexReport:
    """The report of a finished index."""
    stored = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    broken = [BrokenRecord(Location(**each.pop("location")), **each) for each in stored.pop("broken")]
    return IndexReport(**stored, broken=broken)


class SearchIndex:
    """A finished index, opened for reading."""

    def __init__(self, folder: Path) -> None:
        import tantivy

        self._schema = _schema()
        self._index = tantivy.Index.open(str(folder))
        self._searcher = self._index.searcher()
        self._analyzer = _analyzer()

    def __len__(self) -> int:
        return int(self._searcher.num_docs)

    def search(self, text: str, top: int = 10, words: int = 512) -> list[tuple[float, Document]]:
        """The best documents for the first `words` words of a text, best first; fewer where fewer share a word.

        A word that occurs twice in the query counts twice. Empty texts and empty indexes give nothing.
        """
        found = Counter(self._analyzer.analyze(text)[:words])
        if not found or top < 1:
            return []
        query = self._query(found)
        limit = top + 1
        while True:
            hits = self._searcher.search(query, limit=limit, count=False).hits
            scores = [round(float(score), DECIMALS) for score, _ in hits]
            if len(hits) < limit or scores[-1] < scores[top - 1]:
                break
            limit *= 2
        wanted = scores[top - 1] if len(scores) >= top else float("-inf")
        chosen = [(score, self._document(at)) for score, (_, at) in zip(scores, hits, strict=True) if score >= wanted]
        return sorted(chosen, key=lambda hit: (-hit[0], hit[1].document_id))[:top]

    def documents(self) -> Iterator[Document]:
        """All documents in the order in which they were read."""
        import tantivy

        for ordinal in range(len(self)):
            query = tantivy.Query.term_query(self._schema, "ordinal", ordinal)
            ((_, address),) = self._searcher.search(query, limit=1, count=False).hits
            yield self._document(address)

    def document(self, document_id: str) -> Document | None:
        """The document of that id, or None where this index does not hold it."""
        import tantivy

        query = tantivy.Query.term_query(self._schema, "document_id", document_id)
        hits = self._searcher.search(query, limit=1, count=False).hits
        return self._document(hits[0][1]) if hits else None

    def _query(self, words: Counter[str]) -> Any:
        import tantivy

        clauses = []
        for word, count in words.items():
            term = tantivy.Query.term_query(self._schema, "text", word, index_option="freq")
            clauses.append(
                (tantivy.Occur.Should, term if count == 1 else tantivy.Query.boost_query(term, float(count)))
            )
        return tantivy.Query.boolean_query(clauses)

    def _document(self, address: Any) -> Document:
        stored = self._searcher.doc(address)
        about = json.loads(stored.get_first("about"))
        location = Location(*about.pop("location"))
        day = about.pop("crawled_on")
        crawled_on = None if day is None else date.fromisoformat(day)
        return Document(text=stored.get_first("text"), location=location, crawled_on=crawled_on, **about)


def _fill(folder: Path, records: Iterable[Document | BrokenRecord]) -> IndexReport:
    import tantivy

    writer = tantivy.Index(_schema(), path=str(folder)).writer(heap_size=HEAP_BYTES, num_threads=1)
    try:
        report = _add(writer, records)
        writer.commit()
    finally:
        writer.wait_merging_threads()
    return report


def _add(writer: Any, records: Iterable[Document | BrokenRecord]) -> IndexReport:
    report = IndexReport()
    ordinal = 0
    for record in records:
        if isinstance(record, BrokenRecord):
            report.n_broken += 1
            if len(report.broken) < BROKEN_ROWS:
                report.broken.append(record)
            continue
        writer.add_document(_stored(record, ordinal))
        ordinal += 1
        name = record.subcorpus
        report.documents[name] = report.documents.get(name, 0) + 1
        report.n_bytes[name] = report.n_bytes.get(name, 0) + len(record.text.encode("utf-8", "replace"))
    return report


def _stored(record: Document, ordinal: int) -> Any:
    import tantivy

    place = record.location
    about = {
        "location": [place.file, place.unit, place.position, place.offset],
        "subcorpus": record.subcorpus,
        "crawled_on": None if record.crawled_on is None else record.crawled_on.isoformat(),
        "source_id": record.source_id,
        "url": record.url,
        "revision": record.revision,
        "replaced": record.replaced,
    }
    document = tantivy.Document()
    document.add_text("text", record.text)
    document.add_bytes("about", json.dumps(about).encode())
    document.add_text("document_id", record.document_id)
    document.add_unsigned("ordinal", ordinal)
    return document


def _schema() -> Any:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=True, tokenizer_name="default", index_option="freq")
    builder.add_bytes_field("about", stored=True)
    builder.add_text_field("document_id", stored=False, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("ordinal", stored=False, indexed=True)
    return builder.build()


def _analyzer() -> Any:
    """The engine's default analysis, applied to a query outside the index."""
    import tantivy

    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    return builder.filter(tantivy.Filter.remove_long(LONGEST_WORD)).filter(tantivy.Filter.lowercase()).build()
