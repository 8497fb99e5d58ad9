"""JSON lines and arrays: every line a document with its place, every kind of damage told of, the rest read."""

import gzip
import io
import json
import tracemalloc
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.corpus.jsonl import jsonl, values
from resources.corpus.streams import lines
from strandline.corpus import BrokenRecord, Document
from strandline.corpus.layouts import LAYOUTS
from tests.fakes.corpus_files import COMPRESS, ROWS, broken, texts


def read(data: bytes, chosen: str = "plain") -> list[Document | BrokenRecord]:
    return list(jsonl(io.BytesIO(data), "file.jsonl", LAYOUTS[chosen], None))


@pytest.mark.parametrize("name", COMPRESS)
def test_every_line_of_a_whole_file_is_a_document_with_its_place(name: str) -> None:
    plain = b"\n".join(ROWS) + b"\n"
    found = read(COMPRESS[name](plain))
    assert texts(found) == [json.loads(row)["text"] for row in ROWS]
    assert [record.location.position for record in found] == list(range(1, 401))
    assert all(plain[record.location.offset :].startswith(row) for record, row in zip(found, ROWS, strict=True))


@pytest.mark.parametrize("name", [name for name in COMPRESS if name != "plain"])
def test_a_truncated_file_gives_what_is_there_and_says_where_it_ends(name: str) -> None:
    data = COMPRESS[name](b"\n".join(ROWS) + b"\n")
    found = read(data[: len(data) * 2 // 3])
    assert broken(found)[-1][0] == "truncated"
    whole = {json.loads(row)["text"] for row in ROWS}
    assert set(texts(found)) <= whole
    assert f"(byte {len(data) * 2 // 3})" in found[-1].reason


@pytest.mark.parametrize("name", ["gzip", "zstd", "xz", "bzip2"])
def test_damage_in_one_member_loses_that_member_only(name: str) -> None:
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


def test_broken_lines_are_told_of_and_the_others_read() -> None:
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


def test_a_line_that_is_too_long_is_passed_over_with_flat_memory() -> None:
    found = list(lines(io.BytesIO(b"a" * 300_000 + b"\nshort\n"), longest=100_000))
    assert [(line.number, line.data, line.fault and line.fault.kind) for line in found] == [
        (1, b"", "long"),
        (2, b"short", None),
    ]
    assert found[1].offset == 300_001


def test_a_file_whose_first_member_is_damaged_at_its_head_is_read_from_the_next_one() -> None:
    members = [gzip.compress(ROWS[n] + b"\n") for n in range(3)]
    found = read(b"\x00" + members[0][1:] + members[1] + members[2])
    assert broken(found) == [("corrupt", 1)]
    assert texts(found) == [json.loads(row)["text"] for row in ROWS[1:3]]


@pytest.mark.parametrize(
    "start", [b'{"text": "a \x01 b"}\n', b"\0" * 300 + b"\n"], ids=["a control character", "zeros"]
)
def test_a_text_file_damaged_at_its_head_is_read_from_the_next_line(start: bytes) -> None:
    found = read(start + b"\n".join(ROWS) + b"\n")
    assert texts(found) == [json.loads(row)["text"] for row in ROWS]
    assert broken(found) == [("json", 1)]


@pytest.mark.parametrize("name", ["gzip", "zstd", "xz", "bzip2"])
def test_a_packed_file_damaged_at_its_head_is_read_from_the_next_member(name: str) -> None:
    first, second = (COMPRESS[name](b"\n".join(rows) + b"\n") for rows in (ROWS[:200], ROWS[200:]))
    found = read(b"\0" + first[1:] + second)
    assert texts(found) == [json.loads(row)["text"] for row in ROWS[200:]]
    assert broken(found) == [("corrupt", 1)]


def test_a_zstd_file_may_begin_with_a_frame_that_holds_no_data() -> None:
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


def test_memory_does_not_grow_with_the_file() -> None:
    peaks = []
    for count in (50, 1000):
        tracemalloc.start()
        assert sum(1 for _ in lines(Endless(count))) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_an_empty_file_is_told_of() -> None:
    assert broken(read(b"")) == [("empty", 1)]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(list(COMPRESS)), st.integers(0, 400), st.integers(0, 255))
def test_no_bytes_make_the_reader_fail(data: bytes, name: str, place: int, value: Any) -> None:
    packed = bytearray(COMPRESS[name](data))
    if packed:
        packed[place % len(packed)] ^= value
    for record in read(bytes(packed)):
        assert isinstance(record, (Document, BrokenRecord))


RECORDS = [json.loads(row) for row in ROWS[:50]]


@pytest.mark.parametrize("name", COMPRESS)
@pytest.mark.parametrize(
    "written",
    [
        json.dumps(RECORDS),
        json.dumps(RECORDS, indent=2),
        "\n \ufeff[\n" + ",\n".join(map(json.dumps, RECORDS)) + "\n]\n",
        "\n".join(json.dumps(record, indent=1) for record in RECORDS),
        "[" + json.dumps(RECORDS[:20]) + "," + json.dumps(RECORDS[20:]) + "]",
    ],
    ids=["one line", "indented", "a record a line", "spread objects", "arrays of arrays"],
)
def test_an_array_is_read_value_by_value(written: str, name: str) -> None:
    data = written.lstrip("\n ").encode()
    found = read(COMPRESS[name](data))
    assert texts(found) == [record["text"] for record in RECORDS]
    places = [(record.location.unit, record.location.position) for record in found]
    assert places == [("value", number) for number in range(1, 51)]
    assert all(data[record.location.offset :].startswith(b"{") for record in found)


def test_damage_in_an_array_costs_its_value() -> None:
    good = [b'{"text": "first }, {"}', b'{"text": "second \\" ]"}', b'{"text": "third"}']
    for bad, kind in (
        (b'{"text": "bad \xff byte"}', "encoding"),
        (b'{"text": nothing}', "json"),
        (b'{"text": "no end}', "json"),
        (b'{"text": 3}', "record"),
        (b'"only a text"', "record"),
        (b"17", "record"),
    ):
        found = read(b"[" + b",\n".join([good[0], bad, good[1], good[2]]) + b"]")
        assert [text for text in texts(found) if text in ("first }, {", "third")] == ["first }, {", "third"], bad
        assert broken(found)[0] == (kind, 2), bad
        if kind != "json":
            assert len(texts(found)) == 3


def test_an_array_that_breaks_off_says_so_and_a_long_value_is_passed_over() -> None:
    found = read(b'[{"text": "a"}, {"text": "b')
    assert (texts(found), broken(found)) == (["a"], [("json", 2)])
    packed = gzip.compress(b'[{"text": "a"}, {"text": "b"}, {"text": "cccc"}]')
    assert ("truncated", 3) in [(kind, min(at, 3)) for kind, at in broken(read(packed[:-12]))]
    long = list(values(io.BytesIO(b'[{"a": "' + b"x" * 300_000 + b'"}, {"b": 1}]'), longest=100_000))
    assert [(value.data, value.fault and value.fault.kind) for value in long][-1] == (b'{"b": 1}', None)
    assert long[0].fault is not None
    assert long[0].fault.kind == "long"


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_make_the_reader_of_arrays_fail(data: bytes) -> None:
    for start in (b"[", b"{\n", b'[{"text": "a"}, '):
        assert all(isinstance(record, (Document, BrokenRecord)) for record in read(start + data))


def test_an_lz4_file_is_read_and_its_missing_end_told_of() -> None:
    packed = pa.Codec("lz4").compress(b"\n".join(ROWS) + b"\n").to_pybytes()
    assert texts(read(packed + packed)) == [json.loads(row)["text"] for row in ROWS] * 2
    assert broken(read(packed[:-40]))[-1][0] == "truncated"
