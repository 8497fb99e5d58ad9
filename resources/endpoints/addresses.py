"""Where a model server takes requests, from whatever address a user has at hand. Pure.

People paste the address of a call (``…/chat/completions``), of a host alone, or of an Azure deployment with its
``api-version``. What comes out are the base addresses to try, the likeliest first, and the header that carries a key.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

# The header that most endpoints take the key in (RFC 6750).
BEARER = "Authorization"
# The header that Azure's endpoints take the key in.
API_KEY = "api-key"
# The path of one call at the end of an address that was pasted whole.
_CALL = re.compile(r"/(?:chat/completions|completions|responses|models)/*$")
# A part of the path that names a version, such as /v1 or /v1beta.
_VERSIONED = re.compile(r"/v\d[\w.]*(?:/|$)")
# Hosts of Azure and of its clouds apart, by the end of the host's name.
_AZURE = re.compile(r"(?:^|\.)(?:azure\.com|azure-api\.net|azure\.us|azure\.cn)$", re.IGNORECASE)
# The names of key headers other than Authorization, as a refusal spells them.
_NAMES_HEADER = re.compile(r"\b(x-api-key|api-key|ocp-apim-subscription-key)\b", re.IGNORECASE)


def bases(address: str) -> tuple[str, ...]:
    """The base addresses to try in turn: as given where it names a version, else with ``/v1`` before or after that.

    The name of a call at the end is dropped; the query of an Azure address stays, behind the path.
    """
    parts = urlsplit(address)
    path = _CALL.sub("", parts.path.rstrip("/")).rstrip("/")
    if is_azure(address):
        path = path if path.startswith("/openai/") or path not in ("", "/openai") else "/openai/v1"
        paths = [path]
    elif _VERSIONED.search(path) or path != parts.path.rstrip("/"):
        paths = [path]
    else:
        paths = [f"{path}/v1", path] if not path else [path, f"{path}/v1"]
    return tuple(urlunsplit(parts._replace(path=each, fragment="")) for each in paths)


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
