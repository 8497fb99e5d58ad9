"""Prompt log-probabilities as OpenAI-compatible servers return them, and what they must satisfy to be believed.

Two forms are known: completions that echo the prompt with ``logprobs``, and vLLM's ``prompt_logprobs``. Pure: requests
and replies as plain data; sending belongs to ``remote_scoring``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

Prompt = str | Sequence[int]

LOWEST = -100.0
"""Natural log: at and below this a value stands for "not computed" (-100, -999, -9999.5, -1e30 are in use). A
model's own are above: it would take a spread of 100 between two of its logits."""
LARGEST_ROUNDING = 1e-3
"""How far above 0 rounding may lift a log-probability: half precision near 0 is exact to less than that."""
LONGEST_RUN_OF_ZEROS = 16
"""Tokens in a row with exactly 0.0, which is certainty beyond single precision: as many as a block of a cache holds.
Shorter runs occur in text that a model knows by heart."""
SAME = 0.1
"""Nats a token: what two answers of a server in half precision may differ by, batches being what they are."""


class UnusableError(ValueError):
    """What came back are not this prompt's log-probabilities: a matter of that prompt, where others have theirs."""


class NotFiniteError(UnusableError):
    """A log-probability of a prompt is infinite or no number."""


@dataclass(frozen=True)
class PromptLogprobs:
    """The log-probability of every token of a prompt, a beginning-of-text token included; None for the first."""

    logprobs: tuple[float | None, ...]


@dataclass(frozen=True)
class Form:
    """A way to ask for prompt log-probabilities and to read them from the reply's first choice and its usage."""

    name: str
    ask: Mapping[str, Any]
    read: Callable[[Mapping[str, Any], Mapping[str, Any], Prompt], PromptLogprobs]


def forms() -> tuple[Form, ...]:
    """The known forms, the most widely served first."""
    return (
        Form("echo", {"max_tokens": 0, "echo": True, "logprobs": 1}, partial(_read_echo, n_new=0)),
        Form("echo-1", {"max_tokens": 1, "echo": True, "logprobs": 1}, partial(_read_echo, n_new=1)),
        Form("prompt_logprobs", {"max_tokens": 1, "prompt_logprobs": 0}, _read_prompt_logprobs),
    )


def request_body(form: Form, model: str, prompt: Prompt) -> dict[str, Any]:
    """The body of a completions request."""
    return {"model": model, "prompt": prompt if isinstance(prompt, str) else list(prompt), "temperature": 0, **form.ask}


def parse(form: Form, reply: Any, prompt: Prompt) -> PromptLogprobs:
    """Log-probabilities from a reply. UnusableError in one sentence where it holds none for this prompt.

    NotFiniteError where all is there, but not all of it finite.
    """
    choices = reply.get("choices") if isinstance(reply, Mapping) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise UnusableError("the reply has no choice")
    usage = reply.get("usage")
    found = form.read(choices[0], usage if isinstance(usage, Mapping) else {}, prompt)
    if not all(value is None or math.isfinite(value) for value in found.logprobs):
        raise NotFiniteError("a log-probability is not finite")
    fault = first_fault(found, None if isinstance(prompt, str) else len(prompt))
    if fault:
        raise UnusableError(fault)
    return found


def first_fault(found: PromptLogprobs, n_prompt: int | None) -> str | None:
    """Why these cannot be the prompt's log-probabilities: length, gaps, stand-ins, impossible or constant values.

    Whether they are finite is not asked here.
    """
    if n_prompt is not None and len(found.logprobs) != n_prompt:
        return f"{len(found.logprobs)} log-probabilities for a prompt of {n_prompt} tokens"
    values = found.logprobs[1:]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return f"{len(values) - len(known)} of {len(values)} tokens have no log-probability"
    if min(known, default=0.0) <= LOWEST:
        return f"a log-probability is {min(known):g}, which stands for 'not computed'"
    if max(known, default=0.0) > LARGEST_ROUNDING:
        return f"a log-probability is positive ({max(known):.3g})"
    if len(known) > 3 and max(known) - min(known) == 0.0:
        return f"all log-probabilities are {known[0]:g}"
    return _fault_of_zeros(known)


