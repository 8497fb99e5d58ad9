"""Token ids are those of the whole text, although long texts are not tokenized to their end."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.scoring.language_model import ids_digest, token_ids
from tests.fakes.tiny_models import WORDS, tiny_tokenizer

ODD = [
    "  ",
    "\n\n",
    "\t",
    "don't",
    "1234567",
    "Ünïcode",
    "日本語",
    "é",
    "</s>",
    "<s>",
    "…",
    "a" * 40,
    "",
    "\u200b",
    "👩\u200d👧",
]
TEXTS = st.lists(st.sampled_from(WORDS + ODD) | st.text(max_size=6), max_size=60).map(" ".join)


def whole(text, limit):
    return tiny_tokenizer()(text, add_special_tokens=False)["input_ids"][:limit]


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXTS, max_size=4), st.integers(1, 12))
def test_ids_are_the_first_of_the_whole_texts_tokenization(texts, limit):
    assert token_ids(tiny_tokenizer(), texts, limit) == [whole(text, limit) for text in texts]


def test_a_text_without_word_boundaries_is_tokenized_whole():
    text = "a" * 5000
    assert token_ids(tiny_tokenizer(), [text], 16) == [whole(text, 16)]


def test_a_long_text_is_not_tokenized_to_its_end():
    lengths = []
    tokenizer = tiny_tokenizer()

    class Recorder:
        pre_tokenizer = tokenizer.backend_tokenizer.pre_tokenizer

        def encode_batch(self, texts, **options):
            lengths.extend(map(len, texts))
            return tokenizer.backend_tokenizer.encode_batch(texts, **options)

    text = " ".join(WORDS * 400)
    stand_in = type("T", (), {"backend_tokenizer": Recorder()})()
    assert token_ids(stand_in, [text], 32) == [whole(text, 32)]
    assert max(lengths) < len(text) / 20


@pytest.mark.parametrize("limit", [None, 3])
def test_a_tokenizer_without_a_fast_backend_works(limit):
    class Slow:
        def __call__(self, text, **options):
            return {"input_ids": [ord(letter) for letter in text]}

    assert token_ids(Slow(), ["tide", ""], limit) == [[116, 105, 100, 101][:limit], []]


def test_without_a_limit_all_ids_come():
    text = " ".join(WORDS * 30)
    assert token_ids(tiny_tokenizer(), [text]) == [whole(text, None)]


def test_a_digest_names_the_ids():
    assert ids_digest([1, 2, 3]) == ids_digest((1, 2, 3)) != ids_digest([12, 3])
    assert len(ids_digest([])) == 16
