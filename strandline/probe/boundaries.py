"""A run's dated boundary under either estimator, as one plain record and the posterior behind it.

Both estimators work on the answers of any run, whichever policy asked, so that they can be compared on the same
evidence. Estimating is done in `calibrated` and `modelclock`; here results become rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Literal

from strandline.probe import StoredRound, calibrated, modelclock
from strandline.probe.calendar import Calendar
from strandline.probe.evidence import HYPOTHESES
from strandline.probe.likelihood import LEAST_LABEL_MASS, LOW_MASS, low_mass_reason, mean_label_mass
from strandline.probe.session import answered
from strandline.probe.soundness import ascending_days, sound_rounds

DATING_VERSION = "1"
"""Raise it when the same answers would give other boundaries: tables made by it then show as stale."""

Estimator = Literal["calibrated", "modelclock", "modelclock_reference"]
ESTIMATORS: tuple[Estimator, ...] = ("calibrated", "modelclock", "modelclock_reference")
"""The vocabulary that suites and column comments follow."""
STATUSES: tuple[str, ...] = tuple(dict.fromkeys((*calibrated.STATUSES, *modelclock.PASS_STATUSES, LOW_MASS)))
"""Every status that a boundary can have, by either estimator."""
ALL_PASSES = -1
"""The replicate that stands for all passes together."""


@dataclass(frozen=True)
class Rates:
    """YES answers and usable answers, to real releases and to decoys; repeats included."""

    real_yes: int
    real_total: int
    decoy_yes: int
    decoy_total: int


@dataclass(frozen=True)
class Mass:
    """Posterior mass at a position; `released_on` is the day before which knowledge stops (None: after the last)."""

    replicate: int
    position: int
    released_on: date | None
    probability: float


@dataclass(frozen=True)
class Boundary:
    """A model's boundary by one estimator. Dates are None where there is no finding or an end is open.

    `label` is the estimate in words, `details` what else a reader may ask for: evidences, stability, last traces.
    """

    estimator: Estimator
    status: str
    reason: str
    label: str
    estimate_from: date | None
    estimate_to: date | None
    low80: date | None
    high80: date | None
    low95: date | None
    high95: date | None
    rates: Rates
    replicates: int
    rounds: int
    questions: int
    details: Mapping[str, Any] = field(default_factory=dict)


def rates(rounds: Sequence[StoredRound]) -> Rates:
    """YES and usable answers over all exchanges."""
    pairs = [(q.kind, a.answer) for row in sound_rounds(rounds) for q, a in row if a.answer]
    real = [label == "YES" for kind, label in pairs if kind == "real"]
    decoy = [label == "YES" for kind, label in pairs if kind == "decoy"]
    return Rates(sum(real), len(real), sum(decoy), len(decoy))


def agreement(rounds: Sequence[StoredRound]) -> tuple[int, int]:
    """Questions asked more than once: how many got the same answer each time, and how many there are.

    At temperature 0 a disagreement is the server's noise.
    """
    answers: dict[tuple[str, str, str], list[str]] = {}
    for pairs in sound_rounds(rounds):
        for q, a in pairs:
            if a.answer:
                answers.setdefault((q.kind, q.project, q.version), []).append(a.answer)
    repeated = [labels for labels in answers.values() if len(labels) > 1]
    return sum(len(set(labels)) == 1 for labels in repeated), len(repeated)


def date_run(
    estimator: Estimator, calendar: Calendar, stored: Sequence[StoredRound], *, seed: int = 0
) -> tuple[Boundary, list[Mass]]:
    """The boundary and its posterior from a run's stored rounds, in any order; failed exchanges are passed over.

    Raises ValueError for an unknown estimator, where a round speaks of a day outside the calendar, and for days or
    answers that cannot be (see `soundness`).
    """
    rounds = answered(stored)
    ascending_days(calendar.days)
    sound_rounds(rounds)
    for stored_round in rounds:
        _check(calendar, stored_round)
    if estimator == "calibrated":
        boundary, mass = _calibrated(calendar, rounds, seed)
    elif estimator in modelclock.VARIANTS:
        boundary, mass = _modelclock(calendar, rounds, estimator)
    else:
        raise ValueError(f"no estimator is called {estimator!r}; there are {', '.join(ESTIMATORS)}")
    return _judged_by_label_mass(boundary, rounds), mass


def _judged_by_label_mass(boundary: Boundary, rounds: Sequence[StoredRound]) -> Boundary:
    """The boundary without a date where the labels had next to none of the model's probability."""
    mass = mean_label_mass(rounds)
    if mass is None or mass >= LEAST_LABEL_MASS:
        return boundary
    return replace(
        boundary,
        status=LOW_MASS,
        reason=low_mass_reason(mass),
        label=f"none ({LOW_MASS})",
        estimate_from=None,
        estimate_to=None,
        low80=None,
        high80=None,
        low95=None,
        high95=None,
    )