def _fault_of_zeros(known: Sequence[float]) -> str | None:
    """Why exact zeros cannot be a model's: tokens of a cached beginning, or a part that was not computed.

    No model is certain of a text's first tokens; later ones may round to 0.0 one by one where a text repeats itself.
    """
    zeros = [value == 0.0 for value in known]
    runs = [sum(1 for _ in group) for is_zero, group in groupby(zeros) if is_zero]
    if not runs:
        return None
    n, leads = sum(zeros), zeros[0]
    if 2 * n >= len(known) or (leads and runs[0] > 1) or max(runs) >= LONGEST_RUN_OF_ZEROS:
        where = "from the first on, " if leads else ""
        return f"{n} of {len(known)} tokens have a log-probability of exactly 0, {where}{max(runs)} of them in a row"
    return None


def largest_difference(one: PromptLogprobs, other: PromptLogprobs, n: int | None = None) -> float:
    """The largest difference between two replies over their first ``n`` tokens; infinite where lengths differ."""
    first, second = one.logprobs[1:n], other.logprobs[1:n]
    if len(first) != len(second):
        return math.inf
    return max((abs((a or 0.0) - (b or 0.0)) for a, b in zip(first, second, strict=True)), default=0.0)


def _read_echo(choice: Mapping[str, Any], usage: Mapping[str, Any], prompt: Prompt, *, n_new: int) -> PromptLogprobs:
    held = choice.get("logprobs")
    values = held.get("token_logprobs") if isinstance(held, Mapping) else None
    if not isinstance(held, Mapping) or not isinstance(values, list) or not values:
        raise UnusableError("the reply does not echo the prompt with log-probabilities")
    for name in ("tokens", "text_offset"):
        beside = held.get(name)
        if isinstance(beside, list) and beside and len(beside) != len(values):
            raise UnusableError(f"{len(values)} log-probabilities beside {len(beside)} {name}")
    n = _prompt_length(usage, len(values), n_new)
    return PromptLogprobs((None, *_numbers(values[1:n])))


def _prompt_length(usage: Mapping[str, Any], n_values: int, n_new: int) -> int:
    """How many of the echoed values are the prompt's, by the server's count: what was generated after it is not.

    Never by the tokens' text: servers show blanks, bytes and special tokens each in their own way.
    """
    n_prompt, n_generated = (_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    if n_prompt is None:
        if n_new and n_generated is None:
            raise UnusableError("the reply does not say how many of its tokens are the prompt's")
        n_prompt = n_values - (n_generated or 0)
    if not 0 <= n_values - n_prompt <= max(n_new, n_generated or 0):
        raise UnusableError(f"{n_values} log-probabilities for a prompt of {n_prompt} tokens")
    return n_prompt


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _read_prompt_logprobs(choice: Mapping[str, Any], usage: Mapping[str, Any], prompt: Prompt) -> PromptLogprobs:
    held = choice.get("prompt_logprobs")
    if not isinstance(held, list) or not held:
        raise UnusableError("the reply has no prompt_logprobs")
    n_prompt = _count(usage.get("prompt_tokens"))
    if n_prompt is not None and n_prompt != len(held):
        raise UnusableError(f"{len(held)} log-probabilities for a prompt of {n_prompt} tokens")
    ids = None if isinstance(prompt, str) else [str(token) for token in prompt]
    values: list[float | None] = [None]
    for place, entry in enumerate(held[1:], 1):
        chosen = _chosen(entry, ids[place] if ids is not None and place < len(ids) else None)
        values += _numbers([chosen.get("logprob")])
    return PromptLogprobs(tuple(values))


def _chosen(entry: Any, token: str | None) -> Mapping[str, Any]:
    """The prompt's own token among those that a position lists."""
    if not isinstance(entry, Mapping) or not entry:
        return {}
    found = entry.get(token) if token is not None else next(iter(entry.values()))
    return found if isinstance(found, Mapping) else {}


def _numbers(values: Sequence[Any]) -> list[float | None]:
    """Numbers, also where a server writes infinity as text; None for what is none."""
    return [_number(value) for value in values]


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
