"""What the estimators and policies of the probe accept: days in order, answers of the three words, shares from 0 to 1.

Every public function of this package gives finite numbers or raises ValueError in plain words; the checks that several
of them share stand here. What an answer means, and what follows from it, does not belong here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from itertools import pairwise
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strandline.numeric_input import real_array, real_number, share, whole_number
from strandline.probe import LABELS, Answer, Kind, Question, StoredRound

# The kinds of question, read from the type so that they stand once.
KINDS: tuple[str, ...] = get_args(Kind)
MIN_DAYS = 2
"""A boundary lies between two days, so fewer have none."""


def ascending_days(days: Sequence[date]) -> Sequence[date]:
    """The days themselves; ValueError unless there are at least two, all dates, each later than the one before."""
    if len(days) < MIN_DAYS:
        raise ValueError(f"a calendar needs at least {MIN_DAYS} days, got {len(days)}")
    if any(not isinstance(day, date) or isinstance(day, datetime) for day in days):
        raise ValueError("the days of a calendar are dates")
    for earlier, later in pairwise(days):
        if later <= earlier:
            raise ValueError(f"the days of a calendar ascend without repeats, but {later} follows {earlier}")
    return days


def ascending_numbers(values: ArrayLike) -> NDArray[np.float64]:
    """Day numbers as an array; ValueError unless there are at least two finite ones, each larger than the last."""
    numbers = real_array(values, "day numbers")
    if numbers.ndim != 1 or len(numbers) < MIN_DAYS:
        raise ValueError(f"a calendar needs at least {MIN_DAYS} day numbers in a row")
    if not np.isfinite(numbers).all() or (np.diff(numbers) <= 0).any():
        raise ValueError("day numbers are finite and ascend without repeats")
    return numbers


def paired(questions: Sequence[Question], answers: Sequence[Answer]) -> list[tuple[Question, Answer]]:
    """Each question with its answer; ValueError where their numbers differ or one of them cannot be."""
    if len(questions) != len(answers):
        raise ValueError(f"a round has one answer a question, got {len(answers)} for {len(questions)}")
    pairs = list(zip(questions, answers, strict=True))
    for question, answer in pairs:
        if question.kind not in KINDS:
            raise ValueError(f"a question is about a {' or a '.join(KINDS)} version, got {question.kind!r}")
        if answer.answer is not None and answer.answer not in LABELS:
            raise ValueError(f"an answer is one of {', '.join(LABELS)} or missing, got {answer.answer!r}")
        if answer.p_yes is not None:
            share(answer.p_yes, "p_yes")
    return pairs


def sound_rounds(rounds: Iterable[StoredRound], n_days: int | None = None) -> list[list[tuple[Question, Answer]]]:
    """The questions of each round with their answers; ValueError names the round that cannot be.

    n_days: how many days the calendar has, where positions are to be checked against it.
    """
    checked = []
    for stored in rounds:
        pairs = paired(stored.questions, stored.reply.answers)
        for question, _ in pairs:
            position = whole_number(question.position, "the position of a question", 0)
            if n_days is not None and position >= n_days:
                raise ValueError(f"round {stored.number} asks about day {position} of a calendar of {n_days} days")
        checked.append(pairs)
    return checked


def level(value: object) -> float:
    """The level of an interval, strictly between 0 and 1; ValueError for anything else."""
    number = real_number(value, "the level of an interval")
    if not 0 < number < 1:
        raise ValueError(f"the level of an interval lies strictly between 0 and 1, got {value!r}")
    return number
