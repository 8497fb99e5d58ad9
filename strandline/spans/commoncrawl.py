"""Common Crawl as data: which captures to read, and what a capture's bytes say.

The index answers with one JSON line a capture (CDX): its address, time, kind, digest and the place of its record in a
WARC archive. Here belong the choice of captures and the decoding of their bytes; asking is done by
`resources.spans.commoncrawl`, extraction of an article's text and date is `strandline.spans.article`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import Any

DATE_IN_PATH = re.compile(r"/((?:19|20)\d\d)[/-](0?[1-9]|1[0-2])(?:[/-](0?[1-9]|[12]\d|3[01]))?(?=[/-]|$)")
"""A year and month, with or without a day, as newspapers write them into addresses: `/2019/05/17/`, `/2019-05-17`."""
META_CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)", re.IGNORECASE)
"""The encoding that a page declares; browsers look for it in the first bytes too."""
HEADER_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)", re.IGNORECASE)
"""The encoding that a server declares."""
BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
"""The Unicode standard's marks; UTF-32's first, as it begins with UTF-16's."""
REPLACED_SHARE = 0.01
"""Share of characters that may be unreadable: a stray byte in a page is common, and at one in a hundred the score of a
text is that of the damage."""
NO_CAPTURES = "no captures found"
"""What the index says, under HTTP 404, of a site that a crawl holds nothing of."""


@dataclass(frozen=True)
class Capture:
    """A page in the archive: where its record lies and what the index says of it."""

    url: str
    captured_at: datetime
    filename: str
    offset: int
    length: int
    digest: str
    status: str
    mime: str
    truncated: str | None = None
    crawl: str = ""

    @property
    def byte_range(self) -> str:
        """The range header that fetches exactly this record."""
        return f"bytes={self.offset}-{self.offset + self.length - 1}"


def parse_crawls(payload: Any) -> list[tuple[str, str]]:
    """Names and index addresses of all crawls, newest first. An empty list is an outage, not an absence of news."""
    entries = [entry for entry in payload if isinstance(entry, Mapping)] if isinstance(payload, list) else []
    pairs = [(entry.get("id"), entry.get("cdx-api")) for entry in entries]
    crawls = [(name, index) for name, index in pairs if isinstance(name, str) and isinstance(index, str)]
    if not crawls:
        raise ValueError("the list of crawls came back empty, which means an outage of the index")
    return crawls


def parse_captures(lines: str, crawl: str = "") -> tuple[list[Capture], list[str]]:
    """The captures of an index page, and what is wrong with the lines that are none, with their numbers."""
    captures, odd = [], []
    for number, line in enumerate(lines.splitlines(), 1):
        if line.strip():
            try:
                captures.append(_capture(line, crawl))
            except ValueError as error:
                odd.append(f"index line {number} is no capture ({error}): {line[:120]!r}"[:290])
    return captures, odd


def ends_whole(lines: str) -> bool:
    """Whether an index page has its end: one that was cut ends in the middle of a line."""
    last = lines.rstrip("\n").rpartition("\n")[2]
    try:
        return lines.endswith("\n") or not last or isinstance(json.loads(last), dict)
    except ValueError:
        return False


def says_no_captures(status: int, body: str) -> bool:
    """Whether a 404 means "this crawl holds nothing of that domain" rather than that the address is wrong."""
    return status == 404 and NO_CAPTURES in body.lower()


def is_page(capture: Capture, mimes: Sequence[str] = ("text/html", "application/xhtml+xml")) -> bool:
    """Whether a capture holds a page's text: fetched well, of a page's type, no revisit of an older capture."""
    return capture.status == "200" and capture.mime in mimes and "revisit" not in capture.mime


def date_in_address(url: str) -> date | None:
    """The publication date that many newspapers write into their addresses (`/2019/05/17/`); the first if no day."""
    found = DATE_IN_PATH.search(url.split("?", 1)[0])
    if found is None:
        return None
    try:
        return date(int(found[1]), int(found[2]), int(found[3] or 1))
    except ValueError:
        return None


def address_key(url: str) -> str:
    """An article's address without scheme, `www.`, query and fragment: what two captures of one article share."""
    plain = re.sub(r"^[a-z]+://", "", url.strip(), flags=re.IGNORECASE).split("#", 1)[0].split("?", 1)[0]
    host, slash, path = plain.partition("/")
    host = re.sub(r"^www\.|:(?:80|443)$", "", host.lower())
    return (host + slash + path).rstrip("/")


