"""Random streams that are the same in every language: counter-based splitmix64.

Published results must be reproducible without this library, so the estimators of this family draw from these streams
and not from a NumPy generator. What does NOT belong here: anything that decides what the numbers are used for.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from strandline.numeric_input import whole_number

GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
"""2**64 over the golden ratio, made odd: the step of splitmix64 (Steele, Lea and Flood 2014)."""

# All 64 bits, to keep the seed in the range of an unsigned integer.
_MASK = (1 << 64) - 1


def splitmix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The splitmix64 output for a state of ``x``, elementwise (Steele, Lea and Flood 2014); wraps modulo 2**64."""
    with np.errstate(over="ignore"):
        z = x + GOLDEN_GAMMA
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniforms(seed: int, stream: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1) of the given shape; entry k (row-major) depends on seed, stream and k alone.

    A larger array therefore starts with the numbers of a smaller one of the same row length. Streams of one seed are
    separate; the caller names them (1 for topics, 2 for shock sizes, …).

    Raises:
        ValueError: for a seed, a stream or a length that is negative or no whole number.
    """
    seed, stream = whole_number(seed, "seed", 0), whole_number(stream, "stream", 0)
    shape = tuple(whole_number(length, "a length", 0) for length in shape)
    start = np.array([(seed * 1_000_003 + stream) & _MASK], dtype=np.uint64)
    base = splitmix64(start)[0]
    with np.errstate(over="ignore"):
        states = base + np.arange(prod(shape), dtype=np.uint64) * GOLDEN_GAMMA
    numbers: NDArray[np.float64] = (splitmix64(states) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return numbers.reshape(shape)
