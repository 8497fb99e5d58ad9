"""The MediaWiki API as data: what to ask, and what the answers mean.

The claim is that the revision in force at every snapshot is found with far fewer requests than one lookup and one
content read for each page and month. Titles are resolved 50 at a time. One history request begins at the newest instant
still open and answers every instant that its 500 revisions reach, so a page costs at most one request a month and
usually one in all. Contents are read 50 revisions at a time, equal contents (same sha1) once.

Requests ask for format version 2; answers in either shape are understood. Sending them is `resources.spans.mediawiki`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from strandline.spans.months import utc_instant

TITLES_AT_ONCE = 50
TITLE_BYTES_AT_ONCE = 6000
REVISIONS_AT_ONCE = 50
BUSY_CODES = frozenset({"maxlag", "ratelimited", "readonly", "internal_api_error_DBQueryError", "toomanyvalues-retry"})
COMMON: Mapping[str, str] = {"action": "query", "format": "json", "formatversion": "2", "utf8": "1"}
Payload = Mapping[str, Any]


class ApiError(ValueError):
    """The wiki refused a request; the message carries its code and its words."""


@dataclass(frozen=True)
class Page:
    """What a title stands for: a page by its id, or why there is none (`missing`, `invalid`, `duplicate`)."""

    title: str
    status: str = "ok"
    reason: str | None = None
    page_id: int | None = None
    resolved: str | None = None


@dataclass(frozen=True)
class Change:
    """A revision without its text. `hidden` says why its text may not be read, if so."""

    revision: int
    at: datetime
    sha1: str | None = None
    hidden: str | None = None


@dataclass(frozen=True)
class History:
    """One answer about a page's revisions, newest first. `ends` says that no older revision exists."""

    changes: tuple[Change, ...] = ()
    ends: bool = True
    more: Mapping[str, str] = field(default_factory=dict)
    missing: bool = False


@dataclass(frozen=True)
class Content:
    """The text of a revision as the wiki holds it, or why there is none."""

    revision: int
    status: str
    reason: str | None = None
    wikitext: str | None = None


@dataclass(frozen=True)
class Site:
    """What this wiki calls things, read from itself."""

    file: tuple[str, ...]
    category: tuple[str, ...]
    redirect: tuple[str, ...]
    interlanguage: tuple[str, ...]


def busy_reason(payload: Any) -> str | None:
    """Why an answer is really a request to come back later (it arrives as HTTP 200), else None."""
    code = _error(payload).get("code")
    return f"the wiki says {code}: {_error(payload).get('info', '')}".strip() if code in BUSY_CODES else None


def checked(payload: Any) -> Payload:
    """The answer itself; ApiError where it is an error or no answer at all."""
    if not isinstance(payload, Mapping):
        raise ApiError(f"the wiki answered {type(payload).__name__} where an object was expected")
    if error := _error(payload):
        raise ApiError(f"the wiki refused: {error.get('code')}: {error.get('info')}")
    return payload


def site_query() -> dict[str, str]:
    """Ask what namespaces and redirects are called here."""
    return {
        **COMMON,
        "meta": "siteinfo",
        "siprop": "namespaces|namespacealiases|magicwords|interwikimap",
    }


def parse_site(payload: Payload) -> Site:
    """Names of the file (-2, 6) and category (14) namespaces, redirect words and language prefixes."""
    query = payload.get("query", {})
    spaces = [*_items(query.get("namespaces")), *query.get("namespacealiases", [])]
    words = [word for word in query.get("magicwords", []) if word.get("name") == "redirect"]
    prefixes = [entry["prefix"] for entry in query.get("interwikimap", []) if _flag(entry, "language")]
    return Site(
        file=_namespace_names(spaces, {-2, 6}),
        category=_namespace_names(spaces, {14}),
        redirect=tuple(alias for word in words for alias in word.get("aliases", [])),
        interlanguage=tuple(prefixes),
    )


