"""Asking a chat endpoint: negotiation, retries, faults, budgets and secrecy, over real loopback sockets."""

import json
import logging
import pickle
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from typing import Any

import httpx
import pytest

from resources.endpoints.chat import AccessError, ChatClient, EndpointError, Patience, QuotaError
from resources.endpoints.chat_dialect import Dialect
from resources.endpoints.chat_payload import UnreadableReplyError, error_text, parse_completion
from resources.endpoints.keys import ApiKey, MissingKeyError
from resources.probe.asking import ChatAsker, chat_asker
from strandline.models import ModelSpec
from strandline.probe import Question, RoundReply
from tests.fakes.openai_server import FakeOpenAIServer

CANARY = "sk-canary/7f3a\\9c55e1"
CUTOFF = date(2024, 3, 10)
RELEASED = {("Node.js", f"20.{i}.0"): date(2024, 3, 1) + timedelta(days=i) for i in range(20)}
QUESTIONS = [Question(i, day, project, version, "real") for i, ((project, version), day) in enumerate(RELEASED.items())]
QUESTIONS += [Question(3, date(2024, 3, 4), "Node.js", "20.77.1", "decoy")]


@pytest.fixture
def waits() -> list[float]:
    """Seconds that the client would have slept."""
    return []


@pytest.fixture
def asker(waits: list[float]) -> Iterable[Callable[..., ChatAsker]]:
    """Makes askers that do not really sleep, and closes them."""
    made: list[ChatAsker] = []

    def make(server: FakeOpenAIServer, key: str | None = None, **settings: Any) -> ChatAsker:
        patience = settings.pop("patience", None)
        client = ChatClient(server.base_url, "planted", key and ApiKey(key), sleep=waits.append, patience=patience)  # type: ignore[arg-type]
        made.append(ChatAsker(client, **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


def labels(reply: RoundReply) -> list[str | None]:
    """The answers' words."""
    return [a.answer for a in reply.answers]


def truth(server: FakeOpenAIServer) -> list[str]:
    """What the planted model says to each question."""
    return [server.answer(q.project, q.version) for q in QUESTIONS]


def test_a_planted_cutoff_is_answered_by_date_and_near_misses_are_refused(asker: Callable[..., ChatAsker]) -> None:
    with FakeOpenAIServer(RELEASED, CUTOFF) as server:
        reply = asker(server).ask(QUESTIONS)
        assert labels(reply) == truth(server)
    assert [q.released_on <= CUTOFF and q.kind == "real" for q in QUESTIONS] == [a == "YES" for a in labels(reply)]
    assert reply.status == "ok"
    assert reply.usage["attempts"] == reply.usage["requests"] == 1
    assert reply.usage["parameters"]["temperature"] == 0.0
    assert reply.usage["parameters"]["max_tokens"] == 2048


@pytest.mark.parametrize(
    "fault", ["429-seconds", "429-date", "500", "503", "drop", "drop-half", "html", "sse", "empty", "no-choices"]
)
def test_a_fault_changes_no_answer_and_asks_nothing_twice(fault: str, asker: Callable[..., ChatAsker]) -> None:
    with FakeOpenAIServer(RELEASED, CUTOFF, faults=[fault]) as server:
        reply = asker(server).ask(QUESTIONS)
        assert labels(reply) == truth(server)
        assert len(server.answered) == len(set(server.answered)) == len(QUESTIONS)
        assert server.log[0].fault == fault
        assert len(server.log) == (1 if fault == "sse" else 2)


def test_many_faults_in_a_row_are_survived(asker: Callable[..., ChatAsker]) -> None:
    with FakeOpenAIServer(
        RELEASED, CUTOFF, faults=["500", "drop", "429-date", "html", "empty", "no-choices"]
    ) as server:
        reply = asker(server).ask(QUESTIONS)
        assert labels(reply) == truth(server)
        assert reply.usage["requests"] == 7


@pytest.mark.parametrize("fault", ["429-seconds", "429-date"])
def test_retry_after_is_a_lower_bound_of_the_wait(
    fault: str, asker: Callable[..., ChatAsker], waits: list[float]
) -> None:
    with FakeOpenAIServer(RELEASED, CUTOFF, faults=[fault], retry_after=30) as server:
        asker(server).ask(QUESTIONS)
    (wait,) = waits
    assert wait >= 29.0 - (fault == "429-date")


def test_waits_grow_while_nobody_says_how_long(asker: Callable[..., ChatAsker], waits: list[float]) -> None:
    with FakeOpenAIServer(RELEASED, CUTOFF, faults=["500"] * 5) as server:
        asker(server).ask(QUESTIONS)
    assert waits == sorted(waits)
    assert waits[-1] >= 16.0


def test_a_wait_longer_than_our_patience_ends_the_exchange(asker: Callable[..., ChatAsker], waits: list[float]) -> None:
    with FakeOpenAIServer(RELEASED, CUTOFF, faults=["429-seconds"], retry_after=86_400) as server:
        reply = asker(server).ask(QUESTIONS)
    assert (reply.status, waits) == ("error", [])
    assert "asks to wait 86400 s" in str(reply.reason)


def test_a_used_up_quota_stops_at_once_and_speaks_of_billing(
    asker: Callable[..., ChatAsker], waits: list[float]
) -> None:
    with FakeOpenAIServer(RELEASED, CUTOFF, faults=["429-quota"]) as server:
        reply = asker(server).ask(QUESTIONS)
        assert len(server.log) == 1
    assert (reply.status, waits) == ("error", [])
    assert "billing" in str(reply.reason)
    assert labels(reply) == [None] * len(QUESTIONS)


@pytest.mark.parametrize(
    ("status", "said", "headers", "is_final"),
    [
        (429, "You exceeded your current quota. Please retry in 36s.", {}, False),
        (429, "You exceeded your current quota, check your plan.", {"Retry-After": "36"}, False),
        (429, "Quota exceeded for metric free_tier_requests, limit: 0, retry in 5s", {}, True),
        (429, "You exceeded your current quota, check your plan.", {}, True),
        (429, "Rate limit reached. Add a payment method at the billing page.", {}, False),
        (402, "Insufficient balance", {}, True),
        (403, "Your credit balance is too low", {}, True),
    ],
)
def test_money_is_told_apart_from_a_rate_limit(status: int, said: str, headers: dict[str, str], is_final: bool) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, json={"error": {"message": said}}, headers=headers)

    waits: list[float] = []
    client = ChatClient("http://h/v1", "m", transport=httpx.MockTransport(refuse), sleep=waits.append)
    with pytest.raises(EndpointError) as caught:
        client.complete([{"role": "user", "content": "?"}], 1, 100)
    assert isinstance(caught.value, QuotaError) == is_final
    assert bool(waits) != is_final


@pytest.mark.parametrize(
    ("refuses", "expected"),
    [
        ({"max_tokens"}, {"max_completion_tokens": 2048, "temperature": 0.0}),
        ({"max_tokens", "max_completion_tokens"}, {"temperature": 0.0}),
        ({"temperature"}, {"temperature": None, "max_tokens": 2048}),
        ({"response_format"}, {"response_format": None}),
        ({"system"}, {"system_role": "folded into the user turn"}),
        ({"stream"}, {"temperature": 0.0}),
        ({"max_tokens", "temperature", "response_format", "system", "stream"}, {"max_completion_tokens": 2048}),
    ],
)
def test_refused_parameters_are_given_up_once_and_recorded(
    refuses: set[str], expected: dict[str, Any], asker: Callable[..., ChatAsker]
) -> None:
    with FakeOpenAIServer(RELEASED, CUTOFF, refuses=refuses) as server:
        one = asker(server)
        first = one.ask(QUESTIONS[:10])
        refused = len(server.log) - 1
        second = one.ask(QUESTIONS[10:])
        assert labels(first) + labels(second) == truth(server)
        assert len(server.log) == refused + 2
        assert refused >= len(refuses)
    assert expected.items() <= first.usage["parameters"].items()
    assert first.usage["parameters"] == second.usage["parameters"]
    roles = [m["role"] for m in first.messages]
    assert roles == (["user"] if "system" in refuses else ["system", "user"])
    assert "Answer from memory" in first.messages[0]["content"]


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("Unsupported value: 'temperature' does not support 0.0 with this model.", {"temperature": None}),
        ("json_schema is not supported by this model", {"response_format": "json_object"}),
        ("[{'type': 'extra_forbidden', 'loc': ('body', 'response_format')}]", {"response_format": "json_object"}),
        ("Conversation roles must alternate user/assistant", {"has_system_role": False}),
        ("Only user and assistant roles are supported!", {"has_system_role": False}),
        ("Developer instruction is not enabled for models/gemma", {"has_system_role": False}),
        ("Unexpected fields in the request: {'stream'}", {"sends_stream": False}),
        ("This model's maximum context length is 2048 tokens; you asked for max_tokens 2048", {"budget_cap": 1024}),
        ("max_tokens must be at most 1024", {"budget_cap": 1024}),
        ("Bad request", {"response_format": "json_object"}),
    ],
)
def test_a_refusal_costs_what_it_names(text: str, change: dict[str, Any]) -> None:
    changed = Dialect().after_refusal(400, text, 2048)
    assert changed is not None
    assert {k: getattr(changed, k) for k in change} == change
    assert sum(getattr(changed, k) != getattr(Dialect(), k) for k in Dialect.__dataclass_fields__) == 1


