"""Archived pages to news items: records of a WARC archive, decoded and extracted under caps of time and memory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any, BinaryIO

from resources.spans.sandbox import SandboxedFunction
from strandline.spans import commoncrawl
from strandline.spans.months import utc_instant
from strandline.spans.news import NewsItem

EXTRACT = "strandline.spans.article:extract"
REPLACED_SHARE = 0.01
SECONDS, MEGABYTES = 20.0, 2048


def extractor() -> SandboxedFunction:
    """The child process that `items_in` needs."""
    return SandboxedFunction(EXTRACT, SECONDS, MEGABYTES)


def items_in(archive: bytes | BinaryIO, extract: SandboxedFunction) -> Iterator[NewsItem]:
    """The pages of an archive (or of one record of it), each as an article or with the reason why it is none.

    An archive that breaks off ends the reading; the record that is cut is `truncated`.
    """
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    stream = io.BytesIO(archive) if isinstance(archive, bytes) else archive
    kinds = WarcRecordType.response | WarcRecordType.revisit
    records = iter(ArchiveIterator(stream, record_types=kinds, parse_http=False))
    while True:
        try:
            record = next(records, None)
            if record is None:
                return
            item = _item(record, record.record_type == WarcRecordType.revisit, extract)
        except (OSError, EOFError, ValueError) as error:
            yield NewsItem("", None, "", status="truncated", reason=f"the archive breaks off: {error}")
            return
        yield item


def _item(record: Any, is_revisit: bool, extract: SandboxedFunction) -> NewsItem:
    url = record.headers.get("WARC-Target-URI", "")
    captured = utc_instant(record.headers.get("WARC-Date") or "1970-01-01T00:00:00Z")
    if is_revisit:
        return _unusable(url, captured, "revisit", "the archive only says that the page was as at an earlier capture")
    if cut := record.headers.get("WARC-Truncated"):
        return _unusable(url, captured, "truncated", f"the capture was cut ({cut})")
    declared = int(record.headers.get("Content-Length") or 0)
    record.freeze()
    if not url or record.content_length < declared:
        reason = f"the archive breaks off after {record.content_length} of {declared} bytes"
        return _unusable(url, captured, "truncated", reason)
    record.parse_http(auto_decode="all")
    if (code := getattr(record.http_headers, "status_code", None)) != 200:
        return _unusable(url, captured, "missing", f"the server answered {code}")
    return page_item(url, captured, record.reader.read(), record.http_headers.get("Content-Type") or "", extract)


def page_item(url: str, captured: datetime, body: bytes, content_type: str, extract: SandboxedFunction) -> NewsItem:
    """The article on a page as it was captured."""
    html, encoding, replaced = commoncrawl.decode(body, content_type)
    if replaced > REPLACED_SHARE:
        reason = f"{replaced:.1%} of the characters cannot be read as {encoding}"
        return replace(_unusable(url, captured, "garbled", reason), replaced_share=replaced)
    outcome = extract.call(html, captured.date())
    if outcome.status != "ok":
        return replace(_unusable(url, captured, "unparsed", f"extraction {outcome.reason}"), replaced_share=replaced)
    found = outcome.value
    text = f"{found.title}\n\n{found.text}" if found.title and found.text else found.text
    stated = commoncrawl.date_in_address(url)
    published = found.published_on or stated
    item = NewsItem(commoncrawl.address_key(url), published, text, url, captured.date(), stated)
    return replace(item, replaced_share=replaced)


def _unusable(url: str, captured: datetime, status: str, reason: str) -> NewsItem:
    day: date = captured.astimezone(UTC).date()
    stated = commoncrawl.date_in_address(url)
    return NewsItem(commoncrawl.address_key(url), stated, "", url, day, stated, status, reason)
