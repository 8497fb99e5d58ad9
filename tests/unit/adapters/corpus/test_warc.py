"""WARC and WET: pages and converted text with their place; damage, cut pages and lying heads are told of."""

import base64
import gzip
import hashlib
import io
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.corpus.archives import Damage
from resources.corpus.readers import reader_of
from resources.corpus.warc import records
from resources.corpus.web_archives import archive
from strandline.corpus import BrokenRecord, Document
from strandline.corpus.layouts import LAYOUTS
from tests.fakes.corpus_files import COMPRESS, PAGE, broken, response, texts, warc_record


def read_warc(data: bytes) -> list[Document | BrokenRecord]:
    return list(archive(io.BytesIO(data), "a.warc", LAYOUTS["plain"], "crawl"))


def test_wet_text_and_html_pages_are_documents_and_the_rest_is_not() -> None:
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


def test_pages_in_other_encodings_are_read_and_unreadable_ones_told_of() -> None:
    german = (
        "<html><body><article><p>" + "Größe und Übung am Fluß, schön. " * 15 + "</p></article></body></html>"
    ).encode("cp1252")
    noise = b"<html><body><p>" + bytes(range(128, 256)) * 20 + b"</p></body></html>"
    found = read_warc(response(german, content_type="text/html; charset=windows-1252") + response(PAGE))
    assert "Größe und Übung" in found[0].text
    assert found[0].replaced == 0
    judged = read_warc(response(noise, content_type="text/html; charset=utf-8"))
    assert all(isinstance(record, BrokenRecord) or record.replaced <= 0.01 for record in judged)


def test_damaged_records_are_located_and_the_next_one_is_found() -> None:
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
def test_an_archive_that_ends_in_the_middle_of_a_compressed_record_says_so(
    pack: Callable[[bytes], bytes], kept: int
) -> None:
    members = [pack(warc_record("conversion", f"document {n}".encode())) for n in range(3)]
    found = read_warc(members[0] + members[1] + members[2][:kept])
    assert texts(found)[:2] == ["document 0", "document 1"]
    (damage,) = [record for record in found if isinstance(record, BrokenRecord)]
    assert damage.location.offset == len(members[0]) + len(members[1])
    assert damage.kind in ("truncated", "length", "corrupt")
    assert len(broken(read_warc(members[0][:kept]))) == 1
    assert broken(read_warc(b"".join(members))) == []


def test_an_archive_packed_as_one_member_tells_of_its_missing_end() -> None:
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
def test_a_response_that_cannot_be_read_is_told_of_at_its_own_place(record: Any, kind: str) -> None:
    good = warc_record("conversion", b"the next one")
    found = read_warc(good + record + good)
    assert texts(found) == ["the next one"] * 2
    (damage,) = [each for each in found if isinstance(each, BrokenRecord)]
    assert (damage.kind, damage.location.position, damage.location.offset) == (kind, 2, len(good))


def test_a_page_whose_server_told_no_type_is_known_by_how_it_begins() -> None:
    untyped = response(PAGE).replace(b"Content-Type: text/html\r\n", b"X-Other-Header: nothing\r\n", 1)
    assert "rivers and towns" in texts(read_warc(untyped))[0]


def test_a_flipped_byte_is_noticed_by_the_digest() -> None:
    body = b"a text whose digest is known"
    digest = base64.b32encode(hashlib.sha1(body).digest()).decode()
    record = warc_record("conversion", body, **{"WARC-Block-Digest": f"sha1:{digest}"})
    assert texts(read_warc(record)) == [body.decode()]
    assert broken(read_warc(record.replace(b"digest is known", b"digest is wrong")))[0][0] == "digest"


def test_the_reference_fixtures_are_read_or_told_of(shared: Path) -> None:
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
        found = list(reader_of(name).read(data, name, LAYOUTS["plain"], "crawl"))
        bad = [record for record in found if isinstance(record, BrokenRecord)]
        assert (len(found) - len(bad), len(bad)) == counts, name


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 4000), st.binary(min_size=1, max_size=30), st.booleans())
def test_no_damage_makes_the_warc_reader_fail_or_stop_silently(place: int, junk: bytes, compressed: bool) -> None:
    good = [warc_record("conversion", f"document {n} ".encode() * 10, f"http://a.example/{n}") for n in range(6)]
    data = bytearray(b"".join(gzip.compress(record) if compressed else record for record in good))
    data[place % len(data) : place % len(data) + len(junk)] = junk
    found = list(records(io.BytesIO(bytes(data))))
    whole = [record for record in found if not isinstance(record, Damage)]
    assert len(whole) >= 3
    if len(whole) < 6 and compressed:
        assert len(whole) < len(found)


def page(number: int) -> bytes:
    return PAGE.replace(b"rivers", b"rivers %d" % number)


HTTP = {"Content-Type": "application/http; msgtype=response"}


