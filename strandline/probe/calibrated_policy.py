"""Which questions the default policy asks next, and when it stops.

Four anchor rounds spread over the calendar, then two days near the boundary and one elsewhere a round. No question is
ever asked twice in a run. Everything is a function of the rounds asked so far and of the seed, so an interrupted run
goes on as if it had not stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from strandline.numeric_input import real_number, whole_number
from strandline.probe import PlannedRound, Question, StoredRound
from strandline.probe.calendar import Calendar, Item, distinct_first
from strandline.probe.calibrated import Posterior, middle, posterior, unwidened
from strandline.probe.evidence import Counted, count
from strandline.probe.transition import Floats, Ledger

GOLDEN_FRACTION = 0.6180339887
"""Steps of the golden section spread over an interval more evenly than any others, wherever they stop."""


@dataclass(frozen=True)
class CalibratedRules:
    """The policy's settings; the simulated coverage holds for these defaults.

    `drop_log_units` is how far under the best a position must fall to be given up while choosing questions;
    `give_up_after` rounds without a single usable answer end the run.
    """

    real_per_date: int = 5
    decoys_per_date: int = 3
    dates_per_round: int = 3
    anchor_rounds: int = 4
    min_rounds: int = 12
    max_rounds: int = 36
    width_days: int = 14
    gate: float = 0.95
    sure: float = 0.99
    min_unasked: int = 3
    margin_days: int = 60
    drop_log_units: float = 40.0
    give_up_after: int = 4

    def __post_init__(self) -> None:
        for name in ("real_per_date", "dates_per_round", "anchor_rounds", "max_rounds", "min_unasked", "give_up_after"):
            whole_number(getattr(self, name), name, 1)
        for name in ("decoys_per_date", "min_rounds", "width_days", "margin_days"):
            whole_number(getattr(self, name), name, 0)
        for name in ("gate", "sure", "drop_log_units"):
            if real_number(getattr(self, name), name) <= 0:
                raise ValueError(f"{name} is over 0, got {getattr(self, name)!r}")


@dataclass
class Progress:
    """What the rounds so far amount to: counted answers, the grid with them, and the posterior."""

    rounds: tuple[StoredRound, ...]
    ledger: Ledger
    counted: Counted
    posterior: Posterior


@dataclass
class CalibratedPolicy:
    """The policy of the `calibrated` estimator over one calendar; `seed` breaks ties and sets the exploration."""

    calendar: Calendar
    seed: int = 0
    rules: CalibratedRules = CalibratedRules()
    name: str = "calibrated"
    _progress: Progress | None = field(default=None, repr=False, compare=False)

    def next_round(self, rounds: Sequence[StoredRound]) -> PlannedRound:
        """The next call's questions: up to 3 days of up to 5 releases and 3 decoys, in a shuffled order.

        Raises ValueError where nothing is left to ask.
        """
        asked = [q for r in rounds for q in r.questions]
        keys: set[tuple[str, str, str]] = {(q.kind, q.project, q.version) for q in asked}
        projects = Counter(q.project for q in asked if q.kind == "real")
        number = len(rounds)
        rng = np.random.default_rng([self.seed, number])
        questions: list[Question] = []
        for day in self._days(self._targets(rounds), self._unasked(asked)):
            for question in self._about(day, keys, projects, rng):
                questions.append(question)
                keys.add((question.kind, question.project, question.version))
                projects[question.project] += question.kind == "real"
        if not questions:
            raise ValueError("no question is left that has not been asked")
        return PlannedRound(0, number, tuple(questions[i] for i in rng.permutation(len(questions))))

    def finished(self, rounds: Sequence[StoredRound]) -> bool:
        """Whether to stop: see `stop_reason`."""
        return self.stop_reason(rounds) is not None

    def stop_reason(self, rounds: Sequence[StoredRound]) -> str | None:
        """Why the run stops here, or None: settled after 12 rounds, 36 rounds, no answers, or nothing left to ask."""
        rules = self.rules
        if len(rounds) >= rules.max_rounds:
            return f"the cap of {rules.max_rounds} rounds is reached"
        if len(rounds) >= rules.give_up_after and not any(a.answer for r in rounds for a in r.reply.answers):
            return f"no usable answer in {len(rounds)} rounds"
        if len(rounds) >= rules.min_rounds and (settled := self._settled(self.posterior(rounds))):
            return settled
        left = self._unasked([q for r in rounds for q in r.questions])
        return None if (left >= rules.min_unasked).any() else "every askable release has been asked"

    def max_rounds(self) -> int:
        """The most rounds that a run can take."""
        return self.rules.max_rounds

    def max_questions(self) -> int:
        """The most questions that a run can ask."""
        r = self.rules
        return r.max_rounds * r.dates_per_round * (r.real_per_date + r.decoys_per_date)

    def posterior(self, rounds: Sequence[StoredRound]) -> Posterior:
        """The posterior that choosing and stopping go by; positions without hope are no longer followed."""
        return self.progress(rounds).posterior

    def progress(self, rounds: Sequence[StoredRound]) -> Progress:
        """Counted answers, grid and posterior after these rounds, built round by round and remembered."""
        done = self._progress
        if done is None or not _continues(done.rounds, rounds):
            empty = count([])
            ledger = Ledger(self.calendar.ordinals)
            done = Progress((), ledger, empty, posterior(self.calendar, empty, ledger))
        self._progress = None
        for n in range(len(done.rounds) + 1, len(rounds) + 1):
            done = self._after(done, tuple(rounds[:n]))
        self._progress = done
        return done

    def _after(self, done: Progress, rounds: tuple[StoredRound, ...]) -> Progress:
        counted = count(rounds)
        fresh = slice(len(done.counted.yes), None)
        days, yes = counted.position[fresh], counted.yes[fresh]
        for day in np.unique(days):
            here = yes[days == day]
            done.ledger.add(int(day), float(here.sum()), float((~here).sum()))
        post = posterior(self.calendar, counted, done.ledger)
        ledger = done.ledger
        if len(rounds) >= self.rules.anchor_rounds:
            ledger, post = self._pruned(ledger, post)
        return Progress(rounds, ledger, counted, post)

    def _pruned(self, ledger: Ledger, post: Posterior) -> tuple[Ledger, Posterior]:
        mass = post.by_position
        keep = mass > mass.max() * np.exp(-self.rules.drop_log_units)
        if keep.all():
            return ledger, post
        return ledger.copy(keep), Posterior(post.positions[keep], post.mass[keep], post.log_evidence, post.probability)

    def _settled(self, post: Posterior) -> str | None:
        span = unwidened(self.calendar, post, 0.95)
        if post.p("in") >= self.rules.gate and (span.high - span.low).days <= self.rules.width_days:
            return f"the 95 % range is within {self.rules.width_days} days"
        if post.p("right") >= self.rules.sure:
            return "knowledge reaches the end of the calendar"
        return "real releases are answered like decoys" if post.p("none") >= self.rules.sure else None

    def _targets(self, rounds: Sequence[StoredRound]) -> list[float]:
        """Day numbers that this round would like to ask about."""
        first, last = float(self.calendar.ordinals[0]), float(self.calendar.ordinals[-1])
        r = len(rounds)
        anchors = self.rules.anchor_rounds
        if r < anchors:
            slots = [anchors * j + r for j in range(self.rules.dates_per_round)]
            n_slots = anchors * self.rules.dates_per_round
            return [first + (m + 0.5) / n_slots * (last - first) for m in slots]
        post = self.posterior(rounds)
        near = [float(middle(self.calendar, post.quantile(q))) for q in (0.3, 0.7)]
        if r % 2 == 0:
            first = float(middle(self.calendar, post.quantile(0.025))) - self.rules.margin_days
            last = float(middle(self.calendar, post.quantile(0.975))) + self.rules.margin_days
        u = (np.random.default_rng([self.seed, 2**31]).random() + GOLDEN_FRACTION * r) % 1
        return [*near, first + u * (last - first)]

    def _unasked(self, asked: Sequence[Question]) -> npt.NDArray[np.int64]:
        """Releases a day that have not been asked about, shape (N,)."""
        left = np.array([len(items) for items in self.calendar.items], dtype=np.int64)
        np.subtract.at(left, [q.position for q in asked if q.kind == "real"], 1)
        return left

    def _days(self, targets: Sequence[float], unasked: npt.NDArray[np.int64]) -> list[int]:
        """The nearest days that still have enough to ask, each day once."""
        distance: Floats = np.where(unasked >= self.rules.min_unasked, 0.0, np.inf)
        chosen: list[int] = []
        for target in targets:
            away = np.abs(self.calendar.ordinals - target) + distance
            day = int(away.argmin())
            if np.isfinite(away[day]):
                chosen.append(day)
                distance[day] = np.inf
        return chosen

    def _about(
        self, day: int, keys: set[tuple[str, str, str]], projects: Counter[str], rng: np.random.Generator
    ) -> list[Question]:
        """Real releases of a day (distinct and least-asked projects first), and decoys beside the first of them."""
        left = [item for item in self.calendar.items[day] if item.key("real") not in keys]
        shuffled = [left[i] for i in rng.permutation(len(left))]
        by_turn = sorted(shuffled, key=lambda item: projects[item.project])
        items = distinct_first(by_turn)[: self.rules.real_per_date]
        decoys: dict[tuple[str, str, str], Item] = {}
        for item in items:
            if item.decoy_version and item.key("decoy") not in keys and len(decoys) < self.rules.decoys_per_date:
                decoys.setdefault(item.key("decoy"), item)
        return [i.question(day, "real") for i in items] + [i.question(day, "decoy") for i in decoys.values()]


def _continues(done: Sequence[StoredRound], rounds: Sequence[StoredRound]) -> bool:
    return len(done) <= len(rounds) and all(a is b for a, b in zip(done, rounds, strict=False))
