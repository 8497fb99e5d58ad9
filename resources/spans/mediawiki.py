"""A MediaWiki as a source of versioned documents: the API over the shared HTTP adapter, and the `wikipedia` source.

What to ask and what answers mean is `strandline.spans.wikipedia`; here belong asking, continuing, waiting and the order
of requests. Pages of any wiki: the API's address is a setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from resources.environment import WIKIPEDIA_API
from resources.network.http import FetchError, Http, PermanentError, Reply, TransientError
from resources.spans.sandbox import SandboxedFunction
from resources.spans.source import Source
from strandline.spans import DeferredError, Span, Version, wikipedia
from strandline.spans.months import snapshot_instant
from strandline.spans.selection import Known
from strandline.spans.settings import SourceKind
from strandline.spans.wikipedia import Change, Content, History, Page
from strandline.spans.wikitext import CLEANER, Names, is_redirect

API = "https://en.wikipedia.org/w/api.php"
"""The wiki that is read unless the settings name another."""
CONTINUATIONS = 200
"""Parts of one answer: fifty long revisions come in some ten, so that more is a wiki that does not come to an end."""
FAILURES_IN_A_ROW = 5
"""Reads in a row that fail before the wiki is left alone: a busy server recovers in minutes, not in more tries."""
MAXLAG = 5
"""Seconds of replication lag above which the wiki shall refuse us: what its operators ask of automated readers."""


class PageGoneError(Exception):
    """The wiki no longer has a page of this id."""


class MediaWiki:
    """Reads of one wiki's API: complete answers only, `continue` followed, `maxlag` and busy replies waited out.

    `requests` counts the reads asked for.
    """

    def __init__(self, http: Http, api: str, maxlag: int = MAXLAG) -> None:
        http.require_contact("The wiki")
        self._http, self.api, self._maxlag = http, api, maxlag
        self.requests = 0

    def ask(self, query: Mapping[str, str]) -> wikipedia.Payload:
        """One checked answer. Raises PermanentError for a refusal, TransientError where the wiki stayed busy."""
        self.requests += 1
        reply = self._http.get(self.api, params={**query, "maxlag": str(self._maxlag)}, busy_if=_busy, store=False)
        try:
            return wikipedia.checked(reply.json())
        except wikipedia.ApiError as error:
            raise PermanentError(str(error), url=reply.url, status=reply.status) from error

    def names(self) -> Names:
        """What this wiki calls files, categories, redirects and its other languages."""
        site = wikipedia.parse_site(self.ask(wikipedia.site_query()))
        return Names.of(site.file, site.category, site.redirect, site.interlanguage)

    def pages(self, titles: Sequence[str]) -> list[Page]:
        """The page of each title, at most 50 titles a request, in the order given."""
        reason = "the title has characters that no page's title may have"
        pages = {title: Page(title, "invalid", reason) for title in titles if not wikipedia.is_title(title)}
        for batch in wikipedia.title_batches([title for title in titles if title not in pages]):
            answer = wikipedia.merged(self._parts(wikipedia.titles_query(batch)))
            pages |= {page.title: page for page in wikipedia.parse_titles(answer, batch)}
        return [pages[title] for title in titles]

    def in_force(self, page_id: int, instants: Sequence[datetime]) -> dict[datetime, Change | None]:
        """The revision of a page in force at each instant; None before its first. Raises PageGoneError."""
        left, found, history = sorted(instants, reverse=True), dict[datetime, Change | None](), History()
        for asked in range(2 * len(instants) + 10):
            if not left:
                return found
            query = wikipedia.history_query(page_id, left[0], wikipedia.next_limit(history, left, asked))
            history = self._history(query)
            if history.missing:
                raise PageGoneError
            decided, left = wikipedia.placed(left, history)
            found |= decided
        raise PermanentError(f"the history of page {page_id} does not come to an end", url=self.api)

    def contents(self, revisions: Sequence[int]) -> dict[int, Content]:
        """The texts of revisions, 50 a request; an answer cut short is continued until every text is there."""
        found: dict[int, Content] = {}
        for start in range(0, len(revisions), wikipedia.REVISIONS_AT_ONCE):
            batch = revisions[start : start + wikipedia.REVISIONS_AT_ONCE]
            for payload in self._parts(wikipedia.contents_query(batch)):
                found |= wikipedia.parse_contents(payload)
        return found

    def _history(self, query: Mapping[str, str]) -> History:
        """The first part of an answer that lists anything: a part may be empty and still be continued."""
        for payload in self._parts(query):
            try:
                history = wikipedia.parse_history(payload)
            except wikipedia.ApiError as error:
                raise PermanentError(str(error), url=self.api) from error
            if history.changes or history.missing or history.ends:
                return history
        return History()

    def _parts(self, query: Mapping[str, str]) -> Iterator[wikipedia.Payload]:
        more: dict[str, str] = {}
        for _ in range(CONTINUATIONS):
            payload = self.ask({**query, **more})
            yield payload
            more = wikipedia.continuation(payload)
            if not more:
                return
        raise PermanentError(f"an answer was continued {CONTINUATIONS} times without an end", url=self.api)


@dataclass(frozen=True)
class _Wanted:
    """A text that is needed: a revision that holds it, and the months whose revision has this very content."""

    page: Page
    content_id: str
    revision: int
    uses: tuple[tuple[date, Change], ...]


class WikipediaSource:
    """Pages of a wiki as they stood at each snapshot. Options: `api`, `maxlag`, and `file`, `category`, `redirect`:
    further names of those namespaces and of redirects, beside those the wiki tells."""

    cleaner = CLEANER

    def __init__(self, http: Http, cache_dir: Path) -> None:
        self._http = http

    def versions(self, span: Span, months: Sequence[date], known: Known) -> Iterator[list[Version]]:
        """Versions in batches as they are found, nothing for what is known. Raises DeferredError to spare the wiki."""
        todo = {topic: left for topic in span.topics if (left := known.open_months(topic, months))}
        if not todo:
            return
        api = str(span.options.get("api") or WIKIPEDIA_API.value() or API)
        wiki = MediaWiki(self._http, api, int(span.options.get("maxlag", MAXLAG)))
        try:
            names = _with_options(wiki.names(), span.options)
            pages = _pages(wiki, list(todo), span.topics, known)
        except TransientError as error:
            raise DeferredError(str(error)) from error
        with SandboxedFunction("strandline.spans.wikitext:clean") as cleaner:
            yield from _Reading(wiki, span, names, cleaner, known).batches(pages, todo)


class _Reading:
    """One pass over the pages of a span: histories one by one, texts as soon as fifty are wanted."""

    def __init__(self, wiki: MediaWiki, span: Span, names: Names, cleaner: SandboxedFunction, known: Known) -> None:
        self._wiki, self._span, self._names, self._cleaner, self._known = wiki, span, names, cleaner, known
        self._failures = 0

    def batches(self, pages: Sequence[Page], todo: Mapping[str, Sequence[date]]) -> Iterator[list[Version]]:
        """The versions of all pages, a list as soon as it is complete."""
        waiting: list[_Wanted] = []
        for page in pages:
            settled, wanted = self._page(page, todo[page.title])
            waiting += wanted
            if settled:
                yield settled
            while len(waiting) >= wikipedia.REVISIONS_AT_ONCE:
                yield self._texts(waiting[: wikipedia.REVISIONS_AT_ONCE])
                waiting = waiting[wikipedia.REVISIONS_AT_ONCE :]
        if waiting:
            yield self._texts(waiting)

    def _page(self, page: Page, months: Sequence[date]) -> tuple[list[Version], list[_Wanted]]:
        """What is settled without reading a text, and what is not."""
        if page.page_id is None:
            return [_without(page, month, page.status, page.reason) for month in months], []
        instants = {snapshot_instant(month, self._span.snapshot_day): month for month in months}
        try:
            found = self._wiki.in_force(page.page_id, list(instants))
            self._failures = 0
        except PageGoneError:
            return self._anew(page, months)
        except FetchError as error:
            self._count_failure(error)
            return [_without(page, month, "failed", str(error)) for month in months], []
        return self._sorted_out(page, [(instants[instant], change) for instant, change in sorted(found.items())])

    def _anew(self, page: Page, months: Sequence[date]) -> tuple[list[Version], list[_Wanted]]:
        """A page whose id is gone: the one of that title now, if it was made again, else missing."""
        try:
            again = self._wiki.pages([page.title])[0]
        except FetchError as error:
            self._count_failure(error)
            again = Page(page.title, "failed", str(error))
        if again.page_id not in (None, page.page_id):
            return self._page(again, months)
        if again.status == "failed":
            return [_without(again, month, "failed", again.reason) for month in months], []
        return [_without(page, month, "missing", "the wiki no longer has this page") for month in months], []

    def _sorted_out(
        self, page: Page, found: Sequence[tuple[date, Change | None]]
    ) -> tuple[list[Version], list[_Wanted]]:
        settled: list[Version] = []
        uses: dict[str, list[tuple[date, Change]]] = {}
        for month, change in found:
            if change is None:
                settled.append(_without(page, month, "not_created", "the page did not exist yet"))
            elif change.odd:
                settled.append(_without(page, month, "failed", change.odd))
            elif change.hidden:
                reason = f"the wiki keeps the text of this revision {change.hidden}"
                settled.append(self._version(page, month, change, None, change.hidden, reason))
            else:
                uses.setdefault(f"{page.page_id}:{change.sha1 or change.revision}", []).append((month, change))
        for content_id in [key for key in uses if key in self._known.contents]:
            held = self._known.contents[content_id]
            settled += [self._again(page, month, change, held) for month, change in uses.pop(content_id)]
        return settled, [_Wanted(page, key, pairs[-1][1].revision, tuple(pairs)) for key, pairs in uses.items()]

    def _texts(self, wanted: Sequence[_Wanted]) -> list[Version]:
        try:
            contents = self._wiki.contents([want.revision for want in wanted])
            self._failures = 0
        except FetchError as error:
            self._count_failure(error)
            contents = {want.revision: Content(want.revision, "failed", str(error)) for want in wanted}
        versions: list[Version] = []
        for want in wanted:
            unanswered = Content(want.revision, "failed", "the wiki did not answer for this revision")
            status, reason, text = self._cleaned(want, contents.get(want.revision, unanswered))
            versions += [
                self._version(want.page, month, change, want.content_id, status, reason, text)
                for month, change in want.uses
            ]
        return versions

    def _cleaned(self, want: _Wanted, content: Content) -> tuple[str, str | None, str | None]:
        """Status, reason and clean text of a revision as the wiki gave it."""
        if content.wikitext is None:
            return content.status, content.reason, None
        if not content.wikitext.strip():
            return "blank", "the page was blanked", None
        if is_redirect(content.wikitext, self._names):
            return "redirect", "the page only pointed to another", None
        title = want.page.title.replace("_", " ")
        outcome = self._cleaner.call(content.wikitext, title, self._names)
        if outcome.status != "ok":
            return "unparsed", f"cleaning {outcome.reason}", None
        if outcome.value == title:
            return "blank", "nothing but markup was on the page", None
        return "ok", None, outcome.value

    def _version(
        self,
        page: Page,
        month: date,
        change: Change,
        content_id: str | None,
        status: str,
        reason: str | None = None,
        text: str | None = None,
    ) -> Version:
        return Version(
            page.title,
            month,
            status,
            reason,
            revision=str(change.revision),
            revised_at=change.at,
            document=str(page.page_id),
            content_id=content_id,
            url=self._address(change.revision),
            text=text,
        )

    def _again(self, page: Page, month: date, change: Change, held: Version) -> Version:
        """A version whose content is already known from another month."""
        return replace(
            held,
            topic=page.title,
            month=month,
            revision=str(change.revision),
            revised_at=change.at,
            url=self._address(change.revision),
        )

    def _address(self, revision: int) -> str:
        return f"{self._wiki.api.removesuffix('api.php')}index.php?oldid={revision}"

    def _count_failure(self, error: FetchError) -> None:
        self._failures += 1
        if self._failures >= FAILURES_IN_A_ROW:
            raise DeferredError(f"{self._failures} reads failed in a row, the last with: {error}") from error


def _pages(wiki: MediaWiki, topics: Sequence[str], listed: Sequence[str], known: Known) -> list[Page]:
    """The page of each topic, known or resolved; of two listed titles of one page the first keeps it."""
    numbers = {topic: int(text) for topic in topics if (text := known.documents.get(topic, "")).isdecimal()}
    resolved = {page.title: page for page in wiki.pages([topic for topic in topics if topic not in numbers])}
    pages = [resolved.get(topic) or Page(topic, page_id=numbers[topic], resolved=topic) for topic in topics]
    owners = {int(text): topic for topic in listed if (text := known.documents.get(topic, "")).isdecimal()}
    return wikipedia.without_twins(pages, owners)


def _without(page: Page, month: date, status: str, reason: str | None) -> Version:
    document = None if page.page_id is None else str(page.page_id)
    return Version(page.title, month, status, reason, document=document)


def _with_options(names: Names, options: Mapping[str, Any]) -> Names:
    return Names.of(
        (*names.file, *options.get("file", ())),
        (*names.category, *options.get("category", ())),
        (*names.redirect, *options.get("redirect", ())),
        names.interlanguage,
    )


def _busy(reply: Reply) -> str | None:
    try:
        return wikipedia.busy_reason(reply.json())
    except PermanentError:
        return None


WIKIPEDIA = Source(
    SourceKind(
        "wikipedia",
        frozenset({"api", "maxlag", "file", "category", "redirect"}),
        is_listed=True,
        lists=frozenset({"file", "category", "redirect"}),
        numbers={"maxlag": (1, 3600)},
    ),
    WikipediaSource,
)
"""The record of this source."""
