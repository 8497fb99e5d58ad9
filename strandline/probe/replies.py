"""Reading a model's reply to a round: text in, one answer a question out, nothing guessed.

A question that the reply does not clearly answer is missing and says why; it is never UNKNOWN, which is an answer that
a model gives. Sending and retrying belong to the resources.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from strandline.probe import LABELS, Answer, Label
from strandline.probe.questions import FIRST_INDEX
from strandline.probe.thoughts import is_thought_name, without_reasoning

# The example of `CHAT_FORMAT` repeated in a reply, which is no answer.
_ECHOED_FORMAT = re.compile(
    r'\{\s*"answers"\s*:\s*\[\s*\{\s*"index"\s*:\s*1\s*,\s*"answer"\s*:\s*"YES"\s*\}\s*,\s*(?:…|\.{3})\s*\]\s*\}'
)
# Typographic quotes and the plain ones that JSON needs.
_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'"})
# A comma before a closing bracket, which JSON forbids.
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_INDEX_NAMES = ("index", "question", "number", "question_number", "question_index", "idx", "no", "id", "q", "n", "i")
"""Keys under which models number an answer, the likeliest first."""
_ANSWER_NAMES = ("answer", "reply", "response", "label", "value", "verdict", "result", "a")
"""Keys under which models give one."""
# A key that lacks its double quotes.
_BARE_KEY = re.compile(r"([{,]\s*)'?([A-Za-z_]+|\d+)'?\s*:")
# An answer that lacks its quotes.
_BARE_WORD = re.compile(r"([:\[,]\s*)(YES|NO|UNKNOWN)(?=\s*[,}\]])", re.IGNORECASE)
# A value in single quotes.
_SINGLE_QUOTED = re.compile(r"([:\[,]\s*)'([^'\"]*)'(?=\s*[,}\]])")
_LINE = re.compile(
    r"^[\s>*_`|\[(#-]*(?:Q(?:uestion)?\.?\s*)?#?(?P<index>\d{1,4})(?:\.0)?\s*[.):\]|,;=→\t-](?:[^\n]*[?:→|,;=\t—–-])?"
    r"[\s*_`\"'\]|]*(?P<label>YES|NO|UNKNOWN)[\s*_.`\"'|,;]*$",
    re.MULTILINE | re.IGNORECASE,
)
# Two lines of `key: value` after each other, as YAML writes one entry of the list.
_YAML = re.compile(
    r"^[ \t-]*(?P<first>[A-Za-z_]+)[ \t]*:[ \t]*(?P<one>[^\n]*?)[ \t]*\n"
    r"[ \t]*(?P<second>[A-Za-z_]+)[ \t]*:[ \t]*(?P<two>[^\n]*?)[ \t]*$",
    re.MULTILINE,
)
# A line of a list that holds one answer and nothing else.
_BULLET = re.compile(r"^[ \t]*[-*•][ \t]+[*_`\"']*(YES|NO|UNKNOWN)[*_.`\"']*[ \t]*$", re.MULTILINE | re.IGNORECASE)
# Any of the three answers as a whole word.
_ANY_LABEL = re.compile(r"\b(?:YES|NO|UNKNOWN)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\W*(?:q(?:uestion)?)?[\s_.#:-]*(\d{1,4})(?:\.0+)?\W*", re.IGNORECASE)
_BEGINS_AS_ANSWER = re.compile(
    r"\s*(?:```\w*\s*)?(?:[{\[\"]|answers\s*:|[-|*_#>\s(]*(?:Q(?:uestion)?\.?\s*)?#?\d{1,4}\b)", re.IGNORECASE
)
"""How a reply begins that goes straight to its answers. A cut reply that begins otherwise may hold drafts only."""
# Where JSON may begin: a bracket, or a quote before one.
_STARTS = re.compile(r"[{\[]|\"(?=\s*[{\[])")
# A JSON string, also one that is cut off at the end.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*(?:"|$)', re.DOTALL)
_TRIES = 500
"""Places at which a JSON text is tried for in one reply: a round has 24 entries, and the rest is hostile."""
_DEEPEST = 20
"""Levels of nesting that are looked through, JSON in JSON included."""
# The usual English words of a refusal.
_REFUSAL = re.compile(
    r"\b(?:I(?:'m| am) (?:sorry|unable|not able)|I (?:can(?:not|'t)|won't|will not)|cannot (?:help|assist|comply)|"
    r"unable to (?:help|assist|comply)|as an AI)\b",
    re.IGNORECASE,
)

Pair = tuple[int, object]


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

    Whole entries of a cut JSON are kept where the reply goes straight to its answers; a cut reply that begins with
    prose may be one of thoughts that bear no mark, and holds no answer. Entries that contradict each other leave their
    question ``conflicting``; indices outside the round are dropped; a reply that counts from 0 without a gap is
    shifted. An answer other than
    YES, NO or UNKNOWN is ``unparsed``.
    """
    if n_questions < 1:
        raise ValueError("a round has at least one question")
    visible = without_reasoning(text or "")
    is_cut = finish_reason == "length"
    found = {} if is_cut and not _BEGINS_AS_ANSWER.match(visible) else _entries(visible, n_questions, is_cut)
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


