"""The default policy: what it asks, never twice, deterministically, and when it stops."""

from collections import Counter
from datetime import date, timedelta
from zlib import crc32

import numpy as np
import pytest

from strandline.probe import Answer, Question, RoundReply, StoredRound
from strandline.probe.calendar import Calendar, build_calendar, synthetic_calendar
from strandline.probe.calibrated import estimate
from strandline.probe.calibrated_policy import CalibratedPolicy, CalibratedRules


@pytest.fixture(scope="module")
def calendar() -> Calendar:
    return synthetic_calendar(300, seed=6)


def reply(questions: tuple[Question, ...], answer) -> RoundReply:
    return RoundReply(tuple(Answer(i, answer(q)) for i, q in enumerate(questions)))


def play(policy: CalibratedPolicy, answer, limit: int = 99) -> list[StoredRound]:
    rounds: list[StoredRound] = []
    while len(rounds) < limit and not policy.finished(rounds):
        planned = policy.next_round(rounds)
        rounds.append(StoredRound(0, planned.number, planned.questions, reply(planned.questions, answer)))
    return rounds


def knows_until(cutoff: date):
    return lambda q: "YES" if q.kind == "real" and q.released_on < cutoff else "NO"


def fading(q: Question) -> str:
    return "YES" if q.kind == "real" and crc32(f"{q.project} {q.version}".encode()) % 3 else "NO"


@pytest.mark.parametrize("answer", [knows_until(date(2021, 3, 1)), lambda q: "YES", fading])
def test_no_question_is_asked_twice(calendar: Calendar, answer) -> None:
    rounds = play(CalibratedPolicy(calendar), answer)
    asked = Counter((q.kind, q.project, q.version) for r in rounds for q in r.questions)
    assert max(asked.values()) == 1


def test_a_round_is_three_days_of_five_releases_and_three_decoys(calendar: Calendar) -> None:
    for stored in play(CalibratedPolicy(calendar), knows_until(calendar.days[150])):
        kinds = Counter((q.position, q.kind) for q in stored.questions)
        assert len({q.position for q in stored.questions}) == 3
        assert all(n <= (5 if kind == "real" else 3) for (_, kind), n in kinds.items())


def test_anchor_rounds_spread_over_the_whole_calendar(calendar: Calendar) -> None:
    rounds = play(CalibratedPolicy(calendar), knows_until(calendar.days[150]), limit=4)
    asked = sorted({q.released_on.toordinal() for r in rounds for q in r.questions})
    first, last = calendar.ordinals[[0, -1]]
    wanted = first + (np.arange(12) + 0.5) / 12 * (last - first)
    assert len(asked) == 12
    assert np.abs(np.array(asked) - wanted).max() <= 4


def test_after_the_anchors_two_days_lie_near_the_boundary(calendar: Calendar) -> None:
    cutoff = calendar.days[150]
    rounds = play(CalibratedPolicy(calendar), knows_until(cutoff), limit=10)
    for stored in rounds[6:]:
        away = sorted({abs((q.released_on - cutoff).days) for q in stored.questions})
        assert away[1] <= 45


def test_another_seed_explores_elsewhere_but_anchors_the_same_days(calendar: Calendar) -> None:
    runs = [play(CalibratedPolicy(calendar, seed=s), knows_until(calendar.days[150]), limit=8) for s in (0, 1)]
    days = [[sorted({q.position for q in r.questions}) for r in run] for run in runs]
    assert days[0][:4] == days[1][:4]
    assert days[0] != days[1]


def test_the_policy_is_a_pure_function_of_rounds_and_seed(calendar: Calendar) -> None:
    rounds = play(CalibratedPolicy(calendar, seed=3), fading)
    for n in (0, 3, 7, len(rounds) - 1):
        copied = [StoredRound(r.replicate, r.number, r.questions, r.reply) for r in rounds[:n]]
        fresh = CalibratedPolicy(calendar, seed=3).next_round(copied)
        assert fresh.questions == rounds[n].questions


def test_an_earlier_history_after_a_later_one_gives_the_same_questions(calendar: Calendar) -> None:
    policy = CalibratedPolicy(calendar, seed=3)
    rounds = play(policy, fading)
    assert policy.next_round(rounds[:6]).questions == rounds[6].questions


def test_giving_up_hopeless_positions_does_not_change_the_estimate(calendar: Calendar) -> None:
    policy = CalibratedPolicy(calendar, seed=3)
    rounds = play(policy, knows_until(calendar.days[150]))
    followed = policy.posterior(rounds)
    whole = estimate(calendar, rounds).posterior
    assert len(followed.positions) < len(whole.positions)
    assert followed.probability == pytest.approx(whole.probability, abs=1e-9)
    assert followed.by_position == pytest.approx(whole.by_position[followed.positions - 1], abs=1e-9)


def test_it_stops_once_the_range_is_narrow_but_not_before_twelve_rounds(calendar: Calendar) -> None:
    policy = CalibratedPolicy(calendar)
    rounds = play(policy, knows_until(calendar.days[150]))
    assert 12 <= len(rounds) < 36
    assert "within 14 days" in policy.stop_reason(rounds)
    assert not policy.finished(rounds[:11])


def test_it_stops_when_real_releases_are_answered_like_decoys(calendar: Calendar) -> None:
    policy = CalibratedPolicy(calendar)
    rounds = play(policy, lambda q: "YES")
    assert "like decoys" in policy.stop_reason(rounds)


def test_it_gives_up_on_a_model_that_never_answers(calendar: Calendar) -> None:
    policy = CalibratedPolicy(calendar)
    rounds = play(policy, lambda q: None)
    assert len(rounds) == 4
    assert "no usable answer" in policy.stop_reason(rounds)


def test_the_cap_holds_and_bounds_the_number_of_questions(calendar: Calendar) -> None:
    policy = CalibratedPolicy(calendar, rules=CalibratedRules(width_days=0, sure=2.0))
    rounds = play(policy, fading)
    assert len(rounds) == policy.max_rounds() == 36
    assert sum(len(r.questions) for r in rounds) <= policy.max_questions() == 864


def small_calendar(n_days: int) -> Calendar:
    first = date(2024, 1, 1)
    rows = [
        {"released_on": first + timedelta(days=3 * d), "project": f"p{i}", "version": f"{d}.0", "decoy_version": "0.7"}
        for d in range(n_days)
        for i in range(5)
    ]
    return build_calendar(rows)


def test_a_calendar_that_is_used_up_ends_the_run() -> None:
    policy = CalibratedPolicy(small_calendar(6))
    rounds = play(policy, fading)
    assert sum(q.kind == "real" for r in rounds for q in r.questions) == 30
    assert "every askable release" in policy.stop_reason(rounds)
    with pytest.raises(ValueError, match="no question is left"):
        policy.next_round(rounds)


def test_a_decoy_shared_by_several_releases_is_asked_once() -> None:
    rounds = play(CalibratedPolicy(small_calendar(6)), fading)
    decoys = Counter((q.project, q.version) for r in rounds for q in r.questions if q.kind == "decoy")
    assert set(decoys.values()) == {1}


def test_least_asked_projects_come_first() -> None:
    first = date(2024, 1, 1)
    rows = [
        {"released_on": first + timedelta(days=9 * d), "project": f"p{i}", "version": f"{d}.{i}", "decoy_version": None}
        for d in range(30)
        for i in range(10)
    ]
    rounds = play(CalibratedPolicy(build_calendar(rows)), fading, limit=4)
    counts = Counter(q.project for r in rounds for q in r.questions)
    assert max(counts.values()) - min(counts.values()) <= 1
