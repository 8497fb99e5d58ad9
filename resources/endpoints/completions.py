"""Scores from models that run elsewhere: any OpenAI-compatible server that returns prompt log-probabilities.

Before anything is trusted, a probe must pass: a log-probability for every token of the prompt, no stand-ins, the same
values when asked again, and values that depend on what stands before and on nothing that comes after. A server that
fails is refused by name. Where the server tokenizes on request (vLLM), prompts are token ids, exactly those that would
be scored here; elsewhere the text is sent and the server's own tokens are counted.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

import httpx

from resources.endpoints.chat import AccessError, EndpointError, Patience
from resources.endpoints.chat_payload import error_text
from resources.endpoints.keys import ApiKey
from resources.endpoints.prompt_logprobs import (
    SAME,
    Form,
    NotFiniteError,
    Prompt,
    PromptLogprobs,
    forms,
    largest_difference,
    parse,
    request_body,
)
from resources.network.http import TRANSIENT_STATUSES, retry_after_seconds
from resources.network.wire import Routes
from strandline.models import ModelSpec
from strandline.models.digests import value_digest
from strandline.scoring.engine import SCORER_VERSION
from strandline.scoring.prefix_tree import Request
from strandline.scoring.scores import SERVED, SequenceScore, TextScore, perplexity, text_score, tokenized, too_short
from strandline.scoring.tokens import MOST_CHARACTERS_PER_TOKEN

_COMMON = "The harbour lies north of the old lighthouse and is open to ships of"
_ENDINGS = (" every kind in summer.", " 4 knots until March; nothing")
_SPARE_TOKENS = 16
_SHOWN = 200


class RemoteRefusedError(RuntimeError):
    """A server that cannot be used for scoring; names the model, the host and what is missing."""


class UnknownRequestError(EndpointError):
    """The server does not know the request, or not in this form."""


class ServerFaultError(EndpointError):
    """The server fails whenever it is asked this: some do so for a request that they should have refused."""


class CompletionsClient:
    """Posts to one server, with retries within bounds and the key in no message.

    Args:
        base_url: the address that ends before ``/completions``.
        key: sent as a bearer token; None sends none.
        patience: bounds of retrying.
        transport, sleep: stand-ins for tests.
    """

    def __init__(
        self,
        base_url: str,
        key: ApiKey | None = None,
        patience: Patience | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._base = base_url.rstrip("/")
        self._key, self._patience, self._sleep = key, patience or Patience(), sleep
        self._jitter = random.Random(0)
        timeout = httpx.Timeout(self._patience.timeout, connect=20.0)
        self._http = httpx.Client(transport=transport or Routes(), timeout=timeout, trust_env=False)

    @property
    def host(self) -> str:
        """The server's name, for messages."""
        return urlsplit(self._base).netloc

    def complete(self, body: Mapping[str, Any]) -> Any:
        """The reply to a completions request. EndpointError where there is none within the patience."""
        return self._post(f"{self._base}/completions", body)

    def tokenize(self, model: str, text: str, *, specials: bool) -> list[int] | None:
        """The server's ids of a text; None where it does not tokenize on request."""
        body = {"model": model, "prompt": text, "add_special_tokens": specials}
        try:
            reply = self._post(f"{self._base.removesuffix('/v1')}/tokenize", body)
        except UnknownRequestError:
            return None
        ids = reply.get("tokens") if isinstance(reply, Mapping) else None
        return ids if isinstance(ids, list) and all(isinstance(i, int) for i in ids) else None

    def _post(self, url: str, body: Mapping[str, Any]) -> Any:
        headers = {"Authorization": self._key.header()} if self._key else {}
        why, kind = "", EndpointError
        for attempt in range(self._patience.attempts):
            asked = 0.0
            try:
                response = self._http.post(url, json=body, headers=headers)
                if response.is_success:
                    return response.json()
                why = self._shown(f"{response.status_code} {error_text(response.content)}")
                if response.status_code in (401, 403):
                    raise AccessError(f"{self.host} refuses access ({why})")
                if response.status_code not in TRANSIENT_STATUSES:
                    raise UnknownRequestError(f"{self.host} refuses the request ({why})")
                asked = retry_after_seconds(response.headers.get("retry-after"), time.time()) or 0.0
                kind = ServerFaultError if response.status_code == 500 else EndpointError
            except httpx.RequestError as error:
                why, kind = f"the connection failed ({type(error).__name__})", EndpointError
            except ValueError:
                why = "the reply is no JSON"
            if asked > self._patience.longest_wait:
                raise EndpointError(f"{self.host} asks to wait {asked:.0f} s, longer than we do ({why})")
            if attempt + 1 < self._patience.attempts:
                own = min(self._patience.first_wait * 2**attempt, 60.0) * (1 + 0.25 * self._jitter.random())
                self._sleep(max(asked, own))
        raise kind(f"{self.host} gave no answer in {self._patience.attempts} attempts; the last: {why}")

    def _shown(self, text: str) -> str:
        return (self._key.redact(text) if self._key else text)[:_SHOWN]


