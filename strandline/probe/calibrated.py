"""The default estimator: when is half of a model's knowledge of releases gone, with an honest interval.

Estimand: the half-way date, where the YES rate for real releases has lost half of its excess over the guess rate. A
date is given only where a boundary inside the calendar carries at least 95 % of the evidence; otherwise the result
says which other picture fits, or that none does. Constants were chosen while looking at the simulated scenarios that
`simulation` reproduces, so expect somewhat less than their coverage in the field.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil, floor
from typing import Literal, get_args

import numpy as np
from scipy.special import logsumexp

from strandline.numeric_input import share
from strandline.probe import StoredRound
from strandline.probe.calendar import Calendar, day_of
from strandline.probe.evidence import (
    DECOY_SHARES_IN,
    HYPOTHESES,
    Counted,
    count,
    log_decoys,
    log_drift,
    log_none,
    log_right,
)
from strandline.probe.soundness import ascending_days, sound_rounds
from strandline.probe.soundness import level as sound_level
from strandline.probe.stability import Stability, jackknife
from strandline.probe.transition import RATE_PAIRS, WIDTHS, Floats, Ints, Ledger

GATE = 0.95
"""Evidence that one picture must carry to be stated: the level of the interval that goes with it."""
DATE_UNCERTAINTY_DAYS = 1
"""By how much registry dates are known to be off; no interval is narrower (76 of 76 checked were within a day)."""
Status = Literal["ok", "right_censored", "no_boundary", "drift", "inconclusive", "unanswered"]
STATUS: dict[str, Status] = {"in": "ok", "right": "right_censored", "none": "no_boundary", "drift": "drift"}
"""The status that stands for each picture."""
# Why each kind of world was chosen, in words for a reader.
REASONS = {
    "in": "a boundary inside the calendar carries the evidence",
    "right": "knowledge reaches the end of the calendar, so its end cannot be dated",
    "none": "real releases are not separable from decoys: the cutoff lies before the calendar, or the model guesses, "
    "or it declines to answer",
    "drift": "the YES rate falls slowly over the whole calendar, without a place that could be called a boundary",
}
# Each kind of world in words for a reader.
NAMES = {
    "in": "a boundary inside the calendar",
    "right": "knowledge to the end of the calendar",
    "none": "real releases answered like decoys",
    "drift": "a slow drift",
}
STATUSES: tuple[Status, ...] = get_args(Status)
"""Every status of this estimator; `inconclusive` and `unanswered` stand for no picture."""
# The reason of a result, in one place because boundaries give it too.
UNANSWERED = "no usable answer came back"


@dataclass(frozen=True)
class Posterior:
    """The evidences and the mass over positions and widths.

    `mass` is P(position, width before, width after | in), shape (P, 5, 5), for `positions`; positions that were
    dropped as hopeless have none. `log_evidence` and `probability` follow `HYPOTHESES`.
    """

    positions: Ints
    mass: Floats
    log_evidence: Floats
    probability: Floats

    @property
    def by_position(self) -> Floats:
        """P(position | in), shape (P,)."""
        return np.asarray(self.mass.sum(axis=(1, 2)), dtype=np.float64)

    @property
    def sharp(self) -> float:
        """P(both widths are 0 | in)."""
        return float(self.mass[:, 0, 0].sum())

    def p(self, hypothesis: str) -> float:
        """Posterior probability of one of `HYPOTHESES`; ValueError for any other word."""
        if hypothesis not in HYPOTHESES:
            raise ValueError(f"there is no hypothesis {hypothesis!r}; there are {', '.join(HYPOTHESES)}")
        return float(self.probability[HYPOTHESES.index(hypothesis)])

    def quantile(self, q: float) -> int:
        """First position whose cumulative mass reaches `q`, a share from 0 to 1."""
        cdf = np.cumsum(self.by_position)
        return int(self.positions[min(int(np.searchsorted(cdf, share(q, "a quantile") * cdf[-1])), len(cdf) - 1)])


@dataclass(frozen=True)
class Span:
    """A range of dates."""

    low: date
    high: date


@dataclass(frozen=True)
class LastTraces:
    """Where 5 % of the excess is left: softer than the half-way date, and shown as such."""

    median: date
    span95: Span


@dataclass(frozen=True)
class Finding:
    """The boundary of a model with status 'ok': half-way bracket, widened intervals, last traces, stability."""

    estimate: Span
    span80: Span
    span95: Span
    unwidened95: Span
    last_traces: LastTraces
    stability: Stability


@dataclass(frozen=True)
class Result:
    """What the answers of a run say. `finding` is None unless `status` is 'ok'."""

    status: Status
    reason: str
    posterior: Posterior
    counted: Counted
    finding: Finding | None


def ledger_of(calendar: Calendar, counted: Counted) -> Ledger:
    """All counted real answers on the grid; ValueError where one lies outside the calendar."""
    ascending_days(calendar.days)
    ledger = Ledger(calendar.ordinals)
    for day in np.unique(counted.position):
        here = counted.yes[counted.position == day]
        ledger.add(int(day), float(here.sum()), float((~here).sum()))
    return ledger


def posterior(calendar: Calendar, counted: Counted, ledger: Ledger | None = None) -> Posterior:
    """The four evidences, prior 1/4 each, and the mass over positions given a boundary inside the calendar."""
    ledger = ledger or ledger_of(calendar, counted)
    decoys_in = log_decoys(RATE_PAIRS[:, 1], counted.decoy_yes, counted.decoy_no, DECOY_SHARES_IN)
    log_mass = ledger.log_mass(decoys_in)
    log_in = float(logsumexp(log_mass))
    logs = np.array([log_in, log_right(counted, decoys_in), log_none(counted), log_drift(counted, calendar.ordinals)])
    return Posterior(ledger.positions, np.exp(log_mass - log_in), logs, np.exp(logs - logsumexp(logs)))


def decide(post: Posterior, counted: Counted) -> tuple[Status, str]:
    """Status and reason: one picture with at least 95 % of the evidence, or inconclusive."""
    if len(counted.yes) + counted.decoy_yes + counted.decoy_no == 0:
        return "unanswered", UNANSWERED
    for hypothesis in HYPOTHESES:
        if post.p(hypothesis) >= GATE:
            return STATUS[hypothesis], REASONS[hypothesis]
    shares = ", ".join(f"{NAMES[h]} {post.p(h):.0%}" for h in HYPOTHESES)
    return "inconclusive", f"no single picture carries 95 % of the evidence: {shares}"


def estimate(calendar: Calendar, rounds: Sequence[StoredRound], *, seed: int = 0) -> Result:
    """The boundary from the answers of any run, whichever policy asked.

    Args:
        calendar: the calendar that positions refer to.
        rounds: every round of the run, in the order asked; repeats count once.
        seed: permutes projects and calls into the jackknife's folds.

    Raises:
        ValueError: days that do not ascend or are fewer than two, a question about a day outside the calendar,
            answers that are not one a question, or one outside YES, NO and UNKNOWN.
    """
    ascending_days(calendar.days)
    sound_rounds(rounds, calendar.n_days)
    counted = count(rounds)
    return conclude(calendar, counted, ledger_of(calendar, counted), seed=seed)


def conclude(calendar: Calendar, counted: Counted, ledger: Ledger, *, seed: int = 0) -> Result:
    """The same from answers that are already on the grid."""
    post = posterior(calendar, counted, ledger)
    status, reason = decide(post, counted)
    if status != "ok":
        return Result(status, reason, post, counted, None)
    finding = _finding(calendar, post, jackknife(calendar, counted, ledger, post.by_position, seed=seed))
    return Result(status, reason, post, counted, finding)


def unwidened(calendar: Calendar, post: Posterior, level: float) -> Span:
    """The posterior's own equal-tailed interval at `level` (strictly between 0 and 1), whole calendar gaps."""
    tail = (1 - sound_level(level)) / 2
    return Span(calendar.days[post.quantile(tail) - 1], calendar.days[post.quantile(1 - tail)])


