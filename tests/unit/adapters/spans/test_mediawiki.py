"""The wiki client against a scripted server: what a wiki says that is no plain answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from resources.network.http import Http, Limits, PermanentError
from resources.spans import mediawiki
from resources.spans.mediawiki import MediaWiki, PageGoneError, WikipediaSource
from strandline.spans import DeferredError, Span, Version
from strandline.spans.selection import Known
from tests.fakes.web import Answer, Asked, WebServer, in_turn, json_answer

JANUARY = datetime(2020, 1, 1, tzinfo=UTC)


@contextmanager
def wiki(handler: Callable[[Asked], Answer]) -> Iterator[tuple[MediaWiki, WebServer]]:
    limits = Limits(attempts=3, backoff=0)
    with WebServer(handler) as web, Http(None, contact="operator@example.org", limits=limits) as http:
        yield MediaWiki(http, web.url + "/api.php"), web


def entry(number: int, text: str | None = None) -> dict[str, Any]:
    shown = {"slots": {"main": {"contentmodel": "wikitext", "content": text}}} if text is not None else {}
    return {"revid": number, "timestamp": f"2019-12-{number:02d}T00:00:00Z", "sha1": f"{number:040x}", **shown}


def pages(*revisions: dict[str, Any], more: dict[str, Any] | None = None) -> Answer:
    listed = {"pages": [{"pageid": 1, "title": "A", "revisions": list(revisions)}]}
    return json_answer({"query": listed, **({"continue": more} if more else {})})


def test_requests_carry_the_operator_the_version_and_maxlag_and_take_gzip() -> None:
    with wiki(lambda _: json_answer({"query": {}}, zipped=True)) as (client, web):
        client.ask({"action": "query"})
    assert "operator@example.org" in web.asked[0].headers["User-Agent"]
    assert web.asked[0].headers["User-Agent"].startswith("strandline/")
    assert web.asked[0].query["maxlag"] == "5"
    assert "gzip" in web.asked[0].headers["Accept-Encoding"]


def test_maxlag_is_waited_out_and_not_taken_for_a_missing_page() -> None:
    lag = json_answer({"error": {"code": "maxlag", "info": "9 s lagged"}}, Retry_After="0")
    with wiki(in_turn(lag, lag, pages(entry(3)))) as (client, web):
        assert client.in_force(1, [JANUARY])[JANUARY] is not None
    assert len(web.asked) == 3


def test_a_page_of_html_is_a_readable_error() -> None:
    page = Answer(200, b"<html>Set a User-Agent</html>")
    with wiki(lambda _: page) as (client, _), pytest.raises(PermanentError, match=r"expected JSON.*Set a User-Agent"):
        client.ask({"action": "query"})


def test_a_refusal_carries_the_words_of_the_wiki() -> None:
    refusal = json_answer({"error": {"code": "readapidenied", "info": "You need read permission"}})
    with wiki(lambda _: refusal) as (client, _), pytest.raises(PermanentError, match="readapidenied: You need read"):
        client.names()


def test_an_answer_in_three_parts_is_read_to_its_end() -> None:
    parts = in_turn(
        pages(entry(1, "one"), more={"rvcontinue": "1|2", "continue": "||"}),
        pages(more={"rvcontinue": "1|3", "continue": "||"}),
        pages(entry(2, "two"), entry(3, "three")),
    )
    with wiki(parts) as (client, web):
        assert {n: c.wikitext for n, c in client.contents([1, 2, 3]).items()} == {1: "one", 2: "two", 3: "three"}
    assert [asked.query.get("rvcontinue") for asked in web.asked] == [None, "1|2", "1|3"]


def test_a_history_whose_first_part_is_empty_is_continued() -> None:
    with wiki(in_turn(pages(more={"rvcontinue": "x", "continue": "||"}), pages(entry(5)))) as (client, _):
        change = client.in_force(1, [JANUARY])[JANUARY]
    assert change is not None
    assert change.revision == 5


def test_an_answer_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mediawiki, "CONTINUATIONS", 5)
    endless = pages(more={"rvcontinue": "x", "continue": "||"})
    with wiki(lambda _: endless) as (client, web), pytest.raises(PermanentError, match="continued 5 times"):
        client.in_force(1, [JANUARY])
    assert len(web.asked) == 5


def test_a_page_that_is_gone_says_so() -> None:
    gone = json_answer({"query": {"pages": [{"pageid": 1, "missing": True}]}})
    with wiki(lambda _: gone) as (client, _), pytest.raises(PageGoneError):
        client.in_force(1, [JANUARY])


def test_histories_ask_for_one_page_each_and_contents_for_fifty() -> None:
    with wiki(lambda asked: pages(*(entry(1, "x"),))) as (client, web):
        client.in_force(1, [JANUARY])
        client.contents(list(range(1, 121)))
    assert "|" not in web.asked[0].query["pageids"]
    assert [asked.query["revids"].count("|") + 1 for asked in web.asked[1:]] == [50, 50, 20]


def source(handler: Callable[[Asked], Answer], folder: Path, *topics: str, known: Known | None = None) -> list[Version]:
    found: list[Version] = []
    with WebServer(handler) as web, Http(None, contact="a@example.org", limits=Limits(attempts=1, backoff=0)) as http:
        span = Span(
            "w", "wikipedia", "panel", (date(2020, 1, 1),), 512, topics=topics, options={"api": web.url + "/api.php"}
        )
        try:
            for batch in WikipediaSource(http, folder).versions(span, span.months, known or Known()):
                found += batch
        except DeferredError as error:
            found.append(Version("deferred", date(2020, 1, 1), "deferred", str(error)))
    return found


def scripted(text: str, broken: frozenset[str] = frozenset()) -> Callable[[Asked], Answer]:
    """A wiki of pages named by number, each with one revision of that text; histories of `broken` pages fail."""

    def handle(asked: Asked) -> Answer:
        query = asked.query
        if "titles" in query:
            titles = query["titles"].split("|")
            return json_answer({"query": {"pages": [{"pageid": int(t), "title": t} for t in titles]}})
        if "revids" in query:
            listed = [
                {"pageid": int(r), "title": r, "revisions": [entry(int(r), text)]} for r in query["revids"].split("|")
            ]
            return json_answer({"query": {"pages": listed}})
        if "pageids" in query:
            number = query["pageids"]
            one = {"pageid": int(number), "title": number, "revisions": [entry(int(number))]}
            return Answer(500) if number in broken else json_answer({"query": {"pages": [one]}})
        return json_answer({"query": {"namespaces": {}, "magicwords": []}})

    return handle


def test_a_page_that_cannot_be_read_is_a_failed_row_and_the_others_stand(tmp_path: Path) -> None:
    found = {v.topic: v.status for v in source(scripted("Some text.", frozenset({"2"})), tmp_path, "1", "2", "3")}
    assert found == {"1": "ok", "2": "failed", "3": "ok"}


def test_a_page_that_was_made_again_is_found_under_its_new_id(tmp_path: Path) -> None:
    plain = scripted("Some text.")

    def handle(asked: Asked) -> Answer:
        gone = {"query": {"pages": [{"pageid": 7, "missing": True}]}}
        return json_answer(gone) if asked.query.get("pageids") == "7" else plain(asked)

    known = Known.of([Version("3", date(2019, 12, 1), "blank", "the page was blanked", document="7")])
    assert [(v.status, v.document) for v in source(handle, tmp_path, "3", known=known)] == [("ok", "3")]


def test_a_title_whose_page_another_title_had_keeps_its_texts_once_that_one_is_taken_off_the_list(
    tmp_path: Path,
) -> None:
    earlier = Version("old title", date(2019, 12, 1), "blank", "the page was blanked", document="3")
    twin = Version("3", date(2020, 1, 1), "duplicate", "is the same page as old title")
    known = Known.of([earlier, twin])
    assert [(v.topic, v.status) for v in source(scripted("Some text."), tmp_path, "3", known=known)] == [("3", "ok")]
    both = source(scripted("Some text."), tmp_path, "old title", "3", known=known)
    assert {v.topic: v.status for v in both} == {"old title": "ok", "3": "duplicate"}


def test_a_wiki_that_keeps_failing_is_left_alone(tmp_path: Path) -> None:
    broken = frozenset(str(n) for n in range(1, 13))
    found = source(scripted("Some text.", broken), tmp_path, *(str(n) for n in range(1, 13)))
    assert found[-1].status == "deferred"
    assert len(found) == mediawiki.FAILURES_IN_A_ROW


def test_a_page_that_no_parser_survives_is_a_row_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capped = mediawiki.SandboxedFunction
    hostile = "tests.unit.adapters.spans.test_sandbox:spin_on"
    monkeypatch.setattr(mediawiki, "SandboxedFunction", lambda target: capped(hostile, seconds=0.2))
    found = source(scripted("Some text."), tmp_path, "1", "2")
    assert [version.status for version in found] == ["unparsed", "unparsed"]
    assert "CPU time" in str(found[0].reason)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda entry: entry.pop("revid"), "failed"),
        (lambda entry: entry.update(revid=None), "failed"),
        (lambda entry: entry.pop("timestamp"), "failed"),
        (lambda entry: entry.update(timestamp="soon"), "failed"),
        (lambda entry: entry.update(slots=None), "failed"),
        (lambda entry: entry.update(slots=[]), "failed"),
        (lambda entry: entry.update(slots={"main": {"content": None}}), "failed"),
        (lambda entry: entry.update(slots={"main": {"content": "Text."}}), "ok"),
    ],
)
def test_one_odd_entry_is_that_rows_reason_and_the_others_stand(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], status: str
) -> None:
    plain = scripted("Some text.")

    def handle(asked: Asked) -> Answer:
        reply = plain(asked)
        payload = json.loads(reply.body)
        for listed in payload["query"].get("pages", []):
            for revision in listed.get("revisions", []):
                if revision["revid"] == 2:
                    change(revision)
        return json_answer(payload)

    found = {v.topic: (v.status, v.reason) for v in source(handle, tmp_path, "1", "2", "3")}
    assert {topic: word for topic, (word, _) in found.items()} == {"1": "ok", "2": status, "3": "ok"}
    assert (found["2"][1] is None) == (status == "ok")


def test_a_history_without_the_page_is_a_failed_row_and_not_an_absence(tmp_path: Path) -> None:
    plain = scripted("Some text.")

    def handle(asked: Asked) -> Answer:
        return json_answer({"query": {"pages": []}}) if asked.query.get("pageids") == "2" else plain(asked)

    found = {v.topic: v.status for v in source(handle, tmp_path, "1", "2", "3")}
    assert found == {"1": "ok", "2": "failed", "3": "ok"}


def test_a_title_that_the_answer_leaves_out_is_failed_and_one_that_can_be_none_is_invalid(tmp_path: Path) -> None:
    plain = scripted("Some text.")

    def handle(asked: Asked) -> Answer:
        if asked.query.get("titles") == "1|4":
            return json_answer({"query": {"pages": [{"pageid": 1, "title": "1"}]}})
        return plain(asked)

    found = {v.topic: v.status for v in source(handle, tmp_path, "1", "2|3", "4")}
    assert found == {"1": "ok", "2|3": "invalid", "4": "failed"}


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (json_answer({"query": {"pages": []}}), "failed"),
        (Answer(500), "failed"),
        (json_answer({"query": {"pages": [{"title": "3", "missing": True}]}}), "missing"),
    ],
)
def test_a_page_whose_id_is_gone_is_missing_only_where_the_wiki_says_so(
    tmp_path: Path, answer: Answer, status: str
) -> None:
    plain = scripted("Some text.")

    def handle(asked: Asked) -> Answer:
        if asked.query.get("pageids") == "7":
            return json_answer({"query": {"pages": [{"pageid": 7, "missing": True}]}})
        return answer if "titles" in asked.query else plain(asked)

    known = Known.of([Version("3", date(2019, 12, 1), "blank", "the page was blanked", document="7")])
    assert [version.status for version in source(handle, tmp_path, "3", known=known)] == [status]
