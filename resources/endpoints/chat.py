"""One exchange with an OpenAI-compatible chat endpoint: negotiated, retried within bounds, and never telling the key.

Here belong transport, retries and refusals. How a round is worded and read belongs to the probe, the asking of rounds
to ``asking``.
"""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from resources.endpoints.chat_dialect import Dialect
from resources.endpoints.chat_payload import Completion, UnreadableReplyError, error_text, parse_completion
from resources.endpoints.keys import ApiKey
from resources.network.http import TRANSIENT_STATUSES, retry_after_seconds
from resources.network.wire import Routes

_LOG = logging.getLogger("strandline.chat")
_USED_UP = re.compile(
    r"insufficient_quota|billing_hard_limit|billing_not_active|out of credits|credit balance is too low|"
    r"insufficient (?:balance|credits?|funds)|limit: ?0\b",
    re.IGNORECASE,
)
_MAY_BE_USED_UP = re.compile(r"exceeded your (?:current|monthly) (?:quota|spend|usage)", re.IGNORECASE)
_COME_BACK = re.compile(r"(?:retry|try again) (?:in|after)", re.IGNORECASE)
_SHOWN = 300


class EndpointError(Exception):
    """An exchange that failed for good; the message never holds the key."""


class QuotaError(EndpointError):
    """The account has nothing left to spend: asking again is no use until billing is settled."""


class AccessError(EndpointError):
    """The endpoint refuses us: no key, a wrong key, or no right to the model."""


@dataclass(frozen=True)
class Patience:
    """How long an exchange is tried: attempts, and the longest single wait that a server may ask for, in seconds."""

    attempts: int = 6
    first_wait: float = 1.0
    longest_wait: float = 600.0
    timeout: float = 300.0


@dataclass(frozen=True)
class Exchange:
    """A completion with the messages and parameters that were really sent, and how many requests it took."""

    completion: Completion
    messages: tuple[Mapping[str, str], ...]
    parameters: Mapping[str, Any]
    requests: int
    seconds: float


class ChatClient:
    """Speaks to one endpoint about one model. What the endpoint refuses is learned once and kept.

    Args:
        base_url: the address before ``/chat/completions``.
        model: the name under which the endpoint serves the model.
        key: sent as a bearer token; None sends none.
        patience: bounds of retrying.
        transport, sleep, clock: stand-ins for tests.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        key: ApiKey | None = None,
        *,
        patience: Patience | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.model, self.dialect = model, Dialect()
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._key, self._patience, self._sleep, self._clock = key, patience or Patience(), sleep, clock
        self._jitter = random.Random(0)
        self._requests = 0
        timeout = httpx.Timeout(self._patience.timeout, connect=20.0)
        self._http = httpx.Client(transport=transport or Routes(), timeout=timeout, trust_env=False)

    def __enter__(self) -> ChatClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def complete(self, messages: Sequence[Mapping[str, str]], n_questions: int, budget: int) -> Exchange:
        """Ask once and bring back what the model said.

        Args:
            messages: system and user message.
            n_questions: how many questions they number, for the reply's schema.
            budget: the most tokens that the reply may have.

        Raises:
            QuotaError, AccessError: at once.
            EndpointError: any other refusal for good, or no completion within the patience.
        """
        started, before = self._clock(), self._requests
        for attempt in range(self._patience.attempts):
            response = self._send_negotiated(messages, n_questions, budget)
            outcome = self._outcome(response)
            if isinstance(outcome, Completion):
                sent = self.dialect.messages(messages)
                taken = self._requests - before
                return Exchange(outcome, sent, self.dialect.record(budget), taken, self._clock() - started)
            if attempt + 1 < self._patience.attempts:
                self._wait(attempt, response, outcome)
        raise EndpointError(f"no completion in {self._patience.attempts} attempts; the last: {outcome}")

    def _send_negotiated(
        self, messages: Sequence[Mapping[str, str]], n_questions: int, budget: int
    ) -> httpx.Response | httpx.RequestError:
        while True:
            response = self._send(self.dialect.payload(self.model, messages, n_questions, budget))
            if isinstance(response, httpx.RequestError) or response.is_success:
                return response
            text = error_text(response.content)
            changed = self.dialect.after_refusal(response.status_code, text, budget)
            if changed is None:
                return response
            _LOG.info("the endpoint refused %s: %s", response.status_code, self._shown(text))
            self.dialect = changed

    def _send(self, body: Mapping[str, Any]) -> httpx.Response | httpx.RequestError:
        self._requests += 1
        headers = {"Authorization": self._key.header()} if self._key else {}
        try:
            return self._http.post(self._url, json=body, headers=headers)
        except httpx.RequestError as error:
            return error

    def _outcome(self, response: httpx.Response | httpx.RequestError) -> Completion | str:
        """The completion, or a sentence on what may pass by itself; raises for what will not."""
        if isinstance(response, httpx.RequestError):
            return f"the connection failed ({type(response).__name__})"
        if response.is_success:
            return self._completion(response)
        text, status = error_text(response.content), response.status_code
        told = f"{status} {self._shown(text)}".strip()
        if status == 402 or (status in (403, 429) and _is_used_up(response, text)):
            raise QuotaError(f"the account's quota is used up; see the provider's billing page ({told})")
        if status in (401, 403):
            raise AccessError(f"the endpoint refuses access to {self.model} ({told})")
        if status not in TRANSIENT_STATUSES:
            raise EndpointError(f"the endpoint refuses the request ({told})")
        return f"the endpoint answered {told}"

    def _completion(self, response: httpx.Response) -> Completion | str:
        content_type = response.headers.get("content-type", "")
        body = response.content if self._key is None else self._key.redact(response.text).encode()
        try:
            return parse_completion(content_type, body)
        except UnreadableReplyError as error:
            return str(error)

    def _wait(self, attempt: int, response: httpx.Response | httpx.RequestError, why: str) -> None:
        asked = _asked_wait(response, self._clock()) if isinstance(response, httpx.Response) else 0.0
        if asked > self._patience.longest_wait:
            raise EndpointError(f"the endpoint asks to wait {asked:.0f} s, longer than we do ({why})")
        own = min(self._patience.first_wait * 2**attempt, 60.0) * (1 + 0.25 * self._jitter.random())
        _LOG.warning("%s; trying again in %.1f s", why, max(asked, own))
        self._sleep(max(asked, own))

    def _shown(self, text: str) -> str:
        return (self._key.redact(text) if self._key else text)[:_SHOWN]


def _is_used_up(response: httpx.Response, text: str) -> bool:
    """Whether a refusal is about money. Some servers word their rate limits alike, but say when to come back."""
    comes_back = "retry-after" in response.headers or _COME_BACK.search(text)
    return bool(_USED_UP.search(text) or (_MAY_BE_USED_UP.search(text) and not comes_back))


def _asked_wait(response: httpx.Response, now: float) -> float:
    """Seconds that the server asks for, a lower bound; 0 where it asks for none."""
    milliseconds = response.headers.get("retry-after-ms", "")
    if milliseconds.isdigit():
        return int(milliseconds) / 1000
    return retry_after_seconds(response.headers.get("retry-after"), now) or 0.0
