"""The release probe: where a model stops knowing dated software releases.

Here are the records that the question policies, the asking adapters and the estimators share. Methods live in
the modules beside this one; nothing here calls a model, and no model's own statement about its cutoff enters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

Kind = Literal["real", "decoy"]
Label = Literal["YES", "NO", "UNKNOWN"]
# The three answers that a question allows.
LABELS: tuple[Label, ...] = ("YES", "NO", "UNKNOWN")
ROUND_STATUSES = (
    "ok", "partial", "empty", "refused", "truncated", "unparsed", "nonfinite", "low_mass", "prompt_truncated", "error",
)  # fmt: skip
"""Every status of an exchange: all answers, some, or what stood in the way of each (`low_mass`: of believing them)."""


@dataclass(frozen=True)
class Question:
    """One thing to ask: had this project released this version yet?

    `position` is the index of `released_on` among the calendar's eligible days; a decoy carries the day of the
    release that it stands beside. The date never reaches the model (M18).
    """

    position: int
    released_on: date
    project: str
    version: str
    kind: Kind


@dataclass(frozen=True)
class Answer:
    """What came back for question `index` (0-based) of a round.

    `answer` is None where nothing usable came back, and `parse_status` says why ('ok', 'missing', 'unparsed',
    'conflicting', …): missing is missing, never UNKNOWN. `p_yes` is P(YES) in likelihood mode, else None.
    """

    index: int
    answer: Label | None
    p_yes: float | None = None
    parse_status: str = "ok"


@dataclass(frozen=True)
class RoundReply:
    """One exchange with a model, as it is stored.

    `answers` has exactly one entry a question, in the questions' order. `status` is 'ok', 'partial' (some answers
    missing) or a word for what stood in the way ('empty', 'refused', 'truncated', 'error', …) with `reason` a plain
    sentence. `usage` holds plain numbers: prompt_tokens, completion_tokens, attempts, cost, seconds where known.
    """

    answers: tuple[Answer, ...]
    messages: tuple[Mapping[str, str], ...] = ()
    reply_text: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    status: str = "ok"
    reason: str | None = None


@dataclass(frozen=True)
class StoredRound:
    """A round that was asked and kept: the unit from which an interrupted run resumes.

    `number` counts rounds from 0 within a replicate; `reply.answers[i]` answers `questions[i]`.
    """

    replicate: int
    number: int
    questions: tuple[Question, ...]
    reply: RoundReply


@dataclass(frozen=True)
class PlannedRound:
    """A round that a policy wants asked next."""

    replicate: int
    number: int
    questions: tuple[Question, ...]
