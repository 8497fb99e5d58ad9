"""Reading corpora: layouts, formats, places, and every kind of damage told of with its place while the rest is read."""

import bz2
import gzip
import http.server
import io
import json
import lzma
import os
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.corpus import environment as corpus_environment
from resources.corpus.readers import jsonl, parquet, reader_of, warc
from resources.corpus.shards import Shard, read_shard, shards
from resources.corpus.streams import lines
from resources.corpus.warc import Damage, records
from strandline.corpus import BrokenRecord, Document
from strandline.corpus.layouts import LAYOUTS, Layout, as_day, layout, parts
from strandline.corpus.settings import CorpusPart, CorpusSpec, corpora_of

COMPRESS = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
}
ROWS = [json.dumps({"text": f"document {n} " + "word " * (n % 17)}).encode() for n in range(1, 401)]


def read(data: bytes, chosen: str = "plain") -> list[Document | BrokenRecord]:
    return list(jsonl(io.BytesIO(data), "file.jsonl", LAYOUTS[chosen], None))


def texts(records: list[Document | BrokenRecord]) -> list[str]:
    return [record.text for record in records if isinstance(record, Document)]


def broken(records: list[Document | BrokenRecord]) -> list[tuple[str, int]]:
    return [(r.kind, r.location.position) for r in records if isinstance(r, BrokenRecord)]


@pytest.mark.parametrize(
    ("name", "record", "expected"),
    [
        (
            "c4",
            {"text": "t", "timestamp": "2019-04-25T12:57:54Z", "url": "https://a.example/x"},
            ("t", "https://a.example/x", None, date(2019, 4, 25)),
        ),
        ("pile", {"text": "t", "meta": {"pile_set_name": "Wikipedia (en)"}}, ("t", None, "Wikipedia (en)", None)),
        (
            "redpajama",
            {"text": "t", "meta": {"url": "https://a.example", "timestamp": "20230320", "source": "wikipedia"}},
            ("t", "https://a.example", "wikipedia", date(2023, 3, 20)),
        ),
        (
            "redpajama",
            {
                "raw_content": "t",
                "url": "https://a.example",
                "date_download": "2019-12-07T05:49:20Z",
                "digest": "sha1:x",
            },
            ("t", "https://a.example", None, date(2019, 12, 7)),
        ),
        (
            "redpajama",
            {"text": "t", "source": "cc/2023-06/en_head_0000.json.gz/line401859"},
            ("t", None, "cc/2023-06", date(2023, 2, 6)),
        ),
        (
            "dolma",
            {"id": "http://a.example/p", "text": "t", "source": "common-crawl", "created": "2020-03-29T09:04:10Z"},
            ("t", "http://a.example/p", "common-crawl", date(2020, 3, 29)),
        ),
        (
            "fineweb",
            {"text": "t", "id": "<urn:uuid:1>", "dump": "CC-MAIN-2013-20", "url": "https://a.example"},
            ("t", "https://a.example", "CC-MAIN-2013-20", date(2013, 5, 13)),
        ),
        (
            "refinedweb",
            {"content": "t", "url": "https://a.example", "timestamp": datetime(2013, 5, 18, tzinfo=UTC), "dump": "d"},
            ("t", "https://a.example", "d", date(2013, 5, 18)),
        ),
    ],
)
def test_published_layouts_are_understood(name, record, expected):
    found = parts(record, LAYOUTS[name])
    assert (found.text, found.url, found.subcorpus, found.crawled_on) == expected


def test_a_user_names_fields_of_their_own_and_a_mistake_is_named():
    own = layout({"text": "body.content", "url": ["link", "address"]})
    assert parts({"body": {"content": "t"}, "address": "https://a.example"}, own).url == "https://a.example"
    assert parts({"meta": '{"url": "https://b.example"}', "text": "t"}, layout({"url": "meta.url"})).url
    with pytest.raises(ValueError, match="no layout named 'c5'; there are plain, c4"):
        layout("c5")
    with pytest.raises(ValueError, match="no part txt"):
        layout({"txt": "content"})


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ([1], "a list, not an object"),
        ("text", "a string, not an object"),
        ({"body": "t"}, "no field text"),
        ({"text": None}, "no field text"),
        ({"text": 3}, "a number, not a string"),
        ({"text": ["t"]}, "a list, not a string"),
    ],
)
def test_a_record_without_a_text_says_why(record, why):
    with pytest.raises(ValueError, match=why):
        parts(record, Layout())


