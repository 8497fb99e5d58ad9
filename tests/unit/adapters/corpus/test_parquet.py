"""Parquet: rows with their place; a damaged row group, row or value costs itself."""

import io
import os
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.corpus.parquet import parquet
from strandline.corpus import BrokenRecord, Document
from strandline.corpus.layouts import LAYOUTS
from tests.fakes.corpus_files import broken, parquet_bytes, texts


def read_parquet(data: bytes, chosen: str = "refinedweb") -> list[Document | BrokenRecord]:
    return list(parquet(io.BytesIO(data), "part.parquet", LAYOUTS[chosen], "rw"))


def test_parquet_rows_keep_their_place_over_row_groups() -> None:
    table = pa.table(
        {"content": [f"row {n}" for n in range(1, 26)], "url": ["https://a.example"] * 25, "big": [b"x"] * 25}
    )
    found = read_parquet(parquet_bytes(table, row_group_size=10))
    assert [(record.text, record.location.position) for record in found] == [(f"row {n}", n) for n in range(1, 26)]
    assert str(found[11].location) == "part.parquet:row 12"


def test_a_null_row_and_a_damaged_row_group_are_told_of_and_the_rest_read() -> None:
    rows = [None if n == 4 else f"row {n} " + os.urandom(40).hex() for n in range(1, 31)]
    data = bytearray(
        parquet_bytes(pa.table({"content": rows}), row_group_size=10, compression="snappy", use_dictionary=False)
    )
    column = pq.ParquetFile(io.BytesIO(bytes(data))).metadata.row_group(1).column(0)
    start = column.data_page_offset
    data[start : start + 40] = bytes(40)
    found = read_parquet(bytes(data))
    assert broken(found) == [("record", 4), ("parquet", 11)]
    assert [record.location.position for record in found if isinstance(record, Document)] == [
        *(n for n in range(1, 11) if n != 4),
        *range(21, 31),
    ]
    assert "rows 11 to 20 of row group 2" in found[10].reason


@pytest.mark.parametrize(
    "times",
    [
        pa.array([1600000000, 10**15, None], pa.timestamp("s")),
        pa.array([1600000000, -(10**13), None], pa.timestamp("s")),
        pa.array([18518, 10**8, None], pa.date32()),
        pa.array([1600000000, 1600000000, None], pa.timestamp("s", tz="Not/AZone")),
    ],
    ids=["late", "early", "days", "zone"],
)
def test_a_day_that_does_not_exist_costs_no_document(times: pa.Array) -> None:
    table = pa.table({"content": ["a", "b", "c"], "timestamp": times})
    found = read_parquet(parquet_bytes(table))
    assert texts(found) == ["a", "b", "c"]
    assert found[1].crawled_on in (None, date(2020, 9, 13))


def test_a_row_whose_bytes_are_no_text_is_told_of_and_its_neighbours_read() -> None:
    buffers = [None, pa.py_buffer(np.array([0, 1, 2, 3], dtype=np.int32).tobytes()), pa.py_buffer(b"a\xffc")]
    found = read_parquet(parquet_bytes(pa.table({"content": pa.Array.from_buffers(pa.string(), 3, buffers)})))
    assert texts(found) == ["a", "c"]
    assert broken(found) == [("encoding", 2)]


@pytest.mark.parametrize("data", [b"", b"PAR1", b"not parquet at all", b"PAR1" + b"\0" * 50 + b"PAR1"])
def test_a_file_that_is_no_parquet_is_one_broken_record(data: bytes) -> None:
    assert broken(read_parquet(data)) == [("parquet", 1)]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 255), st.sampled_from(["snappy", "zstd", "none"]))
def test_no_damage_makes_the_parquet_reader_fail_or_lose_rows_silently(place: int, flip: int, compression: str) -> None:
    table = pa.table({"content": [f"row {n}" for n in range(60)], "url": ["https://a.example"] * 60})
    data = bytearray(parquet_bytes(table, row_group_size=20, compression=compression))
    data[-(1 + place % len(data))] ^= flip
    found = read_parquet(bytes(data))
    assert len(texts(found)) == 60 or broken(found)


def test_a_footer_that_forgets_a_row_group_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(pq.ParquetFile):
        num_row_groups = 1

    monkeypatch.setattr(pq, "ParquetFile", Forgetful)
    found = read_parquet(parquet_bytes(pa.table({"content": ["a"] * 20}), row_group_size=10))
    assert len(texts(found)) == 10
    assert broken(found) == [("parquet", 11)]


def test_a_truncated_parquet_and_one_without_the_text_column() -> None:
    data = parquet_bytes(pa.table({"content": ["a"] * 10}))
    assert broken(read_parquet(data[: len(data) // 2])) == [("parquet", 1)]
    other = read_parquet(parquet_bytes(pa.table({"words": ["a", "b"]})))
    assert broken(other) == [("record", 1), ("record", 2)]
