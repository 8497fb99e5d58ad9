"""Benjamini and Hochberg's adjustment: golden values, order, NaN, and never below p, also after rounding."""

from itertools import pairwise
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.multiple_testing import adjusted_log_p_values, adjusted_p_values


def test_q_values_are_benjamini_and_hochbergs_and_skip_what_was_not_tested() -> None:
    q = adjusted_p_values([0.01, float("nan"), 0.04, 0.03, 0.5])
    assert np.allclose(q, [0.04, np.nan, 0.16 / 3, 0.16 / 3, 0.5], equal_nan=True)
    logs = adjusted_log_p_values([log(0.01), log(0.04), log(0.03), log(0.5)])
    assert np.allclose(logs, [0.04, 0.16 / 3, 0.16 / 3, 0.5])


def test_p_values_too_small_for_a_float_give_a_q_value_of_zero() -> None:
    assert adjusted_log_p_values([-2000.0, 0.0]).tolist() == [0.0, 1.0]


def test_nothing_tested_gives_nothing() -> None:
    assert adjusted_p_values([]).tolist() == adjusted_log_p_values([]).tolist() == []
    assert np.isnan(adjusted_p_values([np.nan, np.nan])).all()


@given(st.lists(st.floats(0, 1) | st.integers(1, 300).map(lambda k: k / 300), min_size=1, max_size=60))
def test_q_is_never_below_p_not_even_by_a_rounding(p_values: list[float]) -> None:
    q = adjusted_p_values(p_values)
    assert all(large >= small for large, small in zip(q, p_values, strict=True))
    order = np.argsort(p_values, kind="stable")
    assert all(q[i] <= q[j] + 1e-12 for i, j in pairwise(order))


@given(st.lists(st.floats(-700, 0), min_size=1, max_size=60))
def test_q_of_logs_is_never_below_p_and_agrees_with_q_of_p(logs: list[float]) -> None:
    q = adjusted_log_p_values(logs)
    p = np.exp(logs)
    assert np.all(q >= p)
    assert np.allclose(q, adjusted_p_values([exp(value) for value in logs]), rtol=1e-9, atol=0)


@pytest.mark.parametrize("p_values", [[-0.1], [1.1], [[0.1]], [True, False], [0.1 + 0j], ["0.1"], [None], 0.1])
def test_what_is_no_row_of_p_values_is_refused_in_words(p_values: object) -> None:
    with pytest.raises(ValueError, match="p-values"):
        adjusted_p_values(p_values)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="p-values"):
        adjusted_log_p_values([0.1])
