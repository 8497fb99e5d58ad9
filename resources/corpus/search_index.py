"""A search index over one shard of a corpus, on disk: built from a stream once, checked, and searched many times.

The engine is tantivy. It finds candidates; their BM25 scores are computed here from their words and the statistics of
the whole corpus, so that hits depend neither on how a corpus is cut into files nor on how its letters are written. A
query is words alone: no character in a text has a meaning of its own. Scores are compared to four decimals and ties
stand in order of document id. An index whose bytes have changed since it was built is built again.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

from strandline.corpus import BrokenRecord, Document, Location
from strandline.corpus.bm25 import CorpusStatistics, largest_ratio, query_words, score
from strandline.corpus.texts import search_words

INDEX_FORMAT = 2
"""Raise it when an index of the same documents would hold something else: it is then built again."""

HEAP_BYTES = 64_000_000
"""Memory of the engine's writer, whose least is 15 MB. A judgement: more makes fewer segments to merge, and every shard
that is indexed at the same time takes as much."""

DECIMALS = 4
"""Decimals to which scores are compared, so that the order of additions decides no rank."""

BROKEN_ROWS = 10_000
"""Broken records of a shard that are kept one by one; beyond, they are counted only."""

MOST_CANDIDATES = 4096
"""Candidates of a query whose scores are computed, ties aside. Files whose documents are on average shorter than the
corpus's need more than the hits asked for; a near duplicate shares nearly all words and is among the first."""

_ENGINE_ERROR = 1.0001
"""The engine adds up in single precision: with 512 words its scores are off by less than this factor."""


@dataclass(slots=True)
class IndexReport:
    """What a shard holds: documents and bytes by sub-corpus, and every broken record."""

    documents: dict[str, int] = field(default_factory=dict)
    n_bytes: dict[str, int] = field(default_factory=dict)
    n_broken: int = 0
    broken: list[BrokenRecord] = field(default_factory=list)
    n_words: int = 0


def build(folder: Path, records: Iterable[Document | BrokenRecord]) -> IndexReport:
    """Index a stream of records into `folder`, which exists only once it is complete. Memory stays flat.

    Where the folder is there already, as it was written and of this format, nothing is done and its report is returned.
    One that was damaged is built again.
    """
    if folder.exists():
        if (known := _report_of_sound(folder)) is not None:
            return known
        _remove(folder)
    making = folder.with_name(f".{folder.name}.{uuid4().hex}")
    making.mkdir(parents=True)
    try:
        report = _fill(making, records)
        about = {"format": INDEX_FORMAT, "files": _checksums(making), "report": asdict(report)}
        (making / REPORT).write_text(json.dumps(about, default=str), encoding="utf-8")
        making.replace(folder)
    except OSError:
        if not folder.exists():
            raise
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return read_report(folder)


def read_report(folder: Path) -> IndexReport:
    """The report of a finished index. OSError, ValueError, KeyError or TypeError where it was damaged."""
    stored = json.loads((folder / REPORT).read_text(encoding="utf-8"))["report"]
    broken = [BrokenRecord(Location(**each.pop("location")), **each) for each in stored.pop("broken")]
    return IndexReport(**stored, broken=broken)


