"""Prompt log-probabilities as OpenAI-compatible servers return them, and what they must satisfy to be believed.

Two forms are known: completions that echo the prompt with ``logprobs``, and vLLM's ``prompt_logprobs``. Pure: requests
and replies as plain data; sending belongs to ``remote_scoring``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Prompt = str | Sequence[int]

SENTINELS = frozenset({-9999.0, -1000.0, -999.0, -100.0})
SAME = 0.1


class NotFiniteError(ValueError):
    """A log-probability of a prompt is infinite or no number: a matter of that prompt, where others have theirs."""


@dataclass(frozen=True)
class PromptLogprobs:
    """The log-probability of every token of a prompt, None for the first; ``tokens`` as text where the server tells."""

    logprobs: tuple[float | None, ...]
    tokens: tuple[str | None, ...]


@dataclass(frozen=True)
class Form:
    """A way to ask for prompt log-probabilities and to read them from the reply's first choice."""

    name: str
    ask: Mapping[str, Any]
    read: Callable[[Mapping[str, Any], Prompt], PromptLogprobs]


def forms() -> tuple[Form, ...]:
    """The known forms, the most widely served first."""
    return (
        Form("echo", {"max_tokens": 0, "echo": True, "logprobs": 1}, _read_echo),
        Form("echo-1", {"max_tokens": 1, "echo": True, "logprobs": 1}, _read_echo),
        Form("prompt_logprobs", {"max_tokens": 1, "prompt_logprobs": 0}, _read_prompt_logprobs),
    )


def request_body(form: Form, model: str, prompt: Prompt) -> dict[str, Any]:
    """The body of a completions request."""
    return {"model": model, "prompt": prompt if isinstance(prompt, str) else list(prompt), "temperature": 0, **form.ask}


def parse(form: Form, reply: Any, prompt: Prompt) -> PromptLogprobs:
    """Log-probabilities from a reply. ValueError in one sentence where it holds none for this prompt.

    NotFiniteError where all is there, but not all of it finite.
    """
    choices = reply.get("choices") if isinstance(reply, Mapping) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise ValueError("the reply has no choice")
    found = form.read(choices[0], prompt)
    fault = first_fault(found, None if isinstance(prompt, str) else len(prompt))
    if fault:
        raise ValueError(fault)
    if not all(value is None or math.isfinite(value) for value in found.logprobs):
        raise NotFiniteError("a log-probability is not finite")
    return found


def first_fault(found: PromptLogprobs, n_prompt: int | None) -> str | None:
    """Why these cannot be the prompt's log-probabilities: length, gaps, sentinels, impossible or constant values.

    Whether they are finite is not asked here.
    """
    if n_prompt is not None and len(found.logprobs) != n_prompt:
        return f"{len(found.logprobs)} log-probabilities for a prompt of {n_prompt} tokens"
    values = found.logprobs[1:]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return f"{len(values) - len(known)} of {len(values)} tokens have no log-probability"
    if any(value in SENTINELS for value in known):
        return f"a log-probability is {next(v for v in known if v in SENTINELS):g}, which stands for 'not computed'"
    if max(known, default=0.0) > 1e-3:
        return f"a log-probability is positive ({max(known):.3g})"
    if len(known) > 3 and max(known) - min(known) == 0.0:
        return f"all log-probabilities are {known[0]:g}"
    return None


def largest_difference(one: PromptLogprobs, other: PromptLogprobs, n: int | None = None) -> float:
    """The largest difference between two replies over their first ``n`` tokens; infinite where lengths differ."""
    first, second = one.logprobs[1:n], other.logprobs[1:n]
    if len(first) != len(second):
        return math.inf
    return max((abs((a or 0.0) - (b or 0.0)) for a, b in zip(first, second, strict=True)), default=0.0)


def _read_echo(choice: Mapping[str, Any], prompt: Prompt) -> PromptLogprobs:
    held = choice.get("logprobs")
    values = held.get("token_logprobs") if isinstance(held, Mapping) else None
    if not isinstance(held, Mapping) or not isinstance(values, list) or not values:
        raise ValueError("the reply does not echo the prompt with log-probabilities")
    tokens = held.get("tokens") or [None] * len(values)
    n = _prompt_length(prompt, tokens, held.get("text_offset"), len(values))
    return PromptLogprobs((None, *_numbers(values[1:n])), tuple(tokens[:n]))


def _prompt_length(prompt: Prompt, tokens: Sequence[str | None], offsets: Any, n_values: int) -> int:
    """How many of the echoed tokens are the prompt's: what was generated after it does not count."""
    if not isinstance(prompt, str):
        return min(len(prompt), n_values)
    if isinstance(offsets, list) and len(offsets) == n_values:
        return sum(1 for offset in offsets if offset < len(prompt))
    length, covered = 0, 0
    while length < n_values and covered < len(prompt):
        covered += len(tokens[length] or "")
        length += 1
    return length


def _read_prompt_logprobs(choice: Mapping[str, Any], prompt: Prompt) -> PromptLogprobs:
    held = choice.get("prompt_logprobs")
    if not isinstance(held, list) or not held:
        raise ValueError("the reply has no prompt_logprobs")
    ids = None if isinstance(prompt, str) else [str(token) for token in prompt]
    values: list[float | None] = [None]
    tokens: list[str | None] = [None]
    for place, entry in enumerate(held[1:], 1):
        chosen = _chosen(entry, ids[place] if ids is not None and place < len(ids) else None)
        values += _numbers([chosen.get("logprob")])
        tokens.append(chosen.get("decoded_token"))
    return PromptLogprobs(tuple(values), tuple(tokens))


def _chosen(entry: Any, token: str | None) -> Mapping[str, Any]:
    """The prompt's own token among those that a position lists."""
    if not isinstance(entry, Mapping) or not entry:
        return {}
    found = entry.get(token) if token is not None else next(iter(entry.values()))
    return found if isinstance(found, Mapping) else {}


def _numbers(values: Sequence[Any]) -> list[float | None]:
    return [float(v) if isinstance(v, int | float) and not isinstance(v, bool) else None for v in values]