def _check(calendar: Calendar, stored: StoredRound) -> None:
    for q in stored.questions:
        if not 0 <= q.position < calendar.n_days or calendar.days[q.position] != q.released_on:
            raise ValueError(
                f"round {stored.number} asks about {q.released_on} as day {q.position}, which is another day "
                f"in the calendar {calendar.dataset_version}"
            )


def _common(rounds: Sequence[StoredRound]) -> dict[str, Any]:
    counts = rates(rounds)
    return {
        "rates": counts,
        "replicates": len({r.replicate for r in rounds}),
        "rounds": len(rounds),
        "questions": counts.real_total + counts.decoy_total,
    }


def _calibrated(calendar: Calendar, rounds: Sequence[StoredRound], seed: int) -> tuple[Boundary, list[Mass]]:
    result = calibrated.estimate(calendar, rounds, seed=seed)
    finding = result.finding
    boundary = Boundary(
        estimator="calibrated",
        status=result.status,
        reason=result.reason,
        label=f"{finding.estimate.low} to {finding.estimate.high}" if finding else f"none ({result.status})",
        estimate_from=finding.estimate.low if finding else None,
        estimate_to=finding.estimate.high if finding else None,
        low80=finding.span80.low if finding else None,
        high80=finding.span80.high if finding else None,
        low95=finding.span95.low if finding else None,
        high95=finding.span95.high if finding else None,
        details=_calibrated_details(result),
        **_common(rounds),
    )
    joint = result.posterior.by_position * result.posterior.p("in")
    mass = [
        Mass(ALL_PASSES, int(p), calendar.days[p], float(m))
        for p, m in zip(result.posterior.positions, joint, strict=True)
    ]
    return boundary, mass


def _calibrated_details(result: calibrated.Result) -> dict[str, Any]:
    post, counted = result.posterior, result.counted
    details: dict[str, Any] = {
        "evidence": {h: float(p) for h, p in zip(HYPOTHESES, post.probability, strict=True)},
        "log_evidence": {h: float(v) for h, v in zip(HYPOTHESES, post.log_evidence, strict=True)},
        "counted": {
            "real_yes": counted.real_yes,
            "real": len(counted.yes),
            "decoy_yes": counted.decoy_yes,
            "decoys": counted.decoy_yes + counted.decoy_no,
        },
    }
    if result.finding is None:
        return details
    finding = result.finding
    return details | {
        "sharp": post.sharp,
        "unwidened95": [str(finding.unwidened95.low), str(finding.unwidened95.high)],
        "se_projects": finding.stability.projects.se,
        "se_calls": finding.stability.calls.se,
        "posterior_sd": finding.stability.posterior_sd,
        "last_traces": str(finding.last_traces.median),
        "last_traces95": [str(finding.last_traces.span95.low), str(finding.last_traces.span95.high)],
    }


def _modelclock(calendar: Calendar, rounds: Sequence[StoredRound], estimator: Estimator) -> tuple[Boundary, list[Mass]]:
    days, rules = calendar.days, modelclock.VARIANTS[estimator]
    passes: dict[int, list[StoredRound]] = {}
    for stored in rounds:
        passes.setdefault(stored.replicate, []).append(stored)
    results = [modelclock.estimate(days, own, rules) for own in passes.values() or [[]]]
    result = modelclock.aggregate(days, results, rules)
    inside = 0 < result.position < len(days)
    is_answered = rates(rounds).real_total > 0
    same, repeated = agreement(rounds)
    boundary = Boundary(
        estimator=estimator,
        status=result.status if is_answered else "unanswered",
        reason=result.reason if is_answered else calibrated.UNANSWERED,
        label=modelclock.boundary_label(days, result.position) if is_answered else "none (unanswered)",
        estimate_from=days[result.position - 1] if inside and is_answered else None,
        estimate_to=days[result.position] if inside and is_answered else None,
        low80=result.interval80.start_date if is_answered else None,
        high80=result.interval80.end_date if is_answered else None,
        low95=result.interval95.start_date if is_answered else None,
        high95=result.interval95.end_date if is_answered else None,
        details={
            "converged": result.converged,
            "passes": [modelclock.boundary_label(days, r.position) for r in results],
            "repeated_questions": repeated,
            "repeated_same_answer": same,
        },
        **_common(rounds),
    )
    return boundary, [m for k, own in passes.items() for m in _pass_mass(calendar, k, own, rules)]


def _pass_mass(calendar: Calendar, replicate: int, own: Sequence[StoredRound], rules: modelclock.Rules) -> list[Mass]:
    mass = modelclock.posterior(calendar.n_days, modelclock.probes_of(own), rules)
    return [
        Mass(replicate, p, day, float(m)) for p, (day, m) in enumerate(zip((*calendar.days, None), mass, strict=True))
    ]