def plan(captures: Iterable[Capture], months: Iterable[date], seed: int) -> dict[date | None, list[Capture]]:
    """For each wanted month the captures to read, in the order of the seeded sample; None holds those without a date.

    One capture stands for each article: the earliest, as it is nearest to publication. The order depends on the seed
    and the address alone, so neither the order of the index nor later crawls change which articles are drawn first.
    """
    wanted = set(months)
    first: dict[str, Capture] = {}
    for capture in captures:
        if is_page(capture):
            key = address_key(capture.url)
            first[key] = min(first.get(key, capture), capture, key=lambda c: (c.captured_at, c.filename, c.offset))
    planned: dict[date | None, list[Capture]] = {}
    for _, capture in sorted(first.items(), key=lambda pair: draw_order(pair[0], seed)):
        stated = date_in_address(capture.url)
        month = stated.replace(day=1) if stated else None
        if month is None or month in wanted:
            planned.setdefault(month, []).append(capture)
    return planned


def draw_order(name: str, seed: int) -> str:
    """A reproducible random rank of a name: sorting by it shuffles, whatever order the names came in."""
    return sha256(f"{seed}\x1f{name}".encode("utf-8", "surrogatepass")).hexdigest()


def decode(body: bytes, content_type: str = "") -> tuple[str, str, float]:
    """The text of a page, the encoding that was used, and the share of characters that had to be replaced.

    Tried in this order: byte order mark, UTF-8 where bytes beyond ASCII happen to be valid UTF-8 (no other encoding
    does that by chance), the declared encoding (header, then page), what the bytes look like, and UTF-8 with
    replacement. An encoding that cannot decode every byte is passed over.
    """
    for mark, encoding in BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return _replaced(body, encoding)
    meta = META_CHARSET.search(body[:4096])
    declared = [m[1] for m in (HEADER_CHARSET.search(content_type),) if m] + ([meta[1].decode("ascii")] if meta else [])
    for encoding in (*([] if body.isascii() else ["utf-8"]), *declared, *_sniffed(body)):
        try:
            return body.decode(_known(encoding)), encoding.lower(), 0.0
        except (LookupError, UnicodeDecodeError):
            continue
    return _replaced(body, "utf-8")


def _capture(line: str, crawl: str) -> Capture:
    """The capture that a line tells of. ValueError, in words, where it tells of none."""
    entry = json.loads(line)
    if not isinstance(entry, Mapping):
        raise ValueError("it is no object")
    for name in ("url", "timestamp", "filename", "offset", "length"):
        if not isinstance(entry.get(name), str | int):
            raise ValueError(f"it has no {name}")
    offset, length = int(entry["offset"]), int(entry["length"])
    if offset < 0 or length <= 0:
        raise ValueError(f"its place is {offset} and its length {length}")
    return Capture(
        url=str(entry["url"]),
        captured_at=datetime.strptime(str(entry["timestamp"]), "%Y%m%d%H%M%S").replace(tzinfo=UTC),
        filename=str(entry["filename"]),
        offset=offset,
        length=length,
        digest=str(entry.get("digest", "")),
        status=str(entry.get("status", "")),
        mime=_mime(entry),
        truncated=str(entry["truncated"]) if entry.get("truncated") else None,
        crawl=crawl,
    )


def _mime(entry: Mapping[str, Any]) -> str:
    """The detected type where the index has it; revisits have none of their own."""
    declared = str(entry.get("mime", ""))
    return declared if "revisit" in declared else str(entry.get("mime-detected", declared))


def _known(encoding: str) -> str:
    """What browsers do: pages that say Latin-1 or ASCII are read as Windows-1252."""
    return "cp1252" if encoding.lower() in {"iso-8859-1", "latin-1", "latin1", "us-ascii", "ascii"} else encoding


def _sniffed(body: bytes) -> list[str]:
    from charset_normalizer import from_bytes

    best = from_bytes(body[:65536]).best()
    return [best.encoding] if best else []


def _replaced(body: bytes, encoding: str) -> tuple[str, str, float]:
    text = body.decode(encoding, "replace")
    return text, encoding, text.count("\ufffd") / max(1, len(text))