class RemoteScorer:
    """Scores under one served model, after the probe has passed; RemoteRefusedError where it does not.

    ``bos_id`` is known where the server tokenizes on request; ``tokenizes`` says so.
    """

    def __init__(self, spec: ModelSpec, client: CompletionsClient) -> None:
        self._client, self._name = client, spec.served_name or spec.name
        self._label = f"{spec.name} at {client.host}"
        self.context_length = spec.context_length
        self.dtype, self.device = SERVED, client.host
        self.digest = remote_digest(spec)
        bare, special = (client.tokenize(self._name, _COMMON, specials=specials) for specials in (False, True))
        self.tokenizes = bool(bare)
        self.bos_id = special[0] if bare and special and special[1:] == bare else None
        self._form = self._probed()

    def token_ids(self, texts: Sequence[str], max_tokens: int | None = None) -> list[list[int]]:
        """The server's ids of each text, without special tokens; RemoteRefusedError where it tells none."""
        found = [self._client.tokenize(self._name, text, specials=False) for text in texts]
        if any(ids is None for ids in found):
            raise RemoteRefusedError(f"{self._label} does not tokenize on request, which orderings need")
        return [ids[:max_tokens] for ids in found if ids is not None]

    def in_float32(self) -> RemoteScorer:
        """The same scorer: the number format is the server's."""
        return self

    def batch(self, sequences: Sequence[Request], size: int) -> list[SequenceScore]:
        """Scores of sequences of ids, in order; batches are formed by the server."""
        return [self._marked_sequence(request) for request in sequences]

    def texts(self, texts: Mapping[str, str], max_tokens: int) -> Iterator[TextScore]:
        """Scores of texts by their digest."""
        score = self._text_by_ids if self.tokenizes else self._text
        for digest, text in texts.items():
            try:
                yield score(digest, text, max_tokens)
            except NotFiniteError as error:
                yield TextScore(digest, max_tokens, "nonfinite", f"{self._label}: {error}", SERVED, method="remote")

    def _marked_sequence(self, request: Request) -> SequenceScore:
        try:
            return self._sequence(request)
        except NotFiniteError:
            n = len(request.ids)
            return SequenceScore(request, None, "nonfinite", SERVED, "remote", n, 0, n)

    def _sequence(self, request: Request) -> SequenceScore:
        values = self._logprobs(request.ids).logprobs
        total = -sum(value or 0.0 for value in values[request.score_from :])
        n = len(request.ids)
        return SequenceScore(request, total, "ok", SERVED, "remote", n, 0, n)

    def _text_by_ids(self, digest: str, text: str, max_tokens: int) -> TextScore:
        """Score exactly the ids that would be scored here."""
        ids = self._client.tokenize(self._name, text, specials=False) or []
        prepared = tokenized(digest, ids[:max_tokens], max_tokens, self.bos_id, self.context_length)
        if prepared.request is None:
            return too_short(prepared, max_tokens, SERVED, self.bos_id)
        return text_score(prepared, self._sequence(prepared.request), max_tokens, self.bos_id, is_copy=False)

    def _text(self, digest: str, text: str, max_tokens: int) -> TextScore:
        """Score the server's own tokens of a beginning long enough to hold ``max_tokens`` and some to spare."""
        reach = MOST_CHARACTERS_PER_TOKEN * max_tokens
        while True:
            found = self._logprobs(text[:reach]) if text else PromptLogprobs((), ())
            if len(found.logprobs) >= max_tokens + _SPARE_TOKENS or reach >= len(text):
                break
            reach *= 2
        has_bos = _has_bos(found, text)
        values = [value or 0.0 for value in found.logprobs[1 : max_tokens + has_bos]]
        if len(values) + (not has_bos) < 2:
            return TextScore(digest, max_tokens, "too_short", "the text has fewer than two tokens", SERVED, 0)
        mean = -sum(values) / len(values)
        return TextScore(
            text_sha256=digest,
            max_tokens=max_tokens,
            status="ok",
            reason=None,
            dtype=SERVED,
            n_tokens=len(values),
            mean_nll=mean,
            perplexity=perplexity(mean),
            tokens_computed=len(found.logprobs),
            method="remote",
        )

    def _logprobs(self, prompt: Prompt, form: Form | None = None) -> PromptLogprobs:
        chosen = form or self._form
        try:
            return parse(chosen, self._client.complete(request_body(chosen, self._name, prompt)), prompt)
        except NotFiniteError:
            raise
        except ValueError as error:
            raise RemoteRefusedError(f"{self._label}: {error}") from error

    def _probed(self) -> Form:
        """The first form whose values pass every part of the probe."""
        faults = []
        for form in forms():
            try:
                fault = self._fault(form)
            except (RemoteRefusedError, NotFiniteError, UnknownRequestError, ServerFaultError) as error:
                fault = str(error)
            if fault is None:
                return form
            faults.append(f"{form.name}: {fault}")
        raise RemoteRefusedError(f"{self._label} does not return usable prompt log-probabilities ({'; '.join(faults)})")

    def _fault(self, form: Form) -> str | None:
        prompts = [self._prompt(_COMMON + ending) for ending in _ENDINGS]
        first, second = (self._logprobs(prompt, form) for prompt in prompts)
        if (moved := largest_difference(first, self._logprobs(prompts[0], form))) > SAME:
            return f"the same prompt has other values when asked again (by {moved:.2g})"
        if len(first.logprobs) < 2:
            return "there is no log-probability beyond the first token"
        shared = _shared(prompts, first, second)
        if (moved := largest_difference(first, second, shared)) > SAME:
            return f"a token's value depends on what comes after it (by {moved:.2g})"
        if largest_difference(first, second) == 0.0:
            return "two different prompts have the same values"
        return None

    def _prompt(self, text: str) -> Prompt:
        if not self.tokenizes:
            return text
        ids = self._client.tokenize(self._name, text, specials=False) or []
        return ids if self.bos_id is None else [self.bos_id, *ids]