@pytest.mark.parametrize(
    ("value", "day"),
    [
        ("2020-03-29T09:04:10Z", date(2020, 3, 29)),
        ("2020-03-29T23:30:00-05:00", date(2020, 3, 30)),
        ("2020-03-29", date(2020, 3, 29)),
        ("20200329", date(2020, 3, 29)),
        (20200329, date(2020, 3, 29)),
        ("20200329091500", date(2020, 3, 29)),
        (1585472650, date(2020, 3, 29)),
        (1585472650000, date(2020, 3, 29)),
        ("crawl-data/CC-MAIN-2020-16/segments/x", date(2020, 4, 13)),
        ("yesterday", None),
        ("", None),
        (None, None),
        (True, None),
        (-5, None),
        (float("nan"), None),
        (10**30, None),
        ("1823-01-01", None),
        ({"day": 1}, None),
    ],
)
def test_a_day_is_read_or_missing_never_guessed(value, day):
    assert as_day(value) == day


@pytest.mark.parametrize("name", COMPRESS)
def test_every_line_of_a_whole_file_is_a_document_with_its_place(name):
    plain = b"\n".join(ROWS) + b"\n"
    found = read(COMPRESS[name](plain))
    assert texts(found) == [json.loads(row)["text"] for row in ROWS]
    assert [record.location.position for record in found] == list(range(1, 401))
    assert all(plain[record.location.offset :].startswith(row) for record, row in zip(found, ROWS, strict=True))


