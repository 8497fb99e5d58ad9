"""The session: rounds are stored as they land, resumed runs ask nothing twice, ceilings hold."""

from collections import Counter
from datetime import date

import pytest

from strandline.probe import Answer, Question, RoundReply, StoredRound
from strandline.probe.calendar import Calendar, synthetic_calendar
from strandline.probe.calibrated_policy import CalibratedPolicy
from strandline.probe.modelclock import ModelclockPolicy
from strandline.probe.session import Budget, answered, plan, run_session, spent


@pytest.fixture(scope="module")
def calendar() -> Calendar:
    return synthetic_calendar(250, seed=9)


class Model:
    """A scripted model that knows releases up to a cutoff; can fail or die at a given exchange."""

    def __init__(self, cutoff: date, fails_at: int | None = None, dies_at: int | None = None) -> None:
        self.cutoff, self.fails_at, self.dies_at = cutoff, fails_at, dies_at
        self.calls: list[list[Question]] = []

    def ask(self, questions: list[Question]) -> RoundReply:
        if self.dies_at == len(self.calls):
            raise KeyboardInterrupt
        self.calls.append(questions)
        if self.fails_at == len(self.calls) - 1:
            missing = tuple(Answer(i, None, parse_status="missing") for i in range(len(questions)))
            return RoundReply(missing, status="error", reason="the server hung up")
        answers = tuple(
            Answer(i, "YES" if q.kind == "real" and q.released_on < self.cutoff else "UNKNOWN")
            for i, q in enumerate(questions)
        )
        return RoundReply(answers, usage={"prompt_tokens": 500, "completion_tokens": 100, "cost": 0.25})


def asked(model: Model) -> Counter:
    return Counter((q.kind, q.project, q.version) for call in model.calls for q in call)


def test_a_run_stores_every_round_before_the_next_is_asked(calendar: Calendar) -> None:
    model, kept = Model(calendar.days[120]), []

    def ask(questions: list[Question]) -> RoundReply:
        assert len(kept) == len(model.calls)
        return model.ask(questions)

    session = run_session(CalibratedPolicy(calendar), ask, kept.append)
    assert session.status == "finished"
    assert list(session.rounds) == kept


def test_a_killed_run_goes_on_where_it_was_and_asks_nothing_twice(calendar: Calendar) -> None:
    whole = run_session(CalibratedPolicy(calendar, 5), Model(calendar.days[120]).ask, lambda r: None)
    kept: list[StoredRound] = []
    first, second = Model(calendar.days[120], dies_at=7), Model(calendar.days[120])
    with pytest.raises(KeyboardInterrupt):
        run_session(CalibratedPolicy(calendar, 5), first.ask, kept.append)
    resumed = run_session(CalibratedPolicy(calendar, 5), second.ask, kept.append, stored=kept[::-1])
    assert [r.questions for r in resumed.rounds] == [r.questions for r in whole.rounds]
    assert max((asked(first) + asked(second)).values()) == 1


def test_a_finished_run_asks_nothing_more(calendar: Calendar) -> None:
    done = run_session(CalibratedPolicy(calendar), Model(calendar.days[120]).ask, lambda r: None)
    again = Model(calendar.days[120])
    session = run_session(CalibratedPolicy(calendar), again.ask, lambda r: None, stored=done.rounds)
    assert session.status == "finished"
    assert again.calls == []


def test_a_failed_exchange_ends_the_session_and_its_questions_are_put_again(calendar: Calendar) -> None:
    kept: list[StoredRound] = []
    session = run_session(CalibratedPolicy(calendar), Model(calendar.days[120], fails_at=3).ask, kept.append)
    assert (session.status, session.reason) == ("interrupted", "the server hung up")
    assert len(session.rounds) == 3
    assert len(kept) == 4
    later = Model(calendar.days[120])
    resumed = run_session(CalibratedPolicy(calendar), later.ask, lambda r: None, stored=kept)
    assert later.calls[0] == list(kept[3].questions)
    assert resumed.status == "finished"


@pytest.mark.parametrize(
    ("budget", "rounds"),
    [(Budget(questions=60), 2), (Budget(tokens=1800), 3), (Budget(cost=1.0), 4), (Budget(questions=10), 0)],
)
def test_ceilings_stop_the_run_and_say_so(calendar: Calendar, budget: Budget, rounds: int) -> None:
    session = run_session(CalibratedPolicy(calendar), Model(calendar.days[120]).ask, lambda r: None, budget=budget)
    assert session.status == "budget"
    assert "ceiling" in session.reason
    assert len(session.rounds) == rounds


def test_ceilings_count_what_earlier_sessions_used(calendar: Calendar) -> None:
    budget = Budget(questions=100)
    first = run_session(CalibratedPolicy(calendar), Model(calendar.days[120]).ask, lambda r: None, budget=budget)
    again = Model(calendar.days[120])
    run_session(CalibratedPolicy(calendar), again.ask, lambda r: None, stored=first.rounds, budget=budget)
    assert again.calls == []


def test_a_reply_that_does_not_fit_the_questions_is_refused(calendar: Calendar) -> None:
    with pytest.raises(ValueError, match="answers numbered"):
        run_session(CalibratedPolicy(calendar), lambda q: RoundReply((Answer(0, "YES"),)), lambda r: None)


def test_the_plan_bounds_what_is_then_spent(calendar: Calendar) -> None:
    policy = CalibratedPolicy(calendar)
    before = plan(policy)
    done = run_session(policy, Model(calendar.days[120]).ask, lambda r: None)
    assert before.questions_left == 864
    assert before.rounds_left == 36
    assert spent(done.rounds).questions <= before.questions_left
    assert spent(done.rounds).tokens <= before.tokens_left
    after = plan(policy, done.rounds)
    assert (after.rounds_left, after.questions_left, after.tokens_left) == (0, 0, 0)
    assert "at most 864 questions in 36 rounds" in before.text()
    assert "cost        not known" in before.text()
    priced = plan(policy, price=2.5)
    assert f"at most about {before.tokens_left * 2.5e-6:.2f} at 2.5 for a million tokens" in priced.text()
    assert "cost        none" in plan(policy, price=0.0).text()


def test_progress_is_told_of_every_round(calendar: Calendar) -> None:
    told = []
    done = run_session(
        CalibratedPolicy(calendar), Model(calendar.days[120]).ask, lambda r: None, progress=lambda r, s: told.append(s)
    )
    assert [s.rounds for s in told] == list(range(1, len(done.rounds) + 1))
    assert told[-1] == spent(done.rounds)


def test_the_seed_policy_runs_three_passes_and_resumes_between_them(calendar: Calendar) -> None:
    kept: list[StoredRound] = []
    first, second = Model(calendar.days[120], dies_at=17), Model(calendar.days[120])
    whole = run_session(ModelclockPolicy(calendar), Model(calendar.days[120]).ask, lambda r: None)
    with pytest.raises(KeyboardInterrupt):
        run_session(ModelclockPolicy(calendar), first.ask, kept.append)
    resumed = run_session(ModelclockPolicy(calendar), second.ask, kept.append, stored=kept)
    assert {r.replicate for r in resumed.rounds} == {0, 1, 2}
    assert [r.questions for r in resumed.rounds] == [r.questions for r in whole.rounds]
    assert answered(kept) == list(resumed.rounds)
