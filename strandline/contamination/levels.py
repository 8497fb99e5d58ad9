"""Significance levels as exact fractions, so that no verdict hangs on the last bit of a floating-point number."""

import re
from fractions import Fraction

from strandline.numeric_input import whole_number

Level = float | str | Fraction

LONGEST_LEVEL = 30
"""Characters of a level: far more than any level needs, and no exponent within them takes long to expand."""

EXPONENT = re.compile(r"[eE][+-]?\d{4,}")
"""Exponents of four digits and more: 1e-9999 is no level, and 1e-999999999 would fill the memory as a fraction."""


def as_level(alpha: Level, name: str = "alpha") -> Fraction:
    """The level as the decimal that the user wrote: 0.05 is 1/20, not the nearest binary fraction.

    Raises:
        ValueError: unless 0 < alpha < 1.
    """
    if isinstance(alpha, bool):
        raise ValueError(f"{name} is a truth value, not a level")
    text = str(alpha)
    if not isinstance(alpha, Fraction) and (len(text) > LONGEST_LEVEL or EXPONENT.search(text)):
        raise ValueError(f"{name} is not a number that a level can be: {text[:LONGEST_LEVEL]!r}")
    try:
        level = alpha if isinstance(alpha, Fraction) else Fraction(text)
    except (ValueError, ZeroDivisionError) as error:
        raise ValueError(f"{name} is not a number: {alpha!r}") from error
    if not 0 < level < 1:
        raise ValueError(f"{name} lies between 0 and 1, not {alpha!r}")
    return level


def grid_p_at_most(exceedances: int, n_permutations: int, alpha: Level) -> bool:
    """Whether (1 + exceedances) / (n_permutations + 1) <= alpha, decided in integers."""
    level = as_level(alpha)
    whole_number(exceedances, "exceedances", 0)
    whole_number(n_permutations, "the number of permutations", 1)
    return (1 + exceedances) * level.denominator <= level.numerator * (n_permutations + 1)
