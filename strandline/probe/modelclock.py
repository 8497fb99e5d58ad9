"""The seed's estimator and policy, exactly (M22-M68): one sharp step, fixed Beta rates, replicated passes.

Position p of 0…N means that the releases of the first p days lie in the known region; p = 0 and p = N are outside
the calendar. Everything that the seed does is here; what it cannot show is stated on docs/methods' page: its
intervals are too narrow where knowledge fades, repeats count as new evidence, and a model that answers YES to
everything 'converges' at the calendar's edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import betaln

from strandline.numeric_input import real_array, real_number, share, whole_number
from strandline.probe import Answer, PlannedRound, Question, StoredRound
from strandline.probe.calendar import Calendar, Item, distinct_first
from strandline.probe.soundness import ascending_days, paired, sound_rounds
from strandline.probe.soundness import level as sound_level

Floats = npt.NDArray[np.float64]
NoisyRule = Literal["yes_answers", "all_answers"]
ProbeStatus = Literal["known", "unknown", "mixed", "noisy"]
PassStatus = Literal["ok", "left_censored", "right_censored", "wide"]
PASS_STATUSES: tuple[PassStatus, ...] = get_args(PassStatus)
"""Every status of this estimator."""
PROBE_QUANTILES = (0.25, 0.5, 0.75)
"""The posterior's quartiles, where a round asks (M24 to M26)."""
ROTATION_STRIDE = 97
"""How far each pass turns the items of a day (M34): a prime, so that no pass starts where an earlier one did."""


@dataclass(frozen=True)
class Rules:
    """The seed's parameters (M29-M68). `noisy_rule` 'all_answers' is what the reference program does (M49).

    `items_per_day` is how many of a day's releases, in order of salience, the rotation goes through.
    """

    known: tuple[float, float] = (8.0, 2.0)
    unknown: tuple[float, float] = (1.0, 9.0)
    decoy: tuple[float, float] = (1.0, 19.0)
    noisy_weight: float = 0.25
    noisy_rule: NoisyRule = "yes_answers"
    real_per_date: int = 5
    decoys_per_date: int = 3
    dates_per_round: int = 3
    items_per_day: int = 10
    replicates: int = 3
    width_days: int = 14
    min_rounds: int = 12
    max_rounds: int = 30

    def __post_init__(self) -> None:
        for name in ("known", "unknown", "decoy"):
            if any(real_number(value, f"the prior {name}") <= 0 for value in getattr(self, name)):
                raise ValueError(f"the prior {name} is a pair of numbers over 0, got {getattr(self, name)!r}")
        share(self.noisy_weight, "the weight of a noisy answer")
        if self.noisy_rule not in get_args(NoisyRule):
            raise ValueError(f"noisy_rule is one of {', '.join(get_args(NoisyRule))}, got {self.noisy_rule!r}")
        for name in ("real_per_date", "dates_per_round", "items_per_day", "replicates", "max_rounds"):
            whole_number(getattr(self, name), name, 1)
        for name in ("decoys_per_date", "width_days", "min_rounds"):
            whole_number(getattr(self, name), name, 0)


VARIANTS = {"modelclock": Rules(), "modelclock_reference": Rules(noisy_rule="all_answers")}
"""The method as its description reads, and as its reference program computes (M49)."""


@dataclass(frozen=True)
class Probe:
    """What one day answered in one round: YES and answered counts of real and decoy questions."""

    position: int
    real_yes: int
    real_total: int
    decoy_yes: int
    decoy_total: int

    def __post_init__(self) -> None:
        whole_number(self.position, "the position of a day", 0)
        for yes, total in ((self.real_yes, self.real_total), (self.decoy_yes, self.decoy_total)):
            whole_number(total, "the number of answers", whole_number(yes, "the number of YES answers", 0))

    @property
    def status(self) -> ProbeStatus:
        """The live transcript's word for the day (M38-M42); the posterior never reads it (M43)."""
        if self.decoy_yes:
            return "noisy"
        if 3 * self.real_yes >= 2 * self.real_total and self.real_total:
            return "known"
        return "unknown" if 3 * self.real_yes <= self.real_total else "mixed"


@dataclass(frozen=True)
class Interval:
    """A range of positions; a bound outside the calendar has no date, and then the width is None too."""

    level: float
    start: int
    end: int
    start_date: date | None
    end_date: date | None

    @property
    def width_days(self) -> int | None:
        """Days from the first to the last date, None where an end is open."""
        if self.start_date is None or self.end_date is None:
            return None
        return (self.end_date - self.start_date).days


@dataclass(frozen=True)
class PassResult:
    """One pass, or all passes together where `replicates` > 1.

    `status` is 'ok' (95 % range within the target), 'left_censored', 'right_censored' or 'wide'; `converged` is what
    the seed announces, which includes a posterior collapsed to an edge of the calendar.
    """

    position: int
    interval80: Interval
    interval95: Interval
    decoy_yes: int
    decoy_total: int
    rounds: int
    replicates: int
    converged: bool
    status: PassStatus
    reason: str


