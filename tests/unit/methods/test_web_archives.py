"""HTTP messages out of web archives: heads lie and bytes are believed; what is cut says why."""

import gzip
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.web_archives import CRAWL_LIMITS, HttpMessage, begins_a_page, http_message, truncation

PAGE = b"<html><body><p>" + b"A paragraph about rivers and towns. " * 20 + b"</p></body></html>"
OPEN = PAGE.removesuffix(b"</p></body></html>")


def message(body: bytes, *fields: str, status: str = "HTTP/1.1 200 OK", end: str = "\r\n") -> HttpMessage:
    head = end.join([status, *(fields or ("Content-Type: text/html",)), "", ""])
    return http_message(head.encode() + body)


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r\r\n", "\r"], ids=["CRLF", "LF", "CRCRLF", "CR"])
def test_a_page_is_read_whatever_ends_the_lines_of_its_head(end: str) -> None:
    found = message(PAGE, "Content-Type: text/html; charset=utf-8", "Server: x", end=end)
    assert (found.status, found.body, found.cut) == (200, PAGE, None)
    assert found.content_type == "text/html; charset=utf-8"


@pytest.mark.parametrize(
    ("block", "status"),
    [
        (b"HTTP/1.0 200\n\n" + PAGE, 200),
        (b"HTTP/2 200 \r\n\r\n" + PAGE, 200),
        (b"ICY 200 OK\r\n\r\n" + PAGE, 200),
        (b"\r\n\r\nHTTP/1.1 404 Not Found\r\n\r\n" + PAGE, 404),
        (b"HTTP/1.1 200 OK\r\nServer: x\n \t\r\n" + PAGE, 200),
        (b"HTTP/1.1 200 OK\r\nServer: x\r\n" + PAGE, 200),
        (PAGE, None),
        (b"\xef\xbb\xbf<!DOCTYPE html>" + PAGE, None),
    ],
    ids=[
        "no words",
        "HTTP/2",
        "ICY",
        "blank lines first",
        "blank that is not empty",
        "no blank line",
        "no head",
        "BOM",
    ],
)
def test_odd_heads_are_understood(block: bytes, status: int | None) -> None:
    found = http_message(block)
    assert found.status == status
    assert PAGE in found.body
    assert (found.content_type, found.cut) == ("text/html", None)


@pytest.mark.parametrize("block", [b"", b"lost line\r\n\r\ntext", b"HTTP/1.1 OK\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\n"])
def test_what_is_no_response_is_refused_in_words(block: bytes) -> None:
    with pytest.raises(ValueError, match="does not begin with a status"):
        http_message(block)


def test_folded_and_repeated_fields_are_joined() -> None:
    found = message(PAGE, "X-Long: one", "  two", "Content-Encoding: gzip", "content-encoding: identity")
    assert (found.headers["x-long"], found.headers["content-encoding"]) == ("one two", "gzip, identity")