@pytest.mark.parametrize("name", [name for name in COMPRESS if name != "plain"])
def test_a_truncated_file_gives_what_is_there_and_says_where_it_ends(name):
    data = COMPRESS[name](b"\n".join(ROWS) + b"\n")
    found = read(data[: len(data) * 2 // 3])
    assert broken(found)[-1][0] == "truncated"
    whole = {json.loads(row)["text"] for row in ROWS}
    assert set(texts(found)) <= whole
    assert f"(byte {len(data) * 2 // 3})" in found[-1].reason


@pytest.mark.parametrize("name", ["gzip", "zstd", "xz", "bzip2"])
def test_damage_in_one_member_loses_that_member_only(name):
    members = [COMPRESS[name](b"\n".join(ROWS[start : start + 100]) + b"\n") for start in range(0, 400, 100)]
    middle = bytearray(members[1])
    for place in range(len(middle) // 3, len(middle) // 3 + 8):
        middle[place] ^= 0xA5
    found = read(members[0] + bytes(middle) + members[2] + members[3])
    kept = texts(found)
    expected = [json.loads(row)["text"] for row in ROWS]
    assert kept[:100] == expected[:100]
    assert kept[-200:] == expected[200:]
    assert "corrupt" in {kind for kind, _ in broken(found)}


def test_broken_lines_are_told_of_and_the_others_read():
    data = b"\n".join(
        [
            b'\xef\xbb\xbf{"text": "first, after a byte order mark"}',
            b'{"text": "cut',
            b"",
            b"   ",
            b'{"text": "bad \xff byte"}',
            b"[1, 2]",
            b'{"other": 1}',
            b'{"text": "lone surrogate \\ud800 here"}',
            b"[" * 100_000,
            b'{"text": "last, without a line end"}',
        ]
    )
    found = read(data)
    assert texts(found) == [
        "first, after a byte order mark",
        "lone surrogate \ufffd here",
        "last, without a line end",
    ]
    assert broken(found) == [("json", 2), ("encoding", 5), ("record", 6), ("record", 7), ("json", 9)]
    assert [record for record in found if isinstance(record, Document)][1].replaced == pytest.approx(1 / 21)


def test_a_line_that_is_too_long_is_passed_over_with_flat_memory():
    found = list(lines(io.BytesIO(b"a" * 300_000 + b"\nshort\n"), longest=100_000))
    assert [(line.number, line.data, line.fault and line.fault.kind) for line in found] == [
        (1, b"", "long"),
        (2, b"short", None),
    ]
    assert found[1].offset == 300_001


def test_a_file_whose_first_member_is_damaged_at_its_head_is_read_from_the_next_one():
    members = [gzip.compress(ROWS[n] + b"\n") for n in range(3)]
    found = read(b"\x00" + members[0][1:] + members[1] + members[2])
    assert broken(found) == [("corrupt", 1)]
    assert texts(found) == [json.loads(row)["text"] for row in ROWS[1:3]]


@pytest.mark.parametrize(
    "start", [b'{"text": "a \x01 b"}\n', b"\0" * 300 + b"\n"], ids=["a control character", "zeros"]
)
def test_a_text_file_damaged_at_its_head_is_read_from_the_next_line(start):
    found = read(start + b"\n".join(ROWS) + b"\n")
    assert texts(found) == [json.loads(row)["text"] for row in ROWS]
    assert broken(found) == [("json", 1)]


@pytest.mark.parametrize("name", ["gzip", "zstd", "xz", "bzip2"])
def test_a_packed_file_damaged_at_its_head_is_read_from_the_next_member(name):
    first, second = (COMPRESS[name](b"\n".join(rows) + b"\n") for rows in (ROWS[:200], ROWS[200:]))
    found = read(b"\0" + first[1:] + second)
    assert texts(found) == [json.loads(row)["text"] for row in ROWS[200:]]
    assert broken(found) == [("corrupt", 1)]


def test_a_zstd_file_may_begin_with_a_frame_that_holds_no_data():
    skippable = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"size"
    packed = [skippable + COMPRESS["zstd"](row + b"\n") for row in ROWS]
    assert texts(read(b"".join(packed))) == [json.loads(row)["text"] for row in ROWS]


class Endless(io.RawIOBase):
    """A file of so many equal lines, made as it is read."""

    def __init__(self, count: int) -> None:
        self.left = count

    def read(self, size: int = -1) -> bytes:
        self.left -= 1
        return ROWS[16] * 500 + b"\n" if self.left >= 0 else b""


def test_memory_does_not_grow_with_the_file():
    import tracemalloc

    peaks = []
    for count in (50, 1000):
        tracemalloc.start()
        assert sum(1 for _ in lines(Endless(count))) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_an_empty_file_is_told_of():
    assert broken(read(b"")) == [("empty", 1)]


def test_a_compressed_file_is_known_by_its_bytes_not_its_name(tmp_path: Path):
    (tmp_path / "misnamed.jsonl.gz").write_bytes(b'{"text": "plain after all"}\n')
    part = CorpusPart(files=(str(tmp_path / "misnamed.jsonl.gz"),))
    (shard,) = shards(CorpusSpec("c", parts=(part,), resources=("r",)))
    assert [record.text for record in read_shard(shard)] == ["plain after all"]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(list(COMPRESS)), st.integers(0, 400), st.integers(0, 255))
def test_no_bytes_make_the_reader_fail(data, name, place, value):
    packed = bytearray(COMPRESS[name](data))
    if packed:
        packed[place % len(packed)] ^= value
    for record in read(bytes(packed)):
        assert isinstance(record, (Document, BrokenRecord))


def parquet_bytes(table: pa.Table, **settings: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **settings)
    return sink.getvalue()


def read_parquet(data: bytes, chosen: str = "refinedweb") -> list[Document | BrokenRecord]:
    return list(parquet(io.BytesIO(data), "part.parquet", LAYOUTS[chosen], "rw"))


def test_parquet_rows_keep_their_place_over_row_groups():
    table = pa.table(
        {"content": [f"row {n}" for n in range(1, 26)], "url": ["https://a.example"] * 25, "big": [b"x"] * 25}
    )
    found = read_parquet(parquet_bytes(table, row_group_size=10))
    assert [(record.text, record.location.position) for record in found] == [(f"row {n}", n) for n in range(1, 26)]
    assert str(found[11].location) == "part.parquet:row 12"


def test_a_null_row_and_a_damaged_row_group_are_told_of_and_the_rest_read():
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
def test_a_day_that_does_not_exist_costs_no_document(times):
    table = pa.table({"content": ["a", "b", "c"], "timestamp": times})
    found = read_parquet(parquet_bytes(table))
    assert texts(found) == ["a", "b", "c"]
    assert found[1].crawled_on in (None, date(2020, 9, 13))


def test_a_row_whose_bytes_are_no_text_is_told_of_and_its_neighbours_read():
    buffers = [None, pa.py_buffer(np.array([0, 1, 2, 3], dtype=np.int32).tobytes()), pa.py_buffer(b"a\xffc")]
    found = read_parquet(parquet_bytes(pa.table({"content": pa.Array.from_buffers(pa.string(), 3, buffers)})))
    assert texts(found) == ["a", "c"]
    assert broken(found) == [("encoding", 2)]


@pytest.mark.parametrize("data", [b"", b"PAR1", b"not parquet at all", b"PAR1" + b"\0" * 50 + b"PAR1"])
def test_a_file_that_is_no_parquet_is_one_broken_record(data):
    assert broken(read_parquet(data)) == [("parquet", 1)]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 255), st.sampled_from(["snappy", "zstd", "none"]))