def _finding(calendar: Calendar, post: Posterior, stability: Stability) -> Finding:
    median = post.quantile(0.5)
    margin = {level: max(stability.margin(level), DATE_UNCERTAINTY_DAYS) for level in (0.8, 0.95)}
    return Finding(
        estimate=Span(calendar.days[median - 1], calendar.days[median]),
        span80=_widened(calendar, post, 0.8, margin[0.8]),
        span95=_widened(calendar, post, 0.95, margin[0.95]),
        unwidened95=unwidened(calendar, post, 0.95),
        last_traces=last_traces(calendar, post),
        stability=stability,
    )


def middle(calendar: Calendar, position: int | Ints) -> Floats:
    """c of a position: the middle of its calendar gap, as a day number. ValueError for a position between no days."""
    days, at = calendar.ordinals, np.asarray(position)
    if at.dtype.kind not in "iu" or (at < 1).any() or (at >= len(days)).any():
        raise ValueError(f"a position between two days is a whole number from 1 to {len(days) - 1}, got {position!r}")
    return np.asarray((days[np.asarray(position) - 1] + days[position]) / 2, dtype=np.float64)


def _widened(calendar: Calendar, post: Posterior, level: float, margin: float) -> Span:
    """The posterior's interval, and at least `margin` days around the median; never beyond the calendar."""
    span, centre = unwidened(calendar, post, level), float(middle(calendar, post.quantile(0.5)))
    low = max(day_of(floor(centre - margin)), calendar.days[0])
    high = min(day_of(ceil(centre + margin)), calendar.days[-1])
    return Span(min(span.low, low), max(span.high, high))


def last_traces(calendar: Calendar, post: Posterior) -> LastTraces:
    """Quantiles of the boundary plus half the width after it: where 5 % of the excess is left.

    Knowledge that fades and guessing that fades after a sharp end look the same here, so this is not a finding.
    """
    days, p = calendar.ordinals, post.positions
    half = np.array(WIDTHS) / 2
    mass = post.mass.sum(axis=1)

    def at(base: Floats, q: float) -> float:
        values, weights = (base[:, None] + half).ravel(), mass.ravel()
        order = np.argsort(values, kind="stable")
        cdf = np.cumsum(weights[order])
        return float(values[order][min(int(np.searchsorted(cdf, q * cdf[-1])), len(cdf) - 1)])

    low, high = at(days[p - 1], 0.025), at(days[p], 0.975)
    return LastTraces(day_of(at(middle(calendar, p), 0.5)), Span(day_of(floor(low)), day_of(ceil(high))))
