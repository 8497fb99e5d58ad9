"""A loaded language model and its tokens: what the scoring methods are given.

Loading weights belongs to ``resources.models.weights``; scoring to ``engine``. Nothing here changes a model: no token
is added, no embedding resized.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

CHARACTERS_PER_TOKEN = 8
_TEXTS_AT_ONCE = 32
_WORDS_LEFT_BEHIND = 2


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

    @property
    def torch_dtype(self) -> torch.dtype:
        """The weights' number format as torch names it."""
        import torch

        found = getattr(torch, self.dtype)
        assert isinstance(found, torch.dtype)
        return found

    def token_ids(self, texts: Sequence[str], max_tokens: int | None = None) -> list[list[int]]:
        """The first ``max_tokens`` ids of each whole text's tokenization, without special tokens."""
        return token_ids(self.tokenizer, texts, max_tokens)

    def with_bos(self, ids: Sequence[int]) -> list[int]:
        """The ids with BOS before them, exactly once, where the tokenizer has one; else as they are."""
        return [self.bos_id, *ids] if self.bos_id is not None else list(ids)


def token_ids(tokenizer: Any, texts: Sequence[str], max_tokens: int | None = None) -> list[list[int]]:
    """The first ``max_tokens`` ids of each whole text's tokenization, without special tokens.

    Long texts are not tokenized to their end where the pre-tokenizer cuts text into words: words are cut and encoded
    from left to right, so those that end well before the end of a prefix have the same ids in the whole text. Where a
    prefix does not reach ``max_tokens`` ids and two words beyond, or where the tokenizer has no words, the whole text
    is tokenized.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return [_slow_ids(tokenizer, text)[:max_tokens] for text in texts]
    found: list[list[int]] = []
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        found += _batch_ids(backend, texts[start : start + _TEXTS_AT_ONCE], max_tokens)
    return found


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


def ids_digest(ids: Sequence[int]) -> str:
    """A short digest of token ids, so that a change of tokenization is seen: 16 hexadecimal digits."""
    return sha256(b"".join(int(i).to_bytes(4, "little") for i in ids)).hexdigest()[:16]


def _slow_ids(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])


def _batch_ids(backend: Any, texts: Sequence[str], max_tokens: int | None) -> list[list[int]]:
    if max_tokens is None or backend.pre_tokenizer is None:
        return _whole_ids(backend, texts, max_tokens)
    reach = CHARACTERS_PER_TOKEN * max_tokens
    prefixes = backend.encode_batch([text[:reach] for text in texts], add_special_tokens=False)
    found = [
        _prefix_ids(encoding, max_tokens, len(text) <= reach) for encoding, text in zip(prefixes, texts, strict=True)
    ]
    missing = [i for i, ids in enumerate(found) if ids is None]
    whole = _whole_ids(backend, [texts[i] for i in missing], max_tokens) if missing else []
    replaced = dict(zip(missing, whole, strict=True))
    return [replaced[i] if ids is None else ids for i, ids in enumerate(found)]


def _whole_ids(backend: Any, texts: Sequence[str], max_tokens: int | None) -> list[list[int]]:
    encoded = backend.encode_batch_fast(list(texts), add_special_tokens=False)
    return [list(encoding.ids[:max_tokens]) for encoding in encoded]


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