@pytest.mark.parametrize(
    "text", ["Bad request", "temperature", "max_tokens", "response_format", "exceeds the context window"]
)
def test_every_negotiation_ends(text: str) -> None:
    dialect: Dialect | None = Dialect()
    for _ in range(12):
        assert dialect is not None
        dialect = dialect.after_refusal(400, text, 2048)
        if dialect is None:
            return
    pytest.fail("the negotiation did not end")


@pytest.mark.parametrize(
    ("status", "text"), [(404, "model not found"), (500, "internal error"), (429, "temperature"), (413, "")]
)
def test_a_refusal_about_something_else_changes_nothing(status: int, text: str) -> None:
    assert Dialect().after_refusal(status, text, 2048) is None


def test_a_server_that_knows_no_such_model_is_an_error_at_once(waits: list[float]) -> None:
    reply = httpx.Response(404, json={"error": {"message": "The model `m` does not exist"}})
    client = ChatClient("http://h/v1", "m", transport=httpx.MockTransport(lambda _: reply), sleep=waits.append)
    with pytest.raises(EndpointError, match="does not exist"):
        client.complete([{"role": "user", "content": "?"}], 1, 100)
    assert waits == []


def test_a_model_that_spends_its_budget_thinking_gets_a_larger_one_and_then_is_missing(
    asker: Callable[..., ChatAsker],
) -> None:
    with FakeOpenAIServer(RELEASED, CUTOFF, faults=["empty"] * 3) as server:
        reply = asker(server).ask(QUESTIONS)
        assert [r.body["max_tokens"] for r in server.log] == [2048, 4096, 8192]
    assert labels(reply) == [None] * len(QUESTIONS)
    assert reply.status == "truncated"
    assert {a.parse_status for a in reply.answers} == {"truncated"}
    assert [u["attempt"] for u in reply.usage["unusable_replies"]] == [1, 2]
    assert "Let me think" in reply.usage["unusable_replies"][0]["reply"]


