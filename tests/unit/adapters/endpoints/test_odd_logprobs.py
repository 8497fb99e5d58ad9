"""Prompt log-probabilities that are not what they seem: a text's own fault is a row, the server's ends the run."""

import json
import math
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from resources.endpoints.completions import CompletionsClient, RemoteRefusedError, RemoteScorer
from resources.endpoints.exchange import EndpointError, Patience
from resources.endpoints.prompt_logprobs import PromptLogprobs, UnusableError, first_fault, forms, parse
from strandline.models import ModelSpec
from strandline.scoring.prefix_tree import Request
from tests.fakes.completions_server import logprob, word_id, words

TEXT = "The old harbour at the mouth of the river was dredged twice"
BAD = "bad " + TEXT


class Echo:
    """A server without tokenization that echoes prompts, shows tokens in its own way, and may spoil chosen texts."""

    def __init__(self, *, bos: bool = True, generates: bool = False, spoil: Callable[..., Any] | None = None) -> None:
        self.bos, self.generates, self.spoil = bos, generates, spoil
        self.context = 10_000
        self.prompts: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        if request.url.path != "/v1/completions":
            return httpx.Response(404, json={"detail": "Not Found"})
        if self.generates and body["max_tokens"] == 0:
            return httpx.Response(400, json={"error": "max_tokens must be at least 1"})
        return self.completion(body["prompt"])

    def completion(self, prompt: str) -> httpx.Response:
        self.prompts.append(prompt)
        cut = words(prompt) if prompt.isascii() else list(prompt)
        ids = [1] * self.bos + [word_id(word) for word in cut]
        if len(ids) > self.context:
            said = f"This model's maximum context length is {self.context} tokens, you requested {len(ids)}"
            return httpx.Response(400, json={"error": {"message": said}})
        values: list[Any] = [None, *(logprob(ids[: n + 1]) for n in range(1, len(ids)))]
        shown = ["<s>"] * self.bos + ["\ufffd" if n % 3 else f"Ġ{word.strip()}" for n, word in enumerate(cut)]
        if self.spoil and prompt.startswith("bad"):
            values = self.spoil(values)
        if isinstance(values, httpx.Response):
            return values
        usage = {"prompt_tokens": len(ids), "completion_tokens": int(self.generates)}
        values, shown = values + [-0.5] * self.generates, shown + ["!"] * self.generates
        held = {"tokens": shown, "token_logprobs": values}
        return httpx.Response(200, json={"choices": [{"logprobs": held}], "usage": usage})

    def scorer(self, context: int | None = None) -> RemoteScorer:
        transport = httpx.MockTransport(self)
        client = CompletionsClient("http://h/v1", None, Patience(attempts=2), transport, sleep=lambda _: None)
        return RemoteScorer(ModelSpec("house/big", "openai", "http://h/v1", context_length=context), client)


def expected(text: str, bos: bool, n: int) -> list[float]:
    ids = [1] * bos + [word_id(word) for word in words(text)][:n]
    return [logprob(ids[: i + 1]) for i in range(1, len(ids))]


@pytest.mark.parametrize("bos", [True, False])
@pytest.mark.parametrize("generates", [True, False])
def test_positions_come_from_counts_and_never_from_shown_text(bos: bool, generates: bool) -> None:
    scorer = Echo(bos=bos, generates=generates).scorer()
    for text, n in ((TEXT, 50), (TEXT, 6)):
        (score,) = scorer.texts({"a": text}, n)
        values = expected(text, bos, n)
        assert score.n_tokens == len(values)
        assert score.mean_nll == pytest.approx(-math.fsum(values) / len(values))


@pytest.mark.parametrize(
    "stand_in", [-1e4, -9999.5, -9999.0, -1000.0, -999.0, -100.0, -1e30, -3.4e38, None, "-Infinity", "nan", True]
)
def test_a_stand_in_is_a_row_with_its_reason_and_the_others_go_on(stand_in: object) -> None:
    scorer = Echo(spoil=lambda values: [*values[:-1], stand_in]).scorer()
    bad, good = scorer.texts({"a": BAD, "b": TEXT}, 50)
    assert (bad.status, bad.mean_nll, good.status) == ("nonfinite", None, "ok")
    assert "house/big at h" in str(bad.reason)
    assert next(iter(scorer.texts({"a": TEXT}, 50))).mean_nll == good.mean_nll


