"""The seed's method: golden values, its rules for choosing days and items, stopping, aggregation."""

from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaln

from strandline.probe import Answer, Question, RoundReply, StoredRound
from strandline.probe.calendar import Calendar, Item, synthetic_calendar
from strandline.probe.modelclock import (
    Interval,
    ModelclockPolicy,
    PassResult,
    Probe,
    Rules,
    aggregate,
    answer_weights,
    boundary_label,
    credible_interval,
    estimate,
    log_weights,
    next_days,
    pick_items,
    posterior,
    probes_of,
    quantile_position,
)

DAYS = tuple(
    date(2024, m, d) for m, d in [(1, 2), (1, 5), (1, 9), (1, 11), (1, 16), (1, 18), (1, 23), (1, 26), (1, 30), (2, 1)]
)
REFERENCE = Rules(noisy_rule="all_answers")
A = [(2, 5, 0), (5, 2, 0), (8, 0, 1)]
B = [*A, (3, 4, 0), (4, 3, 0), (5, 2, 0)]
C = [(2, 5, 3), (5, 5, 3), (8, 5, 3)]
CASES = {
    "A": (
        A,
        [0.000708332858854] * 3 + [0.221747662915] * 3 + [0.0974994435567] * 3 + [0.0200668410036] * 2,
        [-15.432286407380] * 3 + [-9.685905169378] * 3 + [-10.507598580358] * 3 + [-12.088376499738] * 2,
        5,
        (3, 8, "2024-01-09", "2024-01-30", 21),
        (3, 9, "2024-01-09", "2024-02-01", 23),
        [4, 5, 6],
    ),
    "B": (
        B,
        [0.00073697988724] * 3
        + [0.0225031832058, 0.17428009086, 0.272593989093]
        + [0.149222711581] * 3
        + [0.0403718312175] * 2,
        [-27.283758858311] * 3
        + [-23.864907406086, -21.817900458511, -21.370580712367]
        + [-21.973124282524] * 3
        + [-23.280431886420] * 2,
        6,
        (4, 8, "2024-01-11", "2024-01-30", 19),
        (4, 10, "2024-01-11", None, None),
        [5, 6, 7],
    ),
    "C": (
        C,
        [0.00168190210748] * 3 + [0.00608914321943] * 3 + [0.0340432099072] * 3 + [0.437278617149] * 2,
        [-22.041395063072] * 3 + [-20.754813037501] * 3 + [-19.033689825504] * 3 + [-16.480749863079] * 2,
        9,
        (8, 10, "2024-01-26", None, None),
        (6, 10, "2024-01-18", None, None),
        [7, 8, 9],
    ),
    "E": (
        [],
        [1 / 11] * 11,
        [0.0] * 11,
        5,
        (1, 9, "2024-01-02", "2024-02-01", 30),
        (0, 10, None, None, None),
        [2, 5, 8],
    ),
}


def probes(case: list[tuple[int, int, int]]) -> list[Probe]:
    return [Probe(position, yes, 5, decoys, 3) for position, yes, decoys in case]


def described(interval: Interval) -> tuple[int, int, str | None, str | None, int | None]:
    first, last = (str(d) if d else None for d in (interval.start_date, interval.end_date))
    return interval.start, interval.end, first, last, interval.width_days


@pytest.mark.parametrize("name", CASES)
def test_the_reference_variant_equals_the_golden_posterior(name: str) -> None:
    case, probabilities, logs, *_ = CASES[name]
    assert log_weights(10, probes(case), REFERENCE) == pytest.approx(logs, abs=1e-11)
    assert posterior(10, probes(case), REFERENCE) == pytest.approx(probabilities, rel=1e-11)


@pytest.mark.parametrize("name", CASES)
def test_median_intervals_and_next_days_equal_the_golden_values(name: str) -> None:
    case, _, _, median, at80, at95, following = CASES[name]
    mass = posterior(10, probes(case), REFERENCE)
    asked = np.bincount([position for position, *_ in case], minlength=10)
    assert quantile_position(mass, 0.5) == median
    assert described(credible_interval(mass, DAYS, 0.8)) == at80
    assert described(credible_interval(mass, DAYS, 0.95)) == at95
    assert next_days(mass, asked) == following


