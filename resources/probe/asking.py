"""Who puts a round of questions to a model: a chat endpoint, or token probabilities read from weights that run here.

Both give one answer a question, in order. What could not be had is missing with its reason, never UNKNOWN. Choosing
questions and storing rounds belong to the probe.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from resources.endpoints.chat import ChatClient, Exchange, is_trouble
from resources.endpoints.exchange import EndpointError, Patience
from resources.endpoints.keys import ApiKey
from strandline.models import ModelSpec
from strandline.probe import LABELS, Answer, Question, RoundReply
from strandline.probe.likelihood import (
    Choice,
    Floats,
    choices,
    label_mass,
    likelihood_status,
    prompts_record,
    read_probabilities,
)
from strandline.probe.questions import Message, chat_messages, likelihood_messages
from strandline.probe.replies import ParsedReply, read_reply
from strandline.probe.templates import PromptError
from strandline.scoring.language_model import LanguageModel

LARGEST_BUDGET = 16_384
"""Tokens: twice doubled from twice the usual 2,048; more is a model that does not come to an answer."""
_GROWS = ("empty", "truncated")
"""What a larger token budget may mend: a model that spent it on thoughts."""
_KEPT_CHARACTERS = 4_000
"""Characters of an unusable reply that are kept beside its round: enough to see what it was."""
_WORDS_PER_TOKEN_AT_MOST = 2.0
"""No tokenizer that we know makes fewer than one token of two English words; a smaller count is of a cut prompt."""
# The reason given for a run that stops at an outage.
_OUTAGE = "the endpoint sends replies without a word and does not answer anything else either: an outage"


class Asker(Protocol):
    """Puts one round's questions to a model."""

    def ask(self, questions: Sequence[Question]) -> RoundReply:
        """One answer a question, in order; status 'error' where the exchange itself failed and nothing was asked."""

    def close(self) -> None:
        """Let go of connections or weights."""


class Completes(Protocol):
    """What brings back one completion: an endpoint's client, or weights that run here."""

    def complete(self, messages: Sequence[Mapping[str, str]], n_questions: int, budget: int) -> Exchange:
        """One completion of these messages; EndpointError where there is none."""

    def is_alive(self, budget: int) -> bool:
        """Whether anything is said at all to what nobody declines: tells a model's silence from an outage."""

    def close(self) -> None:
        """Let go of what it holds."""


class ChatAsker:
    """Asks a round as one JSON exchange.

    A reply without a single usable answer is asked for again: twice with a doubled token budget where it was empty or
    cut (a model that spends its budget thinking), once where it was declined or unreadable. A reply with any answer is
    kept as it is, so that no answered question is ever asked again. A reply in which nothing shows that a model ran, or
    that speaks of an outage, counts as the model's only where it answers something else; otherwise the exchange failed.
    """

    def __init__(self, client: Completes, *, budget: int = 2048, cost_per_million_tokens: float | None = None) -> None:
        self._client, self._budget, self._cost = client, budget, cost_per_million_tokens

    def ask(self, questions: Sequence[Question]) -> RoundReply:
        """See Asker. ``usage`` counts every attempt; unusable replies are kept in it with their attempt number."""
        messages = chat_messages(questions)
        used = _Usage(self._cost)
        budget = self._budget
        for attempt in range(1, 4):
            try:
                exchange = self._client.complete(messages, len(questions), budget)
            except EndpointError as error:
                return _failed(questions, messages, used, str(error))
            used.add(exchange)
            done = exchange.completion
            parsed = read_reply(done.content, len(questions), done.finish_reason, done.refusal)
            if parsed.n_answered or attempt == 3 or (parsed.status not in _GROWS and attempt == 2):
                is_doubtful = not parsed.n_answered and (done.is_silent or is_trouble(done.content))
                if is_doubtful and not self._client.is_alive(budget):
                    return _failed(questions, messages, used, _OUTAGE)
                return _reply(exchange, parsed, used)
            used.set_aside(attempt, parsed.status, done.content or done.reasoning or done.refusal or "")
            budget = min(2 * budget, LARGEST_BUDGET) if parsed.status in _GROWS else budget
        raise AssertionError("the third attempt returns")

    def close(self) -> None:
        """Close the client."""
        self._client.close()


