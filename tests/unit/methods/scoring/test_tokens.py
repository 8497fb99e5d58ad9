"""Token ids are those of the whole text, although long texts are not tokenized to their end."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.scoring.language_model import ids_digest
from strandline.scoring.tokens import guarded, ids_of_prompt, token_ids
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


def whole(text: str, limit: int | None) -> list[int]:
    """The first ids of a text that is text throughout, as the library's own option reads it."""
    ids: list[int] = tiny_tokenizer()(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    return ids[:limit]


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXTS, max_size=4), st.integers(1, 12))
def test_ids_are_the_first_of_the_whole_texts_tokenization(texts, limit) -> None:
    assert token_ids(tiny_tokenizer(), texts, limit) == [whole(text, limit) for text in texts]


def test_a_text_without_word_boundaries_is_tokenized_whole() -> None:
    text = "a" * 5000
    assert token_ids(tiny_tokenizer(), [text], 16) == [whole(text, 16)]


def test_a_long_text_is_not_tokenized_to_its_end() -> None:
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
def test_a_tokenizer_without_a_fast_backend_works(limit) -> None:
    class Slow:
        def __call__(self, text, **options):
            return {"input_ids": [ord(letter) for letter in text]}

    assert token_ids(Slow(), ["tide", ""], limit) == [[116, 105, 100, 101][:limit], []]


def test_without_a_limit_all_ids_come() -> None:
    text = " ".join(WORDS * 30)
    assert token_ids(tiny_tokenizer(), [text]) == [whole(text, None)]


def test_a_digest_names_the_ids() -> None:
    assert ids_digest([1, 2, 3]) == ids_digest((1, 2, 3)) != ids_digest([12, 3])
    assert len(ids_digest([])) == 16


def chat_tokenizer(**more: Any) -> Any:
    """The tiny tokenizer with a chat template, a special token and what else is added to it."""
    fresh = deepcopy(tiny_tokenizer())
    fresh.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    for words in more.values():
        fresh.add_tokens(words)
    fresh.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}"
        "<|im_start|>assistant\n"
    )
    return fresh


README = "A turn ends with <|im_end|> and a text with </s>, as in <|im_start|>user."


@pytest.mark.parametrize("limit", [None, 12, 200])
def test_text_that_spells_control_tokens_is_text(limit: int | None) -> None:
    tokenizer = chat_tokenizer()
    controls = {tokenizer.convert_tokens_to_ids(t) for t in ("<|im_start|>", "<|im_end|>", "<s>", "</s>")}
    [ids] = token_ids(tokenizer, [README], limit)
    assert not controls & set(ids)
    assert tokenizer.decode(token_ids(tokenizer, [README])[0]) == README
    assert ids == token_ids(tokenizer, [README])[0][:limit]


def test_reading_a_template_between_two_texts_changes_neither() -> None:
    tokenizer = chat_tokenizer()
    before = token_ids(tokenizer, [README])
    assert tokenizer.convert_tokens_to_ids("<|im_end|>") in tokenizer(README)["input_ids"]
    assert token_ids(tokenizer, [README]) == before


def test_markup_added_after_training_is_control_and_words_are_not() -> None:
    tokenizer = chat_tokenizer(added=["<think>", "[TOOL]", "sandbar", "   "])
    [ids] = token_ids(tokenizer, ["<think>[TOOL]sandbar   tide"])
    added = {token: tokenizer.convert_tokens_to_ids(token) in ids for token in ("<think>", "[TOOL]", "sandbar", "   ")}
    assert added == {"<think>": False, "[TOOL]": False, "sandbar": True, "   ": True}


def test_a_vocabulary_that_holds_its_control_tokens_as_pieces_reads_them_as_text() -> None:
    from tokenizers import AddedToken, Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    pieces = [("<unk>", 0.0), ("</s>", 0.0), *((letter, -3.0) for letter in "abc</s> ")]
    backend = Tokenizer(models.Unigram(list(dict(pieces).items()), 0, False))
    backend.add_special_tokens([AddedToken("</s>", special=True)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>", unk_token="<unk>")
    [ids] = token_ids(tokenizer, ["ab </s> c"])
    assert tokenizer.convert_tokens_to_ids("</s>") not in ids
    assert "".join(tokenizer.convert_ids_to_tokens(ids)) == "ab </s> c"


def test_a_tokenizer_written_in_python_is_asked_to_split_control_tokens() -> None:
    asked: list[dict[str, object]] = []

    class Slow:
        def __call__(self, text: str, **options: object) -> dict[str, list[int]]:
            asked.append(options)
            return {"input_ids": [1]}

    token_ids(Slow(), ["</s>"])
    assert asked[0]["split_special_tokens"] is True
    assert asked[0]["add_special_tokens"] is False


def test_a_prompt_keeps_its_own_control_tokens_and_reads_those_of_a_question_as_text() -> None:
    tokenizer = chat_tokenizer()
    said = [{"role": "user", "content": guarded(tokenizer, "Was <|im_end|> released?")}]
    ids = ids_of_prompt(tokenizer, tokenizer.apply_chat_template(said, tokenize=False))
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert ids.count(end) == 1
    assert "Was <|im_end|> released?" in tokenizer.decode(ids)


def test_a_prompt_without_control_tokens_in_its_texts_is_read_as_ever() -> None:
    tokenizer = chat_tokenizer()
    text = "Was tide 2.0 released?"
    assert guarded(tokenizer, text) == text
    rendered = tokenizer.apply_chat_template([{"role": "user", "content": text}], tokenize=False)
    assert ids_of_prompt(tokenizer, rendered) == tokenizer(rendered, add_special_tokens=False)["input_ids"]


def test_a_cut_through_a_contraction_leaves_two_words_behind() -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["Ġlighthouse", "Ġtides", "Ġit", "'", "'ll", "l", "Ġbe", "?"]
    backend = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="?"))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="?")
    text = " lighthouse" * 5 + " tides" * 2 + " it'll be" + " tides" * 40
    limit = 9
    assert text[: 8 * limit].endswith("it'l")
    assert token_ids(tokenizer, [text], limit) == [[0, 0, 0, 0, 0, 1, 1, 2, words.index("'ll")]]


@pytest.mark.parametrize("text", [None, 3, b"tide", "half \ud83d of a pair"])
def test_what_is_no_text_is_one_sentence(text: Any) -> None:
    with pytest.raises(ValueError, match="text 2 "):
        token_ids(tiny_tokenizer(), ["tide", text])


@pytest.mark.parametrize("limit", [0, -1, True, 2.5, float("nan"), "12"])
def test_a_limit_that_is_none_is_one_sentence(limit: Any) -> None:
    with pytest.raises(ValueError, match="limit of tokens"):
        token_ids(tiny_tokenizer(), ["tide"], limit)
