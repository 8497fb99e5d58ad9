"""A loaded language model and its tokens: what the scoring methods are given.

Loading weights belongs to ``resources.models.weights``; scoring to ``engine``. Nothing here changes a model: no token
is added, no embedding resized.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from operator import index
from typing import Any

from strandline.scoring.tokens import token_ids


@dataclass(frozen=True)
class LanguageModel:
    """Weights in memory with their tokenizer, and the facts that belong beside every number computed from them.

    ``bos_id`` is the one id that may stand before a text, None where the tokenizer defines none. ``context_length`` is
    the longest input in tokens, BOS included, None where there is no limit. ``digest`` names the weights by content,
    ``tokenizer_digest`` the tokenizer; ``quantisation`` says how the weights were stored before they were expanded.
    """

    name: str
    model: Any
    tokenizer: Any
    bos_id: int | None
    context_length: int | None
    dtype: str
    device: str
    revision: str
    digest: str
    tokenizer_digest: str
    n_params: int
    quantisation: str | None = None
    cache: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def token_ids(self, texts: Sequence[str], max_tokens: int | None = None) -> list[list[int]]:
        """The first ``max_tokens`` ids of each whole text's tokenization; no text becomes a control token."""
        return token_ids(self.tokenizer, texts, max_tokens)


def ids_digest(ids: Sequence[int]) -> str:
    """A short digest of token ids, so that a change of tokenization is seen: 16 hexadecimal digits."""
    try:
        return sha256(b"".join(index(i).to_bytes(4, "little") for i in ids)).hexdigest()[:16]
    except (TypeError, OverflowError):
        raise ValueError("token ids are whole numbers from 0 to 4,294,967,295") from None