def test_an_unreachable_endpoint_is_an_error_and_every_answer_missing(waits: list[float]) -> None:
    with FakeOpenAIServer(RELEASED, CUTOFF) as server:
        address = server.base_url
    client = ChatClient(address, "m", sleep=waits.append, patience=Patience(attempts=3))
    reply = ChatAsker(client).ask(QUESTIONS)
    assert reply.status == "error"
    assert "the connection failed (ConnectError)" in str(reply.reason)
    assert {a.parse_status for a in reply.answers} == {"error"}
    assert len(waits) == 2


def test_a_cut_prompt_is_flagged_on_every_answer(asker: Callable[..., ChatAsker]) -> None:
    with FakeOpenAIServer(RELEASED, CUTOFF, faults=["low-usage"]) as server:
        reply = asker(server).ask(QUESTIONS)
    assert reply.status == "prompt_truncated"
    assert "7 prompt tokens" in str(reply.reason)
    assert {a.parse_status for a in reply.answers} == {"prompt_truncated"}


def test_tokens_and_cost_count_every_attempt(asker: Callable[..., ChatAsker]) -> None:
    with FakeOpenAIServer(RELEASED, CUTOFF, faults=["empty"]) as server:
        reply = asker(server, cost_per_million_tokens=2.0).ask(QUESTIONS)
    assert reply.usage["attempts"] == 2
    assert reply.usage["prompt_tokens"] > 500
    assert reply.usage["cost"] == pytest.approx(
        (reply.usage["prompt_tokens"] + reply.usage["completion_tokens"]) * 2.0 / 1e6
    )
    json.dumps(dict(reply.usage))


def completion(message: object, **more: object) -> bytes:
    """A JSON completion with this message."""
    return json.dumps({"choices": [{"message": message}], **more}).encode()