def remote_scorer(spec: ModelSpec, patience: Patience | None = None) -> RemoteScorer:
    """The scorer of a listed endpoint; MissingKeyError where its key's variable is empty."""
    key = ApiKey.from_environment(spec.api_key_env) if spec.api_key_env else None
    return RemoteScorer(spec, CompletionsClient(spec.source, key, patience))


def remote_text_worker(spec: ModelSpec) -> Callable[[Mapping[str, Any]], list[dict[str, Any]]]:
    """A compute worker for payloads of ``texts`` by digest and ``max_tokens``: the rows of ``perplexity.scores``."""
    scorer = remote_scorer(spec)
    facts = {
        "model": spec.name,
        "dtype": SERVED,
        "computed_in": SERVED,
        "weights_digest": scorer.digest,
        "device": scorer.device,
        "scorer_version": SCORER_VERSION,
    }

    def work(payload: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [asdict(score) | facts for score in scorer.texts(payload["texts"], payload["max_tokens"])]

    return work


def remote_digest(spec: ModelSpec) -> str:
    """What names a served model's numbers: where and under which name it is served, and the context its entry sets."""
    return value_digest(spec, f"{spec.source}#{spec.served_name or spec.name}")


def _has_bos(found: PromptLogprobs, text: str) -> bool:
    """Whether the server put a token of its own before the text; where it hides the first, by what the rest covers."""
    first = found.tokens[0] if found.tokens else None
    if first is not None:
        return not text.startswith(first)
    rest = "".join(token or "" for token in found.tokens[1:])
    return bool(rest) and text.startswith(rest[: len(text)])


def _shared(prompts: Sequence[Prompt], first: PromptLogprobs, second: PromptLogprobs) -> int:
    """How many tokens two prompts have in common at their beginning."""
    one, other = (first.tokens, second.tokens) if isinstance(prompts[0], str) else prompts
    n = 0
    while n < min(len(one), len(other)) and one[n] == other[n]:
        n += 1
    return n
