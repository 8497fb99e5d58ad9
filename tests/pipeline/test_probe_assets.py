"""The probe through Dagster: a planted cutoff is dated, an interrupted run resumes, and nothing is asked twice."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

from assets.partitions import key_for
from assets.probe import ASSETS
from assets.suites.probe import SUITES
from console.plans import planned
from console.report import stored_report
from resources.probe.rows import current_run, stored_rounds
from resources.warehouse.validation import validate
from strandline.models.spec import parse_models
from strandline.probe.calendar import Calendar, synthetic_calendar
from strandline.probe.report import LIMITS
from tests.fakes.probe_house import House
from tests.fakes.scripted_asker import ScriptedAsker, knows_until

MODEL = "org/tiny:1"
ENTRY = f'{{name: "{MODEL}", backend: transformers, source: "folder:x", ask: likelihood, provider: a house}}'
TABLES = ("runs", "rounds", "answers", "posteriors", "boundaries")


@pytest.fixture(scope="module")
def calendar() -> Calendar:
    return synthetic_calendar(240, seed=5)


@pytest.fixture
def house(tmp_path: Path, calendar: Calendar) -> House:
    return House(tmp_path, calendar, MODEL, ENTRY)


@dataclass
class Dated:
    """A house in which a model with a sharp cutoff has been dated, with checks."""

    house: House
    asker: ScriptedAsker
    result: dg.ExecuteInProcessResult
    cutoff: date


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory, calendar: Calendar) -> Dated:
    folder, cutoff = tmp_path_factory.mktemp("dated"), calendar.days[150]
    house, asker = House(folder, calendar, MODEL, ENTRY), ScriptedAsker(knows_until(cutoff))
    return Dated(house, asker, house.date(asker, checked=True), cutoff)


def test_a_planted_cutoff_lies_in_the_reported_interval(dated: Dated) -> None:
    assert dated.result.success
    assert all(e.passed for e in dated.result.get_asset_check_evaluations())
    assert len(dated.result.get_asset_check_evaluations()) == 5
    rows = {r["estimator"]: r for r in dated.house.rows("select * from probe.current_boundaries")}
    assert set(rows) == {"calibrated", "modelclock"}
    for row in rows.values():
        assert row["status"] == "ok"
        assert row["low95"] <= dated.cutoff <= row["high95"]
        assert row["decoy_yes_rate"] == 0
    assert max(dated.asker.times_asked().values()) == 1
    assert (dated.asker.opened, dated.asker.closed) == (1, 1)


def test_every_round_and_answer_is_a_row(dated: Dated, calendar: Calendar) -> None:
    house, calls = dated.house, dated.asker.calls
    [run] = house.rows("select * from probe.runs")
    asked = sum(len(call) for call in calls)
    assert (run["status"], run["rounds"], run["questions"]) == ("finished", len(calls), asked)
    assert run["tokens"] == 490 * len(calls)
    assert tuple(run["days"]) == calendar.days
    assert house.rows("select count(*) as n from probe.answers where counted and weight = 1") == [{"n": asked}]
    [mass] = house.rows(
        "select count(*) as n, sum(probability) as total from probe.posteriors where estimator = 'modelclock'"
    )
    assert (mass["n"], mass["total"]) == (calendar.n_days + 1, pytest.approx(1))
    assert house.rows("select * from probe.transcript where status not in ('known', 'unknown', 'mixed')") == []
    assert house.rows("select * from probe.unstable_answers") == []
    assert house.rows("select max(real_yes_rate) as top from probe.quarterly_rates") == [{"top": 1.0}]


def test_a_second_run_with_nothing_new_opens_no_model_and_changes_no_row(house: House, calendar: Calendar) -> None:
    assert house.date(ScriptedAsker(knows_until(calendar.days[150]))).success
    before = house.digests(TABLES)
    again = ScriptedAsker(knows_until(calendar.days[150]))
    assert house.date(again).success
    assert (again.opened, again.calls) == (0, [])
    assert house.digests(TABLES) == before


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was_and_ends_as_an_undisturbed_one(
    house: House, calendar: Calendar, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rule = knows_until(calendar.days[150])
    undisturbed = House(tmp_path_factory.mktemp("whole"), calendar, MODEL, ENTRY)
    assert undisturbed.date(ScriptedAsker(rule)).success
    killed, resumed = ScriptedAsker(rule, dies_at=5), ScriptedAsker(rule)
    assert not house.date(killed).success
    assert house.rows("select count(*) as n from probe.rounds") == [{"n": 5}]
    assert house.rows("select count(*) as n from probe.boundaries") == [{"n": 0}]
    assert house.date(resumed).success
    assert max((killed.times_asked() + resumed.times_asked()).values()) == 1
    for name in ("answers", "posteriors"):
        assert house.store.digest(f"probe.{name}") == undisturbed.store.digest(f"probe.{name}")
    assert killed.closed == 1


def test_a_failed_exchange_stops_the_run_and_the_same_questions_are_put_again(house: House, calendar: Calendar) -> None:
    rule = knows_until(calendar.days[150])
    failing, later = ScriptedAsker(rule, fails_at=[4]), ScriptedAsker(rule)
    assert not house.date(failing).success
    [run] = house.rows("select status, reason from probe.runs")
    assert run == {"status": "interrupted", "reason": "the server does not answer"}
    assert house.date(later).success
    assert later.calls[0] == failing.calls[4]
    assert max((failing.times_asked() + later.times_asked()).values()) == 1
    assert house.rows("select count(*) as n from probe.rounds where status = 'error'") == [{"n": 0}]


def test_a_ceiling_ends_the_run_a_higher_one_takes_it_further_and_the_plan_shrinks(
    house: House, calendar: Calendar
) -> None:
    rule, [spec] = knows_until(calendar.days[150]), parse_models(house.listed)
    assert planned(house.store, spec).questions_left == 864
    assert house.date(ScriptedAsker(rule), max_questions=80).success
    [run] = house.rows("select status, rounds, questions from probe.runs")
    assert run["status"] == "budget"
    assert run["questions"] <= 80
    [wide] = house.rows("select width95_days as days from probe.current_boundaries where estimator = 'calibrated'")
    assert planned(house.store, spec).rounds_left == 36 - run["rounds"]
    further = ScriptedAsker(rule)
    assert house.date(further).success
    [finished] = house.rows("select status, rounds from probe.runs")
    assert finished == {"status": "finished", "rounds": run["rounds"] + len(further.calls)}
    [narrow] = house.rows("select width95_days as days from probe.current_boundaries where estimator = 'calibrated'")
    assert narrow["days"] < wide["days"]
    assert planned(house.store, spec).questions_left == 0


def test_a_ceiling_below_one_round_asks_nothing_and_says_so(house: House, calendar: Calendar) -> None:
    asker = ScriptedAsker(knows_until(calendar.days[150]))
    assert not house.date(asker, max_questions=5).success
    assert asker.opened == 0
    assert house.rows("select * from probe.runs") == []


def test_a_model_that_always_says_yes_has_no_boundary(house: House) -> None:
    assert house.date(ScriptedAsker(lambda q: "YES")).success
    rows = {r["estimator"]: r for r in house.rows("select * from probe.boundaries")}
    assert rows["calibrated"]["status"] == "no_boundary"
    assert rows["calibrated"]["estimate_from"] is rows["calibrated"]["low95"] is None
    assert rows["modelclock"]["status"] == "right_censored"
    report = stored_report(house.store, MODEL)
    assert "none (no boundary)" in report
    assert all(limit in report for limit in LIMITS)


def test_missing_answers_stay_missing_and_do_not_move_the_boundary(house: House, calendar: Calendar) -> None:
    cutoff = calendar.days[150]

    def rule(q: Any) -> str | None:
        return None if (len(q.version) + q.position) % 4 == 0 else knows_until(cutoff)(q)

    assert house.date(ScriptedAsker(rule)).success
    [row] = house.rows(
        "select count(*) as n from probe.answers where answer is null and (counted or weight is not null)"
    )
    assert row == {"n": 0}
    [row] = house.rows("select low95, high95 from probe.boundaries where estimator = 'calibrated'")
    assert row["low95"] <= cutoff <= row["high95"]


def test_a_model_that_never_answers_is_unanswered_after_four_rounds(house: House) -> None:
    asker = ScriptedAsker(lambda q: None)
    assert house.date(asker).success
    assert len(asker.calls) == 4
    assert house.rows("select distinct status from probe.boundaries") == [{"status": "unanswered"}]


@pytest.mark.slow
def test_the_seed_policy_makes_three_passes_and_is_another_run(house: House, calendar: Calendar) -> None:
    rule = knows_until(calendar.days[150])
    assert house.date(ScriptedAsker(rule)).success
    assert house.date(ScriptedAsker(rule), policy="modelclock").success
    assert house.rows("select count(*) as n from probe.runs") == [{"n": 2}]
    current = {r["estimator"]: r for r in house.rows("select * from probe.current_boundaries")}
    assert {r["policy"] for r in current.values()} == {"modelclock"}
    assert house.rows("select distinct replicate from probe.posteriors where estimator = 'modelclock'  order by 1")[
        -1
    ] == {"replicate": 2}
    back = ScriptedAsker(rule)
    assert house.date(back).success
    assert back.opened == 0
    assert {r["policy"] for r in house.rows("select policy from probe.current_boundaries")} == {"calibrated"}


def test_stored_rounds_read_back_as_they_were_asked(dated: Dated) -> None:
    run = current_run(dated.house.store, MODEL)
    rounds = stored_rounds(dated.house.store, run)
    assert [list(r.questions) for r in rounds] == dated.asker.calls
    assert rounds[0].reply.usage == {"prompt_tokens": 400, "completion_tokens": 90}
    assert abs((run.started_at - datetime.now(UTC).replace(tzinfo=None)).total_seconds()) < 600


def test_results_carry_a_picture_and_the_whole_report(dated: Dated) -> None:
    [made] = [
        e.event_specific_data.materialization
        for e in dated.result.all_events
        if e.is_step_materialization and e.asset_key == dg.AssetKey(["probe", "boundaries"])
    ]
    assert made.metadata["picture"].value.startswith("![")
    assert "Rounds" in made.metadata["report"].value
    assert LIMITS[0] in " ".join(made.metadata["report"].value.split())
    assert (dated.house.folder / "reports" / "probe" / f"{key_for(MODEL)}.png").stat().st_size > 5_000


@pytest.mark.parametrize("name", TABLES)
def test_a_suite_fails_on_no_rows_and_on_nulls(dated: Dated, name: str) -> None:
    rows = dated.house.store.query(f"select * from probe.{name}")
    suite = SUITES[f"probe.{name}"]
    assert validate(name, rows, suite).passed
    assert "no rows" in validate(name, rows.clear(), suite).sentence
    emptied = rows.with_columns(pl.lit(None).cast(dtype).alias(column) for column, dtype in rows.schema.items())
    assert not validate(name, emptied, suite).passed


def test_dating_before_asking_is_refused_by_name(house: House) -> None:
    result = dg.materialize(
        [ASSETS[1]],
        partition_key=key_for(MODEL),
        instance=house.instance,
        resources={"warehouse": house.warehouse},
        raise_on_error=False,
    )
    assert not result.success
    [failure] = [e for e in result.all_events if e.is_step_failure]
    assert "has not been asked yet" in str(failure.event_specific_data)