def test_by_default_only_yes_answers_of_a_noisy_day_weigh_a_quarter() -> None:
    noisy = [Probe(4, 3, 5, 1, 3)]
    weights = log_weights(10, noisy)
    known = betaln(8 + 0.75, 2 + 2) - betaln(8, 2)
    unknown = betaln(1 + 0.75, 9 + 2) - betaln(1, 9)
    assert weights[5] - weights[0] == pytest.approx(known - unknown, abs=1e-12)
    assert weights[5] - weights[0] != pytest.approx(np.ptp(log_weights(10, noisy, REFERENCE)), abs=1e-3)


def test_overclaiming_days_are_weaker_evidence_than_clean_ones() -> None:
    clean, noisy = (np.ptp(log_weights(10, [Probe(4, 5, 5, decoy, 3)])) for decoy in (0, 1))
    assert noisy < clean


def test_answer_weights_follow_the_rule_and_leave_missing_answers_out() -> None:
    day = date(2024, 1, 2)
    asked = [Question(0, day, "p", v, k) for v, k in [("1", "real"), ("2", "real"), ("3", "real"), ("9", "decoy")]]
    answers = [Answer(0, "YES"), Answer(1, "NO"), Answer(2, None, parse_status="missing"), Answer(3, "YES")]
    assert answer_weights(asked, answers) == [0.25, 1.0, None, 1.0]
    assert answer_weights(asked, answers, REFERENCE) == [0.25, 0.25, None, 1.0]


STATUSES = {
    "known": [(4, 5, 0), (2, 3, 0)],
    "mixed": [(3, 5, 0), (2, 5, 0)],
    "unknown": [(1, 3, 0), (1, 5, 0), (0, 0, 0)],
    "noisy": [(5, 5, 1), (0, 5, 2)],
}


@pytest.mark.parametrize(("status", "counts"), [(s, c) for s, cases in STATUSES.items() for c in cases])
def test_a_days_status_follows_two_thirds_one_third_and_decoys(status: str, counts: tuple[int, int, int]) -> None:
    yes, total, decoys = counts
    assert Probe(0, yes, total, decoys, 3).status == status


def test_statuses_do_not_enter_the_posterior() -> None:
    known, mixed = Probe(4, 4, 5, 0, 3), Probe(4, 3, 5, 0, 3)
    assert known.status != mixed.status
    assert posterior(10, [known, Probe(4, 3, 5, 0, 3)]) == pytest.approx(
        posterior(10, [Probe(4, 7, 10, 0, 6)]), abs=1e-12
    )


def test_collapsed_quantiles_are_filled_by_information_less_what_was_asked() -> None:
    mass = np.array([2e-4] * 5 + [0.0] + [1.1e-4] * 5)
    mass[5] = 1 - mass.sum()
    assert next_days(mass, [0] * 10) == [3, 4, 5]
    assert next_days(mass, [0, 0, 0, 50, 50, 0, 0, 0, 0, 0]) == [2, 5, 6]


def test_items_rotate_and_distinct_projects_come_first() -> None:
    day = date(2024, 1, 2)
    items = [Item(day, p, v, None) for p, v in [("a", "1"), ("a", "2"), ("b", "1"), ("c", "1")]]
    assert [(i.project, i.version) for i in pick_items(items, 3, 0)] == [("a", "1"), ("b", "1"), ("c", "1")]
    assert [(i.project, i.version) for i in pick_items(items, 4, 5)] == [("a", "2"), ("b", "1"), ("c", "1"), ("a", "1")]


def test_replicates_ask_different_versions_of_the_same_first_days() -> None:
    calendar = synthetic_calendar(200, seed=3)
    policy = ModelclockPolicy(calendar)
    first, second = (policy._questions(replicate, []) for replicate in (0, 1))
    assert {q.position for q in first} == {q.position for q in second}
    assert {(q.project, q.version) for q in first} != {(q.project, q.version) for q in second}


def test_a_round_has_at_most_fifteen_real_and_nine_decoy_questions() -> None:
    planned = ModelclockPolicy(synthetic_calendar(200, seed=3)).next_round([])
    kinds = [q.kind for q in planned.questions]
    assert kinds.count("real") == 15
    assert kinds.count("decoy") == 9


def replied(planned_or_questions, yes) -> RoundReply:
    return RoundReply(tuple(Answer(i, "YES" if yes(q) else "NO") for i, q in enumerate(planned_or_questions)))