def probes_of(rounds: Iterable[StoredRound]) -> list[Probe]:
    """Counts a round and a day, over answered questions only; a missing answer is missing, not UNKNOWN."""
    counts: dict[tuple[int, int, int], list[int]] = {}
    rounds = list(rounds)
    for stored, pairs in zip(rounds, sound_rounds(rounds), strict=True):
        for question, answer in pairs:
            tally = counts.setdefault((stored.replicate, stored.number, question.position), [0, 0, 0, 0])
            if answer.answer is not None:
                at = 0 if question.kind == "real" else 2
                tally[at] += answer.answer == "YES"
                tally[at + 1] += 1
    return [Probe(position, *tally) for (_, _, position), tally in counts.items()]


def answer_weights(
    questions: Sequence[Question], answers: Sequence[Answer], rules: Rules | None = None
) -> list[float | None]:
    """Weight of each answer of one round in this estimator (M49): 1, the noisy weight, or None where missing."""
    rules = rules or Rules()
    pairs = paired(questions, answers)
    noisy = {q.position for q, a in pairs if q.kind == "decoy" and a.answer == "YES"}

    def weight(q: Question, a: Answer) -> float | None:
        if a.answer is None:
            return None
        counted_less = a.answer == "YES" or rules.noisy_rule == "all_answers"
        return rules.noisy_weight if q.kind == "real" and q.position in noisy and counted_less else 1.0

    return [weight(q, a) for q, a in pairs]


def log_weights(n_days: int, probes: Sequence[Probe], rules: Rules | None = None) -> Floats:
    """Unnormalised log posterior of positions 0…N, shape (N + 1,), decoy term included (M44-M49).

    A sum of three beta-binomial log marginals: real answers before the position under `rules.known`, from it on
    under `rules.unknown`, decoys under `rules.decoy`. The prior over positions is uniform (M52). ValueError for a
    calendar without days, or a probe of a day outside it.
    """
    rules = rules or Rules()
    whole_number(n_days, "the number of days", 1)
    outside = [probe.position for probe in probes if probe.position >= n_days]
    if outside:
        raise ValueError(f"day {outside[0]} of a calendar of {n_days} days")
    yes, no = np.zeros(n_days), np.zeros(n_days)
    decoy_yes = decoy_no = 0
    for probe in probes:
        weight = rules.noisy_weight if probe.decoy_yes else 1.0
        yes[probe.position] += weight * probe.real_yes
        no[probe.position] += (weight if rules.noisy_rule == "all_answers" else 1.0) * (
            probe.real_total - probe.real_yes
        )
        decoy_yes += probe.decoy_yes
        decoy_no += probe.decoy_total - probe.decoy_yes
    before_yes = np.concatenate(([0.0], np.cumsum(yes)))
    before_no = np.concatenate(([0.0], np.cumsum(no)))
    known = _log_marginal(rules.known, before_yes, before_no)
    unknown = _log_marginal(rules.unknown, before_yes[-1] - before_yes, before_no[-1] - before_no)
    decoys = _log_marginal(rules.decoy, np.float64(decoy_yes), np.float64(decoy_no))
    return np.asarray(known + unknown + decoys, dtype=np.float64)


def _log_marginal(prior: tuple[float, float], yes: Floats | np.float64, no: Floats | np.float64) -> Floats:
    a, b = prior
    return np.asarray(betaln(a + yes, b + no) - betaln(a, b), dtype=np.float64)


def posterior(n_days: int, probes: Sequence[Probe], rules: Rules | None = None) -> Floats:
    """Probability of each position 0…N given the answered probes (M23), shape (N + 1,)."""
    weights = log_weights(n_days, probes, rules)
    mass = np.exp(weights - weights.max())
    return np.asarray(mass / mass.sum(), dtype=np.float64)


def quantile_position(probabilities: Floats, q: float) -> int:
    """First position whose cumulative probability reaches `q`; the last one where rounding keeps all below it.

    ValueError for `q` outside 0 to 1, or probabilities that are none.
    """
    cdf = np.cumsum(_distribution(probabilities))
    return min(int(np.searchsorted(cdf, share(q, "a quantile"), side="left")), len(cdf) - 1)


def _distribution(probabilities: Floats) -> Floats:
    """Probabilities of positions; ValueError unless there are some, none is below 0 and they sum to 1."""
    mass = real_array(probabilities, "probabilities")
    if mass.ndim != 1 or not mass.size or not np.isfinite(mass).all() or mass.min() < 0 or abs(mass.sum() - 1) > 1e-6:
        raise ValueError("probabilities of positions are numbers from 0 that sum to 1")
    return mass


