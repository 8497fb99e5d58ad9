"""The formats of corpus files: JSON lines, Parquet, WARC and WET. One generator each, documents and broken records.

Nothing is skipped silently: a record that cannot be read is a `BrokenRecord` with its place, and reading goes on after
it. What a record's fields mean is decided by its layout in `strandline.corpus.layouts`.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from resources.corpus.arc import records as arc_records
from resources.corpus.streams import lines
from resources.corpus.warc import Damage, Found
from resources.corpus.warc import records as warc_records
from strandline.corpus import BrokenRecord, Document, Location
from strandline.corpus.layouts import Layout, Parts, as_day, parts, top_fields
from strandline.spans.commoncrawl import decode

Record = Document | BrokenRecord
Archive = Callable[[BinaryIO], Iterator[Found | Damage]]
UNREADABLE_SHARE = 0.01
"""Share of characters that an encoding could not read, from which on a page counts as broken."""


def jsonl(file: BinaryIO, name: str, layout: Layout, subcorpus: str | None) -> Iterator[Record]:
    """The documents of a file of JSON lines, plain or compressed with gzip, zstd, xz or bzip2. Blank lines are none."""
    for line in lines(file):
        location = Location(name, "line", line.number, line.offset)
        if line.fault is not None:
            if line.fault.kind != "long" and line.data.strip():
                yield from _decoded(line.data, location, layout, subcorpus, keep_broken=False)
            yield BrokenRecord(location, line.fault.kind, f"{line.fault.reason} (byte {line.fault.stored_offset})")
        elif line.data.strip():
            yield from _decoded(line.data, location, layout, subcorpus)


def _decoded(
    data: bytes, location: Location, layout: Layout, subcorpus: str | None, keep_broken: bool = True
) -> Iterator[Record]:
    try:
        record = json.loads(data.decode("utf-8-sig"))
        yield _document(parts(record, layout), location, subcorpus)
    except UnicodeDecodeError as error:
        fault = BrokenRecord(location, "encoding", f"byte {error.start} of the line is not UTF-8 ({error.reason})")
    except json.JSONDecodeError as error:
        fault = BrokenRecord(location, "json", f"no JSON: {error.msg} at character {error.pos}")
    except RecursionError:
        fault = BrokenRecord(location, "json", "the JSON is nested too deeply")
    except ValueError as error:
        fault = BrokenRecord(location, "record", str(error))
    else:
        return
    if keep_broken:
        yield fault


def parquet(file: BinaryIO, name: str, layout: Layout, subcorpus: str | None) -> Iterator[Record]:
    """The documents of a Parquet file, a batch of rows at a time. A damaged row group does not end the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(file)
        columns = [column for column in top_fields(layout) if column in table.schema_arrow.names]
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        yield BrokenRecord(Location(name, "row", 1), "parquet", f"no readable Parquet file: {_one_line(error)}")
        return
    row = 0
    for group in range(table.num_row_groups):
        first, size = row, table.metadata.row_group(group).num_rows
        why = "it ends early"
        try:
            for batch in table.iter_batches(batch_size=512, row_groups=[group], columns=columns):
                for record in _records(batch):
                    row += 1
                    yield _row(record, Location(name, "row", row), layout, subcorpus)
        except (pa.ArrowException, OSError) as error:
            why = _one_line(error)
        if row != first + size:
            lost = f"rows {row + 1} to {first + size} of row group {group + 1} cannot be read: {why}"
            yield BrokenRecord(Location(name, "row", row + 1), "parquet", lost)
        row = first + size
    if row != table.metadata.num_rows:
        lost = f"the file promises {table.metadata.num_rows} rows, its row groups hold {row}"
        yield BrokenRecord(Location(name, "row", row + 1), "parquet", lost)


def _records(batch: Any) -> Iterator[dict[str, Any] | UnicodeDecodeError]:
    """The rows of a batch; a value that Python cannot hold costs itself, and bytes that are no text their row."""
    try:
        yield from batch.to_pylist()
    except (ValueError, OverflowError, LookupError):
        for place in range(batch.num_rows):
            try:
                yield {name: _value(batch.column(name)[place]) for name in batch.schema.names}
            except UnicodeDecodeError as error:
                yield error


def _value(scalar: Any) -> Any:
    """A value, None where Python has none such: days after the year 9999, times of a zone that does not exist."""
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        raise
    except (ValueError, OverflowError, LookupError):
        return None


def _row(
    record: dict[str, Any] | UnicodeDecodeError, location: Location, layout: Layout, subcorpus: str | None
) -> Record:
    if isinstance(record, UnicodeDecodeError):
        reason = f"byte {record.start} of a value is not UTF-8 ({record.reason})"
        return BrokenRecord(location, "encoding", reason)
    try:
        return _document(parts(record, layout), location, subcorpus)
    except ValueError as error:
        return BrokenRecord(location, "record", str(error))


def warc(file: BinaryIO, name: str, subcorpus: str | None, records: Archive = warc_records) -> Iterator[Record]:
    """The documents of a WARC or WET file, plain or compressed: converted text, and the main text of successful pages.

    Requests, revisits, metadata and failed or non-text responses hold no document. After damage the next record that
    can be read is sought.
    """
    for number, found in enumerate(records(file), 1):
        location = Location(name, "record", number, found.offset)
        if isinstance(found, Damage):
            yield BrokenRecord(location, found.kind, found.reason)
        elif found.body is not None:
            yield _page(found, location, subcorpus)


def _page(found: Found, location: Location, subcorpus: str | None) -> Record:
    assert found.body is not None
    text, encoding, replaced = decode(found.body, found.content_type)
    if replaced > UNREADABLE_SHARE:
        reason = f"{replaced:.1%} of the page's characters cannot be read as {encoding}"
        return BrokenRecord(location, "encoding", reason)
    if found.is_html:
        text = main_text(text)
    if not text.strip():
        return BrokenRecord(location, "no_text", "no main text was found on the page")
    whole = Parts(text, found.record_id, found.url, None, as_day(found.date))
    return _document(whole, location, subcorpus, replaced)


def main_text(html: str) -> str:
    """The main text of a page, empty where there is none."""
    from trafilatura import extract

    try:
        return extract(html, include_comments=False, favor_recall=True) or ""
    except (ValueError, AssertionError, RecursionError):
        return ""


def _document(found: Parts, location: Location, subcorpus: str | None, replaced: float = 0.0) -> Document:
    text = found.text
    if not text.isascii():
        clean = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        if clean != text:
            replaced += clean.count("\ufffd") / len(clean)
            text = clean
    return Document(
        text=text,
        location=location,
        subcorpus=subcorpus or found.subcorpus or "all",
        crawled_on=found.crawled_on,
        source_id=found.source_id,
        url=found.url,
        replaced=replaced,
    )


def _one_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


Reader = Callable[[BinaryIO, str, Layout, str | None], Iterator[Record]]


def reader_of(path: str) -> Reader | None:
    """The reader for a file by its name, compression endings aside; None where the name tells no format."""
    name = path.lower().split("?")[0]
    for ending in (".gz", ".zst", ".xz", ".bz2"):
        name = name.removesuffix(ending)
    if name.endswith((".jsonl", ".json", ".ndjson")):
        return jsonl
    if name.endswith((".parquet", ".pq")):
        return parquet
    if name.endswith((".warc", ".wet")):
        return lambda file, shown, _, subcorpus: warc(file, shown, subcorpus)
    if name.endswith(".arc"):
        return lambda file, shown, _, subcorpus: warc(file, shown, subcorpus, arc_records)
    return None
