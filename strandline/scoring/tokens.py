"""Token ids of texts that nobody vouches for: text is text, also where it spells one of a tokenizer's control tokens.

A page about chat templates contains ``<|im_end|>`` as nine characters, and as these it stood in training data; read as
the control token it would end a turn in the middle of a text. Only what a caller writes itself (BOS, a chat template)
becomes a control token.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

MOST_CHARACTERS_PER_TOKEN = 8
"""How far into a text its first tokens are looked for: English has 4 to 5 characters a token and markup fewer; where 8
do not suffice the whole text is tokenized, which costs time and changes nothing."""

_TEXTS_AT_ONCE = 32
"""Texts given to a fast tokenizer together, which divides them among its threads; more only takes memory."""

_WORDS_LEFT_BEHIND = 2
"""Words between the last id that is used and the cut: the cut may change the word it goes through, and, where a word's
end depends on what follows it (a blank before a letter), the one before."""

_MARKUP = re.compile(r"[<\[{｜|]\S*[>\]}｜|]")
"""How control tokens are written that a tokenizer does not call special: in brackets or bars, without a blank."""

_MARK = "\ufdd0{}\ufdd1"
"""Stands for a control token's spelling while a template is rendered: Unicode keeps these two code points out of all
text, so that nothing in a text is mistaken for them."""

_MARKED = re.compile("(\ufdd0[0-9]+\ufdd1)")
"""The same, to find the marks again."""

_LOCK = threading.RLock()
"""Two threads that meet a tokenizer first make one reader between them."""

_READERS: WeakKeyDictionary[Any, _TextReader | None] = WeakKeyDictionary()
"""The reader of each tokenizer, for as long as the tokenizer is there."""


def token_ids(tokenizer: Any, texts: Sequence[str], max_tokens: int | None = None) -> list[list[int]]:
    """The first ``max_tokens`` ids of each whole text's tokenization, without special tokens.

    Long texts are not tokenized to their end where the pre-tokenizer cuts text into words: words are cut and encoded
    from left to right, so those that end well before the end of a prefix have the same ids in the whole text. Where a
    prefix does not reach ``max_tokens`` ids and two words beyond, or where the tokenizer has no words, the whole text
    is tokenized.

    Raises ValueError for a text that is none, or that holds half of a surrogate pair, and for a limit below 1.
    """
    _refuse_unreadable(texts, max_tokens)
    reader = _reader(tokenizer)
    if reader is None:
        return [_slow_ids(tokenizer, text)[:max_tokens] for text in texts]
    found: list[list[int]] = []
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        found += reader.ids(texts[start : start + _TEXTS_AT_ONCE], max_tokens)
    return found


def guarded(tokenizer: Any, text: str) -> str:
    """The text with a mark in place of every spelling of a control token, to go through a chat template.

    ``ids_of_prompt`` takes the marks back. A text that spells none is unchanged.
    """
    controls = _controls(tokenizer)
    pattern = "|".join(re.escape(token) for token in sorted(controls, key=len, reverse=True))
    return re.sub(pattern, lambda found: _MARK.format(controls.index(found[0])), text) if controls else text


def ids_of_prompt(tokenizer: Any, prompt: str) -> list[int]:
    """Ids of a rendered template: its own control tokens are tokens, what ``guarded`` marked is text."""
    parts = _MARKED.split(prompt)
    if len(parts) == 1:
        return [int(i) for i in tokenizer(prompt, add_special_tokens=False)["input_ids"]]
    controls = _controls(tokenizer)
    ids: list[int] = []
    for part in parts:
        if _MARKED.fullmatch(part) and (place := int(part[1:-1])) < len(controls):
            ids += token_ids(tokenizer, [controls[place]])[0]
        else:
            ids += [int(i) for i in tokenizer(part, add_special_tokens=False)["input_ids"]]
    return ids


def without_trimming(tokenizer: Any) -> Any:
    """The tokenizer, told to give every id of a text and no other.

    Its file may ask for cutting and padding, which ``token_ids`` would then do unasked: a shorter limit than ours, and
    scores of ids that are in no text.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        backend.no_truncation()
        backend.no_padding()
    return tokenizer