def credible_interval(probabilities: Floats, days: Sequence[date], level: float) -> Interval:
    """Equal-tailed range of positions with its dates; `probabilities` has one more entry than there are days."""
    if len(probabilities) != len(days) + 1:
        raise ValueError(f"{len(days)} days have {len(days) + 1} positions, got {len(probabilities)} probabilities")
    tail = (1 - sound_level(level)) / 2
    start, end = quantile_position(probabilities, tail), quantile_position(probabilities, 1 - tail)
    return _interval(days, level, start, end)


def _interval(days: Sequence[date], level: float, start: int, end: int) -> Interval:
    first = days[start - 1] if start > 0 else None
    last = days[end] if end < len(days) else None
    return Interval(level, start, end, first, last)


def next_days(probabilities: Floats, times_asked: Sequence[int] | npt.NDArray[np.int64], count: int = 3) -> list[int]:
    """Indices of the days to ask next (M24-M28), sorted.

    The posterior quartiles' positions, clipped to the calendar; where they coincide, free slots go to the days with
    the highest P(known)(1 - P(known)) / (1 + times asked), ties to the earliest.
    """
    n_days = len(_distribution(probabilities)) - 1
    times = real_array(times_asked, "times asked")
    if times.shape != (n_days,) or not np.isfinite(times).all() or (times.size and times.min() < 0):
        raise ValueError(f"times asked are {n_days} numbers from 0, one a day")
    wanted = min(whole_number(count, "the number of days to ask", 0), n_days)
    picked = {min(quantile_position(probabilities, q), n_days - 1) for q in PROBE_QUANTILES[:wanted]}
    if len(picked) < wanted:
        known = np.cumsum(probabilities[::-1])[::-1][1:]
        score = known * (1 - known) / (1 + times)
        for day in np.argsort(-score, kind="stable"):
            picked.add(int(day))
            if len(picked) >= wanted:
                break
    return sorted(picked)


def boundary_label(days: Sequence[date], position: int) -> str:
    """The position in words: 'A to B', or that it lies before the first or after the last day."""
    if not days:
        raise ValueError("a calendar without days has no positions")
    if position <= 0:
        return f"before {days[0]}"
    return f"{days[-1]} or later" if position >= len(days) else f"{days[position - 1]} to {days[position]}"


def estimate(days: Sequence[date], rounds: Sequence[StoredRound], rules: Rules | None = None) -> PassResult:
    """One pass: median position, 80 % and 95 % ranges, decoy counts and the seed's status (M55, M62-M64).

    Every answered question counts, repeats included, as in the seed. Works on the answers of any run. ValueError for
    fewer than two days, days that do not ascend, and answers that cannot be (see `soundness`).
    """
    rules = rules or Rules()
    ascending_days(days)
    probes = probes_of(rounds)
    return _summary(days, posterior(len(days), probes, rules), probes, len(rounds), rules)


def _summary(days: Sequence[date], mass: Floats, probes: Sequence[Probe], n_rounds: int, rules: Rules) -> PassResult:
    i80, i95 = credible_interval(mass, days, 0.8), credible_interval(mass, days, 0.95)
    precise = _within(i95, rules)
    collapsed = i95.start == i95.end and i95.start in (0, len(days))
    status, reason = pass_status(days, i95, rules)
    return PassResult(
        position=quantile_position(mass, 0.5),
        interval80=i80,
        interval95=i95,
        decoy_yes=sum(p.decoy_yes for p in probes),
        decoy_total=sum(p.decoy_total for p in probes),
        rounds=n_rounds,
        replicates=1,
        converged=precise or collapsed,
        status=status,
        reason=reason,
    )


def _within(interval: Interval, rules: Rules) -> bool:
    return interval.width_days is not None and interval.width_days <= rules.width_days


def pass_status(days: Sequence[date], i95: Interval, rules: Rules) -> tuple[PassStatus, str]:
    """Status and reason of a pass by its 95 % range: within the target, reaching out of the calendar, or neither."""
    if _within(i95, rules):
        return "ok", f"the 95 % range is within {rules.width_days} days"
    if i95.start <= 0:
        return "left_censored", f"the 95 % range reaches back before {days[0]}"
    if i95.end >= len(days):
        return "right_censored", f"the 95 % range reaches beyond {days[-1]}"
    return "wide", f"the 95 % range is wider than {rules.width_days} days"


