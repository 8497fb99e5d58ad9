"""Reading a model's reply to a round: text in, one answer a question out, nothing guessed.

A question that the reply does not clearly answer is missing and says why; it is never UNKNOWN, which is an answer that
a model gives. Sending and retrying belong to the resources.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from strandline.probe import LABELS, Answer, Label
from strandline.probe.questions import FIRST_INDEX

_THINK_TAGS = r"think|thinking|thought|reasoning|analysis"
_THINK_BLOCK = re.compile(rf"(<({_THINK_TAGS})>.*?</\2>|\[THINK\].*?\[/THINK\])", re.DOTALL | re.IGNORECASE)
_THINK_END = re.compile(rf"</(?:{_THINK_TAGS})>|\[/THINK\]|<\|channel\|>final<\|message\|>", re.IGNORECASE)
_THINK_START = re.compile(rf"<(?:{_THINK_TAGS})>|\[THINK\]|<\|channel\|>(?:analysis|commentary)", re.IGNORECASE)
_ECHOED_FORMAT = re.compile(
    r'\{\s*"answers"\s*:\s*\[\s*\{\s*"index"\s*:\s*1\s*,\s*"answer"\s*:\s*"YES"\s*\}\s*,\s*(?:…|\.{3})\s*\]\s*\}'
)
_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'"})
_OBJECT = re.compile(r"\{[^{}]*\}")
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_INDEX_NAMES = ("index", "question", "number", "id", "q", "n")
_BARE_KEY = re.compile(r"([{,]\s*)'?([A-Za-z_]+|\d+)'?\s*:")
_SINGLE_QUOTED = re.compile(r":\s*'([^'\"]*)'")
_LINE = re.compile(
    r"^[\s>*_-]*(?:Q(?:uestion)?\.?\s*)?#?(?P<index>\d{1,4})\s*[.):\]|-](?:[^\n]*[?:→|—–-])?[\s*_`\"]*"
    r"(?P<label>YES|NO|UNKNOWN)[\s*_.`\"|]*$",
    re.MULTILINE | re.IGNORECASE,
)
_ANY_LABEL = re.compile(r"\b(?:YES|NO|UNKNOWN)\b", re.IGNORECASE)
_REFUSAL = re.compile(
    r"\b(?:I(?:'m| am) (?:sorry|unable|not able)|I (?:can(?:not|'t)|won't|will not)|cannot (?:help|assist|comply)|"
    r"unable to (?:help|assist|comply)|as an AI)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ParsedReply:
    """What a reply says: one answer a question, and what became of the reply as a whole.

    ``status`` is ``ok`` (every question answered), ``partial`` (some), or, where no question was answered, ``empty``,
    ``truncated``, ``refused`` or ``unparsed``; ``reason`` is a plain sentence unless the status is ``ok``.
    """

    answers: tuple[Answer, ...]
    status: str
    reason: str | None = None

    @property
    def n_answered(self) -> int:
        """How many questions were answered."""
        return sum(a.answer is not None for a in self.answers)


def read_reply(
    text: str | None, n_questions: int, finish_reason: str | None = None, refusal: str | None = None
) -> ParsedReply:
    """Read a round's reply.

    Args:
        text: the reply's content, with or without reasoning in it; None where the server sent none.
        n_questions: how many questions were numbered, from ``FIRST_INDEX``.
        finish_reason: the server's word; ``length`` tells a cut reply from a wrong one.
        refusal: the server's refusal text where it has a field for it.

    Whole entries of a cut JSON are kept. Entries that contradict each other leave their question ``conflicting``;
    indices outside the round are dropped; a reply that counts from 0 without a gap is shifted. An answer other than
    YES, NO or UNKNOWN is ``unparsed``.
    """
    if n_questions < 1:
        raise ValueError("a round has at least one question")
    visible = without_reasoning(text or "")
    found = _entries(visible, n_questions)
    if not found:
        status, reason = _why_nothing(text or "", visible, finish_reason, refusal)
        return ParsedReply(_nothing(n_questions, status), status, reason)
    answers = tuple(_answer(i, found.get(i + FIRST_INDEX), finish_reason) for i in range(n_questions))
    missing = [a for a in answers if a.answer is None]
    if not missing:
        return ParsedReply(answers, "ok")
    status = "partial" if len(missing) < n_questions else "unparsed"
    why = ", ".join(sorted({a.parse_status for a in missing}))
    return ParsedReply(answers, status, f"{len(missing)} of {n_questions} questions have no answer ({why})")


def without_reasoning(text: str) -> str:
    """The reply without its think blocks; a block that never closes hides everything after it."""
    text = _THINK_BLOCK.sub(" ", text)
    ends = list(_THINK_END.finditer(text))
    if ends:
        text = text[ends[-1].end() :]
    start = _THINK_START.search(text)
    return text[: start.start()].strip() if start else text.strip()


def read_label(value: object) -> Label | None:
    """YES, NO or UNKNOWN from an answer as models write it (case, full stops and asterisks aside); None otherwise."""
    word = value.strip(" \t\n.!*_`\"'").upper() if isinstance(value, str) else ""
    return next((label for label in LABELS if label == word), None)


def _nothing(n_questions: int, status: str) -> tuple[Answer, ...]:
    return tuple(Answer(i, None, parse_status=status) for i in range(n_questions))


def _why_nothing(text: str, visible: str, finish_reason: str | None, refusal: str | None) -> tuple[str, str]:
    if refusal or finish_reason == "content_filter":
        return "refused", "the model declined to answer"
    if finish_reason == "length":
        return "truncated", "the token budget ended before the first whole answer"
    if not visible:
        return "empty", "the reply holds only reasoning" if text.strip() else "the reply is empty"
    if _REFUSAL.search(visible.translate(_QUOTES)):
        return "refused", "the model declined to answer"
    return "unparsed", "no answer to a numbered question can be read from the reply"


def _answer(index: int, values: list[object] | None, finish_reason: str | None) -> Answer:
    if values is None:
        return Answer(index, None, parse_status="truncated" if finish_reason == "length" else "missing")
    labels = {read_label(value) for value in values}
    if len(labels) > 1:
        return Answer(index, None, parse_status="conflicting")
    label = labels.pop()
    return Answer(index, label) if label else Answer(index, None, parse_status="unparsed")


def _entries(visible: str, n_questions: int) -> dict[int, list[object]]:
    """Numbered answers, every value that was given for a number, from the first form that the reply uses."""
    text = _ECHOED_FORMAT.sub(" ", visible).translate(_QUOTES)
    if n_questions == 1 and read_label(text):
        return {FIRST_INDEX: [text]}
    for pairs in (_listed(text, n_questions), _objects(text), _lines(text)):
        numbered = _in_range(list(pairs), n_questions)
        if numbered:
            return numbered
    return {}


def _in_range(pairs: list[tuple[int, object]], n_questions: int) -> dict[int, list[object]]:
    numbers = [number for number, _ in pairs]
    counts_from_zero = numbers == list(range(len(numbers))) and FIRST_INDEX == 1 and len(numbers) <= n_questions
    if not counts_from_zero and 0 in numbers:
        return {}
    found: dict[int, list[object]] = {}
    for number, value in pairs:
        index = number + counts_from_zero
        if FIRST_INDEX <= index < FIRST_INDEX + n_questions:
            found.setdefault(index, []).append(value)
    return found


def _listed(text: str, n_questions: int) -> Iterator[tuple[int, object]]:
    """A whole JSON document that lists one bare answer a question, in order."""
    start = min((i for i in (text.find("{"), text.find("[")) if i >= 0), default=-1)
    document = _loads(text[start:], whole=False) if start >= 0 else None
    values = document.get("answers") if isinstance(document, Mapping) else document
    if isinstance(values, list) and len(values) == n_questions and all(isinstance(v, str) for v in values):
        yield from enumerate(values, FIRST_INDEX)


def _objects(text: str) -> Iterator[tuple[int, object]]:
    """Every innermost JSON object that numbers an answer, or maps numbers to answers."""
    for match in _OBJECT.finditer(text):
        entry = _loads(match[0])
        if not isinstance(entry, Mapping):
            continue
        index = next((_number(entry[name]) for name in _INDEX_NAMES if name in entry), None)
        if index is not None and "answer" in entry:
            yield index, entry["answer"]
        elif entry and all(_number(key) is not None for key in entry):
            yield from ((int(key), value) for key, value in entry.items())


def _lines(text: str) -> Iterator[tuple[int, object]]:
    """Lines such as ``3. NO`` or ``3) Had React released version 19.0.0 yet? NO``: one number, one answer."""
    for match in _LINE.finditer(text):
        if len(_ANY_LABEL.findall(match[0])) == 1:
            yield int(match["index"]), match["label"]


def _loads(text: str, whole: bool = True) -> Any:
    """JSON, its usual blemishes mended (trailing commas, bare or single-quoted keys and words); None if hopeless."""
    mended = _TRAILING_COMMA.sub(r"\1", text)
    requoted = _SINGLE_QUOTED.sub(r': "\1"', _BARE_KEY.sub(r'\1"\2":', mended))
    for candidate in (text, mended, requoted):
        try:
            return (
                json.loads(candidate, object_pairs_hook=_unique)
                if whole
                else json.JSONDecoder().raw_decode(candidate)[0]
            )
        except (ValueError, RecursionError):
            continue
    return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key is given twice")
    return dict(pairs)


def _number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    text = str(value).strip().removeprefix("#")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else None
