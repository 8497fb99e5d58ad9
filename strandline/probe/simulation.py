"""Planted worlds for the release probe: models whose knowledge ends in a known way, asked by the real policies.

Every simulated model gives one fixed answer a question, as at temperature 0. Worlds S1 to S6 have a true half-way
date; in the others there is no boundary inside the calendar and a date is a false finding. The committed calendar and
a synthetic one are used. Effects of question order, drifting answers and several boundaries are not simulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from strandline.calibration import Recovery, Scenario
from strandline.numeric_input import whole_number
from strandline.probe import Answer, Question, RoundReply, StoredRound
from strandline.probe import modelclock as seed_method
from strandline.probe.calendar import Calendar, synthetic_calendar
from strandline.probe.calibrated import Result, conclude, middle
from strandline.probe.calibrated_policy import CalibratedPolicy
from strandline.probe.committed_calendar import committed_calendar
from strandline.probe.session import Policy
from strandline.probe.transition import Floats

Bools = npt.NDArray[np.bool_]
TRUTHS = ("S1", "S2a", "S2b", "S3", "S4", "S5", "S6")
"""Worlds with a true half-way date (docs/methods/release-probe-calibrated.md)."""
EDGES = ("always_yes", "always_no", "always_unknown", "coin_flips", "cutoff_before", "cutoff_after")
"""Worlds without a boundary inside the calendar, where any date is a false finding."""
# The estimators that are simulated, by name.
ESTIMATORS = ("calibrated", "modelclock_1_pass", "modelclock_3_passes")
# The calendars that worlds are simulated on, by name.
CALENDARS = ("committed", "synthetic")
FADE_DAYS = {"S2a": 182, "S2b": 365}
"""Days over which knowledge fades in the two fading worlds: six and twelve months."""
N_RUNS = 200
"""Runs of a scenario: a coverage of .95 is then known to within .03 (two standard errors)."""


@dataclass(frozen=True)
class Pool:
    """A calendar's questions as flat arrays: the day number and project of each real release, and where each is."""

    calendar: Calendar
    day: Floats
    project: npt.NDArray[np.intp]
    index: dict[tuple[str, str], int]
    decoy_index: dict[tuple[str, str], int]


@dataclass(frozen=True)
class World:
    """One planted model: its answer to every real and decoy question, and its true half-way date (None: none)."""

    real_yes: Bools
    decoy_yes: Bools
    truth: float | None
    refusal: str = "NO"


def scenarios() -> tuple[Scenario, ...]:
    """All worlds for all estimators: on the committed calendar, and the default estimator on a synthetic one too."""
    on_committed = [_scenario(e, w, "committed") for e in ESTIMATORS for w in (*TRUTHS, *EDGES)]
    on_synthetic = [_scenario("calibrated", w, "synthetic") for w in (*TRUTHS, *EDGES)]
    return tuple(on_committed + on_synthetic)


def _scenario(estimator: str, world: str, calendar: str) -> Scenario:
    return Scenario(f"probe_{estimator}", f"{world}_{calendar}", N_RUNS, world in TRUTHS)


def run_once(estimator: str, scenario: str, seed: int) -> Recovery:
    """One simulated model, asked and dated. Values are day numbers; raises ValueError for an unknown name."""
    method, (name, _, calendar) = estimator.removeprefix("probe_"), scenario.rpartition("_")
    whole_number(seed, "the seed", 0)
    if method not in ESTIMATORS or name not in (*TRUTHS, *EDGES) or calendar not in CALENDARS:
        raise ValueError(f"no such simulation: {estimator} in {scenario}")
    pool = pool_named(calendar)
    world = plant(name, pool, np.random.default_rng([seed, (*TRUTHS, *EDGES).index(name)]))
    if method == "calibrated":
        return calibrated_recovery(pool, world, seed)
    return modelclock_recovery(pool, world, seed_method.Rules(replicates=1 if method.endswith("1_pass") else 3))


@lru_cache(maxsize=2)
def pool_named(name: str) -> Pool:
    """The committed or the synthetic calendar as a pool."""
    return pool_of(committed_calendar() if name == "committed" else synthetic_calendar())


def pool_of(calendar: Calendar) -> Pool:
    """A calendar's questions as flat arrays."""
    items = [item for day in calendar.items for item in day]
    names = sorted({item.project for item in items})
    code = {name: i for i, name in enumerate(names)}
    return Pool(
        calendar=calendar,
        day=np.array([item.released_on.toordinal() for item in items], dtype=np.float64),
        project=np.array([code[item.project] for item in items], dtype=np.intp),
        index={(item.project, item.version): i for i, item in enumerate(items)},
        decoy_index={(item.project, str(item.decoy_version)): i for i, item in enumerate(items)},
    )


