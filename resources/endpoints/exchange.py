"""Requests to a model server, tried again within bounds: the one patience that chats and scores share.

Here belong the wire, the key, waits, and the judgement of a refusal: the account's, the server's, or the request's.
What a request asks and how a reply is read belong to ``chat`` and ``completions``.
"""

from __future__ import annotations

import json
import logging
import math
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from resources.endpoints import addresses
from resources.endpoints.chat_payload import error_text
from resources.endpoints.keys import ApiKey
from resources.network.http import TRANSIENT_STATUSES, retry_after_seconds
from resources.network.redaction import LogGuard
from resources.network.wire import Routes

Result = TypeVar("Result")

# This module's messages; the caller decides where they go.
_LOG = logging.getLogger("strandline.endpoints")
# How servers say that the account has nothing left, so that waiting does not help.
_USED_UP = re.compile(
    r"insufficient_quota|billing_hard_limit|billing_not_active|out of credits|credit balance is too low|"
    r"insufficient (?:balance|credits?|funds)|limit: ?0\b",
    re.IGNORECASE,
)
# Servers say this of a spent account and of a rate limit; only without a word of coming back is it the first.
_MAY_BE_USED_UP = re.compile(r"exceeded your (?:current|monthly) (?:quota|spend|usage)", re.IGNORECASE)
# When a message says to try again, with the number and the unit where it gives them.
_COME_BACK = re.compile(r"(?:retry|try again) (?:in|after)(?: (\d+(?:\.\d+)?) ?(ms|s|m)?)?", re.IGNORECASE)
# How servers say that the model is still being loaded, so that waiting helps.
_LOADING = re.compile(
    r"load(?:ing|ed)? (?:the )?model|"
    r"model\b.{0,60}\b(?:is|are|being|still) (?:\w+ )?(?:loading|loaded|starting|warming)|"
    r"model loading|warming up|cold.?start|currently loading|swapping|is starting|not (?:yet )?ready|initiali[sz]ing",
    re.IGNORECASE | re.DOTALL,
)
# How servers say that the fault is theirs and passes.
_OUTAGE = re.compile(
    r"overload|try again|temporar\w+ (?:unavailable|error|failure)|upstream|timed? ?out|internal (?:server )?error|"
    r"(?:service|server) (?:is )?(?:currently |temporarily )?(?:unavailable|busy|down)|bad gateway|rate.?limit|"
    r"too many requests|(?:at|over|no|insufficient) capacity|connection (?:error|reset|refused|closed)|"
    r"maintenance|no (?:healthy|available) (?:upstream|server|worker|backend)|experiencing (?:issues|high)",
    re.IGNORECASE,
)
# How servers say that a filter refused the content of a prompt.
_PROMPT_REFUSED = re.compile(
    r"content[ _-]?(?:filter|policy|management|moderation|safety|exists risk|violat)|content_?filtering|"
    r"moderat(?:ion|ed)|flagged|responsible ?ai|data_inspection_failed|inappropriate content|high.risk|"
    r"safety (?:system|filter|polic|reason|setting)|usage polic|prohibited_content|guardrail|invalid_prompt|"
    r"sensitive (?:content|words?|information)|unsafe content|harmful content|blockreason",
    re.IGNORECASE,
)
_SHOWN = 300
"""Characters of a server's sentence that a message repeats: enough for the longest that say what is wrong."""
_LONGEST_OWN_WAIT = 60.0
"""Seconds: the waits that we choose ourselves grow to a minute, so that an outage's end is noticed soon."""
_LONGEST_LOADING_WAIT = 15.0
"""Seconds between two looks at a server that loads a model: loading takes minutes, and a look costs nothing."""


class EndpointError(Exception):
    """An exchange that failed for good; the message never holds the key."""


class QuotaError(EndpointError):
    """The account has nothing left to spend: asking again is no use until billing is settled."""


class AccessError(EndpointError):
    """The endpoint refuses us: no key, a wrong key, or no right to the model."""


class UnknownRequestError(EndpointError):
    """The server does not know the request, or not in this form."""


