"""News articles by month of publication: the `news` source, over Common Crawl or files on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from resources.network.http import FetchError, Http, TransientError
from resources.places import ROOT
from resources.spans.commoncrawl import CommonCrawl
from resources.spans.news_files import fingerprint, matching, read_items
from resources.spans.news_pages import extractor
from resources.spans.sandbox import SandboxedFunction
from resources.spans.source import Source
from strandline.spans import DeferredError, Span, Version, article
from strandline.spans.commoncrawl import Capture, address_key, date_in_address, plan
from strandline.spans.news import NewsItem, Rules, sample, unplaced
from strandline.spans.selection import Known
from strandline.spans.settings import SourceKind

OPTIONS = frozenset(
    {"files", "fields", "site", "crawls", "newest_crawls", "match", "pause", "index", "data"}
    | {"per_month", "seed", "min_words", "near"}
)
"""Settings that belong to this source alone."""
TOKENS = 256
"""Tokens scored of an article, half of what other documents get: what the paper did for its news."""
UNDATED_AT_MOST = 2000
"""Pages without a day in their address that are read for one run: at a second each, half an hour."""
FAILURES_IN_A_ROW = 5
"""Reads in a row that fail before the archive is left alone: a busy server recovers in minutes, not in more tries."""


class NewsSource:
    """Articles drawn by month. Options: `files` (patterns) with `fields`, or `site` with `crawls` (names) or
    `newest_crawls`, `match`, `pause`, `index`, `data`; and of the sample `per_month`, `seed`, `min_words`, `near`."""

    cleaner = article.CLEANER

    def __init__(self, http: Http, cache_dir: Path) -> None:
        self._http, self._cache_dir = http, cache_dir
        self.notes: list[str] = []

    def fingerprint(self, span: Span) -> str:
        """Changes with the local files, so that months are drawn anew when articles are added."""
        files = span.options.get("files")
        return fingerprint(matching(files, ROOT)) if files else ""

    def versions(self, span: Span, months: Sequence[date], known: Known) -> Iterator[list[Version]]:
        """All articles of the open months in one batch. Raises DeferredError, after what it has, to spare a server."""
        if not months:
            return
        rules = Rules(**{k: span.options[k] for k in ("per_month", "seed", "min_words", "near") if k in span.options})
        with extractor() as extract:
            if span.options.get("files"):
                fields = span.options.get("fields", {})
                files = matching(span.options["files"], ROOT)
                items = [item for path in files for item in read_items(path, fields, extract)]
                self.notes = unplaced(items)
                yield sample(items, months, rules)
            elif span.options.get("site"):
                archive = self._archive(span)
                reading = _Reading(archive, months, rules, extract)
                reading.read(_captures(archive, span, rules, months))
                self.notes = archive.notes + unplaced(reading.items)
                yield sample(reading.items, months, rules)
                if reading.gave_up:
                    raise DeferredError(reading.gave_up)
            else:
                raise ValueError(f"resource {span.resource}: options must name `files` or a `site`")

    def _archive(self, span: Span) -> CommonCrawl:
        chosen: dict[str, Any] = {k: span.options[k] for k in ("index", "data", "pause") if k in span.options}
        return CommonCrawl(self._http, self._cache_dir, **chosen)


def _captures(
    archive: CommonCrawl, span: Span, rules: Rules, months: Sequence[date]
) -> dict[date | None, list[Capture]]:
    crawls = archive.crawls(span.options.get("crawls", ()), int(span.options.get("newest_crawls", 20)))
    site, match = str(span.options["site"]), str(span.options.get("match", "domain"))
    found = [c for crawl, index in crawls for page in archive.captures(crawl, index, site, match) for c in page]
    return plan(found, months, rules.seed)


class _Reading:
    """Reads planned captures in the order of the draw until every month has its articles."""

    def __init__(self, archive: CommonCrawl, months: Sequence[date], rules: Rules, extract: SandboxedFunction) -> None:
        self._archive, self._months, self._rules, self._extract = archive, months, rules, extract
        self.items: list[NewsItem] = []
        self.gave_up: str | None = None
        self._failures = 0

    def read(self, planned: dict[date | None, list[Capture]]) -> None:
        """Pages without a date in their address first, up to a bound; then month by month, no more than needed."""
        for capture in planned.get(None, [])[:UNDATED_AT_MOST]:
            self._add(capture)
        for month in self._months:
            left = list(planned.get(month, []))
            while left and not self.gave_up and (short := self._rules.per_month - self._usable(month)) > 0:
                for capture in left[:short]:
                    self._add(capture)
                left = left[short:]

    def _usable(self, month: date) -> int:
        return sum(version.status == "ok" for version in sample(self.items, [month], self._rules))

    def _add(self, capture: Capture) -> None:
        if self.gave_up:
            return
        try:
            self.items.append(self._archive.item(capture, self._extract))
            self._failures = 0
        except FetchError as error:
            self._failures += 1
            self.items.append(_failed(capture, error))
            if isinstance(error, TransientError) and self._failures >= FAILURES_IN_A_ROW:
                self.gave_up = f"{self._failures} reads failed in a row, the last with: {error}"


def _failed(capture: Capture, error: FetchError) -> NewsItem:
    stated = date_in_address(capture.url)
    day = capture.captured_at.date()
    item = NewsItem(address_key(capture.url), stated, "", capture.url, day, stated)
    return replace(item, status="failed", reason=str(error))


NEWS = Source(
    SourceKind(
        "news",
        OPTIONS,
        kind="unpaired",
        max_tokens=TOKENS,
        lists=frozenset({"files", "crawls"}),
        numbers={
            "newest_crawls": (1, 1000),
            "pause": (0, 3600.0),
            "per_month": (1, 1_000_000),
            "seed": (0, 2**63),
            "min_words": (0, 1_000_000),
            "near": (0.1, 1.0),
        },
    ),
    NewsSource,
)
"""The record of this source."""
