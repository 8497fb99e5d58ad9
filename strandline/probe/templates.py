"""A chat as a model's own template renders it: what was asked stands in it, no date does, no thought is open. Pure.

Templates are code of strangers. Some drop a system text, some write today's date or a cutoff date before the question,
some end inside the model's thoughts. What is seen here is the text that the model is given; a server's template is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from strandline.probe.thoughts import closing_mark, open_thought

Messages = Sequence[Mapping[str, str]]

# English names of months, whole or shortened.
_MONTHS = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?"
)
_DATE = re.compile(
    rf"(?<![\d.])(?:19|20)\d\d(?![\d.]?\d)|\b\d{{1,2}}[./-]\d{{1,2}}[./-]\d{{2,4}}\b|\b(?:{_MONTHS})\.? \d{{1,2}}\b|"
    rf"\b\d{{1,2}}\.? (?:{_MONTHS})\b|(?:cut.?off|today'?s?|current|knowledge) date|knowledge cut.?off",
    re.IGNORECASE,
)
"""A year from 1900 to 2099, a day of a month, or words that announce one."""
_PHRASE = re.compile(r"[^\n<>\[\]|｜]+")
"""What stands between line ends and marks of a template: the smallest part that is left out for a date in it."""
_NO_DATE = {"date_string": "", "current_date": "", "today": "", "date": "", "strftime_now": lambda _: ""}
"""What templates take a date from (Llama, Mistral, gpt-oss and those after them), given as nothing."""


class PromptError(ValueError):
    """A chat template that does not say what we ask, or leaves no place for an answer."""


def chat_text(tokenizer: Any, messages: Messages, *, closes_thoughts: bool = True) -> str:
    """Messages in the model's own chat template, up to where its reply begins.

    Args:
        tokenizer: has the template.
        messages: what is asked, the system text first.
        closes_thoughts: whether the reply must begin outside of thoughts: thinking is switched off where the template
            knows a switch, and closed at once where it does not.

    Where the template knows no system role, or leaves its text out, that text stands at the head of the user's turn.
    A date that the template writes of itself is left out, with the phrase that it stands in.

    Raises:
        PromptError: the rendered text lacks something that was asked, or ends inside thoughts that cannot be closed.
    """
    settings = _thinking_off(tokenizer) if closes_thoughts else {}
    text, given = _complete(lambda chat, more: _rendered(tokenizer, chat, {**settings, **more}), messages)
    text = _without_dates(text, given)
    tail = text[_spans(text, given)[-1][1] :]
    thought = open_thought(tail)
    return _closed(text, tail[thought.start : thought.end]) if thought and closes_thoughts else text


def _rendered(tokenizer: Any, messages: Messages, settings: Mapping[str, Any]) -> str:
    given = [dict(m) for m in messages]
    return str(tokenizer.apply_chat_template(given, tokenize=False, add_generation_prompt=True, **settings))


def _complete(render: Callable[[Messages, Mapping[str, Any]], str], messages: Messages) -> tuple[str, Messages]:
    """The rendered text that holds all messages, and the messages as they stand in it."""
    folded = [{"role": "user", "content": "\n\n".join(m["content"] for m in messages)}]
    try:
        text = render(messages, {})
    except Exception as error:  # templates raise whatever they like for a role that they do not know
        if "system" not in str(error).lower() and "role" not in str(error).lower():
            raise
        text = ""
    given = messages if _holds(text, messages) else folded
    text = text if given is messages else render(folded, {})
    if not _holds(text, given):
        raise PromptError("the model's chat template leaves out the question or the instructions: ask it another way")
    return (render(given, _NO_DATE), given) if _DATE.search(_of_template(text, given)) else (text, given)


def _holds(text: str, messages: Messages) -> bool:
    """Whether every message stands in a text, blanks aside, in order."""
    at, flat = 0, _flat(text)
    for message in messages:
        at = flat.find(_flat(message["content"]), at)
        if at < 0:
            return False
        at += len(_flat(message["content"]))
    return True


def _flat(text: str) -> str:
    return "".join(text.split())


def _spans(text: str, messages: Messages) -> list[tuple[int, int]]:
    """Where each message stands in a text that holds them all; blanks may differ."""
    spans, at = [], 0
    for message in messages:
        match = re.compile(r"\s*".join(map(re.escape, message["content"].split()))).search(text, at)
        if match is None:
            raise PromptError("the model's chat template changes the words of the question: ask it another way")
        spans.append(match.span())
        at = match.end()
    return spans


def _of_template(text: str, messages: Messages) -> str:
    """What the template says of itself, the messages left out."""
    return "\n".join(_around(text, messages)[::2])


def _around(text: str, messages: Messages) -> list[str]:
    """The text in parts: the template's, a message, the template's, and so on."""
    parts, at = [], 0
    for start, end in _spans(text, messages):
        parts += [text[at:start], text[start:end]]
        at = end
    return [*parts, text[at:]]


def _without_dates(text: str, messages: Messages) -> str:
    """The text without the phrases in which the template tells a date."""
    parts = _around(text, messages)
    parts[::2] = [_PHRASE.sub(lambda m: "" if _DATE.search(m[0]) else m[0], part) for part in parts[::2]]
    return "".join(parts)


def _thinking_off(tokenizer: Any) -> dict[str, Any]:
    """Settings that switch thinking off, of those that the template itself mentions."""
    template = str(getattr(tokenizer, "chat_template", "") or "")
    return {name: False for name in ("enable_thinking", "thinking") if re.search(rf"\b{name}\b", template)}


def _closed(text: str, mark: str) -> str:
    """The text with its open thought closed by what belongs to the mark. PromptError where that is not known."""
    end = closing_mark(mark)
    if end is None:
        raise PromptError(f"the model's chat template ends inside its thoughts ({mark.strip()}): ask it with chat")
    return f"{text.rstrip()}\n{end}\n\n"
