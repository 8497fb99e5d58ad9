"""One exchange with an OpenAI-compatible chat endpoint: negotiated, retried within bounds, and never telling the key.

Here belong negotiation and the question whose fault a refusal is. Waiting belongs to ``exchange``, how a round is
worded and read to the probe, the asking of rounds to ``asking``.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import httpx

from resources.endpoints.chat_dialect import Dialect
from resources.endpoints.chat_payload import DECLINED, Completion, UnreadableReplyError, error_text, parse_completion
from resources.endpoints.exchange import (
    AccessError,
    Again,
    Endpoint,
    EndpointError,
    Patience,
    QuotaError,
    UnknownRequestError,
    is_outage,
    refuses_prompt,
)
from resources.endpoints.keys import ApiKey

__all__ = ["AccessError", "ChatClient", "EndpointError", "Exchange", "Patience", "QuotaError"]

# This module's messages; the caller decides where they go.
_LOG = logging.getLogger("strandline.chat")
# The call's path below the base address, as in OpenAI's API.
_PATH = "/chat/completions"
_CONTROL = ({"role": "system", "content": "Answer in one word."}, {"role": "user", "content": "Reply YES."})
"""What no model and no filter has a reason to refuse: where it is answered, the trouble was with the prompt."""
_FAULTS_BEFORE_LOOSER = 3
"""Answers of 500 in a row after which a weaker reply format is tried: two are often an outage of seconds."""
# How servers say that a prompt does not fit the context.
_TOO_LONG = re.compile(
    r"context (?:length|window|size)|too (?:long|large|many tokens)|maximum.{0,20}tokens", re.IGNORECASE
)


@dataclass(frozen=True)
class Exchange:
    """A completion with the messages and parameters that were really sent, and how many requests it took."""

    completion: Completion
    messages: tuple[Mapping[str, str], ...]
    parameters: Mapping[str, Any]
    requests: int
    seconds: float


@dataclass
class _Talk:
    """One exchange under way: what is asked, in which dialect so far, and whether that dialect is a guess."""

    messages: Sequence[Mapping[str, str]]
    n_questions: int
    budget: int
    dialect: Dialect
    is_guess: bool = False
    faults: int = 0

    def body(self, model: str) -> dict[str, Any]:
        """The request as it stands."""
        return self.dialect.payload(model, self.messages, self.n_questions, self.budget)


class ChatClient:
    """Speaks to one endpoint about one model. What the endpoint refuses is learned once it replies without it.

    Args:
        base_url: the address before ``/chat/completions``, or one of those that ``addresses`` makes it from.
        model: the name under which the endpoint serves the model.
        key: sent as a bearer token, or in the header that the server names; None sends none.
        patience: bounds of retrying.
        negotiated: parameters of an earlier round with this endpoint and model, so that nothing is negotiated twice.
        transport, sleep, clock: stand-ins for tests.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        key: ApiKey | None = None,
        *,
        patience: Patience | None = None,
        negotiated: Mapping[str, Any] | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.model, self.dialect = model, Dialect.from_record(negotiated or {})
        self._endpoint = Endpoint(base_url, key, patience, transport, sleep, clock)
        self._clock = clock

    def __enter__(self) -> ChatClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def complete(self, messages: Sequence[Mapping[str, str]], n_questions: int, budget: int) -> Exchange:
        """Ask once and bring back what the model said.

        Args:
            messages: system and user message.
            n_questions: how many questions they number, for the reply's schema.
            budget: the most tokens that the reply may have.

        A prompt that a filter keeps from the model, or that alone is refused while others are answered, comes back as a
        completion that was declined.

        Raises:
            QuotaError, AccessError: at once.
            EndpointError: any other refusal for good, or no completion within the patience.
        """
        started, before = self._clock(), self._endpoint.requests
        talk = _Talk(messages, n_questions, budget, self.dialect)
        completion = self._endpoint.persist(lambda: self._attempt(talk))
        if talk.dialect != self.dialect and not (talk.is_guess and self._answers_control(self.dialect, budget)):
            self.dialect = talk.dialect
        sent, record = talk.dialect.messages(messages), talk.dialect.record(budget)
        return Exchange(completion, sent, record, self._endpoint.requests - before, self._clock() - started)

    def is_alive(self, budget: int = 2048) -> bool:
        """Whether the model says anything at all when asked for one word: tells its silence from an outage."""
        return self._answers_control(self.dialect, budget)

    def _attempt(self, talk: _Talk) -> Completion | Again:
        """One reply to this talk, its dialect changed as long as refusals say what to change."""
        while True:
            response = self._endpoint.post(_PATH, talk.body(self.model))
            if isinstance(response, Again):
                return response
            if response.is_success:
                return self._completion(response)
            text, status = error_text(response.content), response.status_code
            if refuses_prompt(status, text) and not talk.dialect.is_named(text):
                return self._declined(text)
            changed = talk.dialect.after_refusal(status, text, talk.budget)
            if changed is None or (is_outage(text) and not talk.dialect.is_named(text)):
                return self._lasting(talk, response, text)
            _LOG.info("the endpoint refused %s: %s", status, self._endpoint.shown(text))
            talk.is_guess = talk.is_guess or not talk.dialect.is_named(text)
            talk.dialect = changed

    def _lasting(self, talk: _Talk, response: httpx.Response, text: str) -> Completion | Again:
        """What a refusal that names nothing to change means: trouble that may pass, this prompt's, or the request's."""
        try:
            again = self._endpoint.judged(response, self.model)
        except UnknownRequestError:
            is_about_all = response.status_code in (404, 405) or _TOO_LONG.search(text)
            if is_about_all or not self._answers_control(self.dialect, talk.budget):
                raise
            talk.dialect, talk.is_guess = self.dialect, False
            return self._declined(text)
        talk.faults = talk.faults + 1 if response.status_code == 500 else 0
        if talk.faults >= _FAULTS_BEFORE_LOOSER and talk.dialect.looser() != talk.dialect:
            talk.dialect, talk.is_guess = talk.dialect.looser(), True
        return again

    def _answers_control(self, dialect: Dialect, budget: int) -> bool:
        """Whether a word that nobody refuses is answered in this dialect, now and at the first attempt."""
        response = self._endpoint.post(_PATH, dialect.payload(self.model, _CONTROL, 1, budget))
        if isinstance(response, Again) or not response.is_success:
            return False
        completion = self._completion(response)
        return isinstance(completion, Completion) and not completion.is_silent and not is_trouble(completion.content)

    def _completion(self, response: httpx.Response) -> Completion | Again:
        try:
            found = parse_completion(response.headers.get("content-type", ""), response.content)
        except UnreadableReplyError as error:
            return Again(self._endpoint.shown(str(error)))
        clean = {field.name: self._endpoint.redacted(getattr(found, field.name)) for field in fields(found)}
        return replace(found, **clean)

    def _declined(self, text: str) -> Completion:
        return Completion(None, finish_reason=DECLINED, refusal=self._endpoint.shown(text))


def is_trouble(content: str | None) -> bool:
    """Whether a reply's text is a gateway's word of an outage: short, and without any answer."""
    return bool(content) and len(str(content)) < 300 and is_outage(str(content)) and "{" not in str(content)
