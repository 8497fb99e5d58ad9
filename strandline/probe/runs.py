"""What identifies a probe run, and the policy that it follows.

Two runs with the same identity would ask the same questions of the same model, so a run that was interrupted, or that
is finished, is recognised by it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from strandline.numeric_input import whole_number
from strandline.probe import questions
from strandline.probe.calendar import Calendar
from strandline.probe.calibrated_policy import CalibratedPolicy
from strandline.probe.modelclock import VARIANTS, ModelclockPolicy
from strandline.probe.session import Policy

POLICIES = ("calibrated", *VARIANTS)
"""What can choose the questions; the CHECK of probe.runs lists the same."""


@dataclass(frozen=True)
class Settings:
    """How a run asks: the policy by name, and its seed."""

    policy: str = "calibrated"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ValueError(f"no policy is called {self.policy!r}; there are {', '.join(POLICIES)}")
        whole_number(self.seed, "the seed of a run", 0)


def run_id(settings: Settings, dataset_version: str, asked: Mapping[str, object]) -> str:
    """Name of a run: the policy and twelve digits over settings, calendar, prompts and who is asked how.

    `asked` holds what makes the model what it is (source, revision, digest, mode), never a key.
    """
    prompts = [questions.SYSTEM_PROMPT, questions.CHAT_FORMAT, questions.REPLY_LINE]
    identity = {"policy": settings.policy, "seed": settings.seed, "dataset": dataset_version}
    text = json.dumps({**identity, "prompts": prompts, "asked": dict(asked)}, sort_keys=True, default=str)
    return f"{settings.policy}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def policy_for(settings: Settings, calendar: Calendar) -> Policy:
    """The policy that a run follows."""
    if settings.policy == "calibrated":
        return CalibratedPolicy(calendar, seed=settings.seed)
    return ModelclockPolicy(calendar, VARIANTS[settings.policy], settings.policy)