class LikelihoodAsker:
    """Reads P(YES), P(NO) and P(UNKNOWN) of every question from token probabilities; nothing is generated.

    All questions of a round share their prompt's beginning, which is computed once. ``reply_text`` holds the labels'
    log-probabilities as JSON, ``usage`` the tokens computed and saved and how much probability the labels had at all.
    """

    def __init__(self, language_model: LanguageModel, release: Callable[[], None] = lambda: None) -> None:
        self._lm, self._release = language_model, release

    def ask(self, questions: Sequence[Question]) -> RoundReply:
        """See Asker. An answer whose likelihoods are not finite is missing."""
        started = time.monotonic()
        try:
            asked = choices(self._lm.tokenizer, questions)
        except PromptError as error:
            return _failed(questions, _likelihood_record(questions), _Usage(None), f"{self._lm.name}: {error}")
        scores, tokens = _label_scores(self._lm, asked)
        answers = tuple(read_probabilities(scores))
        missing = sum(a.answer is None for a in answers)
        numbers = tokens | {"completion_tokens": 0, "attempts": 1, "seconds": round(time.monotonic() - started, 3)}
        facts = {"ask": "likelihood", "dtype": self._lm.dtype, "device": self._lm.device, "revision": self._lm.revision}
        mass = label_mass(scores)
        prompts = prompts_record(self._lm.tokenizer, questions)
        usage = numbers | {"label_mass": mass, "parameters": facts, "prompts": prompts}
        status, reason = likelihood_status(missing, len(answers), mass)
        return RoundReply(answers, _likelihood_record(questions), _score_text(scores), usage, status, reason)

    def close(self) -> None:
        """Let go of the weights."""
        self._release()


def open_asker(spec: ModelSpec, patience: Patience | None = None, negotiated: Mapping[str, Any] | None = None) -> Asker:
    """The asker of a listed model, as its entry says: an endpoint, or weights that are loaded here.

    ``negotiated`` are the parameters of the run's last round, with which an endpoint is asked on.

    Raises MissingKeyError where the variable that should hold the endpoint's key is empty, ModelLoadError where the
    weights cannot be had.
    """
    if spec.backend == "openai":
        return chat_asker(spec, patience, negotiated)
    from resources.models.local_chat import LocalChat
    from resources.models.weights import LanguageModels

    models = LanguageModels()
    language_model = models.load(spec)
    if spec.ask == "likelihood":
        return LikelihoodAsker(language_model, models.release)
    return ChatAsker(LocalChat(language_model, models.release), budget=spec.max_response_tokens)


def chat_asker(
    spec: ModelSpec, patience: Patience | None = None, negotiated: Mapping[str, Any] | None = None
) -> ChatAsker:
    """The asker of a listed endpoint; MissingKeyError where its key's variable is empty."""
    key = ApiKey.from_environment(spec.api_key_env) if spec.api_key_env else None
    client = ChatClient(spec.source, spec.served_name or spec.name, key, patience=patience, negotiated=negotiated)
    return ChatAsker(client, budget=spec.max_response_tokens, cost_per_million_tokens=spec.cost_per_million_tokens)


def _label_scores(language_model: LanguageModel, asked: Sequence[Choice]) -> tuple[Floats, dict[str, int]]:
    """Log-probability of every label after its question, shape (questions, labels), NaN where not finite."""
    from strandline.scoring.engine import Scorer
    from strandline.scoring.prefix_tree import Request

    wanted = [[[Request((*c.prompt, *ids), len(c.prompt)) for ids in label] for label in c.labels] for c in asked]
    requests = [request for row in wanted for label in row for request in label]
    done = {s.request: s for s in Scorer(language_model).sequences(requests)}
    scores = np.array([[_log_sum([done[r].sum_nll for r in label]) for label in row] for row in wanted])
    computed = sum(s.computed for s in done.values())
    return scores, {"prompt_tokens": computed, "saved_tokens": sum(s.saved for s in done.values())}


