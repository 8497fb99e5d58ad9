"""The default estimator: golden values, agreement with a plain triple loop, gate, intervals, jackknife, fuzzing."""

from datetime import date, timedelta
from itertools import product
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logsumexp

from strandline.probe import Answer, Question, RoundReply, StoredRound
from strandline.probe.calendar import Calendar, synthetic_calendar
from strandline.probe.calibrated import (
    conclude,
    decide,
    estimate,
    last_traces,
    ledger_of,
    middle,
    posterior,
    unwidened,
)
from strandline.probe.calibrated_policy import CalibratedPolicy
from strandline.probe.evidence import DRIFTS, HYPOTHESES, Counted, count, counted_flags
from strandline.probe.stability import folds, standard_error
from strandline.probe.transition import RATE_PAIRS, WIDTHS, Ledger, width_prior

DAYS = tuple(
    date(2024, m, d) for m, d in [(1, 2), (1, 5), (1, 9), (1, 11), (1, 16), (1, 18), (1, 23), (1, 26), (1, 30), (2, 1)]
)
SMALL = Calendar("golden", DAYS, ((),) * 10)
F = [(0, 5, 0), (2, 5, 0), (4, 4, 0), (5, 1, 0), (7, 0, 1), (9, 0, 0)]


def counted_from(case: list[tuple[int, int, int]]) -> Counted:
    yes = [i < n for _, n, _ in case for i in range(5)]
    decoy_yes = sum(d for *_, d in case)
    return Counted(
        position=np.repeat([p for p, *_ in case], 5).astype(np.intp),
        call=np.repeat(np.arange(len(case)), 5).astype(np.intp),
        yes=np.array(yes, dtype=np.bool_),
        project=tuple(f"p{i % 7}" for i in range(5 * len(case))),
        decoy_yes=decoy_yes,
        decoy_no=3 * len(case) - decoy_yes,
    )


def test_evidences_and_posterior_equal_the_golden_values() -> None:
    post = posterior(SMALL, counted_from(F))
    assert post.log_evidence == pytest.approx(
        [-17.475030904689, -26.958843463628, -28.296312176147, -20.611787658459], abs=1e-9
    )
    assert post.probability == pytest.approx(
        [0.958295510407, 7.29007492272e-05, 1.91371257301e-05, 0.0416124517176], rel=1e-9
    )
    assert post.by_position == pytest.approx(
        [
            *(0.000541749332315, 0.00135386475762, 0.0207369223349, 0.0450495211275, 0.843618455673),
            *(0.0519518708714, 0.0349468568771, 0.00136425031709, 0.000436508709102),
        ],
        rel=1e-9,
    )
    assert post.sharp == pytest.approx(0.879892516324, rel=1e-9)
    assert decide(post, counted_from(F))[0] == "ok"


def test_the_grid_has_the_specified_size() -> None:
    assert len(RATE_PAIRS) == 69
    assert len(DRIFTS) == 47
    assert width_prior().sum() == pytest.approx(1)
    assert width_prior()[0, 0] == 0.3


def plain_log_mass(days: list[int], answers: list[tuple[int, bool]]) -> np.ndarray:
    """The same mass by a loop over positions, widths, rates and answers, without any table."""
    n, prior = len(days), width_prior()
    mass = np.empty((n - 1, 5, 5))
    for p, (i, before), (j, after) in product(range(1, n), enumerate(WIDTHS), enumerate(WIDTHS)):
        c = (days[p - 1] + days[p]) / 2
        terms = [sum(one(c, t, y, before, after, k, g) for t, y in answers) for k, g in RATE_PAIRS]
        gap = (days[p] - days[p - 1]) / (days[-1] - days[0])
        mass[p - 1, i, j] = logsumexp(terms) - log(69) + log(gap * prior[i, j])
    return mass


def one(c: float, t: int, yes: bool, before: int, after: int, k: float, g: float) -> float:
    z, width = c - t, before if c > t else after
    share = float(z > 0) if width == 0 else float(expit(2 * log(19) * z / width))
    p = g + (k - g) * share
    return log(p) if yes else log(1 - p)


def test_the_ledger_equals_a_plain_loop_over_the_grid() -> None:
    rng = np.random.default_rng(5)
    days = np.cumsum(rng.integers(1, 120, size=9)) + 735_000
    picked = rng.integers(0, 9, size=25)
    yes = rng.random(25) < 0.5
    ledger = Ledger(days.astype(float))
    for day in range(9):
        here = yes[picked == day]
        ledger.add(day, int(here.sum()), int((~here).sum()))
    answers = [(int(days[d]), bool(y)) for d, y in zip(picked, yes, strict=True)]
    expected = plain_log_mass([int(d) for d in days], answers)
    assert ledger.log_mass(np.zeros(69)) == pytest.approx(expected, abs=1e-10)


