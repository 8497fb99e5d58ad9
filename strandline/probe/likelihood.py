"""Likelihood mode: reading YES, NO and UNKNOWN as probabilities of a model's next words instead of a generated reply.

Prompts and labels become token ids here, and label log-probabilities become answers. Running the model belongs to the
perplexity engine. The three probabilities are conditional on the reply being one of the three labels; how much of the
model's mass lies on them at all is kept beside them, as a model that would rather say something else says less by this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt

from strandline.probe import LABELS, Answer, Question, StoredRound
from strandline.probe.questions import likelihood_messages, likelihood_text
from strandline.probe.templates import chat_text
from strandline.scoring.tokens import guarded, ids_of_prompt

Floats = npt.NDArray[np.float64]

LOW_MASS = "low_mass"
"""Status of a round, and of a boundary, whose labels had less of the model's probability than `LEAST_LABEL_MASS`."""
LEAST_LABEL_MASS = 0.05
"""Mean probability of the labels below which a round is `low_mass`. SmolLM2-135M, which answers as asked, has 0.23,
a model that would begin with a thought or a greeting next to nothing. A judgement between the two: a label that is one
word in twenty still tells which of the three the model prefers."""


@dataclass(frozen=True)
class Choice:
    """One question with its label continuations: ``prompt`` is what all of them share, ``labels`` what follows it.

    Token ids; each label, in the order of ``LABELS``, has one or more spellings, and none of them is empty.
    """

    prompt: tuple[int, ...]
    labels: tuple[tuple[tuple[int, ...], ...], ...]


def choices(tokenizer: Any, questions: Sequence[Question]) -> list[Choice]:
    """Token ids of each question and its labels, as the tokenizer itself joins them.

    A model with a chat template is asked in it (the system text at the head of the user's turn where the template knows
    no system role), any other in plain text. A label counts in capitals, as a word and in small letters, as it does in
    a written reply. It is tokenized together with its prompt, so that the ids are those that the model saw in training
    whether or not a tokenizer marks the start of a word.
    """
    return [_choice(tokenizer, question) for question in questions]


def read_probabilities(log_probabilities: Floats) -> list[Answer]:
    """Answers from the labels' log-probabilities, shape (questions, labels).

    The most probable label is the answer (the first of equals), ``p_yes`` is P(YES) given that it is one of the three.
    A row that is not finite throughout, or whose labels are all impossible, is missing: ``nonfinite``.
    """
    scores = np.asarray(log_probabilities, dtype=np.float64)
    if scores.ndim != 2 or scores.shape[1] != len(LABELS):
        raise ValueError(f"expected one row a question and {len(LABELS)} labels, got shape {scores.shape}")
    return [_answer(i, row) for i, row in enumerate(scores)]


def label_mass(log_probabilities: Floats) -> float | None:
    """The mean probability that the reply begins with one of the labels at all; None where nothing is finite."""
    rows = np.exp(log_probabilities[np.isfinite(log_probabilities).all(axis=1)]).sum(axis=1)
    return float(rows.mean()) if rows.size else None


def mean_label_mass(rounds: Sequence[StoredRound]) -> float | None:
    """The mean of what the labels had in these rounds; None where no token probabilities were read."""
    masses = [mass for r in rounds if isinstance(mass := r.reply.usage.get("label_mass"), float | int)]
    return sum(masses) / len(masses) if masses else None


def low_mass_reason(mass: float) -> str:
    """One sentence on labels that have so little of the model's probability."""
    return f"YES, NO and UNKNOWN have {mass:.2g} of the probability: the model would rather say something else"


def likelihood_status(missing: int, n_questions: int, mass: float | None) -> tuple[str, str | None]:
    """Status and reason of a round whose label probabilities were read.

    Args:
        missing: questions whose likelihoods are not finite.
        n_questions: questions asked.
        mass: mean probability of the labels, None where nothing is finite.
    """
    unread = f"{missing} of {n_questions} questions have likelihoods that are not finite" if missing else None
    if missing == n_questions:
        return "nonfinite", unread
    if mass is not None and mass < LEAST_LABEL_MASS:
        return LOW_MASS, "; ".join(part for part in (low_mass_reason(mass), unread) if part)
    return ("partial", unread) if missing else ("ok", None)


def _choice(tokenizer: Any, question: Question) -> Choice:
    prompt = prompt_text(tokenizer, question)
    is_chat = _has_template(tokenizer)
    start = prompt if is_chat else prompt + " "
    spelled = [[_ids(tokenizer, start + text, is_chat) for text in _spellings(label)] for label in LABELS]
    shared = _shared_length([ids for label in spelled for ids in label])
    labels = tuple(tuple(dict.fromkeys(tuple(ids[shared:]) for ids in label)) for label in spelled)
    return Choice(tuple(spelled[0][0][:shared]), labels)


def _spellings(label: str) -> tuple[str, ...]:
    return (label, label.capitalize(), label.lower())


def prompt_text(tokenizer: Any, question: Question) -> str:
    """What the model is given before a label, word for word: its chat template filled in, or plain text without one."""
    if _has_template(tokenizer):
        messages = likelihood_messages(question)
        return chat_text(tokenizer, [m | {"content": guarded(tokenizer, m["content"])} for m in messages])
    return guarded(tokenizer, likelihood_text(question))


def prompts_record(tokenizer: Any, questions: Sequence[Question]) -> dict[str, Any]:
    """The prompts of a round as they were really given: what all share once, then the rest of each."""
    prompts = [prompt_text(tokenizer, question) for question in questions]
    same = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*prompts, strict=False)))
    shared = prompts[0][:same]
    return {"shared": shared, "each": [prompt[len(shared) :] for prompt in prompts]}


def _has_template(tokenizer: Any) -> bool:
    return bool(getattr(tokenizer, "chat_template", None))


def _ids(tokenizer: Any, text: str, is_chat: bool) -> list[int]:
    ids = ids_of_prompt(tokenizer, text)
    bos: int | None = getattr(tokenizer, "bos_token_id", None)
    if is_chat or bos is None or list(tokenizer("a")["input_ids"])[:1] != [bos]:
        return ids
    return [bos, *ids]


def _shared_length(sequences: Sequence[Sequence[int]]) -> int:
    shortest = min(len(s) for s in sequences)
    shared = next((i for i in range(shortest) if len({s[i] for s in sequences}) > 1), shortest)
    if shared == 0:
        raise ValueError("the tokenizer gives a question and its labels no token in common")
    return min(shared, shortest - 1)


def _answer(index: int, row: Floats) -> Answer:
    best = float(row.max()) if not np.isnan(row).any() else float("nan")
    if not np.isfinite(best):
        return Answer(index, None, parse_status="nonfinite")
    weights = np.exp(row - best)
    return Answer(index, LABELS[int(np.argmax(row))], p_yes=float(weights[0] / weights.sum()))