def test_no_damage_makes_the_parquet_reader_fail_or_lose_rows_silently(place, flip, compression):
    table = pa.table({"content": [f"row {n}" for n in range(60)], "url": ["https://a.example"] * 60})
    data = bytearray(parquet_bytes(table, row_group_size=20, compression=compression))
    data[-(1 + place % len(data))] ^= flip
    found = read_parquet(bytes(data))
    assert len(texts(found)) == 60 or broken(found)


def test_a_footer_that_forgets_a_row_group_is_told_of(monkeypatch):
    class Forgetful(pq.ParquetFile):
        num_row_groups = 1

    monkeypatch.setattr(pq, "ParquetFile", Forgetful)
    found = read_parquet(parquet_bytes(pa.table({"content": ["a"] * 20}), row_group_size=10))
    assert len(texts(found)) == 10
    assert broken(found) == [("parquet", 11)]


def test_a_truncated_parquet_and_one_without_the_text_column():
    data = parquet_bytes(pa.table({"content": ["a"] * 10}))
    assert broken(read_parquet(data[: len(data) // 2])) == [("parquet", 1)]
    other = read_parquet(parquet_bytes(pa.table({"words": ["a", "b"]})))
    assert broken(other) == [("record", 1), ("record", 2)]


def warc_record(kind: str, body: bytes, url: str = "http://a.example/", **headers: str) -> bytes:
    lines = [
        "WARC/1.0",
        f"WARC-Type: {kind}",
        f"WARC-Target-URI: {url}",
        "WARC-Date: 2020-05-01T00:00:00Z",
        "WARC-Record-ID: <urn:uuid:12345678-1234-1234-1234-123456789012>",
        *(f"{name}: {value}" for name, value in headers.items()),
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body + b"\r\n\r\n"


def response(html: bytes, status: str = "200 OK", content_type: str = "text/html") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(html)}\r\n\r\n".encode()
    return warc_record("response", head + html, **{"Content-Type": "application/http; msgtype=response"})


PAGE = (
    b"<html><body><article><p>"
    + b"A long enough paragraph about rivers and towns. " * 12
    + b"</p></article></body></html>"
)


def read_warc(data: bytes) -> list[Document | BrokenRecord]:
    return list(warc(io.BytesIO(data), "a.warc", "crawl"))


def test_wet_text_and_html_pages_are_documents_and_the_rest_is_not():
    data = b"".join(
        [
            warc_record("warcinfo", b"software: test"),
            warc_record("conversion", "Plain text, naïve.".encode()),
            response(PAGE),
            response(PAGE, status="404 Not Found"),
            response(b"\x89PNG", content_type="image/png"),
            warc_record("request", b"GET / HTTP/1.1\r\n\r\n", **{"Content-Type": "application/http; msgtype=request"}),
            warc_record("revisit", b""),
        ]
    )
    for stored in (data, gzip.compress(data)):
        found = read_warc(stored)
        assert [type(record) for record in found] == [Document, Document]
        assert found[0].text == "Plain text, naïve."
        assert "rivers and towns" in found[1].text
        assert (found[1].crawled_on, found[1].url) == (date(2020, 5, 1), "http://a.example/")
        assert found[0].location.unit == "record"
    assert data[read_warc(data)[1].location.offset :].startswith(b"WARC/1.0\r\nWARC-Type: response")


def test_pages_in_other_encodings_are_read_and_unreadable_ones_told_of():
    german = (
        "<html><body><article><p>" + "Größe und Übung am Fluß, schön. " * 15 + "</p></article></body></html>"
    ).encode("cp1252")
    noise = b"<html><body><p>" + bytes(range(128, 256)) * 20 + b"</p></body></html>"
    found = read_warc(response(german, content_type="text/html; charset=windows-1252") + response(PAGE))
    assert "Größe und Übung" in found[0].text
    assert found[0].replaced == 0
    judged = read_warc(response(noise, content_type="text/html; charset=utf-8"))
    assert all(isinstance(record, BrokenRecord) or record.replaced <= 0.01 for record in judged)


def test_damaged_records_are_located_and_the_next_one_is_found():
    good = [warc_record("conversion", f"document {n}".encode(), f"http://a.example/{n}") for n in range(4)]
    cut = warc_record("conversion", b"x" * 500)[:-200]
    wrong = good[1].replace(b"Content-Length: 10", b"Content-Length: abc")
    junk = b"\x00garbage\xff" * 30
    for damaged, kinds in ((cut, {"truncated"}), (wrong, {"length"}), (junk, {"corrupt"})):
        data = good[0] + damaged + good[2] + good[3]
        found = read_warc(data)
        kept = texts(found)
        assert "document 0" in kept
        assert {"document 2", "document 3"} <= set(kept) or kinds == {"truncated"}
        assert {kind for kind, _ in broken(found)} & (kinds | {"corrupt"})
    members = [gzip.compress(record) for record in good]
    hurt = bytearray(members[1])
    hurt[len(hurt) // 2] ^= 0xFF
    found = read_warc(members[0] + bytes(hurt) + members[2] + members[3])
    assert texts(found) == ["document 0", "document 2", "document 3"]
    (damage,) = [record for record in found if isinstance(record, BrokenRecord)]
    assert damage.location.offset == len(members[0])


@pytest.mark.parametrize("pack", [gzip.compress, COMPRESS["zstd"]], ids=["gzip", "zstd"])
@pytest.mark.parametrize("kept", [1, 2, 10, 150, -9, -1])
def test_an_archive_that_ends_in_the_middle_of_a_compressed_record_says_so(pack, kept):
    members = [pack(warc_record("conversion", f"document {n}".encode())) for n in range(3)]
    found = read_warc(members[0] + members[1] + members[2][:kept])
    assert texts(found)[:2] == ["document 0", "document 1"]
    (damage,) = [record for record in found if isinstance(record, BrokenRecord)]
    assert damage.location.offset == len(members[0]) + len(members[1])
    assert damage.kind in ("truncated", "length", "corrupt")
    assert len(broken(read_warc(members[0][:kept]))) == 1
    assert broken(read_warc(b"".join(members))) == []


def test_an_archive_packed_as_one_member_tells_of_its_missing_end():
    packed = gzip.compress(b"".join(warc_record("conversion", f"document {n}".encode()) for n in range(9)))
    for kept in range(20, len(packed)):
        assert broken(read_warc(packed[:kept])), kept
    assert len(texts(read_warc(packed))) == 9


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        (response(PAGE, status="").replace(b"HTTP/1.1 \r\n", b"lost line\r\n"), "http"),
        (warc_record("response", b"", **{"Content-Type": "application/http; msgtype=response"}), "http"),
        (response(b"zz\r\n" + PAGE, content_type="text/html\r\nTransfer-Encoding: chunked"), "http"),
        (response(b"\x1f\x8b\x08damaged" * 9, content_type="text/html\r\nContent-Encoding: gzip"), "http"),
        (warc_record("conversion", b"whose is it").replace(b"WARC-Type: conversion\r\n", b""), "record"),
        (warc_record("conversiom", b"whose is it"), "record"),
    ],
    ids=["no status", "empty", "chunks", "packing", "no type", "wrong type"],
)
def test_a_response_that_cannot_be_read_is_told_of_at_its_own_place(record, kind):
    good = warc_record("conversion", b"the next one")
    found = read_warc(good + record + good)
    assert texts(found) == ["the next one"] * 2
    (damage,) = [each for each in found if isinstance(each, BrokenRecord)]
    assert (damage.kind, damage.location.position, damage.location.offset) == (kind, 2, len(good))


def test_a_page_whose_server_told_no_type_is_known_by_how_it_begins():
    untyped = response(PAGE).replace(b"Content-Type: text/html\r\n", b"X-Other-Header: nothing\r\n", 1)
    assert "rivers and towns" in texts(read_warc(untyped))[0]


def test_a_flipped_byte_is_noticed_by_the_digest():
    import base64
    import hashlib

    body = b"a text whose digest is known"
    digest = base64.b32encode(hashlib.sha1(body).digest()).decode()
    record = warc_record("conversion", body, **{"WARC-Block-Digest": f"sha1:{digest}"})
    assert texts(read_warc(record)) == [body.decode()]
    assert broken(read_warc(record.replace(b"digest is known", b"digest is wrong")))[0][0] == "digest"


def test_the_reference_fixtures_are_read_or_told_of(shared: Path):
    expected = {
        "warcio_example.warc": (1, 0),
        "warcio_example.warc.gz": (1, 0),
        "warcio_example-iana.org-chunked.warc": (1, 0),
        "warcio_example.arc": (1, 0),
        "warcio_example.arc.gz": (1, 0),
        "dolma_sample-0000.warc.gz": (22, 0),
        "dolma_sample-0001.warc.gz": (15, 0),
    }
    for name, counts in expected.items():
        data = io.BytesIO((shared / "data" / "corpora" / name).read_bytes())
        found = list(reader_of(name)(data, name, LAYOUTS["plain"], "crawl"))
        bad = [record for record in found if isinstance(record, BrokenRecord)]
        assert (len(found) - len(bad), len(bad)) == counts, name


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 4000), st.binary(min_size=1, max_size=30), st.booleans())
def test_no_damage_makes_the_warc_reader_fail_or_stop_silently(place, junk, compressed):
    good = [warc_record("conversion", f"document {n} ".encode() * 10, f"http://a.example/{n}") for n in range(6)]
    data = bytearray(b"".join(gzip.compress(record) if compressed else record for record in good))
    data[place % len(data) : place % len(data) + len(junk)] = junk
    found = list(records(io.BytesIO(bytes(data))))
    whole = [record for record in found if not isinstance(record, Damage)]
    assert len(whole) >= 3
    if len(whole) < 6 and compressed:
        assert len(whole) < len(found)


