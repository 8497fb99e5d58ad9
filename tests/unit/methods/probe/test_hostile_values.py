"""Public functions of the probe, given values that cannot be: a finite result, or ValueError in our words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial
from math import inf, isfinite, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.probe import Answer, Question, RoundReply, StoredRound, calibrated, evidence, modelclock, stability
from strandline.probe.boundaries import agreement, date_run, rates
from strandline.probe.calendar import Calendar, build_calendar, day_of, item_from_row, synthetic_calendar
from strandline.probe.calibrated_policy import CalibratedRules
from strandline.probe.runs import Settings
from strandline.probe.simulation import run_once
from strandline.probe.transition import Ledger

FIRST = date(2024, 1, 1)
DAYS = tuple(FIRST + timedelta(days=3 * n) for n in range(12))
QUESTION = Question(3, DAYS[3], "p", "1.0", "real")


def calendar_of(days: tuple[Any, ...]) -> Calendar:
    return Calendar("hostile", days, ((),) * len(days))


def asked(*pairs: tuple[Any, Any], number: int = 0) -> StoredRound:
    """One round of (question, answer) pairs; a text stands for an answer of that word."""
    answers = [a if isinstance(a, Answer) else Answer(i, a) for i, (_, a) in enumerate(pairs)]
    return StoredRound(0, number, tuple(q for q, _ in pairs), RoundReply(tuple(answers)))


GOOD = asked((QUESTION, "YES"))
POSTERIOR = calibrated.posterior(calendar_of(DAYS), evidence.count([GOOD]))
EVEN = np.full(13, 1 / 13)

BAD_DAYS: dict[str, tuple[Any, ...]] = {
    "none": (),
    "one": DAYS[:1],
    "unsorted": (DAYS[1], DAYS[0], *DAYS[2:]),
    "repeated": (DAYS[0], *DAYS),
    "no dates": (1, 2, 3, 4),
    "instants": tuple(datetime(2024, 1, n) for n in range(1, 9)),  # noqa: DTZ001
}
BAD_ROUNDS: dict[str, StoredRound] = {
    "another word": asked((QUESTION, "MAYBE")),
    "lower case": asked((QUESTION, "yes")),
    "a truth value": asked((QUESTION, True)),
    "an answer too many": replace(GOOD, reply=RoundReply((Answer(0, "YES"), Answer(1, "NO")))),
    "an answer too few": replace(GOOD, reply=RoundReply(())),
    "another kind": asked((replace(QUESTION, kind="rumour"), "NO")),  # type: ignore[arg-type]
    "before the calendar": asked((replace(QUESTION, position=-1), "NO")),
    "half a position": asked((replace(QUESTION, position=1.5), "NO")),  # type: ignore[arg-type]
    "a truth value as position": asked((replace(QUESTION, position=True), "NO")),
    "P(YES) over 1": asked((QUESTION, Answer(0, "YES", p_yes=1.5))),
    "P(YES) not a number": asked((QUESTION, Answer(0, "YES", p_yes=nan))),
}


@pytest.mark.parametrize("name", BAD_DAYS)
def test_days_that_are_no_calendar_are_refused_by_both_estimators(name: str) -> None:
    for rounds in ([], [GOOD]):
        for estimate in (
            partial(calibrated.estimate, calendar_of(BAD_DAYS[name])),
            partial(modelclock.estimate, BAD_DAYS[name]),
        ):
            with pytest.raises(ValueError, match="calendar"):
                estimate(rounds)


@pytest.mark.parametrize("name", BAD_ROUNDS)
def test_answers_that_cannot_be_are_refused_by_everything_that_counts_them(name: str) -> None:
    bad = [GOOD, BAD_ROUNDS[name]]
    for take in (
        partial(calibrated.estimate, calendar_of(DAYS)),
        partial(modelclock.estimate, DAYS),
        partial(date_run, "calibrated", calendar_of(DAYS)),
        partial(date_run, "modelclock", calendar_of(DAYS)),
        evidence.count,
        evidence.counted_flags,
        modelclock.probes_of,
        rates,
        agreement,
    ):
        with pytest.raises(ValueError, match=r"answer|question|position|p_yes|day"):
            take(bad)


def test_a_question_beyond_the_calendar_is_refused() -> None:
    beyond = [asked((replace(QUESTION, position=len(DAYS)), "YES"))]
    for estimate in (partial(calibrated.estimate, calendar_of(DAYS)), partial(modelclock.estimate, DAYS)):
        with pytest.raises(ValueError, match="of a calendar of 12 days"):
            estimate(beyond)


ROW = {"released_on": FIRST, "project": "p", "version": "1.0", "decoy_version": None, "salience_rank": 1}
REFUSED: dict[str, Callable[[], Any]] = {
    **{f"level {v!r}": partial(calibrated.unwidened, calendar_of(DAYS), POSTERIOR, v) for v in (nan, 0, 1, "x", True)},
    **{f"range at {v!r}": partial(modelclock.credible_interval, EVEN, DAYS, v) for v in (nan, inf, 0, 1, 2, None, 1j)},
    **{f"quantile {v!r}": partial(POSTERIOR.quantile, v) for v in (nan, inf, -0.1, 1.1, "x", True)},
    **{f"place {v!r}": partial(modelclock.quantile_position, EVEN, v) for v in (nan, -inf, 2, True, "x")},
    **{f"margin {v!r}": partial(stability.Jackknife(3.0, 10).margin, v) for v in (nan, 0, 1, -1, None)},
    **{f"day number {v!r}": partial(day_of, v) for v in (nan, inf, 0, -5, 4e6, "x", True, 10**400)},
    **{f"middle {v!r}": partial(calibrated.middle, calendar_of(DAYS), v) for v in (0, 12, -1, 1.5, True)},
    "no such picture": partial(POSTERIOR.p, "out"),
    "no probabilities": partial(modelclock.quantile_position, np.array([]), 0.5),
    "probabilities of NaN": partial(modelclock.quantile_position, np.array([nan, 1.0]), 0.5),
    "probabilities below 0": partial(modelclock.quantile_position, np.array([-1.0, 2.0]), 0.5),
    "probabilities of 2": partial(modelclock.quantile_position, np.array([1.0, 1.0]), 0.5),
    "too few probabilities": partial(modelclock.credible_interval, EVEN[:-1] * 13 / 12, DAYS, 0.8),
    "asked -1 times": partial(modelclock.next_days, EVEN, [-1] * 12),
    "asked NaN times": partial(modelclock.next_days, EVEN, [nan] * 12),
    "times of other days": partial(modelclock.next_days, EVEN, [0] * 11),
    "no days to name": partial(modelclock.boundary_label, (), 0),
    "-1 items": partial(modelclock.pick_items, [], -1, 0),
    "no days at all": partial(modelclock.posterior, 0, []),
    "a probe outside": partial(modelclock.posterior, 3, [modelclock.Probe(3, 1, 1, 0, 0)]),
    "more YES than answers": partial(modelclock.Probe, 0, 2, 1, 0, 0),
    "a truth value as count": partial(modelclock.Probe, 0, True, 1, 0, 0),
    "a prior of 0": partial(modelclock.Rules, known=(0.0, 1.0)),
    "a prior of NaN": partial(modelclock.Rules, decoy=(nan, 1.0)),
    "a weight of 2": partial(modelclock.Rules, noisy_weight=2.0),
    "another noisy rule": partial(modelclock.Rules, noisy_rule="some"),  # type: ignore[arg-type]
    "no replicates": partial(modelclock.Rules, replicates=0),
    "no passes": partial(modelclock.aggregate, DAYS, []),
    "a gate of NaN": partial(CalibratedRules, gate=nan),
    "no anchors": partial(CalibratedRules, anchor_rounds=0),
    "half a round": partial(CalibratedRules, max_rounds=1.5),  # type: ignore[arg-type]
    "medians of NaN": partial(stability.standard_error, [1.0, nan]),
    "no folds": partial(stability.folds, np.array([], dtype=int), np.random.default_rng(0)),
    "folds below 0": partial(stability.folds, np.array([0, -1]), np.random.default_rng(0)),
    "a grid of one day": partial(Ledger, np.array([1.0])),
    "a grid that falls": partial(Ledger, np.array([2.0, 1.0])),
    "a grid of NaN": partial(Ledger, np.array([1.0, nan])),
    "a position outside": partial(Ledger, np.array([1.0, 2.0]), np.array([2])),
    "a day outside": partial(Ledger(np.array([1.0, 2.0])).add, 2, 1, 0),
    "NaN answers": partial(Ledger(np.array([1.0, 2.0])).add, 0, nan, 0),
    "decoys of another grid": partial(Ledger(np.array([1.0, 2.0])).log_mass, np.zeros(68)),
    "decoys of NaN": partial(Ledger(np.array([1.0, 2.0])).log_mass, np.full(69, nan)),
    "rates of NaN": partial(evidence.log_decoys, np.array([nan]), 1, 1, np.array([0.5])),
    "no shares": partial(evidence.log_decoys, np.array([0.5]), 1, 1, np.array([])),
    "-1 decoys": partial(evidence.log_decoys, np.array([0.5]), -1, 1, np.array([0.5])),
    "a drift of one day": partial(evidence.log_drift, evidence.count([]), np.array([1.0])),
    "a drift elsewhere": partial(evidence.log_drift, evidence.count([GOOD]), np.array([1.0, 2.0])),
    "uneven answers": partial(evidence.Counted, np.array([1]), np.array([]), np.array([True]), ("p",), 0, 0),
    "-1 decoys counted": partial(replace, evidence.count([]), decoy_yes=-1),
    "an item on no day": partial(item_from_row, {**ROW, "released_on": "soon"}),
    "an item at an instant": partial(item_from_row, {**ROW, "released_on": datetime(2024, 1, 1)}),  # noqa: DTZ001
    "an item of rank x": partial(item_from_row, {**ROW, "salience_rank": "x"}),
    "a version that is a number": partial(item_from_row, {**ROW, "version": 1.0}),
    "no rows": partial(build_calendar, []),
    "days of 0 items": partial(build_calendar, [ROW], min_items=0),
    "a calendar of one day": partial(synthetic_calendar, 1),
    "too few projects": partial(synthetic_calendar, 10, n_projects=3),
    "a seed below 0": partial(Settings, seed=-1),
    "half a seed": partial(Settings, seed=1.5),  # type: ignore[arg-type]
    "no such world": partial(run_once, "probe_calibrated", "nowhere", 0),
    "a world without a calendar": partial(run_once, "probe_calibrated", "S1_moon", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_values_that_cannot_be_are_refused_in_our_words(name: str) -> None:
    with pytest.raises(ValueError) as caught:
        REFUSED[name]()
    library = (
        r"zip\(|tuple\.index|could not convert|invalid literal|broadcast|operand|axis|empty sequence|isoformat|unpack"
    )
    assert not re.search(library, str(caught.value)), caught.value


WORDS = st.one_of(st.none(), st.sampled_from(["YES", "NO", "UNKNOWN"]), st.sampled_from(["yes", "MAYBE", "", 1, nan]))
DAY_LISTS = st.lists(st.dates(date(1, 1, 1), date(9999, 12, 31)), max_size=8).map(tuple)
QUESTIONS = st.builds(
    Question,
    position=st.one_of(st.integers(-1, 9), st.just(2**70)),
    released_on=st.just(FIRST),
    project=st.sampled_from(["a", "b", ""]),
    version=st.sampled_from(["1.0", "2.0"]),
    kind=st.sampled_from(["real", "decoy"]),
)


@settings(max_examples=150, deadline=None)
@given(DAY_LISTS, st.booleans(), st.lists(st.tuples(QUESTIONS, WORDS), max_size=12), st.integers(0, 3))
def test_any_days_and_answers_give_finite_numbers_or_a_sentence(
    days: tuple[date, ...], is_sorted: bool, pairs: list[tuple[Question, Any]], cut: int
) -> None:
    days = tuple(sorted(set(days))) if is_sorted else days
    rounds = [asked(*pairs[:cut]), asked(*pairs[cut:], number=1)]
    is_sound = len(days) >= 2 and list(days) == sorted(set(days))
    is_sound &= all(0 <= q.position < len(days) for q, _ in pairs)
    is_sound &= all(word in (None, "YES", "NO", "UNKNOWN") for _, word in pairs)
    if not is_sound:
        for estimate in (partial(calibrated.estimate, calendar_of(days)), partial(modelclock.estimate, days)):
            with pytest.raises(ValueError):
                estimate(rounds)
        return
    result = calibrated.estimate(calendar_of(days), rounds)
    assert np.isfinite(result.posterior.log_evidence).all()
    assert np.isfinite(result.posterior.mass).all()
    assert (result.finding is None) == (result.status != "ok")
    if result.finding:
        assert isfinite(result.finding.stability.posterior_sd)
    passed = modelclock.estimate(days, rounds)
    assert 0 <= passed.interval95.start <= passed.position <= passed.interval95.end <= len(days)
