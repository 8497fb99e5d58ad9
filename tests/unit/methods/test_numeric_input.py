"""Only real numbers are taken as numbers; everything else is refused in words that begin with the argument's name."""

from decimal import Decimal

import numpy as np
import pytest

from strandline.numeric_input import real_array, real_number, whole_number


@pytest.mark.parametrize(
    "values",
    [
        [True, 2.0], [[1.0, np.bool_(True)]], np.array([True]), [1 + 2j], np.array([1 + 0j]), ["1.5"], [None, 1.0],
        [[1.0], [1.0, 2.0]], [object()], np.array([1.0], dtype=object), np.array(["2021-01"], dtype="datetime64[M]"),
        {"a": 1.0}, "12", b"12", None,
    ],
)  # fmt: skip
def test_what_is_no_array_of_real_numbers_is_refused_by_name(values: object) -> None:
    with pytest.raises(ValueError, match=r"^scores are "):
        real_array(values, "scores")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1, 2.5], [1.0, 2.5]), ([], []), (np.float32([0.5]), [0.5]), ((1, 2), [1.0, 2.0]), ([np.inf], [np.inf])],
)
def test_numbers_of_every_width_become_float64(values: object, expected: list[float]) -> None:
    array = real_array(values, "scores")  # type: ignore[arg-type]
    assert array.dtype == np.float64
    assert array.tolist() == expected


@pytest.mark.parametrize("value", [True, np.bool_(False), 3.0, float("nan"), "3", None, 2 + 0j, [3], Decimal(3)])
def test_what_is_no_whole_number_is_refused_by_name(value: object) -> None:
    with pytest.raises(ValueError, match=r"^replicates is a whole number"):
        whole_number(value, "replicates", 0)


def test_a_whole_number_has_a_least_value() -> None:
    assert whole_number(np.int64(20), "replicates", 20) == 20
    with pytest.raises(ValueError, match="replicates is at least 20, got 19"):
        whole_number(19, "replicates", 20)


@pytest.mark.parametrize("value", [True, "1", None, 1j, float("nan"), float("inf"), 10**400, [1.0, 2.0]])
def test_what_is_no_finite_number_is_refused_by_name(value: object) -> None:
    with pytest.raises(ValueError, match=r"^level is a "):
        real_number(value, "level")