def arc_record(number: int, body: bytes | None = None, length: int | None = None) -> bytes:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + PAGE.replace(b"rivers", b"rivers %d" % number)
    stored = page if body is None else body
    line = f"http://a.example/{number} 10.0.0.1 20100401000000 text/html {len(stored) if length is None else length}\n"
    return line.encode() + stored + b"\n"


ARC_HEAD = b"filedesc://a.arc 0.0.0.0 20100401000000 text/plain 9\n1 0 Test\n\n"


def read_arc(data: bytes) -> list[Document | BrokenRecord]:
    return list(reader_of("a.arc.gz")(io.BytesIO(data), "a.arc.gz", LAYOUTS["plain"], "crawl"))


def test_arc_pages_are_documents_with_their_place_and_day():
    parts = [ARC_HEAD, *(arc_record(number) for number in range(4)), arc_record(4, b"HTTP/1.1 404 Gone\r\n\r\n")]
    for data in (b"".join(parts), b"".join(map(gzip.compress, parts))):
        found = read_arc(data)
        assert [f"rivers {number}" in text for number, text in enumerate(texts(found))] == [True] * 4
        assert broken(found) == []
        assert (found[1].url, found[1].crawled_on) == ("http://a.example/1", date(2010, 4, 1))
        assert [record.location.offset for record in found[:2]] == [len(ARC_HEAD), len(ARC_HEAD + parts[1])]