def plant(name: str, pool: Pool, rng: np.random.Generator) -> World:
    """A model of the named kind; a true date lies between 20 % and 80 % of the calendar."""
    first, last = pool.calendar.ordinals[[0, -1]]
    cutoff = float(np.floor(first + rng.uniform(0.2, 0.8) * (last - first))) + 0.5
    if name == "cutoff_before":
        cutoff = float(first) - 200
    if name == "cutoff_after":
        cutoff = float(last) + 200
    fade = FADE_DAYS.get(name, 0)
    truth = cutoff - fade / 2
    real, decoy = rates(name, pool, truth, fade, rng)
    yes, decoy_yes = rng.random(len(real)) < real, rng.random(len(real)) < decoy
    return World(yes, decoy_yes, truth if name in TRUTHS else None, "UNKNOWN" if name == "always_unknown" else "NO")


def rates(name: str, pool: Pool, truth: float, fade: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """P(YES) of every real release and of the decoy beside it, in the named world."""
    known = _known_share(pool.day, truth, fade)
    n_projects = int(pool.project.max()) + 1
    ones = np.ones(len(pool.day))
    if name in EDGES and not name.startswith("cutoff"):
        p = {"always_yes": 1.0, "coin_flips": 0.5}.get(name, 0.0)
        return p * ones, p * ones
    if name == "S5":
        before = rng.beta(0.9, 0.6, n_projects)[pool.project]
        return np.where(known > 0.5, before, 0.05), 0.02 * ones
    if name == "S6":
        guess = rng.beta(0.7, 1.3, n_projects)[pool.project]
        return np.where(known > 0.5, 1 - 0.15 * (1 - guess), guess), 0.3 * guess
    k, g, decoy = {"S3": (0.45, 0.05, 0.02), "S4": (0.95, 0.5, 0.4)}.get(name, (0.9, 0.05, 0.02))
    return g + (k - g) * known, decoy * ones


def _known_share(day: Floats, truth: float, fade: int) -> Floats:
    if fade == 0:
        return np.where(day < truth, 1.0, 0.0)
    return np.asarray(expit(2 * np.log(19.0) * (truth - day) / fade), dtype=np.float64)


def asking(pool: Pool, world: World, policy: Policy) -> list[StoredRound]:
    """All rounds of one run of the policy with the planted model."""
    rounds: list[StoredRound] = []
    while not policy.finished(rounds):
        planned = policy.next_round(rounds)
        reply = answer(pool, world, planned.questions)
        rounds.append(StoredRound(planned.replicate, planned.number, planned.questions, reply))
    return rounds


def answer(pool: Pool, world: World, questions: Sequence[Question]) -> RoundReply:
    """The planted model's reply: the same answer whenever the same question is asked."""
    return RoundReply(tuple(_one(pool, world, i, q) for i, q in enumerate(questions)))


def _one(pool: Pool, world: World, index: int, question: Question) -> Answer:
    key = (question.project, question.version)
    is_yes = world.real_yes[pool.index[key]] if question.kind == "real" else world.decoy_yes[pool.decoy_index[key]]
    return Answer(index, "YES" if is_yes else "UNKNOWN" if world.refusal == "UNKNOWN" else "NO")


def calibrated_recovery(pool: Pool, world: World, seed: int) -> Recovery:
    """Ask under the default policy, then date with the default estimator on the policy's own grid."""
    policy = CalibratedPolicy(pool.calendar, seed=seed)
    progress = policy.progress(asking(pool, world, policy))
    result = conclude(pool.calendar, progress.counted, progress.ledger, seed=seed)
    return calibrated_as_recovery(pool.calendar, result, world.truth)


def calibrated_as_recovery(calendar: Calendar, result: Result, truth: float | None) -> Recovery:
    """A result beside the truth, in day numbers."""
    finding = result.finding
    if finding is None:
        return Recovery(truth, None, None, None, None, None, result.status, False)
    return Recovery(
        truth=truth,
        estimate=float(middle(calendar, result.posterior.quantile(0.5))),
        low80=float(finding.span80.low.toordinal()),
        high80=float(finding.span80.high.toordinal()),
        low95=float(finding.span95.low.toordinal()),
        high95=float(finding.span95.high.toordinal()),
        status=result.status,
        found=True,
    )


def modelclock_recovery(pool: Pool, world: World, rules: seed_method.Rules) -> Recovery:
    """Ask and date as the seed does; `found` is what it announces as converged."""
    days = pool.calendar.days
    rounds = asking(pool, world, seed_method.ModelclockPolicy(pool.calendar, rules))
    passes = [
        seed_method.estimate(days, [r for r in rounds if r.replicate == k], rules) for k in range(rules.replicates)
    ]
    result = seed_method.aggregate(days, passes, rules)
    inside = 0 < result.position < len(days)
    return Recovery(
        truth=world.truth,
        estimate=float(middle(pool.calendar, result.position)) if inside else None,
        low80=_ordinal(result.interval80.start_date),
        high80=_ordinal(result.interval80.end_date),
        low95=_ordinal(result.interval95.start_date),
        high95=_ordinal(result.interval95.end_date),
        status=result.status,
        found=result.converged,
    )


def _ordinal(day: date | None) -> float | None:
    return None if day is None else float(day.toordinal())
