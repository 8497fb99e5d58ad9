"""A served model is trusted after a probe, scored by the same definition, and refused by name where it fails."""

import math

import pytest

from resources.endpoints.chat import EndpointError, Patience
from resources.endpoints.completions import CompletionsClient, RemoteRefusedError, RemoteScorer, remote_text_worker
from resources.endpoints.keys import ApiKey
from resources.endpoints.prompt_logprobs import PromptLogprobs, first_fault
from strandline.models import ModelSpec
from strandline.scoring.prefix_tree import Request
from tests.fakes.completions_server import BOS, FAULTS, POISON, CompletionsServer, logprob, word_id, words

TEXT = "The old harbour at the mouth of the river was dredged twice and then left to the tide and the gulls."


def scorer_of(server, key=None):
    spec = ModelSpec("house/big", "openai", server.base_url, served_name="big", context_length=64)
    patience = Patience(attempts=3, first_wait=0.01)
    return RemoteScorer(spec, CompletionsClient(server.base_url, key, patience, sleep=lambda _: None))


def expected(ids, n_before=1):
    return [logprob(ids[: n + 1]) for n in range(n_before, len(ids))]


@pytest.mark.parametrize("form", ["echo", "vllm"])
@pytest.mark.parametrize("tokenizes", [True, False])
@pytest.mark.parametrize("bos", [True, False])
def test_mean_nll_is_that_of_the_first_tokens_after_bos(form, tokenizes, bos):
    with CompletionsServer(form=form, tokenizes=tokenizes, bos=bos) as server:
        (score,) = scorer_of(server).texts({"a": TEXT}, 10)
    ids = [word_id(word) for word in words(TEXT)][:10]
    values = expected([BOS, *ids]) if bos else expected(ids)
    assert score.n_tokens == len(values)
    assert score.mean_nll == pytest.approx(-math.fsum(values) / len(values), rel=1e-12)
    assert score.perplexity == pytest.approx(math.exp(score.mean_nll))
    assert (score.status, score.method, score.dtype) == ("ok", "remote", "served")


@pytest.mark.parametrize("form", ["echo", "vllm"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_server_that_cannot_be_trusted_is_refused_by_name(form, fault):
    with CompletionsServer(form=form, fault=fault) as server, pytest.raises(RemoteRefusedError) as refusal:
        scorer_of(server)
    assert "house/big at 127.0.0.1" in str(refusal.value)
    assert "prompt log-probabilities" in str(refusal.value)


@pytest.mark.parametrize("form", ["echo", "vllm"])
@pytest.mark.parametrize("tokenizes", [True, False])
def test_one_text_that_overflows_is_not_finite_and_the_others_are_scored(form, tokenizes):
    with CompletionsServer(form=form, tokenizes=tokenizes) as server:
        scorer = scorer_of(server)
        before, poisoned, after = scorer.texts({"a": TEXT, "b": f"{TEXT} {POISON}", "c": TEXT[:40]}, 30)
        ids = [BOS, *(word_id(word) for word in words(f"{TEXT} {POISON}"))]
        orderings = scorer.batch([Request(tuple(ids)), Request(tuple(ids[:-1]))], 2)
    assert [score.status for score in (before, poisoned, after)] == ["ok", "nonfinite", "ok"]
    assert (poisoned.mean_nll, poisoned.perplexity) == (None, None)
    assert "house/big at 127.0.0.1" in poisoned.reason
    assert "not finite" in poisoned.reason
    assert [(score.status, score.sum_nll is None) for score in orderings] == [("nonfinite", True), ("ok", False)]


@pytest.mark.parametrize("text", ["", "one"])
def test_texts_without_two_tokens_are_too_short(text):
    for tokenizes in (True, False):
        with CompletionsServer(tokenizes=tokenizes) as server:
            (score,) = scorer_of(server).texts({"a": text}, 10)
        assert (score.status, score.mean_nll, score.perplexity) == ("too_short", None, None)
        assert score.reason


def test_long_texts_are_not_sent_whole_where_the_server_does_not_tokenize():
    long = " ".join(f"word{n}" for n in range(5000))
    with CompletionsServer(tokenizes=False) as server:
        scorer = scorer_of(server)
        before = len(server.requests)
        (score,) = scorer.texts({"a": long}, 20)
        sent = [body["prompt"] for path, body in server.requests[before:] if path.endswith("completions")]
    assert score.n_tokens == 20
    assert max(map(len, sent)) < len(long) / 10


def test_input_never_exceeds_the_context():
    with CompletionsServer() as server:
        (score,) = scorer_of(server).texts({"a": " ".join(["tide"] * 200)}, 512)
    assert score.is_context_limited
    assert score.n_tokens == 63


def test_orderings_are_scored_from_any_token_on():
    with CompletionsServer() as server:
        scorer = scorer_of(server)
        ids = (BOS, *scorer.token_ids([TEXT])[0])
        first, second = scorer.batch([Request(ids), Request(ids, 5)], 4)
    assert first.sum_nll == pytest.approx(-math.fsum(expected(list(ids))))
    assert second.sum_nll == pytest.approx(-math.fsum(expected(list(ids), 5)))


def test_orderings_need_a_server_that_tokenizes():
    with CompletionsServer(tokenizes=False) as server, pytest.raises(RemoteRefusedError, match="tokenize"):
        scorer_of(server).token_ids([TEXT])


def test_passing_failures_are_retried_and_lasting_ones_told():
    with CompletionsServer(failures=[429, 503]) as server:
        (score,) = scorer_of(server).texts({"a": TEXT}, 10)
        assert score.status == "ok"
        server.failures = [500] * 9
        with pytest.raises(EndpointError, match="500"):
            list(scorer_of(server).texts({"a": TEXT}, 10))


def test_the_key_is_sent_and_told_to_nobody():
    with CompletionsServer(key="sk-canary-123456") as server:
        assert scorer_of(server, ApiKey("sk-canary-123456")).dtype == "served"
        with pytest.raises(EndpointError) as refusal:
            scorer_of(server, ApiKey("sk-wrong-654321"))
    assert "sk-wrong-654321" not in str(refusal.value)


def test_the_worker_gives_rows_of_the_scores_table():
    with CompletionsServer() as server:
        work = remote_text_worker(ModelSpec("house/big", "openai", server.base_url, context_length=64))
        (row,) = work({"texts": {"a": TEXT}, "max_tokens": 12})
    assert row["model"] == "house/big"
    assert row["weights_digest"].startswith(server.base_url)
    assert row["status"] == "ok"


def test_faults_are_found_in_the_values_themselves():
    def fault(values):
        return first_fault(PromptLogprobs((None, *values)), len(values) + 1)

    assert fault([-1.0, -2.0, -0.5]) is None
    assert "positive" in fault([-1.0, 0.5])
    assert "-9999" in fault([-1.0, -9999.0])
    assert "no log-probability" in fault([-1.0, None])
    assert "all log-probabilities" in fault([0.0] * 5)
    assert first_fault(PromptLogprobs((None, -1.0)), 3) == "2 log-probabilities for a prompt of 3 tokens"
