"""A web archive on loopback: an index of captures (CDX) and the WARC records that it points to."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import NAMESPACE_URL, uuid5

from tests.fakes.web import Answer, Asked, json_answer

ARCHIVE = "crawl-data/part-00000.warc.gz"
PAGE_LINES = 4


@dataclass(frozen=True)
class Shot:
    """A capture: the page's bytes as served, and what the archive says of it."""

    url: str
    at: datetime
    body: bytes = b""
    content_type: str = "text/html; charset=utf-8"
    kind: str = "response"
    truncated: str | None = None
    status: int = 200
    cut: int | None = None


@dataclass
class Archive:
    """Answers for an index and its data; `faults` may answer a request in their stead. `asked` counts by kind."""

    crawls: Mapping[str, Sequence[Shot]]
    faults: Callable[[Asked], Answer | None] = lambda _: None
    base: str = ""
    _bytes: bytes = b""
    _lines: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for crawl, shots in self.crawls.items():
            self._lines[crawl] = [self._add(shot) for shot in shots]

    def __call__(self, asked: Asked) -> Answer:
        if (fault := self.faults(asked)) is not None:
            return fault
        if asked.raw_path == "/collinfo.json":
            return json_answer([{"id": crawl, "cdx-api": f"{self.base}/{crawl}-index"} for crawl in self.crawls])
        if asked.raw_path == f"/{ARCHIVE}":
            first, _, last = asked.headers["Range"].removeprefix("bytes=").partition("-")
            part = self._bytes[int(first) : int(last) + 1]
            return Answer(206, part, {"Content-Range": f"bytes {first}-{last}/{len(self._bytes)}"})
        return self._index(asked)

    def _index(self, asked: Asked) -> Answer:
        lines = self._lines.get(asked.raw_path.strip("/").removesuffix("-index"))
        if lines is None:
            return Answer(404, b"<html>Not Found</html>")
        if not lines:
            return json_answer({"message": f"No Captures found for: {asked.query['url']}"}, 404)
        if asked.query.get("showNumPages"):
            pages = -(-len(lines) // PAGE_LINES)
            return json_answer({"pages": pages, "pageSize": 5, "blocks": pages})
        start = int(asked.query["page"]) * PAGE_LINES
        return Answer(200, "".join(line + "\n" for line in lines[start : start + PAGE_LINES]).encode())

    def _add(self, shot: Shot) -> str:
        packed = gzip.compress(_record(shot), mtime=0)[: shot.cut]
        offset, self._bytes = len(self._bytes), self._bytes + packed
        line = {
            "urlkey": shot.url, "timestamp": f"{shot.at:%Y%m%d%H%M%S}", "url": shot.url, "status": str(shot.status),
            "mime": "warc/revisit" if shot.kind == "revisit" else "text/html", "digest": str(offset),
            "length": str(len(packed)), "offset": str(offset), "filename": ARCHIVE,
        }  # fmt: skip
        return json.dumps(line)


def _record(shot: Shot) -> bytes:
    served = f"Content-Type: {shot.content_type}\r\nContent-Length: {len(shot.body)}\r\n"
    http = f"HTTP/1.1 {shot.status} OK\r\n{served}\r\n".encode() + shot.body
    headers = {
        "WARC-Type": shot.kind,
        "WARC-Target-URI": shot.url,
        "WARC-Date": f"{shot.at:%Y-%m-%dT%H:%M:%SZ}",
        "WARC-Record-ID": f"<urn:uuid:{uuid5(NAMESPACE_URL, shot.url)}>",
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(http)),
        **({"WARC-Truncated": shot.truncated} if shot.truncated else {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"WARC/1.0\r\n{head}\r\n".encode() + http + b"\r\n\r\n"