def play(policy: ModelclockPolicy, yes) -> list[StoredRound]:
    rounds: list[StoredRound] = []
    while not policy.finished(rounds):
        planned = policy.next_round(rounds)
        reply = replied(planned.questions, yes)
        rounds.append(StoredRound(planned.replicate, planned.number, planned.questions, reply))
    return rounds


@pytest.fixture(scope="module")
def calendar() -> Calendar:
    return synthetic_calendar(300, seed=1)


def test_a_sharp_cutoff_is_found_by_three_passes(calendar: Calendar) -> None:
    cutoff = calendar.days[170]
    rounds = play(ModelclockPolicy(calendar), lambda q: q.kind == "real" and q.released_on < cutoff)
    passes = [estimate(calendar.days, [r for r in rounds if r.replicate == k]) for k in range(3)]
    result = aggregate(calendar.days, passes)
    assert {r.replicate for r in rounds} == {0, 1, 2}
    assert result.status == "ok"
    assert result.interval95.start_date <= cutoff <= result.interval95.end_date
    assert all(12 <= p.rounds <= 30 for p in passes)


def test_always_yes_ends_right_censored_and_always_no_left_censored(calendar: Calendar) -> None:
    for answer, status in ((True, "right_censored"), (False, "left_censored")):
        rounds = play(ModelclockPolicy(calendar, Rules(replicates=1)), lambda q, a=answer: a and q.kind == "real")
        assert estimate(calendar.days, rounds).status == status


def test_missing_answers_are_left_out_instead_of_counted_as_unknown(calendar: Calendar) -> None:
    question = Question(3, calendar.days[3], "p", "1", "real")
    missing = StoredRound(0, 0, (question,), RoundReply((Answer(0, None, parse_status="missing"),)))
    unknown = StoredRound(0, 0, (question,), RoundReply((Answer(0, "UNKNOWN"),)))
    assert [p.real_total for p in probes_of([missing])] == [0]
    assert np.ptp(posterior(300, probes_of([missing]))) == 0
    assert np.ptp(posterior(300, probes_of([unknown]))) > 0


def result(position: int, start: int, end: int, status: str = "ok", converged: bool = True) -> PassResult:
    def interval(level: float) -> Interval:
        return Interval(level, start, end, DAYS[start - 1] if start else None, DAYS[end] if end < len(DAYS) else None)

    return PassResult(position, interval(0.8), interval(0.95), 1, 9, 12, 1, converged, status, "")


def test_aggregation_takes_the_median_the_sums_and_the_unions() -> None:
    together = aggregate(DAYS, [result(4, 3, 5), result(7, 6, 8), result(5, 4, 5)])
    assert together.position == 5
    assert (together.interval95.start, together.interval95.end) == (3, 8)
    assert (together.decoy_yes, together.decoy_total, together.rounds, together.replicates) == (3, 27, 36, 3)
    assert together.status == "wide"
    assert together.converged


def test_passes_that_share_a_censored_status_keep_it() -> None:
    together = aggregate(DAYS, [result(10, 10, 10, "right_censored") for _ in range(3)])
    assert together.status == "right_censored"


def test_boundaries_outside_the_calendar_are_words_not_dates() -> None:
    assert boundary_label(DAYS, 0) == "before 2024-01-02"
    assert boundary_label(DAYS, 10) == "2024-02-01 or later"
    assert boundary_label(DAYS, 5) == "2024-01-16 to 2024-01-18"


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(0, 5), st.integers(0, 3), st.integers(0, 3)),
        max_size=60,
    )
)
def test_the_posterior_is_finite_and_sums_to_one_whatever_is_answered(rows) -> None:
    given_probes = [Probe(d, min(y, n), n, min(f, m), m) for d, y, n, f, m in rows]
    for rules in (Rules(), REFERENCE):
        mass = posterior(10, given_probes, rules)
        assert np.isfinite(mass).all()
        assert mass.sum() == pytest.approx(1, abs=1e-12)
        assert next_days(mass, [0] * 10) == sorted(set(next_days(mass, [0] * 10)))


def test_releases_before_the_cutoff_raise_later_positions_and_others_lower_them() -> None:
    grows = posterior(10, [Probe(4, 5, 5, 0, 3)])
    falls = posterior(10, [Probe(4, 0, 5, 0, 3)])
    assert grows[5:].sum() > 0.5 > falls[5:].sum()