@pytest.mark.parametrize(
    ("damaged", "kind"),
    [
        (b"\0garbage\xff and more\n" * 30, "corrupt"),
        (arc_record(9, length=20), "corrupt"),
        (arc_record(9, length=1 << 40), "long"),
        (arc_record(9, b"no status\r\n\r\n"), "http"),
    ],
)
def test_damage_in_an_arc_file_is_located_and_the_next_record_is_found(damaged, kind):
    before = ARC_HEAD + arc_record(0)
    found = read_arc(before + damaged + arc_record(1))
    assert any("rivers 0" in text for text in texts(found))
    assert any("rivers 1" in text for text in texts(found))
    assert kind in {each for each, _ in broken(found)}
    told = [record.location.offset for record in found if isinstance(record, BrokenRecord)]
    assert all(len(before) <= offset <= len(before) + len(damaged) for offset in told)


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 10_000), st.booleans())
def test_an_arc_file_that_is_cut_off_says_so_unless_at_the_end_of_a_record(place, compressed):
    parts = [ARC_HEAD, *(arc_record(number) for number in range(5))]
    stored = [gzip.compress(part) if compressed else part for part in parts]
    data = b"".join(stored)
    kept = 1 + place % (len(data) - 1)
    ends = {sum(map(len, stored[:count])) - missing for count in range(len(stored) + 1) for missing in (0, 1)}
    found = read_arc(data[:kept])
    assert broken(found) or kept in ends


