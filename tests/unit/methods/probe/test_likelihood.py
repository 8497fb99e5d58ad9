"""Likelihood mode: token ids of questions and labels, and answers from their log-probabilities."""

from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from strandline.probe import LABELS, Question
from strandline.probe.likelihood import choices, label_mass, read_probabilities

QUESTIONS = [Question(i, date(2024, 1, i + 1), p, "1.2.3", "real") for i, p in enumerate(("React", "Node.js"))]


class Letters:
    """A tokenizer of single characters; pairs that it joins are tokens of their own."""

    bos_token_id = 1

    def __init__(
        self, template: bool = True, joins: tuple[str, ...] = (), adds_bos: bool = False, system: bool = True
    ) -> None:
        self.chat_template = "t" if template else None
        self.joins, self.adds_bos, self.system = joins, adds_bos, system

    def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
        ids = [1] if self.adds_bos and add_special_tokens else []
        while text:
            joined = next((j for j in self.joins if text.startswith(j)), text[0])
            ids.append(1000 + self.joins.index(joined) if joined in self.joins else 10 + ord(joined))
            text = text[len(joined) :]
        return {"input_ids": ids}

    def apply_chat_template(self, messages: list[dict[str, str]], **_: Any) -> str:
        if not self.system and messages[0]["role"] == "system":
            raise ValueError("System role not supported")
        return "".join(f"<{m['role']}>{m['content']}" for m in messages) + "<assistant>"


def text_of(ids: tuple[int, ...]) -> str:
    """Ids of single characters as text."""
    return "".join(chr(i - 10) for i in ids)


def test_a_choice_is_the_shared_prompt_and_what_each_label_adds() -> None:
    first, second = choices(Letters(), QUESTIONS)
    assert text_of(first.prompt).endswith("Had React released version 1.2.3 yet?<assistant>")
    assert [[text_of(ids) for ids in label] for label in first.labels] == [
        ["YES", "Yes", "yes"],
        ["NO", "No", "no"],
        ["UNKNOWN", "Unknown", "unknown"],
    ]
    assert text_of(first.prompt).startswith("<system>You are asked")
    common = sum(a == b for a, b in zip(first.prompt, second.prompt, strict=False))
    assert common >= text_of(first.prompt).index("React")


def test_no_prompt_holds_a_date() -> None:
    assert "2024" not in text_of(choices(Letters(), QUESTIONS)[0].prompt)


def test_a_template_without_a_system_role_gets_the_system_text_in_the_users_turn() -> None:
    (choice, _) = choices(Letters(system=False), QUESTIONS)
    assert text_of(choice.prompt).startswith("<user>You are asked")


def test_any_other_trouble_with_a_template_is_not_swallowed() -> None:
    class Broken(Letters):
        def apply_chat_template(self, messages: list[dict[str, str]], **_: Any) -> str:
            raise ZeroDivisionError("unrelated")

    with pytest.raises(ZeroDivisionError):
        choices(Broken(), QUESTIONS)


def test_without_a_template_the_label_follows_one_space_and_bos_stands_first_once() -> None:
    (choice, _) = choices(Letters(template=False, adds_bos=True), QUESTIONS)
    assert choice.prompt[0] == 1
    assert choice.prompt.count(1) == 1
    assert text_of(choice.prompt[1:]).endswith("Answer: ")
    assert [text_of(label[0]) for label in choice.labels] == list(LABELS)
    assert 1 not in choices(Letters(template=False), QUESTIONS)[0].prompt


def test_labels_that_join_with_the_prompts_end_are_compared_from_where_they_differ() -> None:
    (choice, _) = choices(Letters(template=False, joins=(": YES", ": NO", ": UNKNOWN")), QUESTIONS)
    assert text_of(choice.prompt).endswith("Answer")
    assert [label[0][0] for label in choice.labels] == [1000, 1001, 1002]
    assert [text_of(ids[:1]) for ids in choice.labels[0][1:]] == [":", ":"]


def test_labels_are_never_empty_even_where_one_begins_another() -> None:
    class Blind(Letters):
        def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
            return {"input_ids": [7] * len(text)}

    assert all(ids for choice in choices(Blind(), QUESTIONS) for label in choice.labels for ids in label)


def test_a_tokenizer_without_capitals_counts_each_label_once() -> None:
    class Small(Letters):
        def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
            return super().__call__(text.lower(), add_special_tokens)

    assert [len(label) for label in choices(Small(), QUESTIONS)[0].labels] == [1, 1, 1]


def test_the_most_probable_label_is_the_answer_and_p_yes_is_among_the_three() -> None:
    rows = np.log([[0.02, 0.01, 0.01], [0.1, 0.3, 0.2], [1e-9, 1e-9, 2e-9]])
    answers = read_probabilities(rows)
    assert [a.answer for a in answers] == ["YES", "NO", "UNKNOWN"]
    assert [a.p_yes for a in answers] == pytest.approx([0.5, 1 / 6, 0.25])
    assert label_mass(rows) == pytest.approx((0.04 + 0.6 + 4e-9) / 3)


@pytest.mark.parametrize("bad", [[np.nan, -1.0, -1.0], [np.inf, -1.0, -1.0], [-np.inf] * 3])
def test_what_is_not_finite_is_missing(bad: list[float]) -> None:
    (answer,) = read_probabilities(np.array([bad]))
    assert (answer.answer, answer.p_yes, answer.parse_status) == (None, None, "nonfinite")
    assert label_mass(np.array([bad])) is None


def test_an_impossible_label_leaves_the_others_usable() -> None:
    (answer,) = read_probabilities(np.array([[-np.inf, -1.0, -2.0]]))
    assert (answer.answer, answer.p_yes) == ("NO", 0.0)


@given(arrays(np.float64, st.tuples(st.integers(0, 4), st.just(3)), elements=st.floats(-800, 0) | st.just(np.nan)))
def test_every_row_gives_a_probability_or_is_missing(rows: np.ndarray) -> None:
    for answer in read_probabilities(rows):
        assert (answer.answer is None) == (answer.p_yes is None)
        assert answer.p_yes is None or 0.0 <= answer.p_yes <= 1.0
        assert answer.answer != "YES" or answer.p_yes is None or answer.p_yes >= 1 / 3 - 1e-12


def test_another_number_of_labels_is_an_error() -> None:
    with pytest.raises(ValueError, match="3 labels"):
        read_probabilities(np.zeros((2, 2)))
