"""Whatever changes a number is part of what the number counts for."""

from dataclasses import fields, replace

import pytest

from strandline.models import ModelSpec
from strandline.models.digests import COUNTED_IN, value_digest

SPEC = ModelSpec("m", "transformers", "folder:m")


@pytest.mark.parametrize(
    ("limit", "own", "digest"),
    [
        (None, None, "w"),
        (None, 64, "w"),
        (63, 64, "w context=63"),
        (64, 64, "w"),
        (65, 64, "w"),
        (64, None, "w context=64"),
    ],
)
def test_a_limit_counts_where_it_shortens_the_context(limit: int | None, own: int | None, digest: str) -> None:
    assert value_digest(replace(SPEC, context_length=limit), "w", own) == digest


def test_every_setting_of_an_entry_says_where_it_counts() -> None:
    assert set(COUNTED_IN) == {field.name for field in fields(ModelSpec)}
