"""What a chat server's 200 really holds: one completion, whether JSON or a stream, or a clear word that it holds none.

Pure: bytes in, records out. Sending and retrying belong to ``chat``, the meaning of the content to the probe.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "thoughts")
"""Where servers put a model's thoughts apart from its reply (DeepSeek and vLLM; OpenRouter; Ollama)."""
_SHOWN = 200
"""Characters of an unreadable body that a message repeats."""
_BROKEN_OFF = frozenset(
    {"error", "network_error", "insufficient_system_resource", "abort", "aborted", "cancelled", "canceled", "timeout"}
    | {"server_error", "internal_error", "upstream_error"}
)
"""Reasons to finish that are the server's trouble (OpenRouter, Zhipu, DeepSeek, vLLM, SGLang): no reply was made."""
_DECLINED = frozenset(
    {
        "content_filter",
        "content-filter",
        "safety",
        "refusal",
        "sensitive",
        "recitation",
        "blocklist",
        "prohibited_content",
    }
)
"""Reasons to finish that say that a filter or the model declined (OpenAI, Gemini, Anthropic, Zhipu)."""
DECLINED = "content_filter"
"""The reason to finish that stands for all of them in a completion."""
_LINE_ENDS = re.compile(r"\r\n|\n|\r")
"""What ends a line of a stream of events; other marks of Unicode, such as U+2028, may stand inside a JSON text."""


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

    @property
    def is_silent(self) -> bool:
        """Whether nothing shows that a model ran: no word of any kind, no token counted, nothing declined."""
        said = (self.content or "").strip() or self.reasoning or self.refusal or self.completion_tokens
        return not said and self.finish_reason != DECLINED


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
    """The human sentence of an error body, with its parameter, code and type; the body itself where it has none.

    What stands behind it (the words of a provider behind a gateway, the code of a filter) is told too.
    """
    text = body.decode("utf-8", "replace")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()
    if isinstance(document, list) and document and isinstance(document[0], Mapping):
        document = document[0]
    error = document.get("error", document.get("detail", document)) if isinstance(document, Mapping) else document
    if not isinstance(error, Mapping):
        return str(error)
    parts = [str(error[k]) for k in ("message", "msg", "param", "code", "type") if error.get(k)]
    for behind, name in (("metadata", "raw"), ("innererror", "code")):
        held = error.get(behind)
        parts += [str(held[name])] if isinstance(held, Mapping) and held.get(name) else []
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
    """An error in a 200, whether it stands alone, beside choices that say nothing, or in a choice of its own."""
    choice = _first(document.get("choices"))
    error = document.get("error") or choice.get("error")
    is_error = document.get("object") == "error" or str(document.get("status", "")).lower() in ("error", "failed")
    if is_error and not choice:
        error = error or document.get("message") or document.get("msg") or "no words"
    if not error and not choice and "choices" not in document:
        error = document.get("detail") or (document.get("msg") if document.get("code") else None)
    if error and not _says_something(choice):
        raise UnreadableReplyError(f"the server sent an error with status 200: {_clean(str(error))[:_SHOWN]}")


def _says_something(choice: Mapping[str, Any]) -> bool:
    if str(choice.get("finish_reason") or "").lower() in _BROKEN_OFF or choice.get("error"):
        return False
    message = choice.get("message") or choice.get("delta") or {}
    return isinstance(message, Mapping) and bool(message.get("content"))


def _from_stream(text: str) -> Completion:
    chunks, is_done = _events(text)
    for chunk in chunks:
        _refuse_error(chunk)
    choices = [_first(chunk.get("choices")) for chunk in chunks]
    finish = _finish(choices)
    if not is_done and finish is None:
        raise UnreadableReplyError("the server's stream ended before its last piece")
    head = {k: v for chunk in chunks for k, v in chunk.items() if v is not None}
    return _completion([c.get("delta") or c.get("message") or {} for c in choices], finish, head)


def _events(text: str) -> tuple[list[Mapping[str, Any]], bool]:
    """The JSON objects of a stream, and whether it says that it is done. An event may take several data lines."""
    chunks: list[Mapping[str, Any]] = []
    is_done, open_data = False, ""
    for line in [*_LINE_ENDS.split(text), ""]:
        data = line[5:].strip(" ") if line.startswith("data:") else ""
        if data == "[DONE]":
            is_done = True
        elif data:
            open_data = f"{open_data}\n{data}" if open_data else data
            if _is_whole(open_data):
                chunks.append(_json(open_data, ""))
                open_data = ""
        elif open_data and not line:
            _json(open_data, "")
    return chunks, is_done


def _is_whole(data: str) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _first(choices: Any) -> Mapping[str, Any]:
    first = choices[0] if isinstance(choices, list) and choices else {}
    return first if isinstance(first, Mapping) else {}


def _finish(choices: Iterable[Mapping[str, Any]]) -> str | None:
    """The last reason to finish; UnreadableReplyError where it is the server's trouble, one word for all filters."""
    reasons = [str(c["finish_reason"]) for c in choices if c.get("finish_reason")]
    if not reasons:
        return None
    if reasons[-1].lower() in _BROKEN_OFF:
        raise UnreadableReplyError(f"the server broke the reply off ({reasons[-1][:40]})")
    return DECLINED if reasons[-1].lower() in _DECLINED else reasons[-1]


def _completion(messages: list[Any], finish: str | None, document: Mapping[str, Any]) -> Completion:
    parts = [m for m in messages if isinstance(m, Mapping)]
    usage = document.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    return Completion(
        content=_joined(m.get("content") for m in parts),
        reasoning=_joined(next((m[f] for f in _REASONING_FIELDS if m.get(f)), None) for m in parts),
        finish_reason=DECLINED if _blocked(document) else finish,
        refusal=_joined(m.get("refusal") for m in parts),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        served={k: _clean(str(document[k])) for k in ("model", "system_fingerprint") if document.get(k)},
    )


def _blocked(document: Mapping[str, Any]) -> bool:
    """Whether a filter kept the prompt from the model, as Gemini tells it beside empty choices."""
    feedback = document.get("promptFeedback") or document.get("prompt_feedback")
    return isinstance(feedback, Mapping) and bool(feedback.get("blockReason") or feedback.get("block_reason"))


def _joined(pieces: Iterable[Any]) -> str | None:
    return _clean("".join(_text(piece) for piece in pieces)) or None


def _clean(text: str) -> str:
    """The text with halves of characters replaced: no database stores a lone surrogate."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _text(piece: Any) -> str:
    if isinstance(piece, str):
        return piece
    if isinstance(piece, list):
        return "".join(str(p.get("text") or "") for p in piece if isinstance(p, Mapping) and p.get("type") == "text")
    return ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
