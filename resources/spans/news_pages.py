"""Archived pages to news items: records of a WARC or ARC archive, decoded and extracted under caps of time and memory.

Finding records and judging their bytes is shared with corpora (`resources.corpus.archives`, `strandline.web_archives`);
here each becomes an article, or says why it is none.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import BinaryIO

from resources.corpus.arc import Arc
from resources.corpus.archives import ArchiveFormat, Damage, Found, records
from resources.corpus.streams import pieces
from resources.corpus.warc import Warc
from resources.spans.sandbox import SandboxedFunction
from strandline.spans import commoncrawl
from strandline.spans.months import utc_instant
from strandline.spans.news import NewsItem
from strandline.web_archives import http_message

EXTRACT = "strandline.spans.article:extract"
"""The function that reads an article out of a page; it runs in a child process."""
SECONDS, MEGABYTES = 20.0, 2048
"""CPU time and memory for one page: the longest pages that crawls keep (5 MiB) need some seconds and 1 GiB."""
FIRST_CAPTURE = datetime(1991, 1, 1, tzinfo=UTC)
"""There was no web before 1991, so that a capture dated earlier was dated by a broken clock."""
REASON = 280
"""Characters of a reason that are kept: a sentence and the place that it names."""
CUT = frozenset({"cut", "truncated"})
"""Kinds of damage by which a page is not whole; others make it unreadable."""


def extractor() -> SandboxedFunction:
    """The child process that `items_in` needs."""
    return SandboxedFunction(EXTRACT, SECONDS, MEGABYTES)


@dataclass(frozen=True, slots=True)
class Page(Found):
    """A record that stands for a page, with the reason why there is no article on it, if so."""

    status: str = "ok"
    reason: str | None = None


class NewsWarc(Warc):
    """WARC records as pages; requests, metadata and converted texts are none."""

    def record(self, told: Mapping[str, str], block: bytes, offset: int, in_doubt: bool) -> Found | Damage:
        """The record, as a page with its address and date also where it is damaged."""
        outcome = super().record(told, block, offset, in_doubt)
        kind = told.get("warc-type", "").lower()
        if kind not in {"response", "resource", "revisit"}:
            return outcome
        url = told.get("warc-target-uri", "").strip().strip("<>") or None
        page = _page(outcome, url, told.get("warc-date"), block)
        if kind == "revisit":
            reason = "the archive only says that the page was as at an earlier capture"
            return replace(page, status="revisit", reason=reason)
        return page


class NewsArc(Arc):
    """ARC records as pages."""

    def record(self, told: tuple[str, str], block: bytes, offset: int, in_doubt: bool) -> Found | Damage:
        """The record, as a page with its address and date also where it is damaged."""
        outcome = super().record(told, block, offset, in_doubt)
        return _page(outcome, told[0], told[1][:8], block) if told[0].startswith("http") else outcome


def items_in(archive: bytes | BinaryIO, extract: SandboxedFunction, name: str = "") -> Iterator[NewsItem]:
    """The pages of an archive (or of one record of it), each as an article or with the reason why it is none.

    What cannot be read at all is an item without a date that names its place: `name` and the byte at which it begins.
    """
    stream = io.BytesIO(archive) if isinstance(archive, bytes) else archive
    for found in records(stream, _format(stream)):
        place = f"{name} at byte {found.offset}".strip()
        if isinstance(found, Damage):
            status = "truncated" if found.kind in CUT else "unreadable"
            yield NewsItem(place, None, "", status=status, reason=_placed(place, found.reason), place=place)
        elif isinstance(found, Page):
            yield _item(found, place, extract)


def page_item(
    url: str, captured: datetime | None, body: bytes, content_type: str, extract: SandboxedFunction
) -> NewsItem:
    """The article on a page as it was captured; `captured` None where that is not known."""
    html, encoding, replaced = commoncrawl.decode(body, content_type)
    if replaced > commoncrawl.REPLACED_SHARE:
        reason = f"{replaced:.1%} of the characters cannot be read as {encoding}"
        return replace(unusable(url, captured, "garbled", reason), replaced_share=replaced)
    outcome = extract.call(html, (captured or datetime.now(UTC)).date())
    if outcome.status != "ok":
        reason = f"extraction {outcome.reason}"[:REASON]
        return replace(unusable(url, captured, "unparsed", reason), replaced_share=replaced)
    found = outcome.value
    text = f"{found.title}\n\n{found.text}" if found.title and found.text else found.text
    stated = commoncrawl.date_in_address(url)
    item = unusable(url, captured, "ok", None)
    return replace(item, published_on=found.published_on or stated, text=text, replaced_share=replaced)


def unusable(url: str, captured: datetime | None, status: str, reason: str | None) -> NewsItem:
    """A page of which only its address and its capture are known."""
    day: date | None = captured.astimezone(UTC).date() if captured else None
    stated = commoncrawl.date_in_address(url)
    return NewsItem(commoncrawl.address_key(url), stated, "", url, day, stated, status, reason)


def _format(archive: BinaryIO) -> ArchiveFormat:
    """What kind of archive this is, by its first bytes; the archive is at its start again afterwards."""
    start = next((part for part in pieces(archive) if isinstance(part, bytes)), b"").lstrip()
    archive.seek(0)
    return NewsArc() if start.startswith(b"filedesc:") or Arc.begins.match(start) else NewsWarc()


def _page(outcome: Found | Damage, url: str | None, day: str | None, block: bytes) -> Page:
    """A record as a page: what reading it came to, under its own address and date."""
    page = Page(outcome.offset, None, url, day, "", None)
    if isinstance(outcome, Damage):
        return replace(page, status="truncated" if outcome.kind in CUT else "unreadable", reason=outcome.reason)
    if outcome.body is not None:
        return replace(page, content_type=outcome.content_type, body=outcome.body)
    try:
        code = http_message(block).status
    except ValueError as error:
        return replace(page, status="unreadable", reason=str(error))
    if code not in (None, 200):
        return replace(page, status="missing", reason=f"the server answered {code}")
    kind = outcome.content_type or "of a type that was not told"
    return replace(page, status="unsupported", reason=f"the document is {kind:.80}, no page")


def _item(page: Page, place: str, extract: SandboxedFunction) -> NewsItem:
    """The article of a page, or why there is none."""
    captured = _captured(page.date)
    if not page.url:
        return NewsItem(
            place, None, "", status="unreadable", reason=f"{place}: the record names no address", place=place
        )
    if page.status != "ok":
        item = unusable(page.url, captured, page.status, (page.reason or "")[:REASON])
    else:
        item = page_item(page.url, captured, page.body or b"", page.content_type, extract)
    if captured is None:
        return replace(item, place=f"{place} (captured {page.date!r:.40})")
    return replace(item, place=place)


def _captured(text: str | None) -> datetime | None:
    """The instant of a capture; None where its text is no date that a crawl can have."""
    try:
        moment = utc_instant(text or "")
    except (ValueError, OverflowError):
        return None
    return moment if FIRST_CAPTURE <= moment <= datetime.now(UTC) + timedelta(days=1) else None


def _placed(place: str, reason: str) -> str:
    return f"{place}: {reason}"[:REASON]
