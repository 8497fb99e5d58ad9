"""The MediaWiki API as data: what to ask, and what the answers mean.

The claim is that the revision in force at every snapshot is found with far fewer requests than one lookup and one
content read for each page and month. Titles are resolved 50 at a time. One history request begins at the newest instant
still open and answers every instant that its 500 revisions reach, so a page costs at most one request a month and
usually one in all. Contents are read 50 revisions at a time, equal contents (same sha1) once.

Requests ask for format version 2; answers in either shape are understood. What an answer lacks or holds in another form
than it should is told where it stands (`Change.odd`, a status with a reason) and never ends the reading of the rest;
an answer that does not speak of what was asked is never taken for "there is none". Sending is
`resources.spans.mediawiki`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

from strandline.spans.months import utc_instant

TITLES_AT_ONCE = 50
"""The API's limit for readers without special rights."""
TITLE_BYTES_AT_ONCE = 6000
"""Bytes of titles in one address: servers take about 8,000 in all."""
REVISIONS_AT_ONCE = 50
"""The API's limit for readers without special rights."""
BUSY_CODES = frozenset({"maxlag", "ratelimited", "readonly", "internal_api_error_DBQueryError", "toomanyvalues-retry"})
"""Codes of errors that pass by themselves, as the API's documentation lists them."""
NOT_IN_TITLES = frozenset("|#<>[]{}\x1f\n\ufffd")
"""Characters that no title has; a bar would even end one title and begin another in a request."""
COMMON: Mapping[str, str] = {"action": "query", "format": "json", "formatversion": "2", "utf8": "1"}
"""What every request says; format version 2 has lists where version 1 has objects keyed by id."""
Payload = Mapping[str, Any]


class ApiError(ValueError):
    """The wiki refused a request; the message carries its code and its words."""


@dataclass(frozen=True)
class Page:
    """What a title stands for: a page by its id, or why there is none (`missing`, `invalid`, `duplicate`, or `failed`
    where the answer does not say)."""

    title: str
    status: str = "ok"
    reason: str | None = None
    page_id: int | None = None
    resolved: str | None = None


@dataclass(frozen=True)
class Change:
    """A revision without its text. `hidden` says why its text may not be read, if so.

    `odd` says what the answer lacks; `at` None then means that its time is not known.
    """

    revision: int
    at: datetime | None
    sha1: str | None = None
    hidden: str | None = None
    odd: str | None = None


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
    error = _error(payload)
    code = error.get("code")
    is_busy = isinstance(code, str) and code in BUSY_CODES
    return f"the wiki says {code}: {error.get('info', '')}".strip() if is_busy else None


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
    query = _mapping(payload.get("query"))
    spaces = [*_items(query.get("namespaces")), *_items(query.get("namespacealiases"))]
    words = [word for word in _items(query.get("magicwords")) if word.get("name") == "redirect"]
    prefixes = [entry.get("prefix") for entry in _items(query.get("interwikimap")) if _flag(entry, "language")]
    aliases = [alias for word in words for alias in _list(word.get("aliases"))]
    return Site(
        file=_namespace_names(spaces, {"-2", "6"}),
        category=_namespace_names(spaces, {"14"}),
        redirect=tuple(alias for alias in aliases if isinstance(alias, str)),
        interlanguage=tuple(prefix for prefix in prefixes if isinstance(prefix, str)),
    )


