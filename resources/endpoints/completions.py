"""Scores from models that run elsewhere: any OpenAI-compatible server that returns prompt log-probabilities.

Before anything is trusted, a probe must pass: a log-probability for every token of the prompt, no stand-ins, the same
values when asked again, and values that depend on what stands before and on nothing that comes after. A server that
fails is refused by name. Where the server tokenizes on request (vLLM), prompts are token ids, exactly those that would
be scored here; elsewhere the text is sent and the server's own tokens are counted.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import httpx

from resources.endpoints.chat_payload import error_text
from resources.endpoints.exchange import (
    Again,
    Endpoint,
    Patience,
    ServerFaultError,
    UnknownRequestError,
)
from resources.endpoints.keys import ApiKey
from resources.endpoints.prompt_logprobs import (
    SAME,
    Form,
    Prompt,
    PromptLogprobs,
    UnusableError,
    forms,
    largest_difference,
    parse,
    request_body,
)
from strandline.models import ModelSpec
from strandline.models.digests import value_digest
from strandline.scoring.engine import SCORER_VERSION
from strandline.scoring.prefix_tree import Request
from strandline.scoring.scores import SERVED, SequenceScore, TextScore, perplexity, text_score, tokenized, too_short
from strandline.scoring.tokens import MOST_CHARACTERS_PER_TOKEN

_COMMON = "The harbour lies north of the old lighthouse and is open to ships of"
"""What both prompts of the probe begin with: plain words in ASCII, which every tokenizer cuts at blanks."""
# Two different endings: what stands before them must keep its values, whichever of them follows.
_ENDINGS = (" every kind in summer.", " 4 knots until March; nothing")
_TWO_TOKENS = "a b"
"""A prompt that is two tokens everywhere: what is counted beyond them stands before every text."""
_SPARE_TOKENS = 16
"""Tokens beyond the last that is scored, so that a cut inside a word changes none that counts."""
_DENSE_CHARACTERS_PER_TOKEN = 2
"""Characters a token of Chinese, Japanese and Korean text at most, as tokenizers of many languages cut it."""
_DENSE_FROM = "\u2e80"
"""The first character of the scripts of East Asia in Unicode's order."""
_CUTS = 12
"""Lengths tried until a beginning holds enough tokens and fits the server: a search by halves ends before that."""
# How servers say that a text does not fit the context.
_TOO_LONG = re.compile(
    r"context (?:length|window|size)|too (?:long|large|many tokens)|max(?:imum)?_?(?: model)?.{0,20}(?:tokens|len)|"
    r"(?:longer|greater|more) than .{0,40}(?:tokens|max)|exceed",
    re.IGNORECASE,
)


class RemoteRefusedError(RuntimeError):
    """A server that cannot be used for scoring; names the model, the host and what is missing."""


class TooLongError(UnknownRequestError):
    """The prompt is longer than the server takes."""


_TEXT_FAULTS = (UnusableError, UnknownRequestError, ServerFaultError)
"""What can be one text's fault alone, while the server answers others."""