def _entries(visible: str, n_questions: int, is_cut: bool) -> dict[int, list[object]]:
    """Numbered answers, every value that was given for a number, from the first form that the reply uses."""
    text = _ECHOED_FORMAT.sub(" ", visible).translate(_QUOTES)
    if n_questions == 1 and read_label(text):
        return {FIRST_INDEX: [text]}
    as_json = [_in_range(pairs, n_questions) for pairs in _json_pairs(text, n_questions, is_cut)]
    for pairs in (max(as_json, key=len), _yaml(text), _lines(text), _bullets(text, n_questions)):
        numbered = pairs if isinstance(pairs, dict) else _in_range(list(pairs), n_questions)
        if numbered:
            return numbered
    return {}


def _json_pairs(text: str, n_questions: int, is_cut: bool) -> Iterator[list[Pair]]:
    """Pairs of the JSON in a reply: as it stands, then with its usual blemishes mended, then inside broken strings."""
    mended = _TRAILING_COMMA.sub(r"\1", text)
    requoted = _BARE_WORD.sub(r'\1"\2"', _SINGLE_QUOTED.sub(r'\1"\2"', _BARE_KEY.sub(r'\1"\2":', mended)))
    variants = dict.fromkeys((text, mended, requoted))
    for reads_strings in (False,) if is_cut else (False, True):
        for variant in variants:
            documents = list(_documents(variant, reads_strings))
            yield [pair for document in documents for pair in _pairs(document, n_questions, 0)]


def _documents(text: str, reads_strings: bool) -> Iterator[Any]:
    """The largest JSON values that can be read in a text, from left to right; in a broken one, those inside it.

    What stands in a string of a broken one is no JSON of the reply, unless ``reads_strings``.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_Object)
    at, tries, broken_from = 0, 0, None
    while tries < _TRIES and (match := _STARTS.search(text, at)):
        at = match.start()
        if broken_from is not None and text[at] == '"':
            at += 1
            continue
        if broken_from is not None and not reads_strings and (end := _string_end(text, broken_from, at)):
            at, broken_from = end, end
            continue
        tries += 1
        try:
            document, at = decoder.raw_decode(text, at)
            broken_from = at if broken_from is not None else None
            yield document
        except (ValueError, RecursionError):
            broken_from = at
            at += 1


def _string_end(text: str, start: int, at: int) -> int | None:
    """The end of the string that holds place ``at``, strings being counted from ``start``; None outside of strings."""
    for match in _STRING.finditer(text, start):
        if match.start() >= at:
            return None
        if match.end() > at:
            return match.end()
    return None


class _Object(dict[str, Any]):
    """A JSON object by its keys in small letters; ``pairs`` keeps keys that are given twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__((key.strip().lower(), value) for key, value in pairs)
        self.pairs = [(key.strip().lower(), value) for key, value in pairs]

    def named(self, names: tuple[str, ...]) -> tuple[bool, Any]:
        """Whether one of these keys is there, and its value; none where a key is given twice."""
        name = next((name for name in names if name in self), None)
        if name is None or sum(key == name for key, _ in self.pairs) > 1:
            return False, None
        return True, self[name]