def title_batches(titles: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Titles in groups that one request may hold: at most 50, and an address of bounded length."""
    batch: list[str] = []
    size = 0
    for title in titles:
        cost = len(quote(_asked(title))) + 3
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
    return {**COMMON, "titles": "|".join(map(_asked, titles)), "redirects": "1", "converttitles": "1"}


def is_title(title: str) -> bool:
    """Whether a title can be asked for at all."""
    return bool(title.strip("_ ")) and not NOT_IN_TITLES & set(title)


def parse_titles(payload: Payload, titles: Iterable[str]) -> list[Page]:
    """The page of each title, in the order asked: normalisation, conversion and chains of redirects followed."""
    query = _mapping(payload.get("query"))
    steps = {
        unquote(step["from"]) if _flag(step, "fromencoded") else step["from"]: step["to"]
        for kind in ("normalized", "converted", "redirects")
        for step in _items(query.get(kind))
        if isinstance(step.get("from"), str) and isinstance(step.get("to"), str)
    }
    pages = {page["title"]: page for page in _items(query.get("pages")) if isinstance(page.get("title"), str)}
    foreign = {
        entry["title"]: str(entry.get("iw", "?"))
        for entry in _items(query.get("interwiki"))
        if isinstance(entry.get("title"), str)
    }
    found = []
    for title in titles:
        end = _end_of(_asked(title), steps)
        circle = Page(title, "missing", "the title's redirects lead in a circle", resolved=end)
        found.append(circle if end in steps and end not in pages else _page(title, end, pages, foreign))
    return found


def _asked(title: str) -> str:
    """A title as wikis spell it: with composed accents (NFC), as they name the pages they answer with."""
    return unicodedata.normalize("NFC", title)


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


def continuation(payload: Payload) -> dict[str, str]:
    """What a further request must say to continue this answer; empty where it is complete.

    Wikis before 1.26 say `query-continue`, with a part for each property.
    """
    more = _mapping(payload.get("continue")) or {
        key: value for part in _mapping(payload.get("query-continue")).values() for key, value in _mapping(part).items()
    }
    return {str(key): str(value) for key, value in more.items()}


def merged(payloads: Iterable[Payload]) -> Payload:
    """The parts of an answer as one, each list with the entries of all parts."""
    lists: dict[str, list[Any]] = {}
    for payload in payloads:
        for key, value in _mapping(payload.get("query")).items():
            lists.setdefault(key, []).extend(_items(value))
    return {"query": lists}


def parse_history(payload: Payload) -> History:
    """The revisions of an answer to `history_query`, with what continues it.

    ApiError where the answer does not speak of the page: that is no proof that it has no revisions.
    """
    pages = _items(_mapping(payload.get("query")).get("pages"))
    more = continuation(payload)
    if any(_flag(page, "missing") or _flag(page, "invalid") for page in pages):
        return History(missing=True)
    if not pages and not more:
        raise ApiError("the wiki's answer does not name the page that was asked for")
    changes = tuple(_change(entry) for page in pages for entry in _list(page.get("revisions")))
    return History(changes, ends=not more, more=more)


def placed(instants: Sequence[datetime], history: History) -> tuple[dict[datetime, Change | None], list[datetime]]:
    """Which revision was in force at each instant that this history decides, and the instants it leaves open.

    `instants` are in descending order. An instant is decided by the newest listed revision at or before it, or by one
    without a time that is listed right before that; None (no revision yet) is only said where the history has ended.
    """
    decided: dict[datetime, Change | None] = {}
    for instant in instants:
        change = _in_force(history, instant)
        if change is None and not history.ends:
            break
        decided[instant] = change
    return decided, [instant for instant in instants if instant not in decided]


def _in_force(history: History, instant: datetime) -> Change | None:
    """The newest revision at or before an instant; where one without a time may be newer still, that one."""
    changes = history.changes
    newest = max((change.at for change in changes if change.at is not None and change.at <= instant), default=None)
    if newest is None:
        is_last = history.ends or len(changes) == 1
        return changes[-1] if changes and changes[-1].at is None and is_last else None
    place = next(n for n, change in enumerate(changes) if change.at == newest)
    return changes[place - 1] if place and changes[place - 1].at is None else changes[place]


def next_limit(history: History, open_instants: Sequence[datetime], asked: int) -> int | None:
    """How many revisions to ask for next: all allowed (None) to list, or 1 to seek, whichever is cheaper for the page.

    Listing pays where the last list reached further than the gap between two open instants. On a busier page one
    revision an instant is sought, with a list tried again now and then, as pages calm down towards the past. `asked` is
    the number of history requests already spent on the page.
    """
    if len(open_instants) <= 1:
        return 1
    gap = open_instants[0] - open_instants[1]
    listed = [change.at for change in history.changes if change.at is not None]
    reach = max(listed) - min(listed) if len(listed) > 1 else None
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
    query = _mapping(payload.get("query"))
    contents = {
        revision: _content(revision, entry)
        for page in _items(query.get("pages"))
        for entry in _items(page.get("revisions"))
        if (revision := _number(entry.get("revid"))) is not None
    }
    for bad in _items(query.get("badrevids")):
        if (revision := _number(bad.get("revid"))) is not None:
            contents[revision] = Content(revision, "missing", "the wiki no longer has this revision")
    return contents


def _error(payload: Any) -> Mapping[str, Any]:
    if not isinstance(payload, Mapping):
        return {}
    error: Any = payload.get("error") or next(iter(_list(payload.get("errors"))), {})
    return error if isinstance(error, Mapping) else {"code": "unknown", "info": str(error)}


def _mapping(value: Any) -> Mapping[str, Any]:
    """An object of the answer; empty where something else stands in its place."""
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    """A list of the answer, in either shape (format version 1 gives objects keyed by id where version 2 gives lists);
    empty where something else stands in its place."""
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []


def _items(value: Any) -> list[Mapping[str, Any]]:
    """The objects in such a list."""
    return [item for item in _list(value) if isinstance(item, Mapping)]


def _number(value: Any) -> int | None:
    """A whole number above zero, also written as text; None for everything else."""
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _flag(entry: Mapping[str, Any], name: str) -> bool:
    """Format version 1 says an empty string where version 2 says true."""
    return name in entry and entry[name] is not False


def _namespace_names(spaces: Iterable[Mapping[str, Any]], ids: set[str]) -> tuple[str, ...]:
    names = (
        space.get(key) for space in spaces if str(space.get("id")) in ids for key in ("name", "canonical", "alias", "*")
    )
    return tuple(dict.fromkeys(name for name in names if name and isinstance(name, str)))


def _end_of(title: str, steps: Mapping[str, str]) -> str:
    seen = {title}
    while (following := steps.get(title)) is not None and following not in seen:
        seen.add(following)
        title = following
    return title


def _page(title: str, end: str, pages: Mapping[str, Mapping[str, Any]], foreign: Mapping[str, str]) -> Page:
    """What the answer says of one title, whose chain of steps ends at `end`."""
    page = pages.get(end)
    if end in foreign:
        return Page(title, "invalid", f"the title belongs to another wiki ({foreign[end]})", resolved=end)
    if page is None:
        return Page(title, "failed", "the wiki did not answer for this title", resolved=end)
    if _flag(page, "invalid") or _flag(page, "special"):
        return Page(
            title, "invalid", str(page.get("invalidreason", "the title is not that of an article")), resolved=end
        )
    if _flag(page, "missing"):
        return Page(title, "missing", "the wiki has no page of this title", resolved=end)
    if (number := _number(page.get("pageid"))) is None:
        return Page(title, "failed", f"the wiki gives {page.get('pageid')!r:.40} as the page's id", resolved=end)
    return Page(title, page_id=number, resolved=end)


def _change(entry: Any) -> Change:
    """A revision of a history; where its number or time is not there, what is odd about it."""
    entry = _mapping(entry)
    number, stamp = _number(entry.get("revid")), entry.get("timestamp")
    try:
        at = utc_instant(stamp) if isinstance(stamp, str) else None
    except (ValueError, OverflowError):
        at = None
    odd = None if number is not None else f"the wiki gives {entry.get('revid')!r:.40} as the number of this revision"
    if at is None:
        odd = f"the wiki gives {stamp!r:.40} as the time of revision {number}"
    sha1 = entry.get("sha1")
    return Change(number or 0, at, sha1 if isinstance(sha1, str) and sha1 else None, _hidden(entry), odd)


def _hidden(entry: Mapping[str, Any]) -> str | None:
    if _flag(entry, "suppressed"):
        return "suppressed"
    if _flag(entry, "texthidden") or _flag(entry, "sha1hidden"):
        return "hidden"
    return None


def _content(revision: int, entry: Mapping[str, Any]) -> Content:
    """Text lies in a slot, or beside the ids on older wikis, under `content` or `*`."""
    slot = _mapping(_mapping(entry.get("slots")).get("main")) or entry
    if reason := _hidden(entry) or _hidden(slot):
        return Content(revision, reason, f"the wiki keeps the text of this revision {reason}")
    model = slot.get("contentmodel") or "wikitext"
    if model != "wikitext":
        return Content(revision, "unsupported", f"the page is {model!s:.40}, not wikitext")
    if _flag(slot, "textmissing") or _flag(slot, "badcontentformat"):
        return Content(revision, "missing", "the wiki has lost the text of this revision")
    text = slot.get("content", slot.get("*"))
    if not isinstance(text, str):
        return Content(revision, "failed", "the wiki's answer has no text for this revision")
    return Content(revision, "ok", wikitext=text)