def _report_of_sound(folder: Path) -> IndexReport | None:
    """The report of an index whose every byte is as it was written; None where it is not, or of another format.

    The bytes are read once in a process, and again where the report was written since.
    """
    try:
        about = json.loads((folder / REPORT).read_text(encoding="utf-8"))
        stamp = (str(folder), (folder / REPORT).stat().st_mtime_ns)
        with _CHECKING:
            if about["format"] != INDEX_FORMAT or (stamp not in _CHECKED and about["files"] != _checksums(folder)):
                return None
            _CHECKED.add(stamp)
        return read_report(folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _checksums(folder: Path) -> dict[str, list[int]]:
    """The size and CRC of every file of an index but its report and the engine's locks."""
    found = {}
    for file in sorted(folder.iterdir()):
        if file.name != REPORT and not file.name.endswith(".lock"):
            size = crc = 0
            with file.open("rb") as data:
                while block := data.read(1 << 20):
                    size, crc = size + len(block), zlib.crc32(block, crc)
            found[file.name] = [size, crc]
    return found


def _remove(folder: Path) -> None:
    """Remove a damaged index so that no one sees half of it."""
    aside = folder.with_name(f".{folder.name}.{uuid4().hex}")
    try:
        folder.replace(aside)
    except FileNotFoundError:
        return
    shutil.rmtree(aside, ignore_errors=True)


REPORT = "report.json"
"""The file that is written last, so that an index without it is not finished."""

_CHECKED: set[tuple[str, int]] = set()
"""Indexes whose bytes were compared in this process: folder, and when the report was written."""

# One thread checks an index at a time, so that the bytes of one are read once in a process.
_CHECKING = Lock()


class SearchIndex:
    """A finished index, opened for reading."""

    def __init__(self, folder: Path) -> None:
        import tantivy

        self._schema = _schema()
        self._n_words = read_report(folder).n_words
        self._index = tantivy.Index.open(str(folder))
        self._searcher = self._index.searcher()

    def __len__(self) -> int:
        return int(self._searcher.num_docs)

    def statistics(self, words: Iterable[str]) -> CorpusStatistics:
        """What scores depend on, for these words."""
        found = {word: int(self._searcher.doc_freq("words", word)) for word in words}
        return CorpusStatistics(len(self), self._n_words, {word: n for word, n in found.items() if n})

    def search(
        self, text: str, top: int = 10, words: int = 512, statistics: CorpusStatistics | None = None
    ) -> list[tuple[float, Document]]:
        """The best documents for the first `words` words of a text, best first; fewer where fewer share a word.

        A word that occurs twice in the query counts twice. Empty texts and empty indexes give nothing.

        Args:
            text: the query.
            top: hits wanted.
            words: words of the text that are searched for.
            statistics: of the whole corpus; those of this index alone where it is None.
        """
        query = query_words(text, words)
        here = self.statistics(query)
        if not here.frequencies or top < 1:
            return []
        whole = statistics or here
        engine_query, may_exceed = self._query(query, here, whole), largest_ratio(here, whole) * _ENGINE_ERROR
        scored: dict[tuple[int, int], tuple[float, Document]] = {}
        limit = top + 1
        while True:
            hits = self._searcher.search(engine_query, limit=limit, count=False).hits
            for _, address in hits:
                if (address.segment_ord, address.doc) not in scored:
                    document = self._document(address)
                    exact = score(search_words(document.text), query, whole)
                    scored[address.segment_ord, address.doc] = (round(exact, DECIMALS), document)
            best = sorted(scored.values(), key=lambda hit: (-hit[0], hit[1].document_id))[:top]
            if len(hits) < limit or _is_settled([hit[0] for hit in hits], best, top, may_exceed):
                return best
            limit *= 2

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

    def _query(self, query: Mapping[str, int], here: CorpusStatistics, whole: CorpusStatistics) -> Any:
        """The engine's query whose words weigh as they do in the whole corpus."""
        import tantivy

        clauses = []
        for word in here.frequencies:
            term = tantivy.Query.term_query(self._schema, "words", word, index_option="freq")
            weight = query[word] * whole.idf(word) / here.idf(word)
            clauses.append((tantivy.Occur.Should, tantivy.Query.boost_query(term, weight)))
        return tantivy.Query.boolean_query(clauses)

    def _document(self, address: Any) -> Document:
        stored: Any = self._searcher.doc(address)
        about = json.loads(bytes(stored.get_first("about")))
        location = Location(*about.pop("location"))
        day = about.pop("crawled_on")
        crawled_on = None if day is None else date.fromisoformat(day)
        text = bytes(stored.get_first("text")).decode("utf-8", "surrogatepass")
        return Document(text=text, location=location, crawled_on=crawled_on, **about)


def _is_settled(found: list[float], best: list[tuple[float, Document]], top: int, may_exceed: float) -> bool:
    """Whether no document that the engine has not given yet can be among the best."""
    last = float(found[-1])
    if last * may_exceed < best[-1][0] - 10**-DECIMALS:
        return True
    return len(found) >= MOST_CANDIDATES and last < float(found[top - 1])


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
        words = search_words(record.text)
        writer.add_document(_stored(record, words, ordinal))
        ordinal += 1
        report.n_words += len(words)
        name = record.subcorpus
        report.documents[name] = report.documents.get(name, 0) + 1
        report.n_bytes[name] = report.n_bytes.get(name, 0) + len(record.text.encode("utf-8", "replace"))
    return report


def _stored(record: Document, words: list[str], ordinal: int) -> Any:
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
    document.add_text("words", " ".join(words))
    document.add_bytes("text", record.text.encode("utf-8", "surrogatepass"))
    document.add_bytes("about", json.dumps(about).encode())
    document.add_text("document_id", record.document_id)
    document.add_unsigned("ordinal", ordinal)
    return document


def _schema() -> Any:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("words", stored=False, tokenizer_name="whitespace", index_option="freq")
    builder.add_bytes_field("text", stored=True)
    builder.add_bytes_field("about", stored=True)
    builder.add_text_field("document_id", stored=False, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("ordinal", stored=False, indexed=True)
    return builder.build()
