"""The checks of the perplexity tables refuse what is impossible and what is mixed, and take what is honest."""

from typing import Any

import polars as pl
import pytest

from assets.suites.perplexity_scores import SUITES as SCORE_SUITES
from resources.warehouse.frames import typed_frame
from resources.warehouse.validation import validate


def scored(**columns: list[Any]) -> pl.DataFrame:
    """Ten sound scores, with columns in other values."""
    row = {"model": "m", "max_tokens": 512, "n_tokens": 300, "mean_nll": 2.5, "perplexity": 12.18, "status": "ok",
           "dtype": "float32", "is_context_limited": False, "weights_digest": "a", "scorer_version": "1"}  # fmt: skip
    rows = [
        row | {"text_sha256": str(n)} | {name: values[n] for name, values in columns.items() if n < len(values)}
        for n in range(10)
    ]
    return typed_frame("perplexity.scores", rows)


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"is_context_limited": [True, True], "n_tokens": [127, 127]},
        {"status": ["too_short"], "mean_nll": [None], "perplexity": [None], "n_tokens": [0]},
    ],
)
def test_scores_of_one_way_of_scoring_pass(columns: dict[str, list[Any]]) -> None:
    report = validate("perplexity.scores", scored(**columns), SCORE_SUITES["perplexity.scores"])
    assert report.passed, report.sentence


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ({"weights_digest": ["b"]}, "weights_digest"),
        ({"scorer_version": ["2"]}, "scorer_version"),
        ({"is_context_limited": [True, True], "n_tokens": [63, 511]}, "n_tokens"),
        ({"mean_nll": [50.1], "perplexity": [1e21]}, "mean_nll"),
        ({"mean_nll": [-0.1], "perplexity": [0.9]}, "mean_nll"),
        ({"status": ["guessed"]}, "status"),
    ],
)
def test_a_mixture_or_an_impossible_value_is_refused(columns: dict[str, list[Any]], names: str) -> None:
    report = validate("perplexity.scores", scored(**columns), SCORE_SUITES["perplexity.scores"])
    assert names in {finding.column for finding in report.findings}
    assert not any(finding.crashed for finding in report.findings), report.sentence
