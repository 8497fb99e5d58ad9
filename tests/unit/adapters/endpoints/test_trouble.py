"""Whose fault a failure is: the server's interrupts and burns no round, the model's is a missing answer."""

import json
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

import httpx
import pytest

from resources.endpoints.chat import AccessError, ChatClient, EndpointError
from resources.endpoints.chat_dialect import Dialect
from resources.endpoints.chat_payload import UnreadableReplyError, parse_completion
from resources.endpoints.exchange import Patience
from resources.endpoints.keys import ApiKey
from resources.probe.asking import ChatAsker
from strandline.probe import Question, StoredRound
from strandline.probe.session import parameters_used

QUESTIONS = [
    Question(0, date(2024, 1, 1), "React", "18.2.0", "real"),
    Question(1, date(2024, 1, 2), "Go", "9", "decoy"),
]
GOOD = '{"answers": [{"index": 1, "answer": "YES"}, {"index": 2, "answer": "NO"}]}'
USAGE = {"prompt_tokens": 300, "completion_tokens": 20}
FILTERED = {
    "error": {"message": "The response was filtered", "code": "content_filter", "innererror": {"code": "ResponsibleAI"}}
}


def said(content: str | None, usage: Mapping[str, int] | None = USAGE, **more: Any) -> httpx.Response:
    choice = {"message": {"content": content}, "finish_reason": "stop"} | more
    return httpx.Response(200, json={"choices": [choice]} | ({"usage": usage} if usage else {}))