class CompletionsClient:
    """Posts completions to one server, with retries within bounds and the key in no message.

    Args:
        base_url: the address that ends before ``/completions``, or one of those that ``addresses`` makes it from.
        key: sent as a bearer token, or in the header that the server names; None sends none.
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
        self._endpoint = Endpoint(base_url, key, patience, transport, sleep)

    @property
    def host(self) -> str:
        """The server's name, for messages."""
        return self._endpoint.host

    def complete(self, body: Mapping[str, Any]) -> Any:
        """The reply to a completions request. EndpointError where there is none within the patience."""
        return self._endpoint.persist(lambda: self._attempt("/completions", body))

    def tokenize(self, model: str, text: str, *, specials: bool) -> list[int] | None:
        """The server's ids of a text; None where it does not tokenize on request."""
        body = {"model": model, "prompt": text, "add_special_tokens": specials}
        try:
            reply = self._endpoint.persist(lambda: self._attempt("/tokenize", body, self._endpoint.root))
        except UnknownRequestError:
            return None
        ids = reply.get("tokens") if isinstance(reply, Mapping) else None
        return ids if isinstance(ids, list) and all(isinstance(i, int) for i in ids) else None

    def _attempt(self, path: str, body: Mapping[str, Any], base: str | None = None) -> Any:
        """The reply as data, or why another attempt is worth it."""
        response = self._endpoint.post(path, body, base)
        if isinstance(response, Again):
            return response
        if not response.is_success:
            text = error_text(response.content)
            if response.status_code in (400, 413, 422) and _TOO_LONG.search(text):
                raise TooLongError(f"{self.host} refuses the length ({self._endpoint.shown(text)})")
            return self._endpoint.judged(response, "the model")
        try:
            reply = response.json()
        except ValueError:
            return Again("the reply is no JSON")
        if isinstance(reply, Mapping) and reply.get("error") and not reply.get("choices"):
            return Again(
                f"an error with status 200: {self._endpoint.shown(str(reply['error']))}", error=ServerFaultError
            )
        return reply


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
        self._form, self._control = self._probed()
        self._n_before = 0 if self.tokenizes else self._counted_before()

    def token_ids(self, texts: Sequence[str], max_tokens: int | None = None) -> list[list[int]]:
        """The server's ids of each text, without special tokens; RemoteRefusedError where it tells none."""
        found = [self._client.tokenize(self._name, text, specials=False) for text in texts]
        if any(ids is None for ids in found):
            raise RemoteRefusedError(f"{self._label} does not tokenize on request, which orderings need")
        return [ids[:max_tokens] for ids in found if ids is not None]

    def batch(self, sequences: Sequence[Request], size: int) -> list[SequenceScore]:
        """Scores of sequences of ids, in order; batches are formed by the server."""
        return [self._marked_sequence(request) for request in sequences]

    def texts(self, texts: Mapping[str, str], max_tokens: int) -> Iterator[TextScore]:
        """Scores of texts by their digest. A text that the server cannot score is a row with its reason."""
        score = self._text_by_ids if self.tokenizes else self._text
        for digest, text in texts.items():
            try:
                yield score(digest, text, max_tokens)
            except _TEXT_FAULTS as error:
                self._require_trust(error)
                yield TextScore(digest, max_tokens, "nonfinite", f"{self._label}: {error}", SERVED, method="remote")

    def _marked_sequence(self, request: Request) -> SequenceScore:
        try:
            return self._sequence(request)
        except _TEXT_FAULTS as error:
            self._require_trust(error)
            n = len(request.ids)
            return SequenceScore(request, None, "nonfinite", SERVED, "remote", n, 0, n)

    def _require_trust(self, error: Exception) -> None:
        """Raise where not the text is at fault but the server: it no longer answers the probe's prompt as it did."""
        prompt, before = self._control
        try:
            moved = largest_difference(before, self._logprobs(prompt))
        except UnusableError as now:
            raise RemoteRefusedError(f"{self._label} no longer returns usable log-probabilities: {now}") from error
        except (UnknownRequestError, ServerFaultError):
            raise error from None
        if moved > SAME:
            raise RemoteRefusedError(
                f"{self._label} gives a prompt other values than before (by {moved:.2g})"
            ) from error

    def _sequence(self, request: Request) -> SequenceScore:
        values = self._logprobs(request.ids).logprobs
        total = -sum(value or 0.0 for value in values[request.score_from :])
        n = len(request.ids)
        return SequenceScore(request, total, "ok", SERVED, "remote", n, 0, n)

    def _text_by_ids(self, digest: str, text: str, max_tokens: int) -> TextScore:
        """Score exactly the ids that would be scored here."""
        ids = self._client.tokenize(self._name, text, specials=False)
        if ids is None:
            raise UnusableError("the server does not tokenize this text")
        prepared = tokenized(digest, ids[:max_tokens], max_tokens, self.bos_id, self.context_length)
        if prepared.request is None:
            return too_short(prepared, max_tokens, SERVED, self.bos_id)
        return text_score(prepared, self._sequence(prepared.request), max_tokens, self.bos_id, is_copy=False)

    def _text(self, digest: str, text: str, max_tokens: int) -> TextScore:
        """Score the first of the server's own tokens, those that the context holds after what stands before a text."""
        room = max_tokens if self.context_length is None else self.context_length - self._n_before
        limit = min(max_tokens, room)
        found = self._beginning(text, limit) if text else PromptLogprobs(())
        values = [value or 0.0 for value in found.logprobs[1 : limit + self._n_before]]
        if len(values) + (not self._n_before) < 2:
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
            is_context_limited=limit < max_tokens and len(found.logprobs) - self._n_before > limit,
            tokens_computed=len(found.logprobs),
            method="remote",
        )

    def _beginning(self, text: str, limit: int) -> PromptLogprobs:
        """A text's beginning, or all of it, that holds ``limit`` tokens and some to spare and that the server takes."""
        wanted = limit + self._n_before + _SPARE_TOKENS
        reach, fits, refused = _first_reach(text, limit), 0, len(text) + 1
        for _ in range(_CUTS):
            reach = min(reach, len(text))
            try:
                found = self._logprobs(text[:reach])
            except TooLongError:
                refused = reach
            else:
                if len(found.logprobs) >= wanted or reach == len(text):
                    return found
                fits = reach
            if refused - fits < 2:
                break
            reach = 2 * reach if refused > len(text) else (fits + refused) // 2
        raise TooLongError(
            f"the server takes fewer than {wanted} tokens of this text, which {limit} scored ones need: "
            f"set context_length in the model's entry to the server's"
        )

    def _logprobs(self, prompt: Prompt, form: Form | None = None) -> PromptLogprobs:
        chosen = form or self._form
        return parse(chosen, self._client.complete(request_body(chosen, self._name, prompt)), prompt)

    def _probed(self) -> tuple[Form, tuple[Prompt, PromptLogprobs]]:
        """The first form whose values pass every part of the probe, and the prompt that shows later that they hold."""
        faults = []
        for form in forms():
            try:
                first, fault = self._fault(form)
            except _TEXT_FAULTS as error:
                first, fault = PromptLogprobs(()), str(error)
            if fault is None:
                return form, (self._prompt(_COMMON + _ENDINGS[0]), first)
            faults.append(f"{form.name}: {fault}")
        raise RemoteRefusedError(f"{self._label} does not return usable prompt log-probabilities ({'; '.join(faults)})")

    def _fault(self, form: Form) -> tuple[PromptLogprobs, str | None]:
        """The values of the first prompt in this form, and why the form's values cannot be trusted."""
        prompts = [self._prompt(_COMMON + ending) for ending in _ENDINGS]
        first, second = (self._logprobs(prompt, form) for prompt in prompts)
        if (moved := largest_difference(first, self._logprobs(prompts[0], form))) > SAME:
            return first, f"the same prompt has other values when asked again (by {moved:.2g})"
        if len(first.logprobs) < 2:
            return first, "there is no log-probability beyond the first token"
        shared = len(self._logprobs(self._prompt(_COMMON), form).logprobs) - 1
        if (moved := largest_difference(first, second, shared)) > SAME:
            return first, f"a token's value depends on what comes after it (by {moved:.2g})"
        if largest_difference(first, second) == 0.0:
            return first, "two different prompts have the same values"
        return first, None

    def _counted_before(self) -> int:
        """How many tokens the server puts before a text, by what it counts for a text of two tokens: none or one."""
        n = len(self._logprobs(_TWO_TOKENS).logprobs) - 2
        if n not in (0, 1):
            raise RemoteRefusedError(f"{self._label} counts {n + 2} tokens for {_TWO_TOKENS!r}, not two or three")
        return n

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


def _first_reach(text: str, n_tokens: int) -> int:
    """Characters that are likely to hold so many tokens: fewer in scripts that take a token for a character or two."""
    widest = text[: MOST_CHARACTERS_PER_TOKEN * n_tokens]
    dense = sum(character >= _DENSE_FROM for character in widest) / max(1, len(widest))
    spread = MOST_CHARACTERS_PER_TOKEN - _DENSE_CHARACTERS_PER_TOKEN
    return max(1, round((MOST_CHARACTERS_PER_TOKEN - spread * dense) * n_tokens))