@pytest.mark.parametrize(
    ("body", "content"),
    [
        (completion({"content": "a"}), "a"),
        (completion({"content": [{"type": "text", "text": "a"}, {"type": "image"}]}), "a"),
        (completion({"content": None}), None),
        (completion(None), None),
        (b'{"choices": []}', None),
        (b'{"choices": null}', None),
        (b"{}", None),
        (b'{"choices": [null]}', None),
        (
            b'data: {"choices": [{"delta": null}]}\n\ndata: {"choices": [{"delta": {"content": "a"}}]}\n\ndata: [DONE]',
            "a",
        ),
        (b': hello\n\ndata: {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}', "a"),
        (b'\xef\xbb\xbf{"choices": [{"message": {"content": "a"}}]}', "a"),
    ],
)
def test_what_a_200_holds_is_read_by_its_content(body: bytes, content: str | None) -> None:
    assert parse_completion("application/json", body).content == content


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<!doctype html>", "a page"),
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"[]", "no object"),
        (b'{"error": {"message": "overloaded"}}', "an error with status 200"),
        (b'data: {"choices": [{"delta": {"content": "a"}}]}', "ended before its last piece"),
        (b'data: {"error": "overloaded"}', "an error with status 200"),
        (b"data: {", "no JSON"),
    ],
)
def test_a_200_without_a_completion_is_worth_another_try(body: bytes, message: str) -> None:
    with pytest.raises(UnreadableReplyError, match=message):
        parse_completion("application/json", body)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error": {"message": "m", "param": "p", "code": 3}}', "m | p | 3"),
        (b'{"detail": "Unexpected fields"}', "Unexpected fields"),
        (b'{"error": "plain"}', "plain"),
        (b"gateway down", "gateway down"),
        (b'{"message": "m"}', "m"),
    ],
)
def test_an_error_body_gives_its_sentence(body: bytes, text: str) -> None:
    assert error_text(body) == text


def test_the_key_is_sent_and_shown_nowhere_even_after_a_401_that_repeats_it(
    asker: Callable[..., ChatAsker], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    with FakeOpenAIServer(RELEASED, CUTOFF, key=CANARY, faults=["500", "401"]) as server:
        one = asker(server, CANARY)
        refused, answered = one.ask(QUESTIONS), one.ask(QUESTIONS)
        assert server.log[0].authorization == f"Bearer {CANARY}"
    assert (refused.status, answered.status) == ("error", "ok")
    assert "401 Incorrect API key provided: [key]" in str(refused.reason)
    shown = [repr(one), repr(vars(one)), repr(refused), repr(answered), caplog.text]
    assert not [text for text in shown if CANARY in text or json.dumps(CANARY)[1:-1] in text]


def test_a_model_that_repeats_the_key_does_not_get_it_stored() -> None:
    key = ApiKey(CANARY)
    body = completion({"content": f"your key is {CANARY}"})
    client = ChatClient(
        "http://h/v1", "m", key, transport=httpx.MockTransport(lambda _: httpx.Response(200, content=body))
    )
    exchange = client.complete([{"role": "user", "content": "?"}], 1, 100)
    assert exchange.completion.content == "your key is [key]"


def test_an_access_error_says_which_model_and_not_the_key() -> None:
    reply = httpx.Response(403, json={"error": {"message": f"no access with {CANARY}"}})
    client = ChatClient("http://h/v1", "m-1", ApiKey(CANARY), transport=httpx.MockTransport(lambda _: reply))
    with pytest.raises(AccessError, match="refuses access to m-1") as caught:
        client.complete([{"role": "user", "content": "?"}], 1, 100)
    assert CANARY not in repr(caught.value)


def test_a_key_can_neither_be_printed_nor_pickled() -> None:
    key = ApiKey(CANARY)
    assert CANARY not in f"{key} {key!r}"
    with pytest.raises(TypeError, match="environment variable"):
        pickle.dumps(key)


@pytest.mark.parametrize("value", ["", " ", "sk-canary\nX: y", "sk canary", "sk-cänary"])
def test_a_key_that_no_header_can_carry_is_refused_without_repeating_it(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOUSE_KEY", value)
    with pytest.raises(MissingKeyError, match="HOUSE_KEY") as caught:
        ApiKey.from_environment("HOUSE_KEY")
    assert "nary" not in str(caught.value)


def test_a_listed_endpoint_is_asked_by_its_served_name_and_named_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOUSE_KEY", f" {CANARY}\n")
    with FakeOpenAIServer(RELEASED, CUTOFF, key=CANARY) as server:
        spec = ModelSpec("house/m", "openai", f"{server.base_url}/", served_name="m-large", api_key_env="HOUSE_KEY")
        one = chat_asker(spec)
        assert one.ask(QUESTIONS).status == "ok"
        one.close()
        assert server.log[0].body["model"] == "m-large"
        assert server.log[0].path == "/v1/chat/completions"


def test_the_prompt_holds_no_date_and_stays_far_below_2000_tokens(asker: Callable[..., ChatAsker]) -> None:
    with FakeOpenAIServer(RELEASED, CUTOFF) as server:
        asker(server).ask(QUESTIONS)
        prompt = "\n".join(m["content"] for m in server.log[0].body["messages"])
    assert len(prompt) < 4000
    assert not any(q.released_on.isoformat() in prompt or str(q.released_on.year) in prompt for q in QUESTIONS)
