"""What a chat template really says: the question, no date, and no open thought."""

from datetime import UTC, datetime
from typing import Any

import pytest
from jinja2 import Environment

from strandline.probe.likelihood import LEAST_LABEL_MASS, likelihood_status
from strandline.probe.templates import PromptError, chat_text

MESSAGES = ({"role": "system", "content": "Answer from memory."}, {"role": "user", "content": "Had React 18 come?"})
TURNS = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}<|assistant|>"


class Tokenizer:
    """Renders a template as transformers does."""

    def __init__(self, chat_template: str) -> None:
        self.chat_template = chat_template

    def apply_chat_template(self, messages: list[dict[str, str]], **settings: Any) -> str:
        environment = Environment(autoescape=False)
        environment.globals["strftime_now"] = lambda form: datetime(2026, 7, 26, tzinfo=UTC).strftime(form)
        return environment.from_string(self.chat_template).render(messages=messages, **settings)


def render(template: str, **settings: Any) -> str:
    return chat_text(Tokenizer(template), MESSAGES, **settings)


def test_a_plain_template_stays_as_it_is() -> None:
    assert render(TURNS) == "<|system|>Answer from memory.<|user|>Had React 18 come?<|assistant|>"


@pytest.mark.parametrize(
    "head",
    [
        "<|head|>\n\nCutting Knowledge Date: December 2023\nToday Date: {{ date_string or '26 Jul 2024' }}\n\n",
        "<|head|>Knowledge Cutoff Date: April 2024.\nToday's Date: {{ strftime_now('%B %d, %Y') }}.\n",
        "<|head|>The current date is {{ strftime_now('%Y-%m-%d') }}.\n",
        "<|head|>Current date: 2025-06-28\n",
        "[head] It is 26.07.2026 [/head]",
    ],
)
def test_dates_that_a_template_writes_are_left_out(head: str) -> None:
    text = render(head + TURNS)
    assert not any(word in text for word in ("202", "Date", "date", "Jul", "26"))
    assert text.endswith(render(TURNS))


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("<think>\n", "<|assistant|><think>\n</think>\n\n"),
        (
            "{% if enable_thinking is not false %}<think>\n{% else %}<think>\n\n</think>\n\n{% endif %}",
            "<think>\n\n</think>\n\n",
        ),
    ],
)
def test_thoughts_are_closed_before_a_label_is_read(end: str, expected: str) -> None:
    assert render(TURNS + end).endswith(expected)
    assert "/think" not in render(TURNS + end, closes_thoughts=False)


def test_thoughts_that_cannot_be_closed_are_refused() -> None:
    with pytest.raises(PromptError, match="inside its thoughts"):
        render(TURNS + "<|channel|>analysis<|message|>")


def test_a_template_that_drops_the_instructions_gets_them_in_the_users_turn() -> None:
    only_user = "{% for m in messages if m.role == 'user' %}<|user|>{{ m.content }}{% endfor %}"
    assert render(only_user) == "<|user|>Answer from memory.\n\nHad React 18 come?"


@pytest.mark.parametrize(
    "template", ["<|user|>Hello", "{{ messages[-1].content[:5] }}", "{{ messages[-1].content | upper }}"]
)
def test_a_template_without_the_question_is_refused(template: str) -> None:
    with pytest.raises(PromptError, match="leaves out"):
        render(template)


@pytest.mark.parametrize(
    ("missing", "mass", "status"),
    [
        (0, LEAST_LABEL_MASS, "ok"),
        (0, 0.0499, "low_mass"),
        (1, LEAST_LABEL_MASS, "partial"),
        (1, 0.0499, "low_mass"),
        (2, None, "nonfinite"),
    ],
)
def test_the_status_of_a_round_that_was_read(missing: int, mass: float | None, status: str) -> None:
    found, reason = likelihood_status(missing, 2, mass)
    assert (found, reason is None) == (status, status == "ok")
