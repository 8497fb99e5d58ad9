"""A text's score and what stands beside it: definitions that local and remote scoring share.

mean_nll is the mean negative log-likelihood, natural logarithm, of tokens 2 … n of the first ``max_tokens`` ids of the
whole text's tokenization; the first token counts only where a BOS stands before it. perplexity = exp(mean_nll).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from strandline.numeric_input import real_number, whole_number
from strandline.scoring.language_model import ids_digest
from strandline.scoring.prefix_tree import Request

FP32 = "float32"
"""The format that half precision gives way to where it is not enough."""

SERVED = "served"
"""Stands for the number format where a server computes: it does not say in which."""


@dataclass(frozen=True)
class SequenceScore:
    """A scored sequence: the sum of negative log-likelihoods of its tokens from ``score_from`` on, natural log, fp64.

    ``status`` is ``ok`` or ``nonfinite`` (then ``sum_nll`` is None). ``dtype`` is the format it was computed in, which
    is float32 where it was repeated. ``computed`` and ``saved`` are input tokens; ``batch_rows`` the tokens in one
    pass.
    """

    request: Request
    sum_nll: float | None
    status: str
    dtype: str
    method: str
    computed: int
    saved: int
    batch_rows: int

    @property
    def n_scored(self) -> int:
        """Tokens scored."""
        return len(self.request.ids) - self.request.score_from

    @property
    def mean_nll(self) -> float | None:
        """Mean negative log-likelihood a scored token, nats; None where it is not finite."""
        return None if self.sum_nll is None else self.sum_nll / self.n_scored


@dataclass(frozen=True)
class TextScore:
    """A distinct text scored by a model; field for field a row of ``perplexity.scores``.

    ``n_tokens`` is the number of tokens scored. ``is_context_limited`` says that the model's context, not
    ``max_tokens``, ended the input. ``tokens_computed`` and ``tokens_saved`` (a prefix shared with another text) are
    input tokens; ``batch_tokens`` is the size of one forward pass.
    """

    text_sha256: str
    max_tokens: int
    status: str
    reason: str | None
    dtype: str
    n_tokens: int | None = None
    mean_nll: float | None = None
    perplexity: float | None = None
    prefix_token: int | None = None
    is_context_limited: bool = False
    token_digest: str | None = None
    tokens_computed: int = 0
    tokens_saved: int = 0
    batch_tokens: int | None = None
    method: str | None = None


@dataclass(frozen=True)
class KnownScore:
    """What an earlier run found for some token ids, and how."""

    n_tokens: int
    mean_nll: float
    dtype: str
    batch_tokens: int | None
    method: str | None


@dataclass(frozen=True)
class TokenizedText:
    """A text's ids as they are scored: ``request`` None where there are too few."""

    text_sha256: str
    ids: tuple[int, ...]
    request: Request | None
    is_context_limited: bool


def tokenized(
    text_sha256: str, ids: Sequence[int], max_tokens: int, bos_id: int | None, context_length: int | None
) -> TokenizedText:
    """The input for a text of these ids (already cut to ``max_tokens``): BOS where there is one, within the context."""
    max_tokens = whole_number(max_tokens, "max_tokens", 1)
    context_length = None if context_length is None else whole_number(context_length, "the context", 1)
    head = () if bos_id is None else (whole_number(bos_id, "bos_id", 0),)
    room = len(ids) if context_length is None else max(0, context_length - len(head))
    used = tuple(ids[: min(max_tokens, room)])
    limited = len(used) < min(max_tokens, len(ids))
    request = Request((*head, *used)) if len(used) >= 2 else None
    return TokenizedText(text_sha256, used, request, limited)


def too_short(text: TokenizedText, max_tokens: int, dtype: str, bos_id: int | None) -> TextScore:
    """The row of a text with fewer than two tokens."""
    return TextScore(
        text_sha256=text.text_sha256,
        max_tokens=max_tokens,
        status="too_short",
        reason=f"the text has {len(text.ids)} token{'' if len(text.ids) == 1 else 's'}; two are needed",
        dtype=dtype,
        n_tokens=0,
        prefix_token=bos_id,
        is_context_limited=text.is_context_limited,
        token_digest=ids_digest(text.ids),
    )


def text_score(
    text: TokenizedText, score: SequenceScore, max_tokens: int, bos_id: int | None, *, is_copy: bool
) -> TextScore:
    """The row of a scored text; ``is_copy`` where another text of the same ids was computed and this one was not."""
    mean = score.mean_nll
    return TextScore(
        text_sha256=text.text_sha256,
        max_tokens=max_tokens,
        status=score.status,
        reason=None if mean is not None else _not_finite(score.dtype),
        dtype=score.dtype,
        n_tokens=score.n_scored,
        mean_nll=mean,
        perplexity=None if mean is None else perplexity(mean),
        prefix_token=bos_id,
        is_context_limited=text.is_context_limited,
        token_digest=ids_digest(text.ids),
        tokens_computed=0 if is_copy else score.computed,
        tokens_saved=score.computed + score.saved if is_copy else score.saved,
        batch_tokens=score.batch_rows,
        method=score.method,
    )


def _not_finite(dtype: str) -> str:
    if dtype == "float32":
        return "the model's logits are not finite, also in fp32"
    return f"the model's logits are not finite in {dtype}, and memory does not hold the model in fp32"


def known_score(text: TokenizedText, known: KnownScore, max_tokens: int, bos_id: int | None) -> TextScore:
    """The row of a text whose token ids have been scored before, as another text's: nothing is computed."""
    return TextScore(
        text_sha256=text.text_sha256,
        max_tokens=max_tokens,
        status="ok",
        reason=None,
        dtype=known.dtype,
        n_tokens=known.n_tokens,
        mean_nll=known.mean_nll,
        perplexity=perplexity(known.mean_nll),
        prefix_token=bos_id,
        is_context_limited=text.is_context_limited,
        token_digest=ids_digest(text.ids),
        tokens_saved=len(text.ids) + (bos_id is not None),
        batch_tokens=known.batch_tokens,
        method=known.method,
    )


def perplexity(mean_nll: float) -> float | None:
    """exp(mean_nll); None where it is beyond the largest float; ValueError for a mean that is no finite number."""
    try:
        return math.exp(real_number(mean_nll, "mean_nll"))
    except OverflowError:
        return None
