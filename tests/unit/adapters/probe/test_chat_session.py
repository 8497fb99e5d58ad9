"""A whole probe of a scripted endpoint: the planted cutoff is found, and nothing asked twice."""

from collections import Counter
from datetime import date
from itertools import cycle, islice

import pytest

from resources.endpoints.chat import ChatClient, Patience
from resources.probe.asking import ChatAsker
from strandline.probe import StoredRound
from strandline.probe.boundaries import date_run
from strandline.probe.calendar import Calendar, synthetic_calendar
from strandline.probe.calibrated_policy import CalibratedPolicy
from strandline.probe.session import Session, run_session
from tests.fakes.openai_server import FakeOpenAIServer

CALENDAR = synthetic_calendar(160, seed=3)
CUTOFF = CALENDAR.days[97]
FAULTS = [
    "429-seconds",
    None,
    "500",
    "drop",
    "sse",
    "html",
    "429-date",
    "empty",
    "no-choices",
    "drop-half",
    "503",
    None,
]


def released(calendar: Calendar) -> dict[tuple[str, str], date]:
    """Every real release of the calendar with its day."""
    return {
        (i.project, i.version): day for day, items in zip(calendar.days, calendar.items, strict=True) for i in items
    }


def session(server: FakeOpenAIServer, kept: list[StoredRound], attempts: int = 6) -> Session:
    """Ask until the policy stops; rounds are kept in the list, which a second call goes on with."""
    client = ChatClient(server.base_url, "planted", sleep=lambda _: None, patience=Patience(attempts=attempts))
    asker = ChatAsker(client)
    try:
        return run_session(CalibratedPolicy(CALENDAR, seed=5), asker.ask, kept.append, stored=list(kept))
    finally:
        asker.close()


def answers(rounds: list[StoredRound]) -> dict[tuple[str, str, str], str | None]:
    """Every answered question with its answer."""
    pairs = [p for r in rounds if r.reply.status != "error" for p in zip(r.questions, r.reply.answers, strict=True)]
    return {(q.kind, q.project, q.version): a.answer for q, a in pairs}


@pytest.fixture(scope="module")
def undisturbed() -> list[StoredRound]:
    kept: list[StoredRound] = []
    with FakeOpenAIServer(released(CALENDAR), CUTOFF) as server:
        assert session(server, kept).status == "finished"
    return kept


def test_the_planted_cutoff_lies_in_the_interval(undisturbed: list[StoredRound]) -> None:
    boundary, _ = date_run("calibrated", CALENDAR, undisturbed)
    assert boundary.status == "ok"
    assert boundary.low95 is not None
    assert boundary.high95 is not None
    assert boundary.low95 <= CUTOFF <= boundary.high95
    assert (boundary.high95 - boundary.low95).days <= 30


def test_every_kind_of_fault_leaves_the_same_rounds_and_asks_nothing_twice(undisturbed: list[StoredRound]) -> None:
    kept: list[StoredRound] = []
    with FakeOpenAIServer(
        released(CALENDAR),
        CUTOFF,
        faults=islice(cycle(FAULTS), 60),
        refuses={"max_tokens", "response_format", "system"},
    ) as server:
        assert session(server, kept).status == "finished"
        assert {r.fault for r in server.log} >= set(FAULTS)
        assert max(Counter(server.answered).values()) == 1
    assert [r.questions for r in kept] == [r.questions for r in undisturbed]
    assert answers(kept) == answers(undisturbed)


@pytest.mark.parametrize("fault", ["429-quota", "401", "500"])
def test_a_broken_off_session_keeps_what_it_has_and_goes_on_from_there(
    fault: str, undisturbed: list[StoredRound]
) -> None:
    kept: list[StoredRound] = []
    with FakeOpenAIServer(released(CALENDAR), CUTOFF, faults=[None] * 5 + [fault] * 2) as server:
        broken = session(server, kept, attempts=2)
        assert broken.status == "interrupted"
        assert len(broken.rounds) == 5
        server.faults.clear()
        assert session(server, kept).status == "finished"
        assert max(Counter(server.answered).values()) == 1
    assert answers(kept) == answers(undisturbed)


def test_a_server_that_only_thinks_has_no_boundary_and_no_answer_counts_as_unknown() -> None:
    kept: list[StoredRound] = []
    with FakeOpenAIServer(released(CALENDAR), CUTOFF, faults=["empty"] * 100) as server:
        session(server, kept)
    assert {a.answer for r in kept for a in r.reply.answers} == {None}
    boundary, _ = date_run("calibrated", CALENDAR, kept)
    assert boundary.status != "ok"
    assert boundary.low95 is None
