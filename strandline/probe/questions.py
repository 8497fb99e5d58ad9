"""How a question is put to a model: the prompts of a round and of the likelihood mode (M16-M21).

Reading a reply belongs to `replies`, sending it to the resources. No prompt ever contains a date (M18).
"""

from __future__ import annotations

from collections.abc import Sequence

from strandline.probe import Question

WORDING_VERSION = "1"
"""Raise it when the same items would give other questions: tables made by it then show as stale."""

Message = dict[str, str]

# Part of every prompt: a change of it changes what stored answers are answers to.
SYSTEM_PROMPT = (
    "You are asked whether software projects had released certain exact versions. Answer from memory alone. "
    "Do not browse, search, or call tools. Do not infer that a version exists from how version numbers usually "
    "continue: answer YES only where you remember this exact version as released, NO where you believe that it was "
    "never released, and UNKNOWN where you cannot tell."
)
# Part of every prompt: a change of it changes what stored answers are answers to.
CHAT_FORMAT = (
    'Return one JSON object and nothing else: {"answers": [{"index": 1, "answer": "YES"}, …]}, one entry for each '
    "question, index being the question's number and answer one of YES, NO, UNKNOWN."
)
# Part of every prompt: a change of it changes what stored answers are answers to.
REPLY_LINE = "Reply YES, NO, or UNKNOWN."
# Questions are numbered from one, as people number lists.
FIRST_INDEX = 1


def question_text(question: Question) -> str:
    """The question of M16, word for word."""
    return f"Had {question.project} released version {question.version} yet?"


def chat_messages(questions: Sequence[Question]) -> tuple[Message, ...]:
    """System and user message of one round: numbered questions (from 1), M17's line, the JSON answer format."""
    if not questions:
        raise ValueError("a round needs at least one question")
    numbered = [f"{i}. {question_text(q)}" for i, q in enumerate(questions, FIRST_INDEX)]
    user = "\n".join([*numbered, "", f"For each question: {REPLY_LINE}", CHAT_FORMAT])
    return ({"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": user})


def likelihood_messages(question: Question) -> tuple[Message, ...]:
    """Chat messages for one question where the model's token probabilities are read instead of a generated reply.

    The label (YES, NO or UNKNOWN) is the start of the assistant's turn. Everything before the question's own words
    is the same for every question, so forward passes can share that prefix.
    """
    user = f"{REPLY_LINE}\n{question_text(question)}"
    return ({"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": user})


def likelihood_text(question: Question) -> str:
    """The same prompt as plain text for models without a chat template; a label follows after one space."""
    return f"{SYSTEM_PROMPT}\n\n{REPLY_LINE}\n\nQuestion: {question_text(question)}\nAnswer:"


def answer_schema(n_questions: int) -> dict[str, object]:
    """JSON schema of a round's reply, for endpoints that take one as `response_format`."""
    entry = {
        "type": "object",
        "properties": {
            "index": {"type": "integer", "minimum": FIRST_INDEX, "maximum": n_questions},
            "answer": {"type": "string", "enum": ["YES", "NO", "UNKNOWN"]},
        },
        "required": ["index", "answer"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"answers": {"type": "array", "items": entry}},
        "required": ["answers"],
        "additionalProperties": False,
    }
