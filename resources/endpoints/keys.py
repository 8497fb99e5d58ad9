"""API keys: read from the environment when needed, shown to nobody, and cut out of whatever a server sends back."""

from __future__ import annotations

import json
import os
from typing import NoReturn
from urllib.parse import quote

HIDDEN = "[key]"
_SHORTEST_CUT_OUT = 6


class MissingKeyError(ValueError):
    """The environment variable that should hold a key does not hold a usable one."""


class ApiKey:
    """A key that can be sent and redacted, but neither printed, compared, pickled nor stored."""

    __slots__ = ("_value",)

    def __init__(self, value: str, where: str = "the key") -> None:
        if not value or not value.isascii() or not value.isprintable() or " " in value:
            raise MissingKeyError(f"{where} is empty or holds characters that no header can carry")
        self._value = value

    @classmethod
    def from_environment(cls, variable: str) -> ApiKey:
        """The key in an environment variable, blanks around it dropped; MissingKeyError names the variable."""
        return cls(os.environ.get(variable, "").strip(), f"the environment variable {variable}")

    def header(self) -> str:
        """The Authorization header's value."""
        return f"Bearer {self._value}"

    def redact(self, text: str) -> str:
        """The text without the key, plain, JSON-escaped or percent-encoded."""
        if len(self._value) < _SHORTEST_CUT_OUT:
            return text
        for form in {self._value, json.dumps(self._value)[1:-1], quote(self._value, safe="")}:
            text = text.replace(form, HIDDEN)
        return text

    def __repr__(self) -> str:
        return "ApiKey(hidden)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not to be pickled: name its environment variable instead")
