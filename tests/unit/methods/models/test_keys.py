"""Partition keys of model names."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strandline.models.keys import model_name, partition_key

names = st.text(st.characters(codec=None), min_size=1, max_size=60)


@given(names)
@example("org/model")
@example("name:tag")
@example("a,b")
@example("a...b")
@example(".")
@example("..")
@example("100%")
@example("%2F")
@example("two\nlines")
@example("\ud800")
def test_a_key_is_safe_and_gives_back_the_name(name: str) -> None:
    key = partition_key(name)
    assert re.fullmatch(r"[A-Za-z0-9._%-]+", key)
    assert model_name(key) == name
    assert ".." not in key
    assert key not in (".", "..")


@given(names, names)
def test_two_names_never_share_a_key(one: str, other: str) -> None:
    assert (partition_key(one) == partition_key(other)) == (one == other)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("SmolLM2-135M-Instruct", "SmolLM2-135M-Instruct"),
        ("meta-llama/Llama-3.1-8B", "meta-llama%2FLlama-3.1-8B"),
        ("qwen2:7b", "qwen2%3A7b"),
        ("a,b", "a%2Cb"),
        ("é", "%C3%A9"),
    ],
)
def test_ordinary_names_stay_readable(name: str, key: str) -> None:
    assert partition_key(name) == key


@pytest.mark.parametrize("key", ["", "a/b", "%2f", "a%2Db", "..", "%FF", "%", "a,b"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="not a partition key"):
        model_name(key)


def test_the_empty_name_has_no_key() -> None:
    with pytest.raises(ValueError, match="needs a name"):
        partition_key("")
