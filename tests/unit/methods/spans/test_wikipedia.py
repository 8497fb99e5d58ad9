"""The MediaWiki API as data: both answer shapes, and the plan of requests."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.spans import wikipedia
from strandline.spans.wikipedia import Change, History, Page

START = datetime(2020, 1, 1, tzinfo=UTC)


def revision(number: int, **more: Any) -> dict[str, Any]:
    return {"revid": number, "timestamp": "2020-01-02T03:04:05Z", "sha1": f"{number:040x}", **more}


def answer(version: int, *revisions: dict[str, Any], **page: Any) -> dict[str, Any]:
    entry = {"pageid": 7, "ns": 0, "title": "A", **page, "revisions": list(revisions)}
    return {"query": {"pages": [entry] if version == 2 else {"7": entry}}}


@pytest.mark.parametrize("version", [1, 2])
def test_histories_are_read_in_both_shapes(version: int) -> None:
    hidden = {"sha1hidden": True} if version == 2 else {"sha1hidden": ""}
    suppressed = {"texthidden": True, "suppressed": True} if version == 2 else {"texthidden": "", "suppressed": ""}
    history = wikipedia.parse_history(answer(version, revision(3), revision(2, **hidden), revision(1, **suppressed)))
    assert [change.revision for change in history.changes] == [3, 2, 1]
    assert [change.hidden for change in history.changes] == [None, "hidden", "suppressed"]
    assert history.changes[0].at == datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert history.ends


@pytest.mark.parametrize(
    "entry",
    [
        {"slots": {"main": {"contentmodel": "wikitext", "content": "text"}}},
        {"slots": {"main": {"contentmodel": "wikitext", "*": "text"}}},
        {"contentmodel": "wikitext", "content": "text"},
        {"contentmodel": "wikitext", "*": "text"},
    ],
)
def test_text_is_found_wherever_a_version_of_the_api_puts_it(entry: dict[str, Any]) -> None:
    for version in (1, 2):
        assert wikipedia.parse_contents(answer(version, revision(5, **entry)))[5].wikitext == "text"


@pytest.mark.parametrize(
    ("entry", "status"),
    [
        ({"texthidden": True}, "hidden"),
        ({"texthidden": "", "suppressed": ""}, "suppressed"),
        ({"slots": {"main": {"contentmodel": "wikitext", "texthidden": True}}}, "hidden"),
        ({"slots": {"main": {"contentmodel": "wikitext", "textmissing": True}}}, "missing"),
        ({"slots": {"main": {"contentmodel": "Scribunto", "content": "return 1"}}}, "unsupported"),
        ({"slots": {"main": {"contentmodel": "wikitext", "content": ""}}}, "ok"),
    ],
)
def test_a_revision_without_a_text_says_why(entry: dict[str, Any], status: str) -> None:
    content = wikipedia.parse_contents(answer(2, revision(5, **entry)))[5]
    assert content.status == status
    assert (content.reason is None) == (status == "ok")


@pytest.mark.parametrize("bad", [{"9": {"revid": 9, "missing": True}}, [{"revid": 9, "missing": ""}]])
def test_a_revision_that_is_gone_is_missing(bad: Any) -> None:
    assert wikipedia.parse_contents({"query": {"badrevids": bad}})[9].status == "missing"


def test_titles_are_followed_through_normalisation_and_chains_of_redirects() -> None:
    payload = {
        "query": {
            "normalized": [{"from": "a_b", "to": "A b"}],
            "redirects": [{"from": "A b", "to": "C"}, {"from": "C", "to": "D", "tofragment": "x"}],
            "interwiki": [{"title": "fr:E", "iw": "fr"}],
            "pages": [
                {"pageid": 4, "title": "D"},
                {"title": "F", "missing": True},
                {"title": "<", "invalid": True, "invalidreason": "The title contains <."},
                {"title": "Special:Search", "special": True},
            ],
        }
    }
    found = wikipedia.parse_titles(payload, ["a_b", "F", "<", "Special:Search", "fr:E", "unheard"])
    assert found[0] == Page("a_b", page_id=4, resolved="D")
    assert [page.status for page in found[1:]] == ["missing", "invalid", "invalid", "invalid", "failed"]
    assert all(page.reason for page in found[1:])


def test_redirects_in_a_circle_come_to_an_end() -> None:
    payload = {"query": {"redirects": [{"from": "A", "to": "B"}, {"from": "B", "to": "A"}]}}
    assert wikipedia.parse_titles(payload, ["A"])[0].status == "missing"


def test_of_two_titles_of_one_page_the_first_keeps_it() -> None:
    pages = [Page("A", page_id=1), Page("B", page_id=1), Page("C", page_id=2), Page("D", "missing", "no")]
    kept = wikipedia.without_twins(pages, {2: "Older"})
    assert [page.status for page in kept] == ["ok", "duplicate", "duplicate", "missing"]
    assert "A" in str(kept[1].reason)


def test_titles_that_differ_only_in_a_dash_or_underscore_stay_distinct() -> None:
    pages = [{"pageid": 1, "title": "A-B"}, {"pageid": 2, "title": "A B"}]
    payload = {"query": {"normalized": [{"from": "A_B", "to": "A B"}], "pages": pages}}
    assert [page.page_id for page in wikipedia.parse_titles(payload, ["A-B", "A_B"])] == [1, 2]


@given(st.lists(st.text(min_size=1, max_size=80), max_size=200))
def test_batches_hold_every_title_once_and_stay_within_both_bounds(titles: list[str]) -> None:
    batches = list(wikipedia.title_batches(titles))
    assert [title for batch in batches for title in batch] == titles
    assert all(len(batch) <= 50 for batch in batches)
    assert all(len("%7C".join(map(wikipedia.quote, batch))) <= 6100 for batch in batches)


def test_maxlag_in_a_good_answer_is_a_request_to_wait_and_another_error_is_not() -> None:
    assert "maxlag" in str(wikipedia.busy_reason({"error": {"code": "maxlag", "info": "9 s"}}))
    assert wikipedia.busy_reason({"error": {"code": "badvalue"}}) is None
    assert wikipedia.busy_reason({"query": {}}) is None
    with pytest.raises(wikipedia.ApiError, match="badvalue"):
        wikipedia.checked({"error": {"code": "badvalue", "info": "no such value"}})
    with pytest.raises(wikipedia.ApiError, match="list"):
        wikipedia.checked([])


def test_too_many_revisions_or_titles_in_one_request_are_refused() -> None:
    with pytest.raises(ValueError, match="51"):
        wikipedia.contents_query(range(51))
    with pytest.raises(ValueError, match="51"):
        wikipedia.titles_query(["t"] * 51)


def serve(changes: list[Change], newest: datetime, limit: int) -> History:
    """What a wiki answers: revisions at or before an instant, newest first."""
    listed = [change for change in reversed(changes) if change.at <= newest]
    return History(tuple(listed[:limit]), ends=len(listed) <= limit)


def find(changes: list[Change], instants: list[datetime], most: int) -> tuple[dict[datetime, Change | None], int]:
    left, found, history, asked = sorted(instants, reverse=True), dict[datetime, Change | None](), History(), 0
    while left:
        limit = wikipedia.next_limit(history, left, asked) or most
        history = serve(changes, left[0], limit)
        decided, left = wikipedia.placed(left, history)
        found |= decided
        asked += 1
    return found, asked


@given(
    st.lists(st.integers(0, 3000), max_size=120),
    st.sets(st.integers(0, 36), min_size=1, max_size=36),
    st.integers(1, 40),
)
def test_the_right_revision_is_found_for_every_instant_with_at_most_one_request_each(
    hours: list[int], months: set[int], most: int
) -> None:
    changes = [Change(n + 1, START + timedelta(hours=8 * h)) for n, h in enumerate(sorted(hours))]
    instants = [START + timedelta(days=30 * m) for m in months]
    found, asked = find(changes, instants, most)
    assert asked <= len(instants)
    for instant in instants:
        assert found[instant] == next((c for c in reversed(changes) if c.at <= instant), None)


def test_a_quiet_page_costs_one_request_and_a_busy_one_is_not_listed_in_full() -> None:
    instants = [START + timedelta(days=30 * m) for m in range(1, 25)]
    quiet = [Change(n, START + timedelta(days=5 * n)) for n in range(144)]
    busy = [Change(n, START + timedelta(hours=n)) for n in range(24 * 720)]
    assert find(quiet, instants, 500)[1] == 1
    assert find(busy, instants, 500)[1] == 24
    limits = [wikipedia.next_limit(History((busy[-1], busy[-500])), instants[::-1], n) for n in range(1, 12)]
    assert limits.count(None) == 2


ODD: list[Any] = [None, [], {}, "text", 7, True, [None], {"x": None}, [[]], ["text"]]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("place", ["query", "pages", "page", "revisions", "revision", "slots", "main", "content"])
def test_anything_in_any_place_of_an_answer_ends_no_reading(place: str, odd: Any) -> None:
    content = odd if place == "content" else "text"
    main = odd if place == "main" else {"contentmodel": "wikitext", "content": content}
    slots = odd if place == "slots" else {"main": main}
    bad = odd if place == "revision" else revision(2, slots=slots)
    revisions = odd if place == "revisions" else [revision(1, slots={"main": {"content": "good"}}), bad]
    page = odd if place == "page" else {"pageid": 7, "title": "A", "revisions": revisions}
    pages = odd if place == "pages" else [page]
    payload = {"query": odd if place == "query" else {"pages": pages}}
    contents = wikipedia.parse_contents(payload)
    assert contents.get(1, wikipedia.Content(1, "ok", wikitext="good")).wikitext == "good"
    if place in {"slots", "main", "content"} and odd not in ("text", {}):
        assert contents[2].status in {"failed", "ok"}
    with suppress(wikipedia.ApiError):
        wikipedia.parse_history(payload)
    assert wikipedia.parse_titles(payload, ["A"])[0].status in {"ok", "failed"}
    wikipedia.parse_site(payload)
    wikipedia.merged([payload])
    assert wikipedia.busy_reason({"error": odd}) is None
    assert wikipedia.busy_reason({"errors": odd}) is None


@pytest.mark.parametrize("key", ["namespaces", "namespacealiases", "magicwords", "interwikimap"])
@pytest.mark.parametrize("odd", ODD)
def test_a_site_that_says_odd_things_of_itself_is_read(key: str, odd: Any) -> None:
    site = {"namespaces": {"6": {"id": 6, "name": "Datei"}}, "magicwords": [{"name": "redirect", "aliases": ["#W"]}]}
    wikipedia.parse_site({"query": {**site, key: odd}})
    wikipedia.parse_site({"query": {key: [{"id": odd, "name": odd, "aliases": odd, "prefix": odd, "language": True}]}})


@pytest.mark.parametrize(
    ("title", "status"),
    [
        ("Cafe\u0301", "ok"),
        ("Caf\u00e9", "ok"),
        ("Elsewhere", "failed"),
    ],
)
def test_a_title_in_either_spelling_of_its_accents_is_found(title: str, status: str) -> None:
    payload = {"query": {"pages": [{"pageid": 4, "title": "Caf\u00e9"}]}}
    assert wikipedia.titles_query([title])["titles"] in {"Caf\u00e9", "Elsewhere"}
    found = wikipedia.parse_titles(payload, [title])[0]
    assert (found.title, found.status) == (title, status)


def test_a_name_that_the_wiki_quotes_encoded_is_followed() -> None:
    step = {"fromencoded": True, "from": "a%20b", "to": "A b"}
    payload = {"query": {"normalized": [step], "pages": [{"pageid": 4, "title": "A b"}]}}
    assert wikipedia.parse_titles(payload, ["a b"])[0].page_id == 4


@pytest.mark.parametrize("title", ["a|b", "a#b", "<b>", "[x]", "{x}", "", " _ ", "a\nb"])
def test_what_can_be_no_title_is_not_asked_for(title: str) -> None:
    assert not wikipedia.is_title(title)


def test_an_answer_that_does_not_name_the_page_is_no_proof_that_it_has_no_revisions() -> None:
    for payload in ({}, {"query": {}}, {"query": {"pages": []}}, {"query": {"pages": [None]}}):
        with pytest.raises(wikipedia.ApiError, match="does not name"):
            wikipedia.parse_history(payload)
    assert wikipedia.parse_history({"query": {"pages": [{"pageid": 7}]}}) == History()


def test_the_continuation_of_wikis_of_every_age_is_understood() -> None:
    assert wikipedia.continuation({"continue": {"rvcontinue": 7, "continue": "||"}}) == {
        "rvcontinue": "7",
        "continue": "||",
    }
    old = {"query-continue": {"revisions": {"rvstartid": 7}}, "query": {"pages": {"7": {"pageid": 7}}}}
    assert wikipedia.continuation(old) == {"rvstartid": "7"}
    assert not wikipedia.parse_history(old).ends
    assert [wikipedia.continuation({"continue": odd}) for odd in (None, [], "x", {})] == [{}] * 4


def dated(number: int, day: int) -> Change:
    return Change(number, START.replace(day=day))


UNTIMED = Change(9, None, odd="no time")


@pytest.mark.parametrize(
    ("changes", "ends", "day", "revision"),
    [
        ((dated(2, 9), dated(1, 3)), True, 9, 2),
        ((dated(2, 9), dated(1, 3)), True, 8, 1),
        ((dated(2, 9), dated(1, 3)), True, 2, None),
        ((dated(2, 9), UNTIMED, dated(1, 3)), True, 8, 9),
        ((dated(2, 9), UNTIMED, dated(1, 3)), True, 9, 2),
        ((dated(2, 9), UNTIMED, dated(1, 5)), True, 4, None),
        ((UNTIMED, dated(1, 3)), True, 5, 9),
        ((dated(2, 9), UNTIMED), True, 5, 9),
        ((UNTIMED,), False, 5, 9),
        ((dated(1, 3), dated(2, 9)), True, 9, 2),
        ((dated(3, 9), dated(2, 9), dated(1, 3)), True, 9, 3),
    ],
)
def test_which_revision_is_in_force(changes: tuple[Change, ...], ends: bool, day: int, revision: int | None) -> None:
    decided, left = wikipedia.placed([START.replace(day=day)], History(changes, ends))
    assert not left
    found = next(iter(decided.values()))
    assert (found and found.revision) == revision


def test_an_instant_beyond_a_list_that_goes_on_stays_open() -> None:
    instant = START.replace(day=2)
    for changes in ((dated(2, 9), UNTIMED), (dated(2, 9), dated(1, 3)), ()):
        assert wikipedia.placed([instant], History(changes, ends=False)) == ({}, [instant])


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        ({"timestamp": "2020-01-01T00:00:00Z"}, "number"),
        ({"revid": None, "timestamp": "2020-01-01T00:00:00Z"}, "number"),
        ({"revid": -3, "timestamp": "2020-01-01T00:00:00Z"}, "number"),
        ({"revid": 3}, "time"),
        ({"revid": 3, "timestamp": None}, "time"),
        ({"revid": 3, "timestamp": "yesterday"}, "time"),
        ({"revid": 3, "timestamp": "0001-01-01T00:00:00+14:00"}, "time"),
        (None, "time"),
    ],
)
def test_a_revision_without_number_or_time_says_so(entry: Any, word: str) -> None:
    change = wikipedia.parse_history({"query": {"pages": [{"pageid": 1, "revisions": [entry]}]}}).changes[0]
    assert change.odd is not None
    assert word in change.odd