def chunked(*parts: bytes, last: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + last


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def zstd(data: bytes) -> bytes:
    import zstandard

    return zstandard.compress(data)


def brotli(data: bytes) -> bytes:
    import brotli

    return brotli.compress(data)


@pytest.mark.parametrize(
    ("fields", "stored"),
    [
        (("Transfer-Encoding: chunked",), chunked(PAGE[:50], PAGE[50:])),
        (("Transfer-Encoding: chunked",), chunked(PAGE).replace(b"\r\n", b"\n")),
        (("Transfer-Encoding: chunked",), b"%x;name=value\r\n%s\r\n0\r\n\r\n" % (len(PAGE), PAGE)),
        (("Transfer-Encoding: chunked",), PAGE),
        (("Content-Encoding: gzip",), gzip.compress(PAGE, mtime=0)),
        (("Content-Encoding: x-gzip",), b"\r\n" + gzip.compress(PAGE, mtime=0)),
        (("Content-Encoding: gzip",), PAGE),
        ((), gzip.compress(PAGE, mtime=0)),
        (("Content-Encoding: deflate",), zlib.compress(PAGE)),
        (("Content-Encoding: deflate",), raw_deflate(PAGE)),
        (("Content-Encoding: deflate",), PAGE),
        (("Content-Encoding: br",), brotli(PAGE)),
        (("Content-Encoding: br",), PAGE),
        (("Content-Encoding: zstd",), zstd(PAGE)),
        (("Content-Encoding: gzip", "Transfer-Encoding: chunked"), chunked(gzip.compress(PAGE, mtime=0))),
        (("Content-Encoding: deflate, gzip",), gzip.compress(zlib.compress(PAGE), mtime=0)),
        (("Content-Encoding: gzip", f"Content-Length: {len(gzip.compress(PAGE, mtime=0))}"), PAGE),
        ((f"Content-Length: {len(PAGE) - 2}",), b"\r\n" + PAGE),
    ],
)
def test_bodies_are_unpacked_by_what_they_are(fields: tuple[str, ...], stored: bytes) -> None:
    found = message(stored, "Content-Type: text/html", *fields)
    assert (found.body.strip(), found.cut) == (PAGE, None)


@pytest.mark.parametrize(
    ("fields", "stored", "why"),
    [
        (("Transfer-Encoding: chunked",), chunked(OPEN, last=b""), "the last chunk is missing"),
        (("Transfer-Encoding: chunked",), chunked(OPEN)[:300], "a chunk of 735 bytes ends after 295"),
        (("Content-Encoding: gzip",), gzip.compress(PAGE, mtime=0)[:-1], "the packed page ends early, after 753 bytes"),
        (("Content-Encoding: gzip",), gzip.compress(PAGE, mtime=0)[:40], "the packed page ends early"),
        (("Content-Encoding: deflate",), zlib.compress(PAGE)[:-9], "the packed page ends early"),
        (("Content-Encoding: br",), brotli(PAGE)[:-2], "the packed page ends early"),
        ((f"Content-Length: {len(PAGE)}",), OPEN, "ends after 735 of the 753 bytes"),
        ((), b"x" * 65_536, "65536 bytes, where crawlers stop"),
        ((), b"x" * 1_048_576, "1048576 bytes, where crawlers stop"),
        (("Content-Encoding: gzip",), gzip.compress(b"x" * 512_000, mtime=0), "512000 bytes, where crawlers stop"),
    ],
)
def test_what_is_cut_says_why(fields: tuple[str, ...], stored: bytes, why: str) -> None:
    found = message(stored, "Content-Type: text/html", *fields)
    assert found.cut is not None
    assert why in found.cut


@pytest.mark.parametrize("limit", CRAWL_LIMITS)
def test_a_page_of_a_limits_length_is_cut_only_at_just_that_length_and_without_its_end(limit: int) -> None:
    closing = b"</html>\n"
    assert message(b"x" * limit).cut
    assert message(b"x" * (limit - 1)).cut is None
    assert message(b"x" * (limit + 1)).cut is None
    assert message(b"x" * (limit - len(closing)) + closing).cut is None


def test_a_promise_counts_bytes_as_they_were_sent_and_never_against_a_page_that_closes_itself() -> None:
    text = b"one\ntwo\nthree\n"
    assert message(text, "Content-Length: 17", end="\n").cut is None
    assert message(text, "Content-Length: 18", end="\n").cut
    assert message(PAGE, "Content-Length: 99999").cut is None
    assert message(OPEN, "Content-Length: many").cut is None


def test_a_head_that_ends_with_the_record_has_no_page() -> None:
    found = http_message(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nServer: Apa")
    assert (found.body, found.cut) == (b"", "the record ends inside the head of the response")


def test_a_page_that_cannot_be_unpacked_or_is_too_large_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match=r"the page cannot be unpacked: .*unknown header"):
        message(b"\x1f\x8b\x08damaged" * 9, "Content-Encoding: gzip")
    with pytest.raises(ValueError, match="does not begin with the size of a chunk"):
        message(b"zz\r\n" + PAGE, "Transfer-Encoding: chunked")
    with pytest.raises(ValueError, match="more than 1000 bytes once it is unpacked"):
        http_message(b"HTTP/1.1 200 OK\r\n\r\n" + gzip.compress(b"x" * 200_000), longest=1000)


def test_a_flag_is_told_in_words() -> None:
    assert truncation("length") == "the capture was cut (length)"
    assert truncation(" Disconnect ") == "the capture was cut (disconnect)"
    assert (truncation(None), truncation("")) == (None, None)


def test_a_page_is_known_by_how_it_begins() -> None:
    assert begins_a_page(b" \n<HTML lang=en>")
    assert begins_a_page("<!doctype  html>".encode("utf-16"))
    assert begins_a_page(b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC>')
    assert not begins_a_page(b"<?xml version='1.0'?><rss>")
    assert not begins_a_page(b"the <html> element")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(["", "gzip", "deflate", "br", "zstd"]), st.booleans())
def test_no_bytes_make_it_fail_without_words(body: bytes, coding: str, in_chunks: bool) -> None:
    fields = [f"Content-Encoding: {coding}", *(["Transfer-Encoding: chunked"] if in_chunks else [])]
    try:
        found: HttpMessage | str = message(body, *fields)
    except ValueError as error:
        found = str(error)
    assert found.status == 200 if isinstance(found, HttpMessage) else 0 < len(found) < 300
