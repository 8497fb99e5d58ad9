"""What a chat server's 200 really holds: one completion, whether JSON or a stream, or a clear word that it holds none.

Pure: bytes in, records out. Sending and retrying belong to ``chat``, the meaning of the content to the probe.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")
_SHOWN = 200


class UnreadableReplyError(ValueError):
    """A 200 that is no completion: a page, broken JSON, a stream cut off, an error in disguise. Worth another try."""


@dataclass(frozen=True)
class Completion:
    """The first choice of a reply. ``content`` None or empty means that the model said nothing that counts."""

    content: str | None
    reasoning: str | None = None
    finish_reason: str | None = None
    refusal: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    served: Mapping[str, str] = field(default_factory=dict)


def parse_completion(content_type: str, body: bytes) -> Completion:
    """The completion in a reply, by what it holds rather than by what its header says.

    Choices that are missing or empty give a completion without content. Raises UnreadableReplyError for anything that
    is no completion; its message repeats at most a few words of the body.
    """
    text = body.decode("utf-8-sig", "replace").strip()
    if text.startswith(("data:", "event:", ":")) or "event-stream" in content_type.lower():
        return _from_stream(text)
    document = _json(text, content_type)
    _refuse_error(document)
    choice = _first(document.get("choices"))
    return _completion([choice.get("message") or choice], _finish([choice]), document)


def error_text(body: bytes) -> str:
    """The human sentence of an error body, with its parameter, code and type; the body itself where it has none."""
    text = body.decode("utf-8", "replace")
    try:
        document = json.loads(text)
    except ValueError:
        return text.strip()
    error = document.get("error", document.get("detail", document)) if isinstance(document, Mapping) else document
    if not isinstance(error, Mapping):
        return str(error)
    parts = [str(error[k]) for k in ("message", "param", "code", "type") if error.get(k)]
    return " | ".join(parts) or text.strip()


def _json(text: str, content_type: str) -> Mapping[str, Any]:
    if text[:1] == "<" or "html" in content_type.lower():
        raise UnreadableReplyError("the server sent a page instead of a completion")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableReplyError(f"the server sent no JSON: {text[:_SHOWN]!r}") from None
    if not isinstance(document, Mapping):
        raise UnreadableReplyError("the server sent JSON that is no object")
    return document


def _refuse_error(document: Mapping[str, Any]) -> None:
    if document.get("error") and not document.get("choices"):
        raise UnreadableReplyError(f"the server sent an error with status 200: {str(document['error'])[:_SHOWN]}")


def _from_stream(text: str) -> Completion:
    chunks: list[Mapping[str, Any]] = []
    is_done = False
    for line in text.splitlines():
        data = line[5:].strip() if line.startswith("data:") else ""
        is_done = is_done or data == "[DONE]"
        if data and data != "[DONE]":
            chunks.append(_json(data, ""))
            _refuse_error(chunks[-1])
    choices = [_first(chunk.get("choices")) for chunk in chunks]
    finish = _finish(choices)
    if not is_done and finish is None:
        raise UnreadableReplyError("the server's stream ended before its last piece")
    head = {k: v for chunk in chunks for k, v in chunk.items() if v is not None}
    return _completion([c.get("delta") or c.get("message") or {} for c in choices], finish, head)


def _first(choices: Any) -> Mapping[str, Any]:
    first = choices[0] if isinstance(choices, list) and choices else {}
    return first if isinstance(first, Mapping) else {}


def _finish(choices: Iterable[Mapping[str, Any]]) -> str | None:
    reasons = [str(c["finish_reason"]) for c in choices if c.get("finish_reason")]
    return reasons[-1] if reasons else None


def _completion(messages: list[Any], finish: str | None, document: Mapping[str, Any]) -> Completion:
    parts = [m for m in messages if isinstance(m, Mapping)]
    usage = document.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    return Completion(
        content=_joined(m.get("content") for m in parts),
        reasoning=_joined(next((m[f] for f in _REASONING_FIELDS if m.get(f)), None) for m in parts),
        finish_reason=finish,
        refusal=_joined(m.get("refusal") for m in parts),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        served={k: str(document[k]) for k in ("model", "system_fingerprint") if document.get(k)},
    )


def _joined(pieces: Iterable[Any]) -> str | None:
    text = "".join(_text(piece) for piece in pieces)
    return text or None


def _text(piece: Any) -> str:
    if isinstance(piece, str):
        return piece
    if isinstance(piece, list):
        return "".join(str(p.get("text") or "") for p in piece if isinstance(p, Mapping) and p.get("type") == "text")
    return ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
