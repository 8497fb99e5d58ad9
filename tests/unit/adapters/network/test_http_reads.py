"""The HTTP adapter against a scripted server on loopback: cache, retries, limits, pacing, errors."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

import httpx
import pytest

from resources.network.http import (
    Http,
    Limits,
    MissingContactError,
    PermanentError,
    ShrunkenFetchError,
    TransientError,
    refuse_shrunken,
    retry_after_seconds,
)
from resources.network.pacing import Pace
from resources.network.redaction import redacted
from tests.fakes.web import Answer, Asked, FakeTime, WebServer, in_turn, json_answer


def client(folder: Path | None = None, time_: FakeTime | None = None, **settings: object) -> Http:
    told = time_ or FakeTime()
    limits = settings.pop("limits", Limits(attempts=4))
    return Http(folder, sleep=told.sleep, clock=told.clock, rng=random.Random(0), limits=limits, **settings)  # type: ignore[arg-type]


def test_a_stored_copy_is_confirmed_by_304_and_its_body_is_served_again(tmp_path: Path) -> None:
    def handler(asked: Asked) -> Answer:
        if asked.headers.get("If-None-Match") == '"v1"':
            return Answer(304, headers={"ETag": '"v1"'})
        return json_answer({"n": 1}, ETag='"v1"', Cache_Control="max-age=0")

    with WebServer(handler) as web, client(tmp_path) as http:
        first, second = http.get(web.url + "/a"), http.get(web.url + "/a")
    assert (first.origin, second.origin) == ("network", "revalidated")
    assert first.json() == second.json() == {"n": 1}
    assert len(web.asked) == 2


def test_a_fresh_copy_costs_no_request_unless_revalidation_is_asked_for(tmp_path: Path) -> None:
    with WebServer(lambda _: json_answer([1], Cache_Control="max-age=600", ETag='"x"')) as web:
        for _ in range(2):
            with client(tmp_path, FakeTime(time.time())) as http:
                http.get(web.url)
        assert len(web.asked) == 1
        with client(tmp_path, FakeTime(time.time())) as http:
            http.get(web.url, revalidate=True)
    assert web.asked[1].headers["If-None-Match"] == '"x"'


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_a_lower_bound_in_both_its_forms(form: str) -> None:
    told = FakeTime()
    value = "7" if form == "seconds" else format_datetime(datetime.fromtimestamp(told.now + 7, UTC), usegmt=True)
    script = in_turn(Answer(429, headers={"Retry-After": value}), json_answer("done"))
    with WebServer(script) as web, client(time_=told) as http:
        assert http.get(web.url).json() == "done"
    assert sum(told.naps) >= 7
    assert http.counters["retries"] == 1


def test_a_short_retry_after_does_not_shorten_the_backoff() -> None:
    told = FakeTime()
    with WebServer(in_turn(Answer(503, headers={"Retry-After": "0"}), json_answer(1))) as web:
        client(time_=told, limits=Limits(backoff=3)).get(web.url)
    assert sum(told.naps) >= 3


def test_a_pause_longer_than_the_limit_ends_the_read_with_the_time_to_come_back() -> None:
    told = FakeTime()
    with (
        WebServer(in_turn(Answer(429, headers={"Retry-After": "4000"}))) as web,
        pytest.raises(TransientError, match="come back") as caught,
    ):
        client(time_=told).get(web.url)
    assert caught.value.retry_at == datetime.fromtimestamp(told.now + 4000, UTC)
    assert told.naps == []


def test_an_exhausted_rate_limit_in_a_403_waits_for_its_reset() -> None:
    told = FakeTime()
    refused = json_answer(
        {"message": "API rate limit exceeded"}, 403, X_RateLimit_Remaining="0", X_RateLimit_Reset=str(told.now + 30)
    )
    with WebServer(in_turn(refused, json_answer([]))) as web:
        assert client(time_=told).get(web.url).json() == []
    assert sum(told.naps) >= 30


def test_a_secondary_rate_limit_without_any_header_waits_a_minute() -> None:
    told = FakeTime()
    refused = json_answer({"message": "You have exceeded a secondary rate limit."}, 403)
    with WebServer(in_turn(refused, json_answer([]))) as web:
        client(time_=told).get(web.url)
    assert sum(told.naps) >= 60


def test_a_plain_403_is_permanent_and_readable_without_a_json_traceback() -> None:
    with (
        WebServer(in_turn(Answer(403, b"<html>Set a proper User-Agent</html>"))) as web,
        pytest.raises(PermanentError, match=r"HTTP 403 .*proper User-Agent") as caught,
    ):
        client().get(web.url)
    assert caught.value.status == 403
    assert len(web.asked) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 410, 416, 501])
def test_refusals_that_another_try_cannot_change_are_asked_once(status: int) -> None:
    with WebServer(lambda _: Answer(status)) as web, pytest.raises(PermanentError) as caught:
        client().get(web.url)
    assert (caught.value.status, len(web.asked)) == (status, 1)


@pytest.mark.parametrize("fault", [Answer(500), Answer(502), Answer(drop=True), Answer(body=b"x" * 100, cut_at=10)])
def test_a_fault_of_the_server_is_survived(fault: Answer) -> None:
    with WebServer(in_turn(fault, fault, json_answer("whole"))) as web:
        assert client().get(web.url).json() == "whole"
    assert len(web.asked) == 3


def test_attempts_are_bounded() -> None:
    with WebServer(lambda _: Answer(500)) as web, pytest.raises(TransientError, match="after 3 attempts"):
        client(limits=Limits(attempts=3)).get(web.url)
    assert len(web.asked) == 3


def test_a_stalled_server_is_asked_again() -> None:
    with WebServer(in_turn(Answer(stall=1.0), json_answer("awake"))) as web:
        assert client(limits=Limits(read=0.2)).get(web.url).json() == "awake"


def test_an_unreachable_server_is_a_transient_error() -> None:
    with WebServer(lambda _: Answer()) as web:
        gone = web.url
    with pytest.raises(TransientError, match="ConnectError"):
        client(limits=Limits(attempts=2)).get(gone)


def test_a_server_that_stalls_longer_than_httpx_defaults_is_waited_for() -> None:
    with WebServer(in_turn(Answer(stall=5.5, body=b"late"))) as web:
        assert client().get(web.url).content == b"late"
    assert len(web.asked) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_followed_and_the_final_address_is_reported(status: int) -> None:
    def handler(asked: Asked) -> Answer:
        if asked.raw_path == "/Foo__.Bar/":
            return Answer(status, headers={"Location": "/foo-bar/"})
        return json_answer(asked.raw_path)

    with WebServer(handler) as web:
        reply = client().get(web.url + "/Foo__.Bar/")
    assert (reply.url, reply.json()) == (web.url + "/foo-bar/", "/foo-bar/")


def test_endless_redirects_are_permanent() -> None:
    with WebServer(lambda _: Answer(302, headers={"Location": "/again"})) as web, pytest.raises(PermanentError):
        client().get(web.url)


def test_a_longer_body_than_allowed_is_refused_also_when_it_came_compressed() -> None:
    with WebServer(lambda _: json_answer("a" * 200_000, zipped=True)) as web:
        with pytest.raises(PermanentError, match="larger than 100000"):
            client().get(web.url, max_bytes=100_000)
        assert len(client().get(web.url).json()) == 200_000


def test_a_suffix_range_returns_the_tail_and_is_not_cached(tmp_path: Path) -> None:
    data = bytes(range(256)) * 4

    def handler(asked: Asked) -> Answer:
        n = int(asked.headers["Range"].removeprefix("bytes=-"))
        return Answer(206, data[-n:], {"Content-Range": f"bytes {1024 - n}-1023/1024", "Cache-Control": "max-age=600"})

    with WebServer(handler) as web, client(tmp_path) as http:
        assert http.get(web.url, byte_range="bytes=-16").content == data[-16:]
        assert http.get(web.url, byte_range="bytes=-32").content == data[-32:]
    assert web.asked[0].headers["Accept-Encoding"] == "identity"


def test_a_busy_signal_inside_a_200_is_waited_out() -> None:
    def lagging(reply: object) -> str | None:
        return "maxlag" if isinstance(reply.json(), dict) and "error" in reply.json() else None  # type: ignore[attr-defined]

    told = FakeTime()
    script = in_turn(json_answer({"error": {"code": "maxlag"}}, Retry_After="5"), json_answer({"query": 1}))
    with WebServer(script) as web:
        assert client(time_=told).get(web.url, busy_if=lagging).json() == {"query": 1}
    assert sum(told.naps) >= 5


def test_html_where_json_is_due_is_an_error_that_shows_it() -> None:
    with WebServer(lambda _: Answer(body=b"<html>captive portal", headers={"Content-Type": "text/html"})) as web:
        reply = client().get(web.url)
    with pytest.raises(PermanentError, match="text/html beginning '<html>captive"):
        reply.json()


def test_the_user_agent_names_product_version_and_contact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRANDLINE_CONTACT", "tide@example.org")
    with WebServer(lambda _: Answer()) as web:
        client(version="1.2").get(web.url)
    assert web.asked[0].headers["User-Agent"] == "strandline/1.2 (tide@example.org)"


def test_a_host_that_wants_a_contact_is_not_asked_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STRANDLINE_CONTACT", raising=False)
    with pytest.raises(MissingContactError, match="STRANDLINE_CONTACT"):
        client().require_contact("the wiki")
    assert client(contact="a@b.c").require_contact("the wiki") == "a@b.c"


def test_credentials_reach_their_host_and_no_file_log_or_error(tmp_path: Path) -> None:
    def handler(asked: Asked) -> Answer:
        return json_answer(asked.headers.get("Authorization"), Cache_Control="max-age=60")

    with WebServer(handler) as web:
        with client(tmp_path, authorization={"127.0.0.1": "Bearer canary-7"}) as http:
            assert http.get(web.url).json() == "Bearer canary-7"
        with client(tmp_path, authorization={"elsewhere.example": "Bearer canary-7"}) as http:
            assert http.get(web.url + "/b").json() is None
    rows = sqlite3.connect(tmp_path / "http.sqlite").execute("select data from entries").fetchall()
    assert rows
    assert not any(b"canary-7" in row[0] for row in rows)
    assert redacted("https://me:canary-7@h.example/simple/?api_key=canary-7&q=1") == (
        "https://h.example/simple/?api_key=hidden&q=1"
    )


def test_the_log_and_the_counters_tell_what_was_asked(tmp_path: Path) -> None:
    with (
        WebServer(in_turn(Answer(500), json_answer([1], Cache_Control="max-age=60"))) as web,
        client(tmp_path, FakeTime(time.time())) as http,
    ):
        http.get(web.url + "/x")
        http.get(web.url + "/x")
    assert [(line.status, line.origin, line.attempt) for line in http.log] == [
        (500, "network", 1),
        (200, "network", 2),
        (200, "cache", 1),
    ]
    assert (http.counters["requests"], http.counters["cache"], http.counters["retries"]) == (2, 1, 1)


def test_two_requests_to_a_host_are_apart_by_its_interval_also_across_clients(tmp_path: Path) -> None:
    told = FakeTime()
    answers = httpx.MockTransport(lambda _: httpx.Response(200, json=1))
    for _ in range(3):
        with client(tmp_path, told, transport=answers, min_interval=2.0) as http:
            http.get("http://registry.example/a")
    assert told.naps == [2.0, 2.0]


def test_a_host_is_asked_by_one_at_a_time(tmp_path: Path) -> None:
    pace = Pace(tmp_path, 0.0, {}, time.sleep, time.time)
    inside, most = [0], [0]

    def work() -> None:
        with pace.turn("registry.example"):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.02)
            inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_a_fetch_far_smaller_than_the_last_is_refused() -> None:
    refuse_shrunken("npm react", None, 3)
    refuse_shrunken("npm react", 100, 60)
    with pytest.raises(ShrunkenFetchError, match="npm react returned 40 where the last fetch held 100"):
        refuse_shrunken("npm react", 100, 40)


def test_an_unreadable_retry_after_is_none() -> None:
    assert retry_after_seconds("soon", 0.0) is None
    assert retry_after_seconds(None, 0.0) is None
    assert retry_after_seconds("-5", 0.0) == 0.0


def test_bulk_that_is_kept_elsewhere_is_not_put_into_the_cache(tmp_path: Path) -> None:
    with WebServer(lambda _: json_answer([1], Cache_Control="max-age=600")) as web, client(tmp_path) as http:
        http.get(web.url, store=False)
        assert http.get(web.url).origin == "network"
        assert http.get(web.url, store=False).origin == "network"
