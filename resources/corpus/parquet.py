"""Parquet, a batch of rows at a time: a damaged row group, row or value costs itself."""

from collections.abc import Iterator
from typing import Any, BinaryIO

from resources.corpus.reader import Reader, Record, document
from resources.corpus.streams import one_line
from strandline.corpus import BrokenRecord, Location
from strandline.corpus.layouts import Layout, document_parts, top_fields

BATCH = 512
"""Rows in memory at a time: pages are some kilobytes, so that a batch is some megabytes."""


def parquet(file: BinaryIO, name: str, layout: Layout, subcorpus: str | None) -> Iterator[Record]:
    """The documents of a Parquet file, a batch of rows at a time. A damaged row group does not end the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(file)
        columns = [column for column in top_fields(layout) if column in table.schema_arrow.names]
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        yield BrokenRecord(Location(name, "row", 1), "parquet", f"no readable Parquet file: {one_line(error)}")
        return
    row = 0
    for group in range(table.num_row_groups):
        first, size = row, table.metadata.row_group(group).num_rows
        why = "it ends early"
        try:
            for batch in table.iter_batches(batch_size=BATCH, row_groups=[group], columns=columns):
                for record in _records(batch):
                    row += 1
                    yield _row(record, Location(name, "row", row), layout, subcorpus)
        except (pa.ArrowException, OSError) as error:
            why = one_line(error)
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
        return document(document_parts(record, layout), location, subcorpus)
    except ValueError as error:
        return BrokenRecord(location, "record", str(error))


# The entry of this format: its name, the endings of its files and its reading function.
READER = Reader("parquet", (".parquet", ".pq"), parquet)
