"""Telling a model's thoughts from its reply: whatever opens like a thought hides what follows until it is closed. Pure.

Marks of thought differ from model to model and new ones appear, so none is listed. A mark is recognised by its form (a
tag in brackets of whatever kind, ``START_…`` and ``END_…``, a channel that is named) and by its name, which is any word
of thinking, or any word at all that is not one of an answer, of a turn, or of plain markup.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_THOUGHT = re.compile(
    r"think|thought|reason|analy[sz]|reflect|scratch|ponder|deliberat|contemplat|rationale|cogitat|monolog|introspect|"
    r"brainstorm|musing|draft|commentary|inner|(?:^|[\W_])cot(?:$|[\W_])|思|推理|дума|размышл|denk|gedank|réflex|pens",
    re.IGNORECASE,
)
"""Words and stems of thinking in the languages that models mark their thoughts in."""
_NEUTRAL = re.compile(
    r"(?:final|answers?|repl(?:y|ies)|response|respond|output|results?|solution|conclusion|json|ya?ml|text|message|"
    r"assistant|chat|bot|token|sequence|data|file|line|model|user|system|human|tool|turn|header|role|im|eot|eos|bos|eom|sep|pad|sot|id|s|start|end|begin|"
    r"stop|open|close|of|a|b|i|p|u|br|hr|em|ul|ol|li|dl|dt|dd|td|tr|th|h\d|table|tbody|thead|code|pre|div|span|strong|"
    r"sub|sup|html|body|details|summary|return|inst|yes|no|unknown|version|number|\d+|[ _\-/|:.])+",
    re.IGNORECASE,
)
"""Names that belong to answers, to turns of a chat, to plain markup, or to this probe's own words."""
# Tags around thoughts in the brackets that models use: angle, square, ornamental or braces.
_MARK = re.compile(
    r"<[|｜]?\s?(?P<close>/)?(?P<name>[^\W\d][\w:.\- ]{0,39}?)\s?[|｜]?(?P<self>/)?>|"
    r"\[(?P<close2>/)?(?P<name2>[^\W\d][\w \-]{2,29})\]|"
    r"[◁【⟨«](?P<close3>/)?(?P<name3>[^\W\d][\w \-]{0,29})[▷】⟩»]|"
    r"\{\{?(?P<close4>/)(?P<name4>[^\W\d]\w{0,29})\}\}?"
)
# The name of a tag that itself says which side it is, at its start or at its end.
_SIDES = re.compile(
    r"^(start|begin|open|end|close|stop)(?:_?of)?_+(.+)$|^(.+?)_+(start|begin|prefix|end|close|suffix)$", re.I
)
# Words of such a name that open; the others close.
_OPENS = ("start", "begin", "open", "prefix")
# The mark of a channel with its name, and the mark of the message after it.
_CHANNEL = re.compile(r"<\|channel\|?>\s*(\w+)(?:[^<\n{]{0,60}<\|message\|>)?", re.IGNORECASE)


@dataclass(frozen=True)
class Mark:
    """Something that opens or closes a stretch of text: its name, where it stands, and whether it is of thought."""

    name: str
    opens: bool
    start: int
    end: int
    is_thought: bool


def without_reasoning(text: str) -> str:
    """The text without its thoughts; one that is never closed hides everything after it.

    A closing mark of thought whose opening is not there (the prompt held it) hides everything before it. A stretch
    under a name that is neither of thought nor of answers is shown only where it is closed.
    """
    marks = list(_marks(text))
    closes = [mark for mark in marks if mark.is_thought and not mark.opens]
    orphan = [mark for mark in closes if not any(_matches(m, mark) and m.start < mark.start for m in marks)]
    start = max((mark.end for mark in orphan), default=0)
    shown: list[str] = []
    at = start
    for mark in marks:
        if mark.start < at or not mark.opens:
            continue
        end = _closing(mark, marks)
        if end is None:
            return "".join([*shown, text[at : mark.start]]).strip()
        if mark.is_thought:
            shown += [text[at : mark.start], " "]
            at = end
    return "".join([*shown, text[at:]]).strip()


def open_thought(text: str) -> Mark | None:
    """The mark of thought that is still open at the end of a text; None where there is none."""
    marks = list(_marks(text))
    return next((m for m in marks if m.opens and m.is_thought and _closing(m, marks) is None), None)


def closing_mark(mark: str) -> str | None:
    """What closes an opening mark, in the mark's own form; None where its form does not tell."""
    for opening, closing in (("start", "end"), ("begin", "end"), ("open", "close"), ("prefix", "suffix")):
        for word, end in ((opening, closing), (opening.upper(), closing.upper())):
            if word in mark:
                return mark.replace(word, end, 1)
    return None if mark.startswith(("<|", "<｜")) else f"{mark[0]}/{mark[1:]}"


def is_thought_name(name: str) -> bool:
    """Whether a name says that what it names are thoughts."""
    return bool(_THOUGHT.search(name))


def _closing(mark: Mark, marks: list[Mark]) -> int | None:
    """Where the stretch that a mark opens ends: at the close that balances it, else at the last close of its name."""
    depth, last = 1, None
    for other in marks:
        if other.start < mark.end or other.name != mark.name:
            continue
        depth += 1 if other.opens else -1
        last = None if other.opens else other.end
        if depth == 0:
            return other.end
    return last


def _matches(opening: Mark, closing: Mark) -> bool:
    return opening.opens and not closing.opens and opening.name == closing.name


def _marks(text: str) -> list[Mark]:
    """Every mark of thought, and every other named stretch that hides until it is closed, in order."""
    found = [_channel(match) for match in _CHANNEL.finditer(text)]
    taken = {mark.start for mark in found}
    for match in _MARK.finditer(text):
        if match.start() not in taken and (mark := _mark(match)):
            found.append(mark)
    return sorted(_paired(found), key=lambda mark: mark.start)


def _channel(match: re.Match[str]) -> Mark:
    """A named channel: any but the final one is of thought, and the next channel closes it."""
    return Mark("channel", match[1].lower() not in ("final", "response", "answer"), match.start(), match.end(), True)


def _mark(match: re.Match[str]) -> Mark | None:
    name = next(match[g] for g in ("name", "name2", "name3", "name4") if match[g]).strip().lower()
    closes = any(match[g] for g in ("close", "close2", "close3", "close4"))
    sides = _SIDES.match(name)
    if sides:
        name = (sides[2] or sides[3]).strip("_ ")
        closes = (sides[1] or sides[4]).lower() not in _OPENS
    is_thought = bool(_THOUGHT.search(name))
    is_plain = match[0].startswith("<") and not match[0].startswith("<|")
    if match["self"] or (not is_thought and (_NEUTRAL.fullmatch(name) or not (is_plain or sides))):
        return None
    return Mark(name, not closes, match.start(), match.end(), is_thought)


def _paired(marks: list[Mark]) -> list[Mark]:
    """Without closing marks of names that are not of thought and that nothing opened."""
    opened = {mark.name for mark in marks if mark.opens}
    return [mark for mark in marks if mark.opens or mark.is_thought or mark.name in opened]