class Ranged(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    def handler(*arguments: object) -> Ranged:
        return Ranged(*arguments, directory=str(tmp_path))

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_a_corpus_is_read_over_http_and_from_an_object_store(served: str, tmp_path: Path):
    import fsspec

    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"\n".join(ROWS[:50]) + b"\n"))
    (tmp_path / "c.warc.gz").write_bytes(gzip.compress(response(PAGE)) + gzip.compress(response(PAGE)))
    (tmp_path / "d.parquet").write_bytes(parquet_bytes(pa.table({"text": ["row"]})))
    memory = fsspec.filesystem("memory")
    memory.pipe("/bucket/part/b.jsonl", ROWS[60] + b"\n")
    files = (*(f"{served}/{name}" for name in ("a.jsonl.gz", "c.warc.gz", "d.parquet")), "memory://bucket/part/*.jsonl")
    found = shards(CorpusSpec("c", parts=(CorpusPart(files=files, subcorpus="remote"),), resources=("r",)))
    assert len(found) == 4
    read = [record for shard in found for record in read_shard(shard)]
    assert len(texts(read)) == 54
    assert {record.subcorpus for record in read} == {"remote"}
    assert any(record.location.file == f"{served}/a.jsonl.gz" for record in read)


def test_a_file_on_a_server_that_only_tells_when_it_was_changed_is_read_again(served: str, tmp_path: Path):
    spec = CorpusSpec("c", parts=(CorpusPart(files=(f"{served}/a.jsonl",)),), resources=("r",))
    keys = []
    for row, changed in ((b'{"text": "one"}', 1_600_000_000), (b'{"text": "two"}', 1_600_000_060)):
        (tmp_path / "a.jsonl").write_bytes(row)
        os.utime(tmp_path / "a.jsonl", (changed, changed))
        keys += [shard.key for shard in shards(spec)]
    assert len(set(keys)) == 2


@pytest.mark.parametrize("name", ["*.jsonl", "absent.jsonl"])
def test_a_pattern_without_files_is_an_error_that_names_the_corpus(tmp_path: Path, served: str, name: str):
    for folder in (tmp_path, served):
        with pytest.raises(FileNotFoundError, match="corpus c: no file matches"):
            shards(CorpusSpec("c", parts=(CorpusPart(files=(f"{folder}/{name}",)),), resources=("r",)))


def test_a_file_of_an_unknown_format_is_a_row(tmp_path: Path):
    (tmp_path / "notes.docx").write_bytes(b"x")
    (shard,) = shards(CorpusSpec("c", parts=(CorpusPart(files=(str(tmp_path / "notes.docx"),)),), resources=("r",)))
    (only,) = read_shard(shard)
    assert only.kind == "format"


