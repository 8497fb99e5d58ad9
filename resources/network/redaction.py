"""Cutting secrets out of what is stored, shown and logged: the one place that knows how a key may be written down.

A server can repeat a key whole or in pieces, masked, in capitals, percent-encoded, in JSON's or HTML's escapes, in
base64 or in hexadecimal digits. Whatever holds eight of its characters in a row is replaced. Which secrets there are
is known to whoever sends them.
"""

from __future__ import annotations

import base64
import html
import logging
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

import httpx

# What a message shows in place of a key.
HIDDEN = "[key]"
SHORTEST_RUN = 8
"""Characters of a key in a row that are hidden: fewer also stand in ordinary words, and tell nobody a key."""
SHORTEST_KEY = 6
"""A key of fewer characters is a placeholder such as EMPTY, which is a word of its own in replies."""
_SHOWN_ENDS = 3
"""Characters on either side of a mask that give a masked key away: providers show the last 3 or 4."""
_LOGGERS = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.http2", "httpcore.proxy", "httpcore.socks")
"""Loggers of the transport that repeat what a server sent (reason phrases, headers)."""

_UNIT = re.compile(
    r"\\+u([0-9a-f]{4})|\\+x([0-9a-f]{2})|%(?:25)*([0-9a-f]{2})|(&\#x?[0-9a-f]{1,7};|&(?:quot|amp|lt|gt|apos);)|.",
    re.IGNORECASE | re.DOTALL,
)
# A word that holds stars, bullets or dots where a server hid the middle of a key.
_MASKED = re.compile(r"[^\s\"'`(),;:=]*(?:[*•●…]{2,}|\.{3,}|…)[^\s\"'`(),;]*")
# The part of such a word that stands for what was hidden.
_MASK = re.compile(r"[*•●….]{2,}|…")


class Redactor:
    """Replaces secrets in texts; it can neither be printed nor pickled with them."""

    __slots__ = ("_grams", "_keys")

    def __init__(self, *secrets: str) -> None:
        self._keys = tuple(_plain(secret) for secret in secrets if len(secret) >= SHORTEST_KEY)
        self._grams = [grams for secret in secrets if len(secret) >= SHORTEST_KEY for grams in _all_grams(secret)]

    def text(self, text: str) -> str:
        """The text with every run of a secret's characters, however escaped, replaced by ``[key]``."""
        if not self._grams or not text:
            return text
        units = _units(text)
        flat = "".join(unit for unit, _, _ in units)
        hidden = self._hidden(flat)
        for start, end in reversed([(units[a][1], units[b - 1][2]) for a, b in hidden]):
            text = text[:start] + HIDDEN + text[end:]
        return _MASKED.sub(lambda match: HIDDEN if self._is_masked_key(match[0]) else match[0], text)

    def value(self, value: Any) -> Any:
        """The same for every text in mappings and sequences, keys of mappings included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.value(key): self.value(held) for key, held in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.value(held) for held in value)
        return value

    def _hidden(self, flat: str) -> list[tuple[int, int]]:
        """Where the flattened text holds a secret: spans that do not touch, in order."""
        marked = bytearray(len(flat))
        for grams in self._grams:
            n = len(next(iter(grams)))
            for i in range(len(flat) - n + 1):
                if flat[i : i + n] in grams:
                    marked[i : i + n] = b"\1" * n
        return [match.span() for match in re.finditer(b"\x01+", bytes(marked))]

    def _is_masked_key(self, word: str) -> bool:
        """Whether a word with a mask in it begins or ends as a secret does."""
        first, last = (_plain(part).strip("<>[]{}.") for part in (_MASK.split(word)[0], _MASK.split(word)[-1]))
        return any(
            (len(first) >= _SHOWN_ENDS and key.startswith(first)) or (len(last) >= _SHOWN_ENDS and key.endswith(last))
            for key in self._keys
        )

    def __repr__(self) -> str:
        return "Redactor(hidden)"


def redacted(url: httpx.URL | str) -> str:
    """The address without user name, password or tokens in its query, fit for logs, tables and errors."""
    parsed = httpx.URL(url)
    secret = {key for key in parsed.params if any(word in key.lower() for word in ("token", "key", "secret", "passw"))}
    shown = parsed.copy_with(username=None, password=None) if parsed.userinfo else parsed
    for key in secret:
        shown = shown.copy_set_param(key, "hidden")
    return str(shown)


class LogGuard(logging.Filter):
    """Redacts what the transport logs while a client is open: reason phrases and headers may repeat a key."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, without the secret."""
        record.msg, record.args = self._redact(record.getMessage()), ()
        return True

    def close(self) -> None:
        """Stand in no logger's way any more."""
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self)


def _all_grams(secret: str) -> list[frozenset[str]]:
    """Runs that give a secret away, in each of its encodings: 8 characters take 11 in base64 and 16 as digits."""
    raw = secret.encode()
    encoded = [_inner_base64(raw, before) for before in range(3)]
    forms = [(_plain(secret), SHORTEST_RUN), (raw.hex(), 2 * SHORTEST_RUN)]
    forms += [(_plain(text), 11) for plain in encoded for text in {plain, plain.replace("+", "-").replace("/", "_")}]
    return [_grams(text, n) for text, n in forms if text]


def _inner_base64(raw: bytes, before: int) -> str:
    """The base64 digits of a secret that do not depend on the bytes around it, ``before`` bytes into a group."""
    digits = base64.b64encode(b"\0" * before + raw).decode().rstrip("=")
    return digits[(8 * before + 5) // 6 : 8 * (before + len(raw)) // 6]


def _grams(text: str, n: int) -> frozenset[str]:
    n = min(n, len(text))
    return frozenset(text[i : i + n] for i in range(len(text) - n + 1))


def _plain(text: str) -> str:
    return "".join(unit for unit, _, _ in _units(text))


def _units(text: str) -> list[tuple[str, int, int]]:
    """The characters that a text spells, escapes undone, in small letters, with their places; unseen ones left out."""
    found = []
    for match in _UNIT.finditer(text):
        digits = match[1] or match[2] or match[3]
        spelled = chr(int(digits, 16)) if digits else html.unescape(match[4]) if match[4] else match[0]
        for character in unicodedata.normalize("NFKC", spelled).lower():
            if character != "\\" and unicodedata.category(character) not in ("Cf", "Cs"):
                found.append((character, *match.span()))
    return found