def _pairs(document: Any, n_questions: int, depth: int) -> Iterator[Pair]:
    """Every numbered answer in a JSON value, in order; nothing from what is named as a thought."""
    if depth > _DEEPEST:
        return
    if isinstance(document, list):
        yield from _listed(document, n_questions, depth)
    elif isinstance(document, str):
        inner = next(_documents(document, False), None) if document.lstrip()[:1] in ("{", "[") else None
        yield from _pairs(inner, n_questions, depth + 1)
    elif isinstance(document, _Object):
        yield from _in_object(document, n_questions, depth)


def _in_object(entry: _Object, n_questions: int, depth: int) -> Iterator[Pair]:
    """One object as an entry, as a map of numbers to answers, or as what holds them."""
    numbers = [_number(value) for has, value in (entry.named((name,)) for name in _INDEX_NAMES) if has]
    index = next((number for number in numbers if number is not None), None)
    has_answer, answer = entry.named(_ANSWER_NAMES)
    numbered = [(number, value) for key, value in entry.pairs if (number := _number(key)) is not None]
    if index is not None and has_answer:
        yield index, _said(answer)
    elif any(read_label(_said(value)) for _, value in numbered):
        yield from ((number, _said(value)) for number, value in numbered)
    elif index is None:
        for key, value in entry.pairs:
            if not is_thought_name(key):
                yield from _pairs(value, n_questions, depth + 1)


def _listed(values: list[Any], n_questions: int, depth: int) -> Iterator[Pair]:
    """A list of entries; of pairs; or of one bare answer, or one object with nothing but an answer, a question."""
    said = [_bare(value) for value in values]
    if len(values) == n_questions and None not in said and any(read_label(value) for value in said):
        yield from enumerate(said, FIRST_INDEX)
        return
    for value in values:
        if isinstance(value, list) and len(value) == 2 and _number(value[0]) is not None and read_label(value[1]):
            yield int(_number(value[0]) or 0), value[1]
        else:
            yield from _pairs(value, n_questions, depth + 1)


def _bare(value: Any) -> object:
    """An answer without a number, where a list holds one a question; None for anything else."""
    if isinstance(value, str) and value.lstrip()[:1] not in ("{", "["):
        return value
    if not isinstance(value, _Object) or any(_number(value.get(name)) is not None for name in _INDEX_NAMES):
        return None
    has, answer = value.named(_ANSWER_NAMES)
    return _said(answer) if has and read_label(_said(answer)) else None


def _said(value: Any) -> object:
    """An answer itself, also where it stands in an object or a list of its own."""
    if isinstance(value, list) and len(value) == 1:
        return _said(value[0])
    if isinstance(value, _Object):
        has, answer = value.named(_ANSWER_NAMES)
        return answer if has else None
    return value


def _yaml(text: str) -> Iterator[Pair]:
    """Entries of two lines, ``index: 1`` and ``answer: YES`` in either order, as YAML writes them."""
    for match in _YAML.finditer(text):
        entry = _Object([(match["first"], match["one"]), (match["second"], match["two"])])
        yield from _in_object(entry, 0, 0)


def _bullets(text: str, n_questions: int) -> Iterator[Pair]:
    """A list of one bare answer a question, in order."""
    found = _BULLET.findall(text)
    if len(found) == n_questions:
        yield from enumerate(found, FIRST_INDEX)


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


def _lines(text: str) -> Iterator[tuple[int, object]]:
    """Lines such as ``3. NO`` or ``3) Had React released version 19.0.0 yet? NO``: one number, one answer."""
    for match in _LINE.finditer(text):
        if len(_ANY_LABEL.findall(match[0])) == 1:
            yield int(match["index"]), match["label"]


def _number(value: object) -> int | None:
    """A question's number however it is written: 1, 1.0, "1.", "Q1", "[1]"; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    match = _NUMBER.fullmatch(str(value)) if len(str(value)) <= 20 and "-" not in str(value) else None
    return int(match[1]) if match else None
