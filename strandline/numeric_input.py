"""What a public function takes as numbers: real arrays, whole numbers and real numbers, or ValueError in plain words.

NumPy takes booleans for 0 and 1, drops imaginary parts with a warning, and reads numbers out of strings; a caller who
passes such values has made a mistake, and no estimate should be made of it. What does NOT belong here: what range a
value must have beyond a bound, and whether missing values (NaN) are allowed; callers say that.
"""

from __future__ import annotations

import operator
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

REAL_KINDS = "iuf"
"""NumPy's letters for signed, unsigned and floating-point numbers (`numpy.dtype.kind`)."""


def real_array(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """The values as float64, NaN and infinities kept.

    Raises:
        ValueError: for booleans, complex numbers, text, missing entries (None), or rows of different lengths; the
            message begins with ``name``.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in REAL_KINDS:
        array = values
    else:
        array = _parsed(values, name)
    with np.errstate(over="ignore"):
        return np.asarray(array, dtype=np.float64)


def whole_number(value: object, name: str, least: int) -> int:
    """A whole number of at least ``least``; ValueError for anything else, booleans and 3.0 among them."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ValueError(f"{name} is a whole number, got {value!r}") from None
    if number < least:
        bound = f"is at least {least}" if least else "must not be negative"
        raise ValueError(f"{name} {bound}, got {number}")
    return number


def real_number(value: object, name: str) -> float:
    """A finite real number; ValueError for anything else."""
    if isinstance(value, (bool, np.bool_, complex, str, bytes)):
        raise ValueError(f"{name} is a number, got {value!r}")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} is a number, got {value!r}") from None
    if not isfinite(number):
        raise ValueError(f"{name} is a finite number, got {value!r}")
    return number


def share(value: object, name: str) -> float:
    """A number from 0 to 1; ValueError for anything else."""
    number = real_number(value, name)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} lies between 0 and 1, got {value!r}")
    return number


def _parsed(values: ArrayLike, name: str) -> NDArray[np.generic]:
    """Anything but an array of numbers, element by element, so that no boolean hides among numbers."""
    try:
        array = np.asarray(values)
        parts = np.asarray(values, dtype=object).ravel() if array.size else ()
    except (ValueError, TypeError):
        raise ValueError(f"{name} are numbers in rows of equal lengths") from None
    odd = next((part for part in parts if isinstance(part, (bool, np.bool_))), None)
    if array.dtype.kind not in REAL_KINDS or odd is not None:
        kind = "booleans" if odd is not None or array.dtype.kind == "b" else f"values of type {array.dtype}"
        raise ValueError(f"{name} are real numbers, got {kind}")
    return array