def _log_sum(losses: Sequence[float | None]) -> float:
    """Log-probability of a label from the losses of its spellings; NaN where one of them is not finite."""
    known = [-loss for loss in losses if loss is not None]
    return float(np.logaddexp.reduce(known)) if len(known) == len(losses) else float("nan")


def _likelihood_record(questions: Sequence[Question]) -> tuple[Message, ...]:
    """The prompts of a round as messages: what all share once, then each question's own turn."""
    prompts = [likelihood_messages(question) for question in questions]
    return (*prompts[0][:-1], *(prompt[-1] for prompt in prompts))


def _score_text(scores: Floats) -> str:
    rows = [
        {label: None if np.isnan(v) else round(float(v), 6) for label, v in zip(LABELS, row, strict=True)}
        for row in scores
    ]
    return json.dumps(rows)


class _Usage:
    """Tokens, cost, requests and seconds over the attempts of one round."""

    def __init__(self, cost_per_million_tokens: float | None) -> None:
        self._price = cost_per_million_tokens
        self.numbers: dict[str, Any] = {
            "prompt_tokens": 0,
            "completion_tokens": 0,
            "attempts": 0,
            "requests": 0,
            "seconds": 0.0,
        }
        self.unusable: list[dict[str, Any]] = []
        self.parameters: Mapping[str, Any] = {}
        self.served: Mapping[str, str] = {}

    def add(self, exchange: Exchange) -> None:
        done = exchange.completion
        self.numbers["prompt_tokens"] += done.prompt_tokens or 0
        self.numbers["completion_tokens"] += done.completion_tokens or 0
        self.numbers["attempts"] += 1
        self.numbers["requests"] += exchange.requests
        self.numbers["seconds"] = round(self.numbers["seconds"] + exchange.seconds, 3)
        self.parameters, self.served = exchange.parameters, done.served

    def set_aside(self, attempt: int, status: str, text: str) -> None:
        self.unusable.append({"attempt": attempt, "status": status, "reply": text[:_KEPT_CHARACTERS]})

    def record(self) -> dict[str, Any]:
        tokens = self.numbers["prompt_tokens"] + self.numbers["completion_tokens"]
        cost = {} if self._price is None else {"cost": tokens * self._price / 1e6}
        notes = {"parameters": dict(self.parameters), "served": dict(self.served), "unusable_replies": self.unusable}
        return self.numbers | cost | {k: v for k, v in notes.items() if v}


def _reply(exchange: Exchange, parsed: ParsedReply, used: _Usage) -> RoundReply:
    cut = _cut_prompt(exchange)
    answers = parsed.answers if cut is None else tuple(_flagged(a) for a in parsed.answers)
    status = parsed.status if cut is None or not parsed.n_answered else "prompt_truncated"
    reason = "; ".join(r for r in (cut, parsed.reason) if r) or None
    text = exchange.completion.content
    return RoundReply(answers, exchange.messages, text, used.record(), status, reason)


def _flagged(answer: Answer) -> Answer:
    return answer if answer.answer is None else Answer(answer.index, answer.answer, answer.p_yes, "prompt_truncated")


def _cut_prompt(exchange: Exchange) -> str | None:
    """A sentence where the server counted far fewer prompt tokens than the prompt has words; None otherwise."""
    counted = exchange.completion.prompt_tokens
    words = sum(len(message["content"].split()) for message in exchange.messages)
    if counted is None or counted == 0 or counted * _WORDS_PER_TOKEN_AT_MOST >= words:
        return None
    return f"the server counted {counted} prompt tokens for {words} words: it has probably cut the prompt"


def _failed(questions: Sequence[Question], messages: Sequence[Mapping[str, str]], used: _Usage, why: str) -> RoundReply:
    answers = tuple(Answer(i, None, parse_status="error") for i in range(len(questions)))
    return RoundReply(answers, tuple(messages), None, used.record(), "error", why)