def aggregate(days: Sequence[date], passes: Sequence[PassResult], rules: Rules | None = None) -> PassResult:
    """All passes together (M56-M61): median position, summed decoys and rounds, unions of the ranges."""
    rules = rules or Rules()
    if not passes:
        raise ValueError("nothing to aggregate: no pass was made")
    if len(passes) == 1:
        return passes[0]
    i95 = _union(days, [p.interval95 for p in passes])
    stable = _within(i95, rules)
    status: PassStatus
    if {p.status for p in passes} <= {passes[0].status} and passes[0].status.endswith("censored"):
        status, reason = passes[0].status, passes[0].reason
    elif stable:
        status, reason = "ok", f"the union of {len(passes)} passes' 95 % ranges is within {rules.width_days} days"
    else:
        status, reason = "wide", f"the 95 % range is the union of {len(passes)} passes"
    return PassResult(
        position=sorted(p.position for p in passes)[len(passes) // 2],
        interval80=_union(days, [p.interval80 for p in passes]),
        interval95=i95,
        decoy_yes=sum(p.decoy_yes for p in passes),
        decoy_total=sum(p.decoy_total for p in passes),
        rounds=sum(p.rounds for p in passes),
        replicates=len(passes),
        converged=stable or all(p.converged for p in passes),
        status=status,
        reason=reason,
    )


def _union(days: Sequence[date], intervals: Sequence[Interval]) -> Interval:
    start, end = min(i.start for i in intervals), max(i.end for i in intervals)
    return _interval(days, intervals[0].level, start, end)


def pick_items(items: Sequence[Item], count: int, offset: int) -> list[Item]:
    """`count` items of a day from a rotated start, distinct projects before repeats (M33, M34)."""
    whole_number(count, "the number of items", 0)
    if not items:
        return []
    start = offset % len(items)
    return distinct_first([*items[start:], *items[:start]])[:count]


@dataclass(frozen=True)
class ModelclockPolicy:
    """The seed's choice of questions and stopping, over `rules.replicates` passes; no randomness.

    A pure function of the rounds asked so far, so an interrupted run continues as if it had not stopped.
    """

    calendar: Calendar
    rules: Rules = Rules()
    name: str = "modelclock"

    def next_round(self, rounds: Sequence[StoredRound]) -> PlannedRound:
        """The next round of the current pass, or the first of the next one; ValueError where all have stopped."""
        replicate, own = _current_pass(rounds)
        if self.pass_finished(own):
            replicate, own = replicate + 1, []
        if replicate >= self.rules.replicates:
            raise ValueError("every pass has stopped: there is no next round")
        return PlannedRound(replicate, len(own), tuple(self._questions(replicate, own)))

    def finished(self, rounds: Sequence[StoredRound]) -> bool:
        """Whether the last pass has stopped; passes follow one another."""
        replicate, own = _current_pass(rounds)
        return replicate == self.rules.replicates - 1 and self.pass_finished(own)

    def pass_finished(self, own: Sequence[StoredRound]) -> bool:
        """M62-M65: a 95 % range within the target after the least number of rounds, a collapse, or the cap."""
        if not own:
            return False
        if len(own) >= self.rules.max_rounds:
            return True
        result = estimate(self.calendar.days, own, self.rules)
        collapsed = result.converged and result.status != "ok"
        return collapsed or (result.status == "ok" and len(own) >= self.rules.min_rounds)

    def max_rounds(self) -> int:
        """The most rounds that a run can take."""
        return self.rules.replicates * self.rules.max_rounds

    def max_questions(self) -> int:
        """The most questions that a run can ask."""
        r = self.rules
        return r.replicates * r.max_rounds * r.dates_per_round * (r.real_per_date + r.decoys_per_date)

    def _questions(self, replicate: int, own: Sequence[StoredRound]) -> list[Question]:
        n_days = self.calendar.n_days
        asked = np.zeros(n_days, dtype=np.int64)
        for stored in own:
            asked[sorted({q.position for q in stored.questions})] += 1
        mass = posterior(n_days, probes_of(own), self.rules)
        real: list[Question] = []
        decoys: list[Question] = []
        for slot, day in enumerate(next_days(mass, asked, self.rules.dates_per_round)):
            turn = len(own) + 1 + slot + int(asked[day])
            offset = replicate * ROTATION_STRIDE + turn * self.rules.real_per_date
            items = pick_items(self.calendar.items[day][: self.rules.items_per_day], self.rules.real_per_date, offset)
            real += [i.question(day, "real") for i in items]
            decoys += [i.question(day, "decoy") for i in items[: self.rules.decoys_per_date] if i.decoy_version]
        return _interleave(real, decoys)


def _current_pass(rounds: Sequence[StoredRound]) -> tuple[int, list[StoredRound]]:
    replicate = max((r.replicate for r in rounds), default=0)
    return replicate, [r for r in rounds if r.replicate == replicate]


def _interleave(real: Sequence[Question], decoys: Sequence[Question]) -> list[Question]:
    mixed: list[Question] = []
    for i in range(max(len(real), len(decoys))):
        mixed += [*real[i : i + 1], *decoys[i : i + 1]]
    return mixed
