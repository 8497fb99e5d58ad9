"""Public functions of the engine and of models give a finite answer, or ValueError in plain words."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest

from strandline.models import ModelSpec
from strandline.models.changes import changes, run_key, spec_digest
from strandline.models.declared import judge, parse_partial_date
from strandline.models.digests import value_digest
from strandline.models.keys import model_name, partition_key
from strandline.models.spec import number_format, parameter_count, wheel_member
from strandline.scoring.engine import Scorer
from strandline.scoring.language_model import ids_digest
from strandline.scoring.prefix_tree import PrefixTree, Request
from strandline.scoring.scores import perplexity, tokenized
from strandline.scoring.windows import rolling_windows, window_requests
from tests.fakes.tiny_models import tiny_language_model

SPEC = ModelSpec("m", "transformers", "folder:m")
NO_COUNT = [True, -1, 2.5, math.nan, math.inf, 1j, "3", b"3", [3], np.float64(3.0), np.bool_(True)]
NO_TEXT = [None, True, 3, 2.5, math.nan, b"a", [], {}, object()]

COUNTS: dict[str, Callable[[Any], object]] = {
    "rolling_windows ids": lambda v: rolling_windows(v, 8, 4, has_bos=True),
    "rolling_windows context": lambda v: rolling_windows(10, v, 4, has_bos=True),
    "rolling_windows stride": lambda v: rolling_windows(10, 8, v, has_bos=True),
    "window_requests context": lambda v: window_requests([1, 2, 3], v, 1, 0),
    "window_requests stride": lambda v: window_requests([1, 2, 3], 2, v, 0),
    "window_requests bos": lambda v: window_requests([1, 2, 3], 2, 1, v),
    "Request": lambda v: Request((1, 2, 3), v),
    "slice": lambda v: PrefixTree([Request((1, 2, 3))]).slice(0, v),
    "tokenized limit": lambda v: tokenized("d", [1, 2, 3], v, 0, 8),
    "tokenized bos": lambda v: tokenized("d", [1, 2, 3], 3, v, 8),
    "tokenized context": lambda v: tokenized("d", [1, 2, 3], 3, 0, v),
    "slice_rows": lambda v: Scorer(tiny_language_model(), slice_rows=v),
    "value_digest": lambda v: value_digest(replace(SPEC, context_length=8), "w", v),
    "value_digest entry": lambda v: value_digest(replace(SPEC, context_length=v), "w", 8),
    "run_key": lambda v: run_key(SPEC, v),
    "changes": lambda v: changes([SPEC], [], {}, v),
}

TEXTS: dict[str, Callable[[Any], object]] = {
    "parse_partial_date": parse_partial_date,
    "partition_key": partition_key,
    "model_name": model_name,
    "wheel_member": wheel_member,
    "number_format": number_format,
}


@pytest.mark.parametrize("value", NO_COUNT, ids=repr)
@pytest.mark.parametrize("name", COUNTS)
def test_what_is_no_count_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        COUNTS[name](value)


@pytest.mark.parametrize("name", ["slice", "slice_rows", "rolling_windows stride", "tokenized limit", "run_key"])
def test_nothing_at_a_time_is_refused_and_not_waited_for(name: str) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        COUNTS[name](0)


@pytest.mark.parametrize("value", NO_TEXT, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("name", TEXTS)
def test_what_is_no_text_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        TEXTS[name](value)


@pytest.mark.parametrize("text", ["٢٠٢٤", "2024-13", "2024-02-30", "0000", "10000-01-01", "9" * 5000])
def test_days_that_do_not_exist_or_are_not_written_in_digits_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="date"):
        parse_partial_date(text)


@pytest.mark.parametrize("value", ["9" * 5000, 10**16, "1001T", 0, "0M", True, 2.5, math.nan, "1e9", "-3M"])
def test_a_count_of_parameters_that_cannot_be_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="n_params"):
        parameter_count(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, True, "1", None, 1j])
def test_a_mean_that_is_no_number_has_no_perplexity(value: Any) -> None:
    with pytest.raises(ValueError, match="mean_nll"):
        perplexity(value)


def test_a_mean_beyond_floats_has_none() -> None:
    assert perplexity(1e6) is None


@pytest.mark.parametrize("ids", [[1, 2, 3], "abc", None, np.asarray([1, 2, 3])])
def test_a_request_takes_a_tuple_of_ids(ids: Any) -> None:
    with pytest.raises(ValueError, match="tuple"):
        Request(ids)


@pytest.mark.parametrize("value", [-1, 2**32, 2.5, math.nan, "3", None])
def test_what_is_no_id_has_no_digest(value: Any) -> None:
    with pytest.raises(ValueError, match="token ids"):
        ids_digest([1, value])


def test_half_of_a_surrogate_pair_is_no_partition_key() -> None:
    with pytest.raises(ValueError, match="not a partition key"):
        model_name("\ud800")
    assert model_name(partition_key("a\ud800")) == "a\ud800"


def test_a_setting_that_no_file_can_hold_has_no_digest() -> None:
    with pytest.raises(ValueError, match="no value of a model's setting"):
        spec_digest(replace(SPEC, context_length=1j))  # type: ignore[arg-type]


def test_claims_are_judged_on_a_day() -> None:
    with pytest.raises(ValueError, match="today is a date"):
        judge([], "2025-01-01")  # type: ignore[arg-type]
    assert judge([], date(2025, 1, 1)) == []
