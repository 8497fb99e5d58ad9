"""What becomes of a text, at the edges of each rule."""

import math

import pytest

from strandline.scoring.prefix_tree import Request
from strandline.scoring.scores import SequenceScore, text_score, tokenized, too_short


@pytest.mark.parametrize(
    ("n_ids", "max_tokens", "bos", "context", "used", "is_scored", "is_limited"),
    [
        (0, 4, 0, 8, 0, False, False),
        (1, 4, 0, 8, 1, False, False),
        (2, 4, 0, 8, 2, True, False),
        (2, 4, None, 8, 2, True, False),
        (4, 4, 0, 8, 4, True, False),
        (5, 4, 0, 8, 4, True, False),
        (9, 9, 0, 8, 7, True, True),
        (8, 9, None, 8, 8, True, False),
        (9, 9, None, 8, 8, True, True),
        (7, 9, 0, 8, 7, True, False),
        (9, 7, 0, 8, 7, True, False),
        (9, 9, 0, 2, 1, False, True),
        (9, 9, 0, 1, 0, False, True),
        (9, 9, 0, None, 9, True, False),
    ],
)
def test_what_is_used_of_a_text(
    n_ids: int, max_tokens: int, bos: int | None, context: int | None, used: int, is_scored: bool, is_limited: bool
) -> None:
    text = tokenized("d", range(1, n_ids + 1), max_tokens, bos, context)
    assert len(text.ids) == used
    assert (text.request is not None) is is_scored
    assert text.is_context_limited is is_limited


@pytest.mark.parametrize(("n_ids", "said"), [(0, "has 0 tokens"), (1, "has 1 token;")])
def test_a_text_that_is_too_short_says_by_how_much(n_ids: int, said: str) -> None:
    row = too_short(tokenized("d", range(n_ids), 4, 0, 8), 4, "float32", 0)
    assert row.status == "too_short"
    assert said in (row.reason or "")


@pytest.mark.parametrize(
    ("total", "dtype", "status", "perplexity", "said"),
    [
        (3.0, "float32", "ok", math.exp(1.0), None),
        (0.0, "float32", "ok", 1.0, None),
        (3e3, "float32", "ok", None, None),
        (None, "float32", "nonfinite", None, "not finite, also in fp32"),
        (None, "bfloat16", "nonfinite", None, "not finite in bfloat16"),
    ],
)
def test_a_score_becomes_a_row(
    total: float | None, dtype: str, status: str, perplexity: float | None, said: str | None
) -> None:
    text = tokenized("d", [1, 2, 3], 4, 0, 8)
    score = SequenceScore(Request((0, 1, 2, 3)), total, status, dtype, "tree", 4, 0, 4)
    row = text_score(text, score, 4, 0, is_copy=False)
    assert (row.status, row.perplexity) == (status, perplexity)
    assert (said or "") in (row.reason or "")
    assert (row.reason is None) is (said is None)