@pytest.mark.parametrize(
    "spoil",
    [
        lambda values: [None, *[0.0] * (len(values) - 1)],
        lambda values: [None, 0.0, 0.0, *values[3:]],
        lambda values: values[: len(values) // 2] + [0.0] * (len(values) - len(values) // 2),
        lambda values: values[:-1],
        lambda values: httpx.Response(500, json={"error": "oops"}),
        lambda values: httpx.Response(400, json={"error": "I cannot"}),
        lambda values: httpx.Response(200, json={"choices": []}),
        lambda values: httpx.Response(200, json={"error": "oops"}),
    ],
)
def test_every_fault_of_one_text_is_that_texts_row(spoil: Callable[..., Any]) -> None:
    bad, good = Echo(spoil=spoil).scorer().texts({"a": BAD, "b": TEXT}, 50)
    assert (bad.status, good.status) == ("nonfinite", "ok")
    assert bad.reason


def test_a_server_that_stops_telling_ends_the_run() -> None:
    server = Echo()
    scorer = server.scorer()
    server.completion = lambda prompt: httpx.Response(200, json={"choices": [{"text": ""}]})  # type: ignore[method-assign]
    with pytest.raises(RemoteRefusedError, match="no longer"):
        list(scorer.texts({"a": TEXT}, 50))
    server.completion = lambda prompt: httpx.Response(500, text="")  # type: ignore[method-assign]
    with pytest.raises(EndpointError, match="500"):
        list(scorer.texts({"a": TEXT}, 50))
    with pytest.raises(EndpointError):
        scorer.batch([Request((1, 2, 3))], 1)


def test_a_text_longer_than_the_context_does_not_end_the_others() -> None:
    server = Echo()
    server.context = 40
    scorer = server.scorer()
    long = " ".join(f"w{n}" for n in range(5000))
    fits, not_known, short = scorer.texts({"a": long, "b": TEXT}, 20), scorer.texts({"c": long}, 38), TEXT
    assert [score.status for score in fits] == ["ok", "ok"]
    (refused,) = not_known
    assert (refused.status, "context_length" in str(refused.reason)) == ("nonfinite", True)
    assert short
    (limited,) = server.scorer(context=20).texts({"d": long}, 512)
    assert (limited.n_tokens, limited.is_context_limited) == (19, True)


def test_dense_scripts_are_not_sent_beyond_the_context() -> None:
    server = Echo()
    server.context = 600
    text = "".join(chr(0x4E00 + n) for n in range(4000))
    (score,) = server.scorer().texts({"a": text}, 512)
    assert (score.status, score.n_tokens) == ("ok", 512)


def fault(*values: float) -> str | None:
    return first_fault(PromptLogprobs((None, *values)), None)


def test_zeros_that_rounding_makes_are_taken_and_others_not() -> None:
    known = [-1.0, -2.0, -0.5]
    assert fault(-1.0, 0.0, -2.0, -0.5) is None
    assert fault(*known * 6, *[0.0] * 15, -1.0) is None
    assert "exactly 0" in str(fault(*known * 6, *[0.0] * 16, -1.0))
    assert "exactly 0" in str(fault(0.0, 0.0, *known))
    assert "exactly 0" in str(fault(0.0, 0.0))
    assert "exactly 0" in str(fault(-1.0, 0.0))
    assert fault(-99.9, -1.0) is None
    assert "-100" in str(fault(-100.0, -1.0))


def test_lengths_are_compared() -> None:
    echo = forms()[0]
    for usage, n in (({"prompt_tokens": 4}, 3), ({"prompt_tokens": 3}, 4), ({}, 3)):
        held = {"token_logprobs": [None, *[-1.0, -2.0, -3.0][: n - 1]], "tokens": ["a"] * (4 if not usage else n)}
        with pytest.raises(UnusableError):
            parse(echo, {"choices": [{"logprobs": held}], "usage": usage}, "a b c")
