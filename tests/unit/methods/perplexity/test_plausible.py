"""A mean log-likelihood that no model gives is a row with a reason; what rounding did is not held against a text."""

import pytest

from strandline.perplexity.plausible import LARGEST_MEAN_NLL, plausible


def row(mean: float | None, n_tokens: int = 10, status: str = "ok") -> dict[str, object]:
    return {"mean_nll": mean, "perplexity": 1.0, "n_tokens": n_tokens, "status": status, "reason": None}


@pytest.mark.parametrize(
    ("mean", "n_tokens", "status"),
    [
        (2.7, 10, "ok"), (LARGEST_MEAN_NLL, 10, "ok"), (LARGEST_MEAN_NLL + 1e-9, 10, "impossible"),
        (559.0, 10, "impossible"), (9999.5, 1, "impossible"), (1e30, 10, "impossible"), (3.4e38, 10, "impossible"),
        (-1e-6, 10, "impossible"), (-1e-6, 1, "ok"), (-1.1e-6, 1, "impossible"), (-5.0, 10, "impossible"),
        (0.0, 2, "impossible"), (0.0, 1, "ok"), (1e-9, 2, "ok"),
    ],
)  # fmt: skip
def test_a_mean_is_a_models_or_a_row_that_says_why_not(mean: float, n_tokens: int, status: str) -> None:
    checked = plausible(row(mean, n_tokens))
    assert checked["status"] == status
    assert (checked["mean_nll"] is None) == (checked["perplexity"] is None) == (status == "impossible")
    assert (checked["reason"] is not None) == (status == "impossible")
    assert checked["mean_nll"] is None or checked["mean_nll"] >= 0


def test_a_row_without_a_value_is_left_as_it_is() -> None:
    assert plausible(row(None, 0, "too_short")) == row(None, 0, "too_short")
    assert plausible({"status": "nonfinite", "mean_nll": None})["status"] == "nonfinite"
