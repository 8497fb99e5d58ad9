"""Where a model server takes requests, from whatever address a user has at hand. Pure.

People paste the address of a call (``…/chat/completions``), of a host alone, or of an Azure deployment with its
``api-version``. What comes out are the base addresses to try, the likeliest first, and the header that carries a key.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

BEARER = "Authorization"
API_KEY = "api-key"
_CALL = re.compile(r"/(?:chat/completions|completions|responses|models)/*$")
_VERSIONED = re.compile(r"/v\d[\w.]*(?:/|$)")
_AZURE = re.compile(r"(?:^|\.)(?:azure\.com|azure-api\.net|azure\.us|azure\.cn)$", re.IGNORECASE)
_NAMES_HEADER = re.compile(r"\b(x-api-key|api-key|ocp-apim-subscription-key)\b", re.IGNORECASE)


def bases(address: str) -> tuple[str, ...]:
    """The base addresses to try in turn: as given where it names a version, else with ``/v1`` before or after that.

    The name of a call at the end is dropped; the query of an Azure address stays, behind the path.
    """
    parts = urlsplit(address)
    path = _CALL.sub("", parts.path.rstrip("/")).rstrip("/")
    if is_azure(address):
        path = path if path.startswith("/openai/") or path not in ("", "/openai") else "/openai/v1"
        found = [path]
    elif _VERSIONED.search(path) or path != parts.path.rstrip("/"):
        found = [path]
    else:
        found = [f"{path}/v1", path] if not path else [path, f"{path}/v1"]
    return tuple(urlunsplit(parts._replace(path=each, fragment="")) for each in found)


def call(base: str, path: str) -> str:
    """The address of one call under a base address."""
    parts = urlsplit(base)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path))


def is_azure(address: str) -> bool:
    """Whether an address is one of Azure's, which take the key in a header of its own."""
    return bool(_AZURE.search(urlsplit(address).hostname or ""))


def header_named(text: str) -> str | None:
    """The header that a refusal says it wants the key in; None where it names none."""
    match = _NAMES_HEADER.search(text)
    return match[1] if match else None