@dataclass(frozen=True, eq=False)
class _TextReader:
    """A fast tokenizer of its own for texts: a shared one would be told otherwise whenever a template is read."""

    backend: Any
    controls: tuple[str, ...]
    control_ids: frozenset[int]

    def ids(self, texts: Sequence[str], max_tokens: int | None) -> list[list[int]]:
        """The first ids of a few texts."""
        if max_tokens is None or self.backend.pre_tokenizer is None:
            return self._whole(texts, max_tokens)
        reach = MOST_CHARACTERS_PER_TOKEN * max_tokens
        prefixes = self.backend.encode_batch([text[:reach] for text in texts], add_special_tokens=False)
        found = [
            _prefix_ids(encoding, max_tokens, len(text) <= reach)
            for encoding, text in zip(prefixes, texts, strict=True)
        ]
        for i, (ids, text) in enumerate(zip(found, texts, strict=True)):
            if ids is not None and self._spelled(text[:reach], prefixes[i]):
                found[i] = None
        missing = [i for i, ids in enumerate(found) if ids is None]
        whole = self._whole([texts[i] for i in missing], max_tokens) if missing else []
        replaced = dict(zip(missing, whole, strict=True))
        return [replaced[i] if ids is None else ids for i, ids in enumerate(found)]

    def _whole(self, texts: Sequence[str], max_tokens: int | None) -> list[list[int]]:
        encoded = self.backend.encode_batch_fast(list(texts), add_special_tokens=False)
        return [
            list((self._apart(text) if self._spelled(text, encoding) else encoding.ids)[:max_tokens])
            for text, encoding in zip(texts, encoded, strict=True)
        ]

    def _spelled(self, text: str, encoding: Any) -> bool:
        """Whether a control token came out of a text that spells one: some vocabularies hold it as a piece."""
        return any(token in text for token in self.controls) and not self.control_ids.isdisjoint(encoding.ids)

    def _apart(self, text: str) -> list[int]:
        """The ids of a text whose spellings of control tokens are read in two pieces."""
        pieces = list(_in_two(text, self.controls))
        return [i for piece in self.backend.encode_batch(pieces, add_special_tokens=False) for i in piece.ids]


def _in_two(text: str, controls: Sequence[str]) -> Iterator[str]:
    """The text, cut after the first character of every spelling of a control token."""
    start = 0
    for found in re.finditer("|".join(re.escape(token) for token in sorted(controls, key=len, reverse=True)), text):
        yield text[start : found.start() + 1]
        start = found.start() + 1
    yield text[start:]


def _reader(tokenizer: Any) -> _TextReader | None:
    """The reader of texts that belongs to a tokenizer; None where it has no fast backend."""
    with _LOCK:
        if tokenizer not in _READERS:
            _READERS[tokenizer] = _made_reader(getattr(tokenizer, "backend_tokenizer", None))
        return _READERS[tokenizer]


def _made_reader(backend: Any) -> _TextReader | None:
    if backend is None or not hasattr(backend, "to_str"):
        return None if backend is None else _TextReader(backend, (), frozenset())
    stored = json.loads(backend.to_str())
    controls = tuple(token["content"] for token in stored["added_tokens"] if _is_control(token, stored))
    for token in stored["added_tokens"]:
        token["special"] = token["content"] in controls
    apart = type(backend).from_str(json.dumps(stored))
    apart.encode_special_tokens = True
    apart.no_truncation()
    apart.no_padding()
    return _TextReader(apart, controls, frozenset(apart.token_to_id(token) for token in controls))


def _is_control(token: dict[str, Any], stored: dict[str, Any]) -> bool:
    """Whether text never becomes this token: it is called special, or was added in the form of markup later.

    Words, runs of blanks and the markup of the trained vocabulary itself (Gemma's ``<table>``) are text.
    """
    vocabulary = stored["model"].get("vocab", ())
    is_trained = isinstance(vocabulary, dict) and token["content"] in vocabulary
    return bool(token["special"]) or (not is_trained and _MARKUP.fullmatch(token["content"]) is not None)


def _controls(tokenizer: Any) -> tuple[str, ...]:
    reader = _reader(tokenizer)
    return reader.controls if reader else tuple(getattr(tokenizer, "all_special_tokens", ()))


def _slow_ids(tokenizer: Any, text: str) -> list[int]:
    """The ids of a tokenizer written in Python, which takes text as text when asked to split special tokens."""
    return list(tokenizer(text, add_special_tokens=False, split_special_tokens=True, verbose=False)["input_ids"])


def _prefix_ids(encoding: Any, max_tokens: int, is_whole: bool) -> list[int] | None:
    """The first ids of a prefix where they are those of the whole text; None where that is not certain."""
    ids: list[int] = encoding.ids
    if is_whole:
        return list(ids[:max_tokens])
    if len(ids) <= max_tokens:
        return None
    words = encoding.word_ids
    last, end = words[max_tokens - 1], words[-1]
    if last is None or end is None or end - last < _WORDS_LEFT_BEHIND:
        return None
    return list(ids[:max_tokens])


def _refuse_unreadable(texts: Sequence[str], max_tokens: int | None) -> None:
    if max_tokens is not None and (isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1):
        raise ValueError(f"a limit of tokens is a whole number of at least 1, not {max_tokens!r}")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"text {place + 1} is a {type(text).__name__}, not a text")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"text {place + 1} holds half of a surrogate pair, which no tokenizer reads") from None
