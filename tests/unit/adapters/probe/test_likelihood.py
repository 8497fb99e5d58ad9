"""Asking local weights: label probabilities equal a plain forward pass, share their prompt, and fail as missing."""

import json
from datetime import date

import numpy as np
import pytest
import torch

from resources.endpoints.chat import EndpointError
from resources.models.local_chat import LocalChat
from resources.probe.asking import ChatAsker, LikelihoodAsker
from strandline.probe import LABELS, Question
from strandline.probe.likelihood import choices
from strandline.scoring.language_model import LanguageModel
from tests.fakes.tiny_models import tiny_language_model

QUESTIONS = [
    Question(i, date(2024, 1, 1), p, f"1.{i}.0", "real") for i, p in enumerate(("React", "NumPy", "Vue", "Go"))
]
TEMPLATE = "{% for m in messages %}<s>{{ m['role'] }}: {{ m['content'] }}</s>{% endfor %}<s>assistant: "


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def model(request: pytest.FixtureRequest) -> LanguageModel:
    return tiny_language_model(request.param, context=2048)


def plain(model: LanguageModel, question: Question) -> list[float]:
    """Log-probability of each label by one forward pass a spelling, nothing shared."""
    (choice,) = choices(model.tokenizer, [question])
    totals = []
    for label in choice.labels:
        parts = []
        for ids in label:
            with torch.inference_mode():
                logits = model.model(torch.tensor([[*choice.prompt, *ids]])).logits[0].double().log_softmax(-1)
            rows = range(len(choice.prompt) - 1, len(choice.prompt) + len(ids) - 1)
            parts.append(sum(float(logits[row, i]) for row, i in zip(rows, ids, strict=True)))
        totals.append(float(np.logaddexp.reduce(parts)))
    return totals


def test_label_probabilities_equal_a_plain_forward_pass(model: LanguageModel) -> None:
    reply = LikelihoodAsker(model).ask(QUESTIONS)
    assert reply.status == "low_mass"
    assert "YES, NO and UNKNOWN have" in str(reply.reason)
    stored = [[row[label] for label in LABELS] for row in json.loads(reply.reply_text or "")]
    expected = [plain(model, q) for q in QUESTIONS]
    assert np.allclose(stored, expected, atol=1e-4)
    for answer, row in zip(reply.answers, expected, strict=True):
        assert answer.answer == LABELS[int(np.argmax(row))]
        assert answer.p_yes == pytest.approx(np.exp(row[0]) / np.exp(row).sum(), abs=1e-5)


def test_answers_do_not_depend_on_the_company_a_question_is_in(model: LanguageModel) -> None:
    asker = LikelihoodAsker(model)
    together = [a.p_yes for a in asker.ask(QUESTIONS).answers]
    alone = [asker.ask([q]).answers[0].p_yes for q in QUESTIONS]
    assert together == pytest.approx(alone, abs=1e-6)


def test_a_rounds_shared_beginning_is_computed_once() -> None:
    asker = LikelihoodAsker(tiny_language_model("llama", context=2048))
    one, four = (asker.ask(QUESTIONS[:n]).usage for n in (1, 4))
    assert four["prompt_tokens"] < 1.6 * one["prompt_tokens"]
    assert four["saved_tokens"] > 20 * four["prompt_tokens"]


def test_the_record_holds_the_shared_prompt_once_and_every_question(model: LanguageModel) -> None:
    reply = LikelihoodAsker(model).ask(QUESTIONS)
    assert [m["role"] for m in reply.messages] == ["system"] + ["user"] * 4
    assert "Had NumPy released version 1.1.0 yet?" in reply.messages[2]["content"]
    assert reply.usage["parameters"]["dtype"] == "float32"
    assert 0 <= reply.usage["label_mass"] <= 1
    json.dumps(dict(reply.usage))


def test_weights_that_overflow_leave_every_answer_missing() -> None:
    model = tiny_language_model("llama", context=2048)
    model.model.get_output_embeddings().weight.data.fill_(float("inf"))
    reply = LikelihoodAsker(model).ask(QUESTIONS)
    assert (reply.status, {a.answer for a in reply.answers}) == ("nonfinite", {None})
    assert json.loads(reply.reply_text or "")[0]["YES"] is None


def test_closing_lets_go_of_the_weights() -> None:
    closed: list[bool] = []
    LikelihoodAsker(tiny_language_model("gpt2"), lambda: closed.append(True)).close()
    LocalChat(tiny_language_model("gpt2"), lambda: closed.append(True)).close()
    assert closed == [True, True]


def test_a_local_model_can_be_asked_in_chat_and_gibberish_is_missing() -> None:
    model = tiny_language_model("llama", context=2048)
    model.tokenizer.chat_template = TEMPLATE
    try:
        reply = ChatAsker(LocalChat(model), budget=8).ask(QUESTIONS)
    finally:
        model.tokenizer.chat_template = None
    assert {a.answer for a in reply.answers} == {None}
    assert reply.status in ("truncated", "unparsed", "empty")
    assert reply.usage["attempts"] >= 2
    assert reply.usage["parameters"]["do_sample"] is False


def test_chat_without_a_template_is_an_error_that_names_the_other_way() -> None:
    with pytest.raises(EndpointError, match="ask it with likelihood"):
        LocalChat(tiny_language_model("gpt2")).complete([{"role": "user", "content": "?"}], 1, 8)
