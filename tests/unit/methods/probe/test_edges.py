"""Where one status of the probe turns into another: each rule at its edges, as tables of inputs and outcomes."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from math import ceil, floor

import numpy as np
import pytest

from strandline.probe import Answer, Question, RoundReply, StoredRound
from strandline.probe.boundaries import date_run
from strandline.probe.calendar import Calendar, synthetic_calendar
from strandline.probe.calibrated import GATE, Posterior, Span, conclude, day_of, decide, ledger_of, middle
from strandline.probe.calibrated_policy import CalibratedPolicy, CalibratedRules
from strandline.probe.evidence import Counted, count
from strandline.probe.modelclock import Interval, PassResult, Rules, aggregate, pass_status
from strandline.probe.report import rates_text
from strandline.probe.stability import Jackknife, Stability

FIRST = date(2024, 1, 1)
ONE_ANSWER = Counted(np.array([0]), np.array([0]), np.array([True]), ("p",), 0, 0)


def evidence(*shares: float) -> Posterior:
    mass = np.zeros((9, 5, 5))
    mass[4, 0, 0] = 1.0
    return Posterior(np.arange(1, 10), mass, np.log(np.maximum(shares, 1e-300)), np.array(shares))


@pytest.mark.parametrize(
    ("shares", "status"),
    [
        ((0.95, 0.05, 0.0, 0.0), "ok"),
        ((0.9499, 0.0501, 0.0, 0.0), "inconclusive"),
        ((0.93, 0.07, 0.0, 0.0), "inconclusive"),
        ((0.9, 0.1, 0.0, 0.0), "inconclusive"),
        ((0.05, 0.95, 0.0, 0.0), "right_censored"),
        ((0.06, 0.94, 0.0, 0.0), "inconclusive"),
        ((0.0, 0.05, 0.95, 0.0), "no_boundary"),
        ((0.0, 0.051, 0.949, 0.0), "inconclusive"),
        ((0.0, 0.0, 0.05, 0.95), "drift"),
        ((0.0, 0.0, 0.06, 0.94), "inconclusive"),
    ],
)
def test_a_picture_is_stated_at_95_percent_of_the_evidence_and_not_below(
    shares: tuple[float, ...], status: str
) -> None:
    assert GATE == 0.95
    assert decide(evidence(*shares), ONE_ANSWER)[0] == status


def test_without_a_usable_answer_no_evidence_states_anything() -> None:
    assert decide(evidence(1.0, 0.0, 0.0, 0.0), count([]))[0] == "unanswered"
    only_a_decoy = replace(count([]), decoy_no=1)
    assert decide(evidence(1.0, 0.0, 0.0, 0.0), only_a_decoy)[0] == "ok"


@pytest.mark.parametrize(
    ("projects", "calls", "widest"),
    [(10.0, 1.0, 10.0), (1.0, 10.0, 10.0), (10.0, None, 10.0), (None, 10.0, 10.0), (None, None, 0.0), (4.0, 4.0, 4.0)],
)
def test_the_wider_jackknife_gives_the_margin_whichever_it_is(
    projects: float | None, calls: float | None, widest: float
) -> None:
    stability = Stability(Jackknife(projects, 10), Jackknife(calls, 10), 1.0)
    assert stability.margin(0.95) == pytest.approx(2.2621571628 * widest, rel=1e-9)
    assert stability.margin(0.8) == pytest.approx(1.3830287384 * widest, rel=1e-9)


def disagreeing() -> tuple[Calendar, Counted]:
    """A run of daily questions in which three of five projects know ten days more than the others, and calls agree."""
    days = tuple(FIRST + timedelta(days=n) for n in range(80))
    rows = [(d, p, d < (35 if p % 2 else 45)) for d in range(80) for p in range(5)]
    counted = Counted(
        position=np.array([d for d, _, _ in rows]),
        call=np.array([(7 * d + p) % 40 for d, p, _ in rows]),
        yes=np.array([yes for _, _, yes in rows]),
        project=tuple(f"p{p}" for _, p, _ in rows),
        decoy_yes=0,
        decoy_no=60,
    )
    return Calendar("daily", days, ((),) * 80), counted


def test_projects_that_disagree_widen_the_interval_though_calls_agree_each_level_by_its_own_margin() -> None:
    calendar, counted = disagreeing()
    finding = conclude(calendar, counted, ledger_of(calendar, counted)).finding
    assert finding is not None
    assert finding.stability.projects.margin(0.8) > 10 > finding.stability.calls.margin(0.95)
    spans = {0.8: finding.span80, 0.95: finding.span95}
    centre = float(middle(calendar, calendar.index[finding.estimate.high]))
    for level, span in spans.items():
        margin = finding.stability.projects.margin(level)
        assert (span.low, span.high) == (day_of(floor(centre - margin)), day_of(ceil(centre + margin)))
    assert spans[0.8] == Span(date(2024, 1, 30), date(2024, 3, 1))
    assert spans[0.95] == Span(date(2024, 1, 18), date(2024, 3, 13))


def yes_until(cutoff: date, question: Question) -> Answer:
    return Answer(0, "YES" if question.kind == "real" and question.released_on < cutoff else "NO")


def played(policy: CalibratedPolicy, cutoff: date, n_rounds: int) -> list[StoredRound]:
    rounds: list[StoredRound] = []
    while len(rounds) < n_rounds:
        asked = policy.next_round(rounds).questions
        answers = tuple(replace(yes_until(cutoff, q), index=i) for i, q in enumerate(asked))
        rounds.append(StoredRound(0, len(rounds), asked, RoundReply(answers)))
    return rounds


def test_even_rounds_explore_sixty_days_beyond_the_range_and_odd_ones_the_whole_calendar() -> None:
    calendar = synthetic_calendar(300, seed=6)
    rounds = played(CalibratedPolicy(calendar), calendar.days[150], 15)

    def farthest(n_rounds: int) -> list[int]:
        reach = []
        for seed in range(40):
            policy = CalibratedPolicy(calendar, seed=seed)
            post = policy.posterior(rounds[:n_rounds])
            low, high = calendar.days[post.quantile(0.025)], calendar.days[post.quantile(0.975)]
            asked = {q.released_on for q in policy.next_round(rounds[:n_rounds]).questions}
            reach.append(max(max((low - day).days, (day - high).days) for day in asked))
        return reach

    even, odd = farthest(14), farthest(15)
    assert 45 <= max(even) <= 60 + 14
    assert max(odd) > 150


@pytest.mark.parametrize(
    ("shares", "width", "n_rounds", "said"),
    [
        ((0.95, 0.0, 0.05, 0.0), 14, 12, "within 14 days"),
        ((0.95, 0.0, 0.05, 0.0), 15, 12, None),
        ((0.949, 0.0, 0.051, 0.0), 14, 12, None),
        ((0.95, 0.0, 0.05, 0.0), 14, 11, None),
        ((0.01, 0.99, 0.0, 0.0), 90, 12, "end of the calendar"),
        ((0.011, 0.989, 0.0, 0.0), 90, 12, None),
        ((0.0, 0.01, 0.99, 0.0), 90, 12, "like decoys"),
        ((0.0, 0.011, 0.989, 0.0), 90, 12, None),
        ((0.0, 0.0, 0.0, 1.0), 90, 35, None),
        ((0.0, 0.0, 0.0, 1.0), 90, 36, "cap of 36 rounds"),
    ],
)
def test_the_policy_stops_at_its_thresholds(
    shares: tuple[float, ...], width: int, n_rounds: int, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = tuple(FIRST + timedelta(days=width * n) for n in range(10))
    items = tuple(synthetic_calendar(20, seed=1).items[n] for n in range(10))
    monkeypatch.setattr(CalibratedPolicy, "posterior", lambda self, rounds: evidence(*shares))
    policy = CalibratedPolicy(Calendar("wide", days, items))
    question = Question(0, FIRST, "p", "1.0", "decoy")
    rounds = [StoredRound(0, n, (question,), RoundReply((Answer(0, "NO"),))) for n in range(n_rounds)]
    reason = policy.stop_reason(rounds)
    assert (said is None) == (reason is None)
    assert said is None or said in str(reason)


@pytest.mark.parametrize(("n_rounds", "stops"), [(3, False), (4, True)])
def test_four_rounds_without_an_answer_end_a_run(n_rounds: int, stops: bool) -> None:
    policy = CalibratedPolicy(synthetic_calendar(60, seed=1))
    question = Question(0, FIRST, "p", "1.0", "decoy")
    rounds = [StoredRound(0, n, (question,), RoundReply((Answer(0, None),))) for n in range(n_rounds)]
    assert policy.finished(rounds) is stops


DAYS = tuple(FIRST + timedelta(days=n) for n in range(40))


def interval(start: int, end: int) -> Interval:
    return Interval(0.95, start, end, DAYS[start - 1] if start else None, DAYS[end] if end < len(DAYS) else None)


@pytest.mark.parametrize(
    ("start", "end", "status"),
    [
        (10, 23, "ok"),
        (10, 24, "wide"),
        (1, 14, "ok"),
        (1, 15, "wide"),
        (0, 5, "left_censored"),
        (0, 40, "left_censored"),
        (1, 40, "right_censored"),
        (30, 40, "right_censored"),
        (26, 39, "ok"),
        (25, 39, "wide"),
    ],
)
def test_a_pass_has_the_status_of_its_range(start: int, end: int, status: str) -> None:
    assert pass_status(DAYS, interval(start, end), Rules())[0] == status


def passed(start: int, end: int) -> PassResult:
    range95 = interval(start, end)
    status, reason = pass_status(DAYS, range95, Rules())
    collapsed = start == end and start in (0, len(DAYS))
    return PassResult(start, range95, range95, 0, 0, 12, 1, status == "ok" or collapsed, status, reason)


@pytest.mark.parametrize(
    ("ranges", "status", "converged"),
    [
        ([(10, 12), (12, 20), (14, 23)], "ok", True),
        ([(10, 12), (12, 20), (14, 24)], "wide", True),
        ([(0, 0), (0, 0), (0, 0)], "left_censored", True),
        ([(0, 0), (0, 1), (0, 0)], "left_censored", False),
        ([(40, 40), (40, 40), (40, 40)], "right_censored", True),
        ([(0, 0), (0, 0), (40, 40)], "wide", True),
        ([(5, 30), (6, 30), (7, 30)], "wide", False),
    ],
)
def test_all_passes_together_have_the_status_of_their_union(
    ranges: list[tuple[int, int]], status: str, converged: bool
) -> None:
    result = aggregate(DAYS, [passed(*ends) for ends in ranges])
    assert (result.status, result.converged) == (status, converged)


def test_the_thirds_of_a_report_count_every_answer_of_every_day_once() -> None:
    days = tuple(date(2024, 1, 1) + timedelta(days=45 * n) for n in range(9))
    words = ["YES", "YES", "YES", "YES", "NO", "NO", "NO", None, "YES"]
    rounds = [
        StoredRound(0, n, (Question(n, day, "p", f"{n}.0", "real"),), RoundReply((Answer(0, word),)))  # type: ignore[arg-type]
        for n, (day, word) in enumerate(zip(days, words, strict=True))
    ]
    boundary, _ = date_run("calibrated", Calendar("thirds", days, ((),) * 9), rounds)
    lines = rates_text(boundary, rounds).splitlines()
    assert lines[0] == "YES to releases       5/8 (62%)"
    assert lines[1:4] == [
        "  from 2024-01 on     3/3 (100%)",
        "  from 2024-04 on     1/3 (33%)",
        "  from 2024-08 on     1/2 (50%)",
    ]


def test_fewer_than_three_answers_have_no_thirds() -> None:
    days = tuple(date(2024, 1, 1) + timedelta(days=45 * n) for n in range(9))
    question = Question(0, days[0], "p", "1.0", "real")
    for n, has_thirds in ((2, False), (3, True)):
        rounds = [StoredRound(0, k, (question,), RoundReply((Answer(0, "YES"),))) for k in range(n)]
        boundary, _ = date_run("modelclock", Calendar("thirds", days, ((),) * 9), rounds)
        assert ("from 2024-01 on" in rates_text(boundary, rounds)) is has_thirds


def test_the_rules_of_the_default_policy_are_those_that_were_simulated() -> None:
    assert CalibratedRules() == CalibratedRules(
        real_per_date=5, decoys_per_date=3, dates_per_round=3, anchor_rounds=4, min_rounds=12, max_rounds=36,
        width_days=14, gate=0.95, sure=0.99, min_unasked=3, margin_days=60, drop_log_units=40.0, give_up_after=4,
    )  # fmt: skip
