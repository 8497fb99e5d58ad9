"""Significance levels as exact fractions, so that no verdict hangs on the last bit of a floating-point number."""

from fractions import Fraction

Level = float | str | Fraction


def as_level(alpha: Level, name: str = "alpha") -> Fraction:
    """The level as the decimal that the user wrote: 0.05 is 1/20, not the nearest binary fraction.

    Raises:
        ValueError: unless 0 < alpha < 1.
    """
    if isinstance(alpha, bool):
        raise ValueError(f"{name} is a truth value, not a level")
    try:
        level = alpha if isinstance(alpha, Fraction) else Fraction(str(alpha))
    except (ValueError, ZeroDivisionError) as error:
        raise ValueError(f"{name} is not a number: {alpha!r}") from error
    if not 0 < level < 1:
        raise ValueError(f"{name} lies between 0 and 1, not {alpha!r}")
    return level


def grid_p_at_most(exceedances: int, n_permutations: int, alpha: Level) -> bool:
    """Whether (1 + exceedances) / (n_permutations + 1) <= alpha, decided in integers."""
    level = as_level(alpha)
    return (1 + exceedances) * level.denominator <= level.numerator * (n_permutations + 1)
