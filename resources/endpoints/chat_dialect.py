"""How one endpoint wants to be asked: which of the optional parameters it takes, learned from its refusals.

Pure. A dialect starts with everything we would like (a JSON schema, temperature 0, a token budget, a system role) and
gives up one thing for each refusal, so that negotiation ends. Whether what was given up stays given up is decided by
``chat``, which keeps a dialect only after a reply; it is stored with every round that was asked in it, and read from
there when a run goes on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from strandline.probe.questions import answer_schema

SMALLEST_BUDGET = 256
"""Tokens: a smaller reply holds no round of 24 answers, so that a server that grants no more is told apart."""
_NEXT_FORMAT = {"json_schema": "json_object", "json_object": None}
"""What is asked for where a reply format is refused: the next weaker one, then none."""
_NEXT_TOKEN_FIELD = {"max_tokens": "max_completion_tokens", "max_completion_tokens": None}
"""The two names of the token budget; newer OpenAI models refuse the first."""
# How servers and chat templates say that they take no system message.
_SYSTEM_ROLE = re.compile(
    r"system (?:role|message|prompt|instruction)s?.{0,60}(?:not|n't|un)|"
    r"(?:not|n't|un)\w*.{0,40}system (?:role|message)|"
    r"developer instruction|roles? must alternate|only user and assistant|roles.{0,20}supported|jinja|chat.?template",
    re.IGNORECASE | re.DOTALL,
)
# How servers say that a number of tokens is over their limit.
_TOO_LONG = re.compile(
    r"context (?:length|window|size)|too (?:large|many|long|high)|exceed|at most|less than|greater than", re.IGNORECASE
)
# How servers name the format of the reply when they refuse it.
_FORMAT = re.compile(
    r"response_?format|json_?(?:schema|object|mode)|schema|guided|grammar|structured output", re.IGNORECASE
)
_REFUSALS = frozenset({400, 404, 405, 415, 422, 501})
"""Statuses with which servers refuse a parameter."""
# What the record of a run says of a system message that was sent inside the user turn.
_FOLDED = "folded into the user turn"


@dataclass(frozen=True)
class Dialect:
    """What is sent to one endpoint and model. None means that the parameter is left out."""

    token_field: str | None = "max_tokens"
    response_format: str | None = "json_schema"
    temperature: float | None = 0.0
    has_system_role: bool = True
    sends_stream: bool = True
    budget_cap: int | None = None

    def payload(
        self, model: str, messages: Sequence[Mapping[str, str]], n_questions: int, budget: int
    ) -> dict[str, Any]:
        """The request's body for one round."""
        body: dict[str, Any] = {"model": model, "messages": list(self.messages(messages))}
        if self.token_field:
            body[self.token_field] = self.budget(budget)
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if self.sends_stream:
            body["stream"] = False
        if self.response_format == "json_schema":
            schema = {"name": "answers", "strict": True, "schema": answer_schema(n_questions)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif self.response_format:
            body["response_format"] = {"type": self.response_format}
        return body

    def messages(self, messages: Sequence[Mapping[str, str]]) -> tuple[dict[str, str], ...]:
        """The messages as sent: the system text stands at the head of the user's turn where there is no such role."""
        if self.has_system_role:
            return tuple(dict(m) for m in messages)
        return ({"role": "user", "content": "\n\n".join(m["content"] for m in messages)},)

    def budget(self, wanted: int) -> int:
        """The token budget as sent."""
        return min(wanted, self.budget_cap or wanted)

    def record(self, budget: int) -> dict[str, Any]:
        """The parameters really used, for the stored round."""
        tokens = {self.token_field: self.budget(budget)} if self.token_field else {}
        return tokens | {
            "temperature": self.temperature,
            "response_format": self.response_format,
            "system_role": "system" if self.has_system_role else _FOLDED,
            "stream": False if self.sends_stream else None,
        }

    @classmethod
    def from_record(cls, parameters: Mapping[str, Any]) -> Dialect:
        """The dialect of a stored round; what the record does not tell is as at the start. See ``record``."""
        if not parameters:
            return cls()
        names = [name for name in _NEXT_TOKEN_FIELD if name in parameters]
        form = parameters.get("response_format", "json_schema")
        return cls(
            token_field=names[0] if names else None,
            response_format=form if form in _NEXT_FORMAT else None,
            temperature=None if parameters.get("temperature", 0.0) is None else 0.0,
            has_system_role=parameters.get("system_role") != _FOLDED,
            sends_stream=parameters.get("stream", False) is not None,
        )

    def looser(self) -> Dialect:
        """The dialect with the next weaker reply format: what to try where a server fails without a word why."""
        return replace(self, response_format=_NEXT_FORMAT[self.response_format]) if self.response_format else self

    def after_refusal(self, status: int, text: str, budget: int) -> Dialect | None:
        """The dialect to try after this refusal; None where the refusal is about something else.

        Args:
            status: the HTTP status.
            text: the error's sentence with its parameter.
            budget: the token budget that was asked for.

        A refusal that names no parameter costs the reply format first, then the temperature, then the system role.
        """
        if self.has_system_role and _SYSTEM_ROLE.search(text) and (status in _REFUSALS or status == 500):
            return replace(self, has_system_role=False)
        if status == 500 and self.response_format and _FORMAT.search(text):
            return self.looser()
        if status not in _REFUSALS or (status in (404, 405) and not self.is_named(text)):
            return None
        return self._named(text, budget) if self.is_named(text) else self._unnamed()

    def is_named(self, text: str) -> bool:
        """Whether a refusal names something that this dialect sends."""
        named = (self.token_field or "max_tokens", "temperature", "stream")
        return any(name in text.lower() for name in named) or bool(_FORMAT.search(text) or _TOO_LONG.search(text))

    def _named(self, text: str, budget: int) -> Dialect | None:
        """Without what the refusal names; a smaller budget where it speaks of a length."""
        lowered = text.lower()
        is_about_tokens = self.token_field is not None and self.token_field in lowered
        if _TOO_LONG.search(text) and not re.search(r"unsupported|not supported|unexpected|unknown|instead", lowered):
            smaller = self.budget(budget) // 2
            return replace(self, budget_cap=smaller) if smaller >= SMALLEST_BUDGET else None
        if is_about_tokens:
            return replace(self, token_field=_NEXT_TOKEN_FIELD[str(self.token_field)])
        if "temperature" in lowered and self.temperature is not None:
            return replace(self, temperature=None)
        if _FORMAT.search(text) and self.response_format:
            return replace(self, response_format=_NEXT_FORMAT[self.response_format])
        if "stream" in lowered and self.sends_stream:
            return replace(self, sends_stream=False)
        return self._unnamed()

    def _unnamed(self) -> Dialect | None:
        """Without the next thing that servers most often refuse: format, temperature, system role."""
        if self.response_format:
            return replace(self, response_format=_NEXT_FORMAT[self.response_format])
        if self.temperature is not None:
            return replace(self, temperature=None)
        return replace(self, has_system_role=False) if self.has_system_role else None
