"""The random streams are exact, so that published results can be reproduced in any language."""

import json
from pathlib import Path

import numpy as np
import pytest

from strandline.perplexity.random_streams import splitmix64, uniforms

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "cutoff_estimators.json").read_text())["random"]


def test_splitmix64_gives_the_published_outputs() -> None:
    outputs = splitmix64(np.array([0, 1], dtype=np.uint64))
    assert [str(value) for value in outputs] == [GOLDEN["sm64(0)"], GOLDEN["sm64(1)"]]


def test_the_stream_of_seed_7_is_the_golden_one() -> None:
    assert np.round(uniforms(7, 1, (4,)), 10).tolist() == GOLDEN["unif(7,1,(4,))"]


def test_numbers_equal_plain_integer_arithmetic() -> None:
    def mix(x: int) -> int:
        mask = (1 << 64) - 1
        z = (x + 0x9E3779B97F4A7C15) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    base = mix((12345 * 1_000_003 + 3) % 2**64)
    expected = [(mix((base + k * 0x9E3779B97F4A7C15) % 2**64) >> 11) / 2**53 for k in range(6)]
    assert uniforms(12345, 3, (2, 3)).ravel().tolist() == expected


def test_a_longer_array_starts_with_the_numbers_of_a_shorter_one() -> None:
    assert np.array_equal(uniforms(1, 2, (50, 7))[:10], uniforms(1, 2, (10, 7)))


def test_streams_and_seeds_are_unrelated_and_uniform() -> None:
    first, second = uniforms(1, 1, (20_000,)), uniforms(1, 2, (20_000,))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03
    assert abs(np.corrcoef(first, uniforms(2, 1, (20_000,)))[0, 1]) < 0.03
    assert np.max(np.abs(np.sort(first) - (np.arange(20_000) + 0.5) / 20_000)) < 0.015


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        uniforms(-1, 1, (2,))
