"""API keys: read from the environment when needed, shown to nobody, and cut out of whatever a server sends back."""

from __future__ import annotations

import os
from typing import Any, NoReturn

from resources.network.redaction import Redactor


class MissingKeyError(ValueError):
    """The environment variable that should hold a key does not hold a usable one."""


class ApiKey:
    """A key that can be sent and redacted, but neither printed, compared, pickled nor stored."""

    __slots__ = ("_redactor", "_value")

    def __init__(self, value: str, where: str = "the key") -> None:
        if not value or not value.isascii() or not value.isprintable() or " " in value:
            raise MissingKeyError(f"{where} is empty or holds characters that no header can carry")
        self._value, self._redactor = value, Redactor(value)

    @classmethod
    def from_environment(cls, variable: str) -> ApiKey:
        """The key in an environment variable, blanks around it dropped; MissingKeyError names the variable."""
        return cls(os.environ.get(variable, "").strip(), f"the environment variable {variable}")

    def headers(self, style: str = "Authorization") -> dict[str, str]:
        """The header that carries the key: a bearer token, or the bare key in a header of that name."""
        return {style: f"Bearer {self._value}" if style == "Authorization" else self._value}

    def redact(self, text: str) -> str:
        """The text without the key in any form that holds 8 or more of its characters in a row."""
        return self._redactor.text(text)

    def redact_all(self, value: Any) -> Any:
        """The same for every text in mappings and sequences."""
        return self._redactor.value(value)

    def __repr__(self) -> str:
        return "ApiKey(hidden)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not to be pickled: name its environment variable instead")