def test_a_shard_is_known_by_its_content_and_reading(tmp_path: Path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(ROWS[0])

    def key(**settings: object) -> str:
        (shard,) = shards(CorpusSpec("c", parts=(CorpusPart(files=(str(file),), **settings),), resources=("r",)))
        return shard.key

    first = key()
    assert key() == first
    (tmp_path / "b.jsonl").write_bytes(ROWS[0])
    both = CorpusPart(files=(str(file), str(tmp_path / "b.jsonl")))
    assert first in {shard.key for shard in shards(CorpusSpec("c", parts=(both,), resources=("r",)))}
    assert key(layout=LAYOUTS["refinedweb"]) != first
    file.write_bytes(ROWS[1] + ROWS[2])
    assert key() != first


def test_the_environment_is_a_corpus_whose_versions_are_known():
    from importlib.metadata import version

    found = list(read_shard(shards(CorpusSpec("e", reader="environment", resources=("readme",)))[0]))
    known = {record.source_id: record for record in found if isinstance(record, Document)}
    assert known["polars"].revision == version("polars")
    assert "polars" in known["polars"].location.file
    assert len(known["polars"].text) > 500
    assert all(record.reason for record in found if isinstance(record, BrokenRecord))
    assert corpus_environment.fingerprint() == corpus_environment.fingerprint()


GOOD = {"corpus": "a", "resources": ["r"], "parts": [{"files": "x.jsonl"}]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"corpus": ""}, "a corpus without a name"),
        ({"parts": []}, "corpus a: no parts"),
        ({"resources": []}, "corpus a: no resources"),
        ({"colour": 1}, "corpus a: unknown setting colour"),
        ({"reader": "tape"}, "reader is 'tape'"),
        ({"dedup_rule": "magic"}, "dedup_rule is 'magic'"),
        ({"reported": {"other": "2020-01"}}, "other, which is not among"),
        ({"reported": {"r": "soon"}}, "'soon' is not a month"),
        ({"mining": {"limit": 0}}, "limit is 0"),
        ({"mining": {"top": 1.5}}, "top is 1.5"),
        ({"mining": {"topp": 1}}, "unknown setting topp"),
        ({"parts": [{"layout": "c4"}]}, "a part without files"),
        ({"parts": [{"files": "x", "layout": "c9"}]}, "no layout named 'c9'"),
        ({"models": [1]}, "models is"),
    ],
)
def test_a_wrong_setting_is_named_with_its_corpus(change, message):
    with pytest.raises(ValueError, match=message):
        corpora_of({"corpora": [{**GOOD, **change}]})


def test_settings_are_read_with_their_defaults():
    (spec,) = corpora_of(
        {"corpora": [{**GOOD, "reported": {"r": "2020-03"}}, {**GOOD, "corpus": "b", "enabled": False}]}
    )
    assert (spec.mining.limit, spec.mining.top, spec.mining.query_words) == (0.2, 10, 512)
    assert spec.reported == {"r": date(2020, 3, 1)}
    assert spec.parts[0].is_crawl
    with pytest.raises(ValueError, match="set twice"):
        corpora_of({"corpora": [GOOD, GOOD]})
    with pytest.raises(ValueError, match="a list under `corpora`"):
        corpora_of([])


def test_the_committed_settings_are_valid_in_full(root: Path):
    import yaml

    raw = yaml.safe_load((root / "data" / "corpora.yaml").read_text(encoding="utf-8"))
    assert [spec.corpus for spec in corpora_of(raw)] == ["environment"]
    everything = {"corpora": [{**entry, "enabled": True} for entry in raw["corpora"]]}
    assert len(corpora_of(everything)) == len(raw["corpora"])


def test_shards_can_be_sent_to_another_process(tmp_path: Path):
    import pickle

    (tmp_path / "a.jsonl").write_bytes(ROWS[0])
    (shard,) = shards(CorpusSpec("c", parts=(CorpusPart(files=(str(tmp_path / "a.jsonl"),)),), resources=("r",)))
    assert pickle.loads(pickle.dumps(shard)) == shard
    assert isinstance(shard, Shard)