def title_batches(titles: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Titles in groups that one request may hold: at most 50, and an address of bounded length."""
    batch: list[str] = []
    size = 0
    for title in titles:
        cost = len(quote(title)) + 3
        if batch and (len(batch) == TITLES_AT_ONCE or size + cost > TITLE_BYTES_AT_ONCE):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(title)
        size += cost
    if batch:
        yield tuple(batch)


def titles_query(titles: Sequence[str]) -> dict[str, str]:
    """Ask which pages these titles stand for, redirects followed."""
    if len(titles) > TITLES_AT_ONCE:
        raise ValueError(f"{len(titles)} titles in one request; the API takes {TITLES_AT_ONCE}")
    return {**COMMON, "titles": "|".join(titles), "redirects": "1", "converttitles": "1"}


def parse_titles(payload: Payload, titles: Iterable[str]) -> list[Page]:
    """The page of each title, in the order asked: normalisation, conversion and chains of redirects followed."""
    query = payload.get("query", {})
    steps = {
        step["from"]: step["to"] for kind in ("normalized", "converted", "redirects") for step in query.get(kind, [])
    }
    pages = {page["title"]: page for page in _items(query.get("pages"))}
    foreign = {entry["title"]: entry.get("iw", "?") for entry in query.get("interwiki", [])}
    return [_page(title, _end_of(title, steps), pages, foreign) for title in titles]


def without_twins(pages: Iterable[Page], taken: Mapping[int, str] | None = None) -> list[Page]:
    """The first title of each page keeps it; later ones (and those of pages in `taken`) become `duplicate`."""
    owners = dict(taken or {})
    kept = []
    for page in pages:
        owner = owners.setdefault(page.page_id, page.title) if page.page_id is not None else page.title
        twin = Page(page.title, "duplicate", f"is the same page as {owner}", resolved=page.resolved)
        kept.append(page if owner == page.title else twin)
    return kept


def history_query(page_id: int, newest: datetime, limit: int | None) -> dict[str, str]:
    """Ask for revisions of ONE page at or before an instant, newest first; as many as allowed where limit is None."""
    return {
        **COMMON,
        "pageids": str(page_id),
        "prop": "revisions",
        "rvprop": "ids|timestamp|sha1|flags",
        "rvdir": "older",
        "rvstart": f"{newest.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "rvlimit": "max" if limit is None else str(limit),
    }


def parse_history(payload: Payload) -> History:
    """The revisions of an answer to `history_query`, with what continues it."""
    pages = _items(payload.get("query", {}).get("pages"))
    more = {key: str(value) for key, value in payload.get("continue", {}).items()}
    if any(_flag(page, "missing") or _flag(page, "invalid") for page in pages):
        return History(missing=True)
    changes = tuple(_change(entry) for page in pages for entry in page.get("revisions", []))
    return History(changes, ends=not more, more=more)


def placed(instants: Sequence[datetime], history: History) -> tuple[dict[datetime, Change | None], list[datetime]]:
    """Which revision was in force at each instant that this history decides, and the instants it leaves open.

    `instants` are in descending order. An instant is decided by the first listed revision at or before it; None (no
    revision yet) is only said where the history has ended.
    """
    decided: dict[datetime, Change | None] = {}
    for instant in instants:
        change = next((change for change in history.changes if change.at <= instant), None)
        if change is None and not history.ends:
            break
        decided[instant] = change
    return decided, [instant for instant in instants if instant not in decided]


def next_limit(history: History, open_instants: Sequence[datetime], asked: int) -> int | None:
    """How many revisions to ask for next: all allowed (None) to list, or 1 to seek, whichever is cheaper for the page.

    Listing pays where the last list reached further than the gap between two open instants. On a busier page one
    revision an instant is sought, with a list tried again now and then, as pages calm down towards the past. `asked` is
    the number of history requests already spent on the page.
    """
    if len(open_instants) <= 1:
        return 1
    gap = open_instants[0] - open_instants[1]
    reach = history.changes[0].at - history.changes[-1].at if len(history.changes) > 1 else None
    busy = (reach is not None and reach < gap) or (reach is None and asked > 0)
    return 1 if busy and asked % 6 != 5 else None


def contents_query(revisions: Sequence[int]) -> dict[str, str]:
    """Ask for the texts of up to 50 revisions of any pages."""
    if len(revisions) > REVISIONS_AT_ONCE:
        raise ValueError(f"{len(revisions)} revisions in one request; the API takes {REVISIONS_AT_ONCE}")
    return {
        **COMMON,
        "prop": "revisions",
        "revids": "|".join(map(str, revisions)),
        "rvprop": "ids|content|contentmodel|flags",
        "rvslots": "main",
    }


def parse_contents(payload: Payload) -> dict[int, Content]:
    """The texts in an answer to `contents_query`, by revision; one answer may hold only part of what was asked."""
    query = payload.get("query", {})
    found = {
        int(entry["revid"]): _content(entry)
        for page in _items(query.get("pages"))
        for entry in page.get("revisions", [])
    }
    for bad in _items(query.get("badrevids")):
        revision = int(bad["revid"])
        found[revision] = Content(revision, "missing", "the wiki no longer has this revision")
    return found


def _error(payload: Any) -> Mapping[str, Any]:
    if not isinstance(payload, Mapping):
        return {}
    error: Any = payload.get("error") or next(iter(payload.get("errors", [])), {})
    return error if isinstance(error, Mapping) else {"code": "unknown", "info": str(error)}


def _items(value: Any) -> list[Mapping[str, Any]]:
    """Format version 1 gives objects keyed by id where version 2 gives lists."""
    return list(value.values()) if isinstance(value, Mapping) else list(value or [])


def _flag(entry: Mapping[str, Any], name: str) -> bool:
    """Format version 1 says an empty string where version 2 says true."""
    return name in entry and entry[name] is not False


def _namespace_names(spaces: Iterable[Mapping[str, Any]], ids: set[int]) -> tuple[str, ...]:
    names = (
        space.get(key)
        for space in spaces
        if int(space.get("id", 0)) in ids
        for key in ("name", "canonical", "alias", "*")
    )
    return tuple(dict.fromkeys(name for name in names if name))


def _end_of(title: str, steps: Mapping[str, str]) -> str:
    seen = {title}
    while (following := steps.get(title)) is not None and following not in seen:
        seen.add(following)
        title = following
    return title


def _page(title: str, end: str, pages: Mapping[str, Mapping[str, Any]], foreign: Mapping[str, str]) -> Page:
    page = pages.get(end)
    if end in foreign:
        return Page(title, "invalid", f"the title belongs to another wiki ({foreign[end]})", resolved=end)
    if page is None:
        return Page(title, "missing", "the wiki did not answer for this title", resolved=end)
    if _flag(page, "invalid") or _flag(page, "special"):
        return Page(
            title, "invalid", str(page.get("invalidreason", "the title is not that of an article")), resolved=end
        )
    if _flag(page, "missing") or "pageid" not in page:
        return Page(title, "missing", "the wiki has no page of this title", resolved=end)
    return Page(title, page_id=int(page["pageid"]), resolved=end)


def _change(entry: Mapping[str, Any]) -> Change:
    return Change(int(entry["revid"]), utc_instant(entry["timestamp"]), entry.get("sha1"), _hidden(entry))


def _hidden(entry: Mapping[str, Any]) -> str | None:
    if _flag(entry, "suppressed"):
        return "suppressed"
    if _flag(entry, "texthidden") or _flag(entry, "sha1hidden"):
        return "hidden"
    return None


def _content(entry: Mapping[str, Any]) -> Content:
    """Text lies in a slot, or beside the ids on older wikis, under `content` or `*`."""
    revision = int(entry["revid"])
    slot = entry.get("slots", {}).get("main", entry)
    if reason := _hidden(entry) or _hidden(slot):
        return Content(revision, reason, f"the wiki keeps the text of this revision {reason}")
    model = slot.get("contentmodel", "wikitext")
    if model != "wikitext":
        return Content(revision, "unsupported", f"the page is {model}, not wikitext")
    text = slot.get("content", slot.get("*"))
    if text is None or _flag(slot, "textmissing") or _flag(slot, "badcontentformat"):
        return Content(revision, "missing", "the wiki has lost the text of this revision")
    return Content(revision, "ok", wikitext=text)