def refused(status: int, message: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
    return httpx.Response(status, json={"error": {"message": message}}, headers=headers)


class Server:
    """Answers by a rule over the request's body; keeps what was asked and how long the client would have slept."""

    def __init__(self, rule: Callable[[dict[str, Any]], httpx.Response]) -> None:
        self.rule, self.bodies, self.addresses, self.waits = rule, [], [], []
        self.headers: list[httpx.Headers] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(json.loads(request.content))
        self.addresses.append(str(request.url))
        self.headers.append(request.headers)
        return self.rule(self.bodies[-1])

    def client(self, address: str = "http://h/v1", key: str | None = None, **settings: Any) -> ChatClient:
        transport = httpx.MockTransport(self)
        return ChatClient(
            address, "m", ApiKey(key) if key else None, transport=transport, sleep=self.waits.append, **settings
        )


def is_round(body: Mapping[str, Any]) -> bool:
    return "React" in body["messages"][-1]["content"]


@pytest.mark.parametrize(
    "refusal",
    [
        httpx.Response(400, json=FILTERED),
        refused(400, "Content Exists Risk"),
        refused(400, "Input data may contain inappropriate content: data_inspection_failed"),
        refused(403, "Your chosen model requires moderation and your input was flagged"),
        refused(400, "invalid prompt: your prompt was flagged as potentially violating our usage policy"),
        refused(451, "unavailable"),
        refused(400, "Bad request"),
        refused(422, ""),
    ],
)
def test_a_refusal_of_one_prompt_is_a_missing_answer_and_gives_nothing_up(refusal: httpx.Response) -> None:
    server = Server(lambda body: refusal if is_round(body) else said("YES"))
    client = server.client()
    reply = ChatAsker(client).ask(QUESTIONS)
    assert (reply.status, {a.parse_status for a in reply.answers}) == ("refused", {"refused"})
    assert client.dialect == Dialect()


@pytest.mark.parametrize(
    "trouble",
    [
        refused(500, "oops"),
        refused(400, "Upstream error, please try again later"),
        httpx.Response(200, json={"error": {"message": "overloaded"}}),
        httpx.Response(200, json={"error": "overloaded", "choices": [{"message": {"content": ""}}]}),
        httpx.Response(200, json={"object": "error", "message": "engine died", "code": 500}),
        httpx.Response(200, json={"status": "error", "msg": "no worker"}),
        httpx.Response(200, json={"code": 5003, "msg": "no worker"}),
        said("", usage=None),
        said(None, usage=None),
        said("", usage={"prompt_tokens": 10, "completion_tokens": 0}),
        httpx.Response(200, json={"choices": []}),
        said("x", finish_reason="error"),
        said(None, finish_reason="insufficient_system_resource"),
        said("The service is temporarily unavailable, please try again later.", usage=None),
        httpx.Response(302, headers={"location": "https://status.example"}),
        refused(505, "?"),
    ],
)
def test_an_outage_in_any_dress_interrupts_and_burns_no_round(trouble: httpx.Response) -> None:
    server = Server(lambda _: trouble)
    reply = ChatAsker(server.client()).ask(QUESTIONS)
    assert (reply.status, {a.parse_status for a in reply.answers}) == ("error", {"error"})


def test_a_model_that_is_silent_about_one_round_only_is_missing_there() -> None:
    server = Server(lambda body: said("", usage=None) if is_round(body) else said("YES", usage=None))
    assert ChatAsker(server.client()).ask(QUESTIONS).status == "empty"


def test_nothing_is_given_up_for_good_unless_the_next_request_succeeds() -> None:
    server = Server(lambda _: refused(400, "Bad request"))
    client = server.client()
    with pytest.raises(EndpointError):
        client.complete([{"role": "user", "content": "React"}], 1, 100)
    assert client.dialect == Dialect()
    server.rule = lambda body: refused(400, "temperature is not supported") if "temperature" in body else said(GOOD)
    assert ChatAsker(client).ask(QUESTIONS).status == "ok"
    assert client.dialect == Dialect(temperature=None)


@pytest.mark.parametrize("words", ["guided decoding backend failed: response_format", "Internal Server Error"])
def test_a_format_refused_with_500_is_given_up_and_remembered_between_sessions(words: str) -> None:
    server = Server(lambda body: refused(500, words) if "response_format" in body else said(GOOD))
    reply = ChatAsker(server.client()).ask(QUESTIONS)
    assert reply.status == "ok"
    assert reply.usage["parameters"]["response_format"] is None
    later = server.client(negotiated=parameters_used([StoredRound(0, 0, tuple(QUESTIONS), reply)]))
    before = len(server.bodies)
    assert ChatAsker(later).ask(QUESTIONS).status == "ok"
    assert len(server.bodies) == before + 1


def test_an_outage_of_500_that_passes_gives_no_format_up() -> None:
    troubles = [refused(500, "Internal Server Error")] * 4
    server = Server(lambda _: troubles.pop() if troubles else said(GOOD))
    client = server.client()
    assert ChatAsker(client).ask(QUESTIONS).status == "ok"
    assert client.dialect == Dialect()


@pytest.mark.parametrize(
    "dialect",
    [
        Dialect(),
        Dialect(token_field=None, response_format="json_object", temperature=None),
        Dialect(token_field="max_completion_tokens", has_system_role=False, sends_stream=False, response_format=None),
    ],
)
def test_a_dialect_is_read_from_its_record(dialect: Dialect) -> None:
    assert Dialect.from_record(json.loads(json.dumps(dialect.record(2048)))) == dialect


@pytest.mark.parametrize(
    ("status", "words"),
    [(503, "Loading model"), (503, "Model m is currently loading"), (502, ""), (404, "model loading")],
)
def test_a_server_that_loads_its_model_is_waited_for(status: int, words: str) -> None:
    answers = [refused(status, words)] * 30
    server = Server(lambda _: answers.pop() if answers else said(GOOD))
    assert ChatAsker(server.client(patience=Patience(attempts=2))).ask(QUESTIONS).status == "ok"
    assert sum(server.waits) > 300
    assert max(server.waits) <= 15


def test_loading_for_ever_is_an_outage() -> None:
    server = Server(lambda _: refused(503, "Loading model"))
    assert ChatAsker(server.client()).ask(QUESTIONS).status == "error"
    assert 900 < sum(server.waits) < 1000


@pytest.mark.parametrize(
    ("headers", "words", "least"),
    [
        ({"retry-after": "30", "retry-after-ms": "5"}, "", 30),
        ({"retry-after": "1", "retry-after-ms": "20000.5"}, "", 20),
        ({"retry-after-ms": "nan"}, "", 1),
        ({}, "Please retry in 36s.", 36),
    ],
)
def test_the_longest_wait_that_is_asked_for_is_kept(headers: dict[str, str], words: str, least: float) -> None:
    answers = [refused(429, words, headers)]
    server = Server(lambda _: answers.pop() if answers else said(GOOD))
    ChatAsker(server.client()).ask(QUESTIONS)
    assert least <= server.waits[0] < least + 1


@pytest.mark.parametrize(
    ("address", "first"),
    [
        ("http://h/v1", "http://h/v1/chat/completions"),
        ("http://h/v1/chat/completions/", "http://h/v1/chat/completions"),
        ("http://h", "http://h/v1/chat/completions"),
        ("http://h/v1beta/openai/", "http://h/v1beta/openai/chat/completions"),
        (
            "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-06-01",
            "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-06-01",
        ),
        ("https://x.openai.azure.com", "https://x.openai.azure.com/openai/v1/chat/completions"),
    ],
)
def test_addresses_are_taken_as_people_have_them(address: str, first: str) -> None:
    server = Server(lambda _: said(GOOD))
    ChatAsker(server.client(address, "sk-0123456789")).ask(QUESTIONS)
    assert server.addresses == [first]
    is_azure = "azure" in address
    assert ("api-key" in server.headers[0], "authorization" in server.headers[0]) == (is_azure, not is_azure)


def test_an_address_that_lacks_its_version_is_found_and_kept() -> None:
    server = Server(lambda _: said(GOOD))
    server.rule = lambda _: said(GOOD) if "/v1/" in server.addresses[-1] else httpx.Response(404, text="Not Found")
    client = server.client("http://h/api")
    ChatAsker(client).ask(QUESTIONS)
    ChatAsker(client).ask(QUESTIONS)
    assert [address.removeprefix("http://h") for address in server.addresses] == [
        "/api/chat/completions",
        *["/api/v1/chat/completions"] * 2,
    ]


def test_a_key_goes_into_the_header_that_a_refusal_names() -> None:
    server = Server(lambda _: said(GOOD))
    server.rule = lambda _: said(GOOD) if "x-api-key" in server.headers[-1] else refused(401, "x-api-key is missing")
    assert ChatAsker(server.client(key="sk-0123456789")).ask(QUESTIONS).status == "ok"
    assert server.headers[-1]["x-api-key"] == "sk-0123456789"
    server.rule = lambda _: refused(401, "x-api-key is wrong")
    with pytest.raises(AccessError):
        server.client(key="sk-0123456789").complete([{"role": "user", "content": "?"}], 1, 10)


def test_a_stream_may_hold_any_mark_of_unicode_and_events_of_several_lines() -> None:
    chunk = json.dumps({"choices": [{"delta": {"content": "a\u2028b\x85c"}}]}, ensure_ascii=False)
    split = '{"choices": [{"delta": {"content": "d"},\ndata: "finish_reason": "stop"}]}'
    body = f"data: {chunk}\r\n\r\ndata: {split}\n\ndata: [DONE]\n\n".encode()
    assert parse_completion("text/event-stream", body).content == "a\u2028b\x85cd"


def test_half_a_character_is_replaced() -> None:
    assert parse_completion("", b'{"choices": [{"message": {"content": "a\\ud83dz"}}]}').content == "a\ufffdz"


@pytest.mark.parametrize("reason", ["error", "network_error", "abort", "INSUFFICIENT_SYSTEM_RESOURCE"])
def test_a_reply_that_the_server_broke_off_is_none(reason: str) -> None:
    body = json.dumps({"choices": [{"message": {"content": GOOD}, "finish_reason": reason}]}).encode()
    with pytest.raises(UnreadableReplyError):
        parse_completion("", body)