@pytest.mark.parametrize("version", [b"WARC/0.18", b"WARC/1.0", b"WARC/1.1"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_pages_are_read_where_lines_of_every_head_end_in_lf_alone(
    version: bytes, pack: Callable[[bytes], bytes]
) -> None:
    written = [response(page(number)).replace(b"\r\n", b"\n").replace(b"WARC/1.0", version) for number in range(29)]
    found = read_warc(b"".join(map(pack, written)))
    assert [f"rivers {number}" in text for number, text in enumerate(texts(found))] == [True] * 29
    assert broken(found) == []


def test_a_page_is_read_where_only_its_http_head_ends_lines_in_lf() -> None:
    block = b"HTTP/1.1 200 OK\nServer: Apache\nContent-Type: text/html\n\n" + PAGE
    assert len(texts(read_warc(warc_record("response", block, **HTTP)))) == 1


@pytest.mark.parametrize("flag", ["length", "time", "disconnect", "unspecified"])
@pytest.mark.parametrize("kind", ["response", "conversion"])
def test_a_capture_that_says_it_was_cut_is_no_document(flag: str, kind: str) -> None:
    block = PAGE if kind == "conversion" else b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + PAGE
    fields = {"WARC-Truncated": flag, **(HTTP if kind == "response" else {})}
    found = read_warc(warc_record(kind, block, **fields) + response(PAGE))
    assert (len(texts(found)), broken(found)) == (1, [("cut", 1)])
    assert found[0].reason == f"the capture was cut ({flag})"


OPEN = PAGE.removesuffix(b"</p></article></body></html>")


@pytest.mark.parametrize(
    ("fields", "body", "why"),
    [
        ("Content-Encoding: gzip", gzip.compress(PAGE, mtime=0)[:-3], "the packed page ends early"),
        ("Transfer-Encoding: chunked", b"%x\r\n" % len(PAGE) + PAGE[:200], "a chunk of"),
        (f"Content-Length: {len(PAGE)}", OPEN, "bytes that its head promises"),
        ("Server: x", b"<html>" + b"word " * 209_714, "1048576 bytes, where crawlers stop"),
        ("Server: x\r\nContent-Type: text/plain", b"x" * 65_536, "65536 bytes, where crawlers stop"),
    ],
    ids=["packing", "chunks", "promise", "the crawl's limit", "the limit of a text"],
)
def test_a_page_that_is_not_all_there_is_told_of_and_not_mined(fields: str, body: bytes, why: str) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{fields}\r\n\r\n".encode()
    found = read_warc(warc_record("response", head + body, **HTTP) + response(PAGE))
    assert (len(texts(found)), broken(found)) == (1, [("cut", 1)])
    assert why in found[0].reason


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("off", [400, 4, -4, -400])
@pytest.mark.parametrize("closing", [True, False], ids=["a page that closes itself", "an open page"])
def test_a_wrong_length_costs_no_neighbour_and_no_page_that_closes_itself(
    pack: Callable[[bytes], bytes], off: int, closing: bool
) -> None:
    written = [response(page(number)) for number in range(4)]
    lying = response(page(1) if closing else page(1).removesuffix(b"</p></article></body></html>"))
    length = lying.split(b"Content-Length: ")[1].split(b"\r\n")[0]
    written[1] = lying.replace(b"Content-Length: " + length, b"Content-Length: %d" % (int(length) + off), 1)
    found = read_warc(b"".join(map(pack, written)))
    is_whole = closing or off == len(b"\r\n\r\n")
    expected = [0, 1, 2, 3] if is_whole else [0, 2, 3]
    assert [number for number in range(4) if any(f"rivers {number}" in text for text in texts(found))] == expected
    assert {kind for kind, _ in broken(found)} <= (set() if is_whole else {"truncated", "length", "cut", "corrupt"})
    assert is_whole or broken(found)[0][1] == 2


def test_pages_stored_as_resources_are_documents_and_segments_of_pages_are_not() -> None:
    resource = warc_record("resource", PAGE, **{"Content-Type": "text/html"})
    notes = warc_record("resource", b"notes of the crawler", "metadata://log", **{"Content-Type": "text/plain"})
    dns = warc_record(
        "response", b"20200501\na.example. 60 IN A 10.0.0.1", "dns:a.example", **{"Content-Type": "text/dns"}
    )
    first = response(PAGE).replace(b"WARC-Date", b"WARC-Segment-Number: 1\r\nWARC-Date")
    rest = warc_record("continuation", b"the rest of a page", **{"WARC-Segment-Number": "2"})
    found = read_warc(resource + notes + dns + first + rest)
    assert (len(texts(found)), broken(found)) == (1, [("cut", 4)])


def test_an_impossible_date_or_an_odd_line_in_a_head_costs_no_page() -> None:
    odd = response(page(1)).replace(b"2020-05-01T00:00:00Z", b"2020-13-45T99:00:00Z")
    line = response(page(2)).replace(b"WARC-Date", b"a line without a colon\r\nWARC-Date")
    small = response(page(3)).replace(b"WARC-Type", b"warc-type").replace(b"Content-Length", b"content-length")
    found = read_warc(odd + line + small)
    assert len(texts(found)) == 3
    assert [record.crawled_on for record in found] == [None, date(2020, 5, 1), date(2020, 5, 1)]


def test_an_archive_of_another_library_is_read(tmp_path: Path) -> None:
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    for packed in (True, False):
        written = io.BytesIO()
        writer = WARCWriter(written, gzip=packed)
        for number in range(5):
            head = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
            writer.write_record(
                writer.create_warc_record(
                    f"http://a.example/{number}", "response", io.BytesIO(page(number)), http_headers=head
                )
            )
        found = read_warc(written.getvalue())
        assert (len(texts(found)), broken(found)) == (5, [])
        assert [record.url for record in found] == [f"http://a.example/{number}" for number in range(5)]


def test_a_record_that_is_too_long_is_passed_over() -> None:
    good = warc_record("conversion", b"a document")
    found = list(records(io.BytesIO(good + warc_record("conversion", b"x" * 50_000) + good), longest=10_000))
    assert [each.kind if isinstance(each, Damage) else each.body for each in found] == [
        b"a document",
        "long",
        b"a document",
    ]


def test_reasons_are_one_short_line() -> None:
    found = read_warc(warc_record("conversion" + "x\t" * 900, b"whose is it"))
    assert all(0 < len(record.reason) < 300 and "\n" not in record.reason for record in found)
    assert len(found) == 1
