"""End to end over HTTP: a scripted OpenAI-compatible server with a planted cutoff, with and without faults."""

from datetime import date
from pathlib import Path

import pytest

from resources.configured import AskingResource
from strandline.probe.calendar import Calendar, synthetic_calendar
from tests.fakes.openai_server import FakeOpenAIServer
from tests.fakes.probe_house import House

MODEL = "house/planted"
CANARY = "sk-canary-5f1c9e"
FAULTS = ["429-seconds", None, "429-date", "500", None, "drop", "html", None, "sse", "empty", "503", "drop-half", None]
PATIENT = AskingResource(attempts=6, first_wait=0.01, longest_wait=5.0, timeout=10.0)
ANSWERS = "select round, question, project, version, kind, answer, counted from probe.answers order by round, question"


@pytest.fixture(scope="module")
def calendar() -> Calendar:
    return synthetic_calendar(240, seed=5)


def server(calendar: Calendar, cutoff: date, **faulty: object) -> FakeOpenAIServer:
    released = {(i.project, i.version): i.released_on for items in calendar.items for i in items}
    return FakeOpenAIServer(released, cutoff, key=CANARY, **faulty)


def house(folder: Path, calendar: Calendar, address: str) -> House:
    folder.mkdir()
    return House(
        folder,
        calendar,
        MODEL,
        f"{{name: {MODEL}, backend: openai, source: '{address}', api_key_env: STRANDLINE_CANARY, provider: loopback}}",
    )


@pytest.mark.slow
def test_faults_change_neither_the_result_nor_how_often_a_question_is_asked(
    tmp_path: Path, calendar: Calendar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRANDLINE_CANARY", CANARY)
    cutoff = calendar.days[150]
    with server(calendar, cutoff) as calm:
        undisturbed = house(tmp_path / "calm", calendar, calm.base_url)
        assert undisturbed.date(PATIENT).success
    with server(calendar, cutoff, faults=FAULTS, refuses=["temperature", "max_tokens"]) as faulty:
        disturbed = house(tmp_path / "faulty", calendar, faulty.base_url)
        assert disturbed.date(PATIENT, checked=True).success
    for made, served in ((undisturbed, calm), (disturbed, faulty)):
        for row in made.rows("select * from probe.current_boundaries"):
            assert row["status"] == "ok"
            assert row["low95"] <= cutoff <= row["high95"]
        assert len(served.answered) == len(set(served.answered))
    assert not faulty.faults
    assert disturbed.rows(ANSWERS) == undisturbed.rows(ANSWERS)


def test_a_dead_endpoint_is_named_and_a_live_one_takes_over_without_repeats(
    tmp_path: Path, calendar: Calendar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRANDLINE_CANARY", CANARY)
    impatient = AskingResource(attempts=2, first_wait=0.01, longest_wait=0.1, timeout=5.0)
    faults = [*[None] * 5, *["500"] * 2]
    with server(calendar, calendar.days[150], faults=faults) as served:
        made = house(tmp_path / "one", calendar, served.base_url)
        assert not made.date(impatient, max_questions=200).success
        [run] = made.rows("select status, reason, questions from probe.runs")
        assert run["status"] == "interrupted"
        assert run["questions"] > 0
        assert made.rows("select count(*) as n from probe.rounds where status = 'error'") == [{"n": 1}]
        assert made.date(impatient, max_questions=200).success
        assert len(served.answered) == len(set(served.answered))


def test_the_key_is_found_in_no_file_table_log_or_event_even_after_a_refusal(
    tmp_path: Path, calendar: Calendar, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STRANDLINE_CANARY", CANARY)
    with server(calendar, calendar.days[150], faults=[None, None, "401"]) as served:
        made = house(tmp_path / "one", calendar, served.base_url)
        results = [made.date(PATIENT, max_questions=90), made.date(PATIENT, max_questions=90)]
    assert [r.success for r in results] == [False, True]
    assert all(request.authorization == f"Bearer {CANARY}" for request in served.log)
    events = "".join(str(event) for result in results for event in result.all_events)
    seen = capfd.readouterr()
    assert CANARY not in events + seen.out + seen.err
    stored = "".join(str(made.rows(f"select * from probe.{t}")) for t in ("runs", "rounds", "answers", "boundaries"))
    assert "planted-1" in stored
    assert CANARY not in stored
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.suffix == ".duckdb" for path in files)
    assert not [path for path in files if CANARY.encode() in path.read_bytes()]
