"""Common Crawl: the index of captures and single records out of its archives, asked slowly and never twice.

The index throttles hard, so requests go one at a time with a pause, replies are kept on disk for good (a finished crawl
does not change), and a busy server ends the reading as deferred. Which captures to read is decided in
`strandline.spans.commoncrawl`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from resources.environment import COMMONCRAWL_DATA, COMMONCRAWL_INDEX
from resources.network.download_cache import DownloadCache
from resources.network.http import Http, PermanentError, TransientError
from resources.spans.news_pages import REASON, items_in, unusable
from resources.spans.sandbox import SandboxedFunction
from strandline.spans import DeferredError, commoncrawl
from strandline.spans.commoncrawl import Capture
from strandline.spans.news import NewsItem

INDEX, DATA = "https://index.commoncrawl.org", "https://data.commoncrawl.org"
"""Common Crawl's own addresses."""
PAGES_OF_A_CRAWL = 2000
"""Index pages of one site in one crawl that are read: at 1.5 s each an hour, and far more than any newspaper has."""


class CommonCrawl:
    """Reads of one archive. `pause` seconds lie between two requests to the index.

    `notes` tells of lines of the index that are no captures.
    """

    def __init__(
        self,
        http: Http,
        cache_dir: Path,
        index: str | None = None,
        data: str | None = None,
        pause: float = 1.5,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http, self._pause, self._sleep = http, pause, sleep
        self._index = (index or COMMONCRAWL_INDEX.value() or INDEX).rstrip("/")
        self._data = (data or COMMONCRAWL_DATA.value() or DATA).rstrip("/")
        self.notes: list[str] = []
        self._pages, self._records = DownloadCache(cache_dir / "cdx"), DownloadCache(cache_dir / "warc")

    def crawls(self, names: Sequence[str] = (), newest: int = 20) -> list[tuple[str, str]]:
        """Names and index addresses of the crawls asked for, or of the newest ones.

        PermanentError where the list is empty (an outage) or lacks a name.
        """
        reply = self._http.get(f"{self._index}/collinfo.json", revalidate=True)
        try:
            known = commoncrawl.parse_crawls(reply.json())
        except ValueError as error:
            raise PermanentError(str(error), url=reply.url, status=reply.status) from error
        if absent := sorted(set(names) - {name for name, _ in known}):
            raise PermanentError(f"the index has no crawl {absent[0]}", url=reply.url)
        return [pair for pair in known if pair[0] in names] if names else known[:newest]

    def captures(self, crawl: str, index: str, site: str, match: str = "domain") -> Iterator[list[Capture]]:
        """The captures of a site in a crawl, an index page at a time; none where the crawl holds nothing of it."""
        question = {"url": site, "matchType": match, "output": "json"}
        answer = self._asked(f"{crawl} {match} {site} pages", index, {**question, "showNumPages": "true"})
        if answer is None:
            return
        try:
            count = int(json.loads(answer)["pages"])
        except (ValueError, KeyError, TypeError) as error:
            raise PermanentError(f"{index} did not say how many pages it has: {answer[:120]!r}", url=index) from error
        if count > PAGES_OF_A_CRAWL:
            raise PermanentError(f"{index} has {count} pages for {site}; narrow the site", url=index)
        for page in range(count):
            lines = self._asked(f"{crawl} {match} {site} page {page}", index, {**question, "page": str(page)})
            captures, odd = commoncrawl.parse_captures(lines or "", crawl)
            if odd:
                self.notes.append(f"{crawl}, page {page}: {len(odd)} lines left out, the first: {odd[0]}"[:290])
            yield captures

    def item(self, capture: Capture, extract: SandboxedFunction) -> NewsItem:
        """The article of a capture, or why it is none; TransientError where its record could not be read now."""
        name = f"{capture.filename} {capture.byte_range}"
        if capture.truncated:
            reason = f"the capture was cut ({capture.truncated})"
            return replace(unusable(capture.url, capture.captured_at, "truncated", reason), content_id=capture.digest)
        try:
            record = self._records.read_or(name, lambda: self._record(capture))
        except PermanentError as error:
            item = unusable(capture.url, capture.captured_at, "missing", str(error)[:REASON])
            return replace(item, content_id=capture.digest)
        found = next(items_in(record, extract), None)
        if found is None or not found.url:
            reason = (found and found.reason) or "the archive holds no page at that place"
            return replace(unusable(capture.url, capture.captured_at, "truncated", reason), content_id=capture.digest)
        return found if found.captured_on else replace(found, captured_on=capture.captured_at.date())

    def _record(self, capture: Capture) -> bytes:
        """The bytes of a record, as many as the index says; a server that sends the whole file is understood."""
        address = f"{self._data}/{capture.filename}"
        reply = self._http.get(address, byte_range=capture.byte_range)
        start = capture.offset if reply.status == 200 and len(reply.content) > capture.length else 0
        record = reply.content[start : start + capture.length]
        if len(record) < capture.length:
            raise TransientError(f"{address} gave {len(record)} of {capture.length} bytes", url=address)
        return record

    def _asked(self, name: str, index: str, question: dict[str, str]) -> str | None:
        """A reply of the index, from disk where it has been asked before; None for "no captures"."""

        def fetch() -> bytes:
            self._sleep(self._pause)
            try:
                content = self._http.get(index, params=question, store=False).content
                if not commoncrawl.ends_whole(content.decode("utf-8", "replace")):
                    raise DeferredError(f"the answer of {index} to `{name}` ends in the middle of a line")
                return content
            except PermanentError as error:
                if error.status is not None and commoncrawl.says_no_captures(error.status, str(error)):
                    return b""
                raise
            except TransientError as error:
                raise DeferredError(f"the index is busy: {error}") from error

        return self._pages.read_or(name, fetch).decode("utf-8", "replace") or None