class ServerFaultError(EndpointError):
    """The server fails whenever it is asked this: some do so for a request that they should have refused."""


@dataclass(frozen=True)
class Patience:
    """How long an exchange is tried: attempts, and the longest single wait that a server may ask for, in seconds.

    ``loading`` are the seconds granted besides to a server that says that it is still loading the model.
    """

    attempts: int = 6
    first_wait: float = 1.0
    longest_wait: float = 600.0
    timeout: float = 300.0
    loading: float = 900.0


@dataclass(frozen=True)
class Again:
    """An attempt that is worth another one: a sentence why, the wait that was asked for, and the error it ends in."""

    why: str
    asked: float = 0.0
    is_loading: bool = False
    error: type[EndpointError] = EndpointError


class Endpoint:
    """One server: sends requests with the key, judges refusals, and waits.

    Args:
        address: as a user has it; see ``addresses``.
        key: sent as a bearer token, or in the header that the server names; None sends none.
        patience: bounds of retrying.
        transport, sleep, clock: stand-ins for tests.
    """

    def __init__(
        self,
        address: str,
        key: ApiKey | None = None,
        patience: Patience | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.requests = 0
        self._bases = list(addresses.bases(address))
        self._header = addresses.API_KEY if addresses.is_azure(address) else addresses.BEARER
        self._key, self._patience, self._sleep, self._clock = key, patience or Patience(), sleep, clock
        self._jitter = random.Random(0)
        timeout = httpx.Timeout(self._patience.timeout, connect=20.0)
        self._http = httpx.Client(transport=transport or Routes(), timeout=timeout, trust_env=False)
        self._guard = LogGuard(key.redact) if key else None

    def close(self) -> None:
        """Close the connections."""
        self._http.close()
        if self._guard:
            self._guard.close()

    @property
    def host(self) -> str:
        """The server's name, for messages."""
        return urlsplit(self._bases[0]).netloc

    @property
    def root(self) -> str:
        """The address above the API's version, where servers keep calls of their own."""
        return self._bases[0].rstrip("/").removesuffix("/v1")

    def shown(self, text: str) -> str:
        """A server's words as a message may repeat them: without the key, and not too many."""
        return str(self.redacted(text))[:_SHOWN]

    def redacted(self, value: Any) -> Any:
        """A text, or all texts of a record, without the key."""
        return self._key.redact_all(value) if self._key else value

    def post(self, path: str, body: Mapping[str, Any], base: str | None = None) -> httpx.Response | Again:
        """One request. Addresses and headers that the server does not know give way to the next that it may know."""
        while True:
            response = self._sent(addresses.call(base or self._bases[0], path), body)
            if isinstance(response, Again):
                return response
            if response.is_success:
                self._bases = self._bases[:1] if base is None else self._bases
            elif not (base is None and self._is_elsewhere(response)) and not self._wants_another_header(response):
                return response
            else:
                continue
            return response

    def persist(self, attempt: Callable[[], Result | Again]) -> Result:
        """The first result of these attempts, with waits between them; EndpointError where there is none in time."""
        tried, loading, looks = 0, 0.0, 0
        while True:
            outcome = attempt()
            if not isinstance(outcome, Again):
                return outcome
            if outcome.asked > self._patience.longest_wait:
                raise EndpointError(
                    f"{self.host} asks to wait {outcome.asked:.0f} s, longer than we do ({outcome.why})"
                )
            if outcome.is_loading and loading < self._patience.loading:
                wait = max(outcome.asked, min(self._patience.first_wait * 2**looks, _LONGEST_LOADING_WAIT))
                loading, looks = loading + max(wait, 1.0), min(looks + 1, 30)
            else:
                tried += 1
                if tried >= self._patience.attempts:
                    raise outcome.error(f"{self.host} gave no answer in {tried} attempts; the last: {outcome.why}")
                wait = max(outcome.asked, self._own_wait(tried - 1))
            _LOG.warning("%s; trying again in %.1f s", outcome.why, wait)
            self._sleep(wait)

    def judged(self, response: httpx.Response, about: str) -> Again:
        """Why a refusal may pass by itself; raises for what will not.

        Raises:
            QuotaError: the account has nothing left.
            AccessError: no right to what the request is about.
            UnknownRequestError: any other refusal for good.
        """
        text, status = error_text(response.content), response.status_code
        told = f"{status} {self.shown(text)}".strip()
        asked = self._asked_wait(response, text)
        if status == 402 or (status in (403, 429) and _is_used_up(response, text)):
            raise QuotaError(f"the account's quota is used up; see the provider's billing page ({told})")
        if status == 401 or (status == 403 and not asked):
            raise AccessError(f"the endpoint refuses access to {about} ({told})")
        is_loading = status != 429 and (status == 502 or bool(_LOADING.search(text)))
        passes = status in TRANSIENT_STATUSES or (status >= 500 and status != 501) or status == 403
        if not passes and not is_loading and not is_outage(text):
            raise UnknownRequestError(f"{self.host} refuses the request ({told})")
        return Again(
            f"{self.host} answered {told}", asked, is_loading, ServerFaultError if status == 500 else EndpointError
        )

    def _sent(self, url: str, body: Mapping[str, Any]) -> httpx.Response | Again:
        self.requests += 1
        headers = {"Content-Type": "application/json", **(self._key.headers(self._header) if self._key else {})}
        try:
            return self._http.post(url, content=json.dumps(body).encode(), headers=headers)
        except httpx.RequestError as error:
            return Again(f"the connection failed ({type(error).__name__})")

    def _is_elsewhere(self, response: httpx.Response) -> bool:
        """Whether this address is not the server's but another may be, which then is the one that is asked."""
        is_known = "model" in error_text(response.content).lower()
        if response.status_code not in (404, 405) or len(self._bases) < 2 or is_known:
            return False
        self._bases = self._bases[1:]
        return True

    def _wants_another_header(self, response: httpx.Response) -> bool:
        """Whether a refusal names the header in which it wants the key; it is then sent there."""
        if self._key is None or response.status_code != 401 or self._header != addresses.BEARER:
            return False
        said = error_text(response.content) + " " + response.headers.get("www-authenticate", "")
        self._header = addresses.header_named(said) or self._header
        return self._header != addresses.BEARER

    def _own_wait(self, n: int) -> float:
        return float(min(self._patience.first_wait * 2**n, _LONGEST_OWN_WAIT)) * (1 + 0.25 * self._jitter.random())

    def _asked_wait(self, response: httpx.Response, text: str) -> float:
        """Seconds that the server asks for in whatever place, the longest of them: a lower bound; 0 for none."""
        header = retry_after_seconds(response.headers.get("retry-after"), self._clock()) or 0.0
        milliseconds = _number(response.headers.get("retry-after-ms", "")) / 1000
        match = _COME_BACK.search(text)
        said = _number(match[1] or "") * {"ms": 0.001, "m": 60.0}.get((match[2] or "s").lower(), 1.0) if match else 0.0
        return max(header, milliseconds, said)


def is_outage(text: str) -> bool:
    """Whether a server's words speak of trouble of its own that may pass."""
    return bool(_OUTAGE.search(text) or _LOADING.search(text))


def refuses_prompt(status: int, text: str) -> bool:
    """Whether a refusal is of what one prompt says (a content filter), which is the model's silence and no outage."""
    return status == 451 or (
        400 <= status < 500 and status not in (401, 402, 429) and bool(_PROMPT_REFUSED.search(text))
    )


def _is_used_up(response: httpx.Response, text: str) -> bool:
    """Whether a refusal is about money. Some servers word their rate limits alike, but say when to come back."""
    comes_back = "retry-after" in response.headers or _COME_BACK.search(text)
    return bool(_USED_UP.search(text) or (_MAY_BE_USED_UP.search(text) and not comes_back))


def _number(text: str) -> float:
    """A finite number of at least 0; 0 for everything else."""
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) and value > 0 else 0.0