def test_far_from_the_boundary_the_tables_stay_exact() -> None:
    days = np.array([735_000.0, 735_030.0, 735_100.0, 738_000.0, 743_000.0])
    ledger = Ledger(days)
    for day, yes, no in [(0, 5, 0), (1, 0, 5), (4, 1, 4)]:
        ledger.add(day, yes, no)
    answers = [(735_000, True)] * 5 + [(735_030, False)] * 5 + [(743_000, True)] + [(743_000, False)] * 4
    assert ledger.log_mass(np.zeros(69)) == pytest.approx(plain_log_mass([int(d) for d in days], answers), abs=1e-10)


def test_answers_that_are_taken_away_leave_no_trace() -> None:
    calendar = synthetic_calendar(120, seed=2)
    kept, removed = Ledger(calendar.ordinals), Ledger(calendar.ordinals)
    kept.add(30, 4, 1)
    for ledger, sign in ((removed, 1), (removed, 0), (removed, -1)):
        if sign:
            ledger.add(70, sign * 2, sign * 3)
        else:
            ledger.add(30, 4, 1)
    assert removed.log_mass(np.zeros(69)) == pytest.approx(kept.log_mass(np.zeros(69)), abs=1e-9)


def test_one_sided_answers_do_not_underflow() -> None:
    calendar = synthetic_calendar(60, seed=2)
    ledger = Ledger(calendar.ordinals)
    for day in range(60):
        ledger.add(day, 0 if day < 30 else 40, 40 if day < 30 else 0)
    mass = ledger.log_mass(np.zeros(69))
    assert np.isfinite(logsumexp(mass))
    assert np.isfinite(mass.max(axis=(1, 2))).all()


def rounds_of(calendar: Calendar, answer, n_rounds: int = 12, per_day: int = 5, seed: int = 0) -> list[StoredRound]:
    rng = np.random.default_rng(seed)
    made = []
    for number in range(n_rounds):
        questions = []
        for day in rng.choice(calendar.n_days, size=3, replace=False):
            items = calendar.items[day][:per_day]
            questions += [i.question(int(day), "real") for i in items] + [
                i.question(int(day), "decoy") for i in items[:3]
            ]
        replies = tuple(Answer(i, answer(q)) for i, q in enumerate(questions))
        made.append(StoredRound(0, number, tuple(questions), RoundReply(replies)))
    return made


@pytest.fixture(scope="module")
def calendar() -> Calendar:
    return synthetic_calendar(200, seed=4)


def test_a_planted_cutoff_lies_in_the_interval_whoever_asked(calendar: Calendar) -> None:
    cutoff = calendar.days[110]
    rounds = rounds_of(calendar, lambda q: "YES" if q.kind == "real" and q.released_on < cutoff else "NO", 25)
    result = estimate(calendar, rounds)
    assert result.status == "ok"
    assert result.finding.span95.low <= cutoff <= result.finding.span95.high
    assert result.finding.span95.low <= result.finding.span80.low <= result.finding.estimate.low
    assert result.finding.estimate.high <= result.finding.span80.high <= result.finding.span95.high


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (lambda q: "YES", "no_boundary"),
        (lambda q: "NO", "no_boundary"),
        (lambda q: "UNKNOWN", "no_boundary"),
    ],
)
def test_a_model_without_a_boundary_gets_no_date(calendar: Calendar, answer, status: str) -> None:
    result = estimate(calendar, rounds_of(calendar, answer, 25))
    assert result.status == status
    assert result.finding is None
    assert result.reason


def test_knowledge_to_the_end_of_the_calendar_is_right_censored_under_the_policy(calendar: Calendar) -> None:
    policy = CalibratedPolicy(calendar)
    rng = np.random.default_rng(8)
    rounds: list[StoredRound] = []
    while not policy.finished(rounds):
        asked = policy.next_round(rounds).questions
        known = rng.random(len(asked)) < 0.9
        replies = tuple(Answer(i, "YES" if q.kind == "real" and known[i] else "NO") for i, q in enumerate(asked))
        rounds.append(StoredRound(0, len(rounds), asked, RoundReply(replies)))
    result = estimate(calendar, rounds)
    assert result.status == "right_censored"
    assert result.finding is None


def test_a_slow_fall_over_the_whole_calendar_is_a_drift_or_inconclusive() -> None:
    calendar = synthetic_calendar(700, seed=4)
    rng = np.random.default_rng(3)
    first, last = calendar.ordinals[[0, -1]]

    def answer(q: Question) -> str:
        p = 0.75 - 0.5 * (q.released_on.toordinal() - first) / (last - first)
        return "YES" if q.kind == "real" and rng.random() < p else "NO"

    assert estimate(calendar, rounds_of(calendar, answer, 36)).status in ("drift", "inconclusive")


def test_nothing_answered_is_unanswered_and_few_answers_are_inconclusive(calendar: Calendar) -> None:
    assert estimate(calendar, []).status == "unanswered"
    assert estimate(calendar, rounds_of(calendar, lambda q: None, 3)).status == "unanswered"
    assert estimate(calendar, rounds_of(calendar, lambda q: "YES", 1)[:1]).status == "inconclusive"


