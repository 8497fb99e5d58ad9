"""Bytes of corpus files for tests of their readers, and what readers gave, in short."""

import bz2
import gzip
import io
import json
import lzma

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from strandline.corpus import BrokenRecord, Document

COMPRESS = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
}


ROWS = [json.dumps({"text": f"document {n} " + "word " * (n % 17)}).encode() for n in range(1, 401)]


def texts(records: list[Document | BrokenRecord]) -> list[str]:
    return [record.text for record in records if isinstance(record, Document)]


def broken(records: list[Document | BrokenRecord]) -> list[tuple[str, int]]:
    return [(r.kind, r.location.position) for r in records if isinstance(r, BrokenRecord)]


PAGE = (
    b"<html><body><article><p>"
    + b"A long enough paragraph about rivers and towns. " * 12
    + b"</p></article></body></html>"
)


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


def parquet_bytes(table: pa.Table, **settings: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **settings)
    return sink.getvalue()
