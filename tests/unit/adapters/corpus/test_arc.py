"""ARC: pages with their place and day; damage is located and the next record found."""

import gzip
import io
from collections.abc import Callable
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.corpus.readers import reader_of
from strandline.corpus import BrokenRecord, Document
from strandline.corpus.layouts import LAYOUTS
from tests.fakes.corpus_files import PAGE, broken, response, texts


def arc_record(number: int, body: bytes | None = None, length: int | None = None) -> bytes:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + PAGE.replace(b"rivers", b"rivers %d" % number)
    stored = page if body is None else body
    line = f"http://a.example/{number} 10.0.0.1 20100401000000 text/html {len(stored) if length is None else length}\n"
    return line.encode() + stored + b"\n"


ARC_HEAD = b"filedesc://a.arc 0.0.0.0 20100401000000 text/plain 9\n1 0 Test\n\n"


def read_arc(data: bytes) -> list[Document | BrokenRecord]:
    return list(reader_of("a.arc.gz").read(io.BytesIO(data), "a.arc.gz", LAYOUTS["plain"], "crawl"))


def test_arc_pages_are_documents_with_their_place_and_day() -> None:
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
        (
            arc_record(9, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>" + b"words " * 99, length=90),
            "length",
        ),
        (arc_record(9, length=1 << 40), "long"),
        (arc_record(9, b"no status\r\n\r\n"), "http"),
    ],
)
def test_damage_in_an_arc_file_is_located_and_the_next_record_is_found(damaged: bytes, kind: str) -> None:
    before = ARC_HEAD + arc_record(0)
    found = read_arc(before + damaged + arc_record(1))
    assert any("rivers 0" in text for text in texts(found))
    assert any("rivers 1" in text for text in texts(found))
    assert kind in {each for each, _ in broken(found)}
    told = [record.location.offset for record in found if isinstance(record, BrokenRecord)]
    assert all(len(before) <= offset <= len(before) + len(damaged) for offset in told)


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 10_000), st.booleans())
def test_an_arc_file_that_is_cut_off_says_so_unless_at_the_end_of_a_record(place: int, compressed: bool) -> None:
    parts = [ARC_HEAD, *(arc_record(number) for number in range(5))]
    stored = [gzip.compress(part) if compressed else part for part in parts]
    data = b"".join(stored)
    kept = 1 + place % (len(data) - 1)
    ends = {sum(map(len, stored[:count])) - missing for count in range(len(stored) + 1) for missing in (0, 1)}
    found = read_arc(data[:kept])
    assert broken(found) or kept in ends


@pytest.mark.parametrize(
    "address",
    ["http://a.example/a page with blanks", "https://a.example/x?q=two words&y= 1", "http://a.example/ 10.0.0.9"],
)
def test_addresses_may_hold_blanks(address: str) -> None:
    body = b"HTTP/1.1 200 OK\nContent-Type: text/html\n\n" + PAGE
    for rest in ("text/html", "text/html 200 ABCDEF - 120 a.arc.gz"):
        line = f"{address} 10.0.0.1 20100401000000 {rest} {len(body)}\n".encode()
        found = read_arc(ARC_HEAD + arc_record(0) + line + body + b"\n" + arc_record(1))
        assert (len(texts(found)), broken(found)) == (3, [])
        assert (found[1].url, found[1].crawled_on) == (address, date(2010, 4, 1))


@pytest.mark.parametrize("off", [-300, -1, 1, 700])
@pytest.mark.parametrize("closing", [True, False], ids=["a page that closes itself", "an open page"])
def test_a_wrong_length_costs_no_neighbour_and_no_page_that_closes_itself(off: int, closing: bool) -> None:
    stored = arc_record(1).split(b"\n", 1)[1][:-1]
    if not closing:
        stored = stored.removesuffix(b"</p></article></body></html>")
    lying = arc_record(1, stored, length=len(stored) + off)
    found = read_arc(ARC_HEAD + arc_record(0) + lying + arc_record(2) + arc_record(3))
    expected = [0, 1, 2, 3] if closing or off == 1 else [0, 2, 3]
    assert [number for number in range(4) if any(f"rivers {number}" in text for text in texts(found))] == expected
    assert {kind for kind, _ in broken(found)} <= (set() if closing else {"cut", "truncated", "length", "corrupt"})


def test_a_page_of_the_crawls_limit_is_cut() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    found = read_arc(ARC_HEAD + arc_record(0, head + b"<html>" + b"x" * (512_000 - 6)) + arc_record(1))
    assert (len(texts(found)), [kind for kind, _ in broken(found)]) == (1, ["cut"])


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_an_archive_is_known_by_how_it_begins_whatever_its_name_says(pack: Callable[[bytes], bytes]) -> None:
    arc, warc = pack(ARC_HEAD + arc_record(0)), pack(response(PAGE))
    for name, data in (("a.warc.gz", arc), ("b.arc", warc), ("c.wet", arc)):
        reader = reader_of(name)
        assert reader is not None
        found = list(reader.read(io.BytesIO(data), name, LAYOUTS["plain"], "crawl"))
        assert (len(texts(found)), broken(found)) == (1, []), name