def test_missing_answers_change_nothing(calendar: Calendar) -> None:
    cutoff = calendar.days[110]
    rounds = rounds_of(calendar, lambda q: "YES" if q.kind == "real" and q.released_on < cutoff else "NO", 12)
    lost = rounds_of(calendar, lambda q: None, 5, seed=99)
    with_lost = [*rounds, *(StoredRound(0, 12 + r.number, r.questions, r.reply) for r in lost)]
    assert estimate(calendar, with_lost).posterior.by_position == pytest.approx(
        estimate(calendar, rounds).posterior.by_position, abs=0
    )


def test_a_repeated_question_counts_once_and_the_transcript_says_which(calendar: Calendar) -> None:
    rounds = rounds_of(calendar, lambda q: "YES", 2)
    doubled = [*rounds, StoredRound(1, 0, rounds[0].questions, rounds[0].reply)]
    assert count(doubled).real_yes == count(rounds).real_yes
    assert not any(counted_flags(doubled)[2])


def test_a_first_missing_answer_leaves_the_later_one_to_count(calendar: Calendar) -> None:
    question = calendar.items[3][0].question(3, "real")
    missing = StoredRound(0, 0, (question,), RoundReply((Answer(0, None, parse_status="missing"),)))
    given_later = StoredRound(0, 1, (question,), RoundReply((Answer(0, "YES"),)))
    assert counted_flags([missing, given_later]) == [[False], [True]]


def test_projects_that_disagree_widen_the_interval(calendar: Calendar) -> None:
    cutoffs = {f"project {i:03d}": calendar.days[100 if i % 2 else 120] for i in range(120)}
    agree = rounds_of(
        calendar, lambda q: "YES" if q.kind == "real" and q.released_on < calendar.days[110] else "NO", 30
    )
    differ = rounds_of(
        calendar, lambda q: "YES" if q.kind == "real" and q.released_on < cutoffs[q.project] else "NO", 30
    )
    se = [estimate(calendar, r).finding.stability.projects.se for r in (agree, differ)]
    assert se[1] > se[0]


def test_the_jackknife_has_the_stated_formula() -> None:
    jackknife = standard_error([1.0, 2.0, 4.0, 5.0])
    assert jackknife.se == pytest.approx((0.75 * (4 + 1 + 1 + 4)) ** 0.5)
    ten = standard_error(list(range(10)))
    assert ten.margin(0.95) / ten.se == pytest.approx(2.262, abs=5e-4)
    assert ten.margin(0.8) / ten.se == pytest.approx(1.383, abs=5e-4)


def test_a_single_group_has_no_standard_error() -> None:
    alone = standard_error([3.0])
    assert alone.se is None
    assert alone.margin(0.95) == 0


def test_fewer_groups_than_ten_get_a_fold_each() -> None:
    codes = np.array([0, 0, 1, 2, 2, 1])
    dealt = folds(codes, np.random.default_rng(0))
    assert sorted(set(dealt)) == [0, 1, 2]
    assert all(len(set(dealt[codes == group])) == 1 for group in range(3))


def test_last_traces_lie_after_the_half_way_date_of_a_fade() -> None:
    calendar = synthetic_calendar(700, seed=4)
    half = float(calendar.ordinals[350])
    rng = np.random.default_rng(1)

    def answer(q: Question) -> str:
        share = 1 / (1 + exp(2 * log(19) * (q.released_on.toordinal() - half) / 365))
        return "YES" if q.kind == "real" and rng.random() < 0.03 + 0.9 * share else "NO"

    result = estimate(calendar, rounds_of(calendar, answer, 36))
    traces = last_traces(calendar, result.posterior)
    assert result.status == "ok"
    assert result.finding.estimate.high + timedelta(days=60) < traces.median
    assert traces.span95.low <= traces.median <= traces.span95.high


def test_the_interval_never_is_narrower_than_the_dates_are_certain() -> None:
    days = tuple(date(2024, 1, 1) + timedelta(days=i) for i in range(60))
    calendar = Calendar("daily", days, ((),) * 60)
    case = [(d, 5 if d < 30 else 0, 0) for d in range(60)]
    result = conclude(calendar, counted_from(case), ledger_of(calendar, counted_from(case)))
    assert (result.finding.span95.high - result.finding.span95.low).days >= 2


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(0, 3)), min_size=0, max_size=40),
    st.integers(0, 2**32 - 1),
)
def test_any_answers_give_a_status_and_finite_numbers(case: list[tuple[int, int, int]], seed: int) -> None:
    counted = counted_from(case)
    result = conclude(SMALL, counted, ledger_of(SMALL, counted), seed=seed)
    assert result.posterior.probability.sum() == pytest.approx(1)
    assert result.posterior.by_position.sum() == pytest.approx(1)
    assert (result.finding is not None) == (result.status == "ok")
    assert result.posterior.p("in") >= 0.95 or result.status != "ok"


def test_the_unwidened_interval_is_made_of_whole_calendar_gaps() -> None:
    post = posterior(SMALL, counted_from(F))
    span = unwidened(SMALL, post, 0.95)
    assert {span.low, span.high} <= set(DAYS)
    assert float(middle(SMALL, 5)) == (DAYS[4].toordinal() + DAYS[5].toordinal()) / 2
    assert post.p("in") == post.probability[HYPOTHESES.index("in")]
