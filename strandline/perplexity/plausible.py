"""Which mean log-likelihoods can be a model's: others are a row with a reason, and the texts beside them go on.

Servers put stand-ins where they have no log-probability (0, -9999, the lowest float), and a mean of such values would
be taken for perplexity. What does NOT belong here: single tokens (see the reader of served log-probabilities).
"""

from __future__ import annotations

from typing import Any

SCORE_STATUSES = ("ok", "too_short", "nonfinite", "impossible")
"""Every status of a scored text. Only ``ok`` has a value."""

LARGEST_MEAN_NLL = 50.0
"""Nats a token. A judgement: guessing evenly among a million tokens costs 13.8, so that the bound refuses no model that
works; the stand-ins that servers were seen to send begin at 100."""

ROUNDING = 1e-6
"""Nats by which a mean may fall under zero: a token of probability 1 whose logarithm was rounded in float32."""


def plausible(row: dict[str, Any]) -> dict[str, Any]:
    """A row of ``perplexity.scores``, whose value is taken back where no model can have given it.

    A mean under zero by no more than rounding is zero. A mean of zero over two tokens or more is a stand-in: no model
    is certain of everything.
    """
    mean = row.get("mean_nll")
    if row["status"] != "ok" or mean is None:
        return row
    reason = _doubt(float(mean), row.get("n_tokens") or 0)
    if reason is not None:
        return {**row, "mean_nll": None, "perplexity": None, "status": "impossible", "reason": reason}
    return row if mean >= 0 else {**row, "mean_nll": 0.0, "perplexity": 1.0}


def _doubt(mean: float, n_tokens: int) -> str | None:
    """Why a mean cannot be a model's; None where it can."""
    if mean > LARGEST_MEAN_NLL:
        return f"a mean of {mean:.4g} nats a token is no model's: over {LARGEST_MEAN_NLL:g} is a stand-in"
    if mean < -ROUNDING:
        return f"a mean of {mean:.4g} nats a token would be a probability above 1"
    if mean <= 0 and n_tokens > 1:
        return f"all {n_tokens} tokens have probability 1, which no model gives: a stand-in"
    return None
