"""The commands behind ``make``: loopback by default, warnings and errors in words, exit statuses."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from filelock import FileLock

import launch
from assets.calibration import SIMULATIONS
from console import runs, server
from console.location import CommandError, Console
from console.report import Section, full_report
from resources.configured import ModelListResource, SpanListResource, WarehouseResource
from resources.warehouse.store import PublishedCopy


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, ...]]:
    calls: list[tuple[str, ...]] = []

    def serve(*command: str) -> int:
        calls.append(command)
        return 0

    monkeypatch.setattr(server, "run_until_it_ends", serve)
    monkeypatch.setattr(server, "require_free", lambda host, port: None)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    return calls


@pytest.fixture
def published(tmp_path: Path) -> WarehouseResource:
    return WarehouseResource(
        path=str(tmp_path / "w.duckdb"), published=str(tmp_path / "p.duckdb"), reports=str(tmp_path / "reports")
    )


@pytest.fixture
def console(published: WarehouseResource) -> Console:
    """The console on a warehouse of its own."""
    return Console(warehouse=published)


def test_the_ui_binds_loopback_and_says_nothing(
    served: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert launch.main(["ui"]) == 0
    assert served == [("dagster", "dev", "-w", "workspace.yaml", "--host", "127.0.0.1", "--port", "3000")]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "example.org"])
def test_another_host_needs_the_flag_and_prints_a_warning(
    served: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str], host: str
) -> None:
    assert launch.main(["ui", "--host", host]) == 0
    assert "no login" in capsys.readouterr().err
    assert host in served[0]


def test_a_read_only_ui_starts_the_web_server_alone(served: list[tuple[str, ...]]) -> None:
    assert launch.main(["ui", "--read-only"]) == 0
    assert served[0][0] == "dagster-webserver"
    assert served[0][-1] == "--read-only"


def test_a_port_in_use_is_named_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"127.0.0.1 port {port}: Address already in use" in fails_in_one_line(capsys, "ui", "--port", port)


def test_a_second_ui_of_the_same_folder_is_refused_unless_it_only_reads(
    served: list[tuple[str, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FileLock(tmp_path / ".ui.lock"):
        assert "--read-only serves a second one" in fails_in_one_line(capsys, "ui")
        assert launch.main(["ui", "--read-only"]) == 0
    assert [program for program, *_ in served] == ["dagster-webserver"]


def test_an_interrupted_server_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Server:
        waits = 0

        def wait(self) -> int:
            self.waits += 1
            if self.waits == 1:
                raise KeyboardInterrupt
            return 0

    child = Server()
    monkeypatch.setattr(subprocess, "Popen", lambda command: child)
    assert server.run_until_it_ends("dagster") == 0
    assert child.waits == 2


def test_a_query_answers_from_the_published_copy(
    published: WarehouseResource, console: Console, capsys: pytest.CaptureFixture[str]
) -> None:
    store = published.open()
    store.replace("spans.texts", pl.DataFrame({"text_sha256": ["a"], "text": ["tide"]}))
    store.publish()
    assert launch.main(["query", "select text from spans.texts"], console) == 0
    assert "tide" in capsys.readouterr().out


def test_a_query_before_anything_was_published_is_one_line_and_a_failure(
    published: WarehouseResource, console: Console, capsys: pytest.CaptureFixture[str]
) -> None:
    assert launch.main(["query", "select 1"], console) == 1
    error = capsys.readouterr().err
    assert "make run" in error
    assert error.count("\n") == 1


def test_a_faulty_query_is_an_error_in_words_not_a_traceback(
    published: WarehouseResource, console: Console, capsys: pytest.CaptureFixture[str]
) -> None:
    published.open().publish()
    assert launch.main(["query", "select nothing from nowhere"], console) == 1
    assert "nowhere" in capsys.readouterr().err


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(runs, "execute", lambda console, *arguments: calls.append(arguments))
    monkeypatch.setattr(runs, "execute_behind_gates", lambda console, *arguments: calls.append(arguments))
    return calls


def fails_in_one_line(capsys: pytest.CaptureFixture[str], *arguments: str, console: Console | None = None) -> str:
    assert launch.main(list(arguments), console) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    return error


def test_rebuild_starts_from_the_published_copy_and_runs_what_needs_no_model(
    published: WarehouseResource,
    console: Console,
    home: Path,
    executed: list[tuple[Any, ...]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    store = published.open()
    row = {"estimator": "e", "scenario": "tide", "n_runs": 9, "n_found": 9, "false_findings": 0, "seed": 1}
    store.replace("calibration.recoveries", [row])
    store.publish()
    store.path.write_bytes(b"broken" * 100)
    assert launch.main(["rebuild"], console) == 0
    assert "make run" in capsys.readouterr().out
    assert published.open().query("select scenario from calibration.recoveries").item() == "tide"
    jobs = [job for _, job, *_ in executed]
    assert jobs == [
        "describe_models",
        "refresh_releases",
        "read_spans",
        "read_benchmarks",
        "mine_corpora",
        "draw_exhibits",
    ]


@pytest.mark.parametrize("sql", ["select 'a'::int", "", "-- nothing", "create table t (a int)"])
def test_whatever_duckdb_says_of_a_query_ends_in_words(
    published: WarehouseResource, console: Console, capsys: pytest.CaptureFixture[str], sql: str
) -> None:
    published.open().publish()
    assert launch.main(["query", sql], console) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_a_published_file_that_is_none_names_the_command_that_mends_it(
    published: WarehouseResource, console: Console, capsys: pytest.CaptureFixture[str]
) -> None:
    published.open().published.write_bytes(b"broken" * 5000)
    assert "make run" in fails_in_one_line(capsys, "query", "select 1", console=console)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nope"], "there is no job 'nope'; there are calibrate, check_spans, date_models"),
        (["describe_models", "--partition", "x"], "describe_models has no partitions"),
        (["date_models", "--partition", "x"], "date_models has no partition 'x'; there are"),
        (["date_models"], "date_models needs --partition; there are"),
        (["read_spans", "--partition", "1066-10-14"], "read_spans has no partition '1066-10-14'"),
        (["describe_models", "--config", "{"], "--config is not JSON"),
    ],
)
def test_a_job_or_partition_that_is_none_lists_those_that_there_are(
    home: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    error = fails_in_one_line(capsys, "job", *arguments)
    assert words in error
    if arguments[0] == "date_models":
        assert "SmolLM2-135M-Instruct" in error


def test_a_configuration_that_no_job_takes_ends_in_words(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert launch.main(["job", "describe_models", "--config", '{"ops": {"x": 1}}']) == 1
    assert 'unexpected config entry "x"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["calibrate", "--methods", "tarot"], f"there is no method 'tarot'; there are {', '.join(SIMULATIONS)}"),
        (["calibrate", "--only", "tarot"], "no scenario has 'tarot' in its name"),
        (["calibrate", "--share", "7"], "--share is 7.0"),
        (["bench", "--only", "tarot"], "no script in bench/"),
    ],
)
def test_a_choice_that_selects_nothing_is_refused_with_what_there_is(
    capsys: pytest.CaptureFixture[str], executed: list[tuple[Any, ...]], arguments: list[str], words: str
) -> None:
    assert words in fails_in_one_line(capsys, *arguments)
    assert executed == []


def test_the_reason_of_a_failed_run_is_the_step_and_what_it_said() -> None:
    @dg.op
    def reading() -> None:
        raise ValueError("the tide table has no column `height`;\nit has `day`")

    @dg.job
    def failing() -> None:
        reading()

    done = failing.execute_in_process(raise_on_error=False)
    assert runs.reason_of(done) == "reading: the tide table has no column `height`; it has `day`"


def test_the_reason_of_a_blocked_run_is_what_its_check_found() -> None:
    @dg.asset
    def tide() -> None: ...

    @dg.asset_check(asset=tide, blocking=True)
    def is_high() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=False, description="the tide is out")

    job = dg.Definitions(assets=[tide], asset_checks=[is_high]).resolve_implicit_global_asset_job_def()
    assert runs.reason_of(job.execute_in_process(raise_on_error=False)) == "the tide is out"


def test_a_missing_settings_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = Console(model_list=ModelListResource(path=str(tmp_path / "m")))
    assert str(tmp_path / "m") in fails_in_one_line(capsys, "report", console=given)
    (tmp_path / "m").write_text("models: []")
    assert "lists no model" in fails_in_one_line(capsys, "report", console=given)


def test_another_python_is_told_which_one_to_use(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(launch.sys.modules, "console.row_text", None)
    assert ".venv/bin/python" in fails_in_one_line(capsys, "query", "select 1", console=console)


def test_a_mistake_in_any_settings_file_stops_a_run_before_anything_is_spent(
    home: Path,
    executed: list[tuple[Any, ...]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    (home / "s.yaml").write_text("spans:\n  - {resource: r, source: gopher}\n")
    given = Console(span_list=SpanListResource(path=str(home / "s.yaml")))
    assert "source is 'gopher'" in fails_in_one_line(capsys, "run", console=given)
    assert executed == []


def test_a_run_takes_the_listed_benchmark_and_corpus_that_it_is_given(
    monkeypatch: pytest.MonkeyPatch,
    home: Path,
    published: WarehouseResource,
    console: Console,
    executed: list[tuple[Any, ...]],
) -> None:
    monkeypatch.setattr("console.report.full_report", lambda *_: "")
    assert launch.main(["run", "--benchmark", "gsm8k_test"], console) == 0
    keys = {job: partition for _, job, partition in executed}
    assert keys["read_benchmarks"] == "gsm8k_test"
    assert keys["test_contamination"] == "gsm8k_test|SmolLM2-135M-Instruct"
    assert keys["mine_corpora"] == "environment"
    assert launch.main(["run", "--benchmark", "nope"], console) == 1


def test_a_plan_without_questions_makes_them_first(
    published: WarehouseResource, console: Console, executed: list[tuple[Any, ...]]
) -> None:
    launch.main(["plan"], console)
    assert [job for _, job, *_ in executed] == ["refresh_releases"]


@pytest.mark.parametrize("command", ["run", "ui"])
def test_a_folder_that_cannot_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "file" / "home"))
    assert f"{tmp_path}/file/home cannot be written" in fails_in_one_line(capsys, command)


def test_a_calibration_prints_what_was_asked_for(
    published: WarehouseResource, console: Console, executed: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"estimator": "probe_calibrated", "scenario": name, "n_runs": 9, "n_found": 9, "false_findings": 0, "seed": 1}
        for name in ("S1_committed", "S2a_committed")
    ]
    published.open().replace("calibration.recoveries", pl.DataFrame(rows))
    assert launch.main(["calibrate", "--only", "S1_committed"], console) == 0
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 3
    assert told[2].startswith("probe_calibrated  S1_committed  9")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["refresh"], "the job refresh_releases has no such setting; it takes, as key=value:\n"),
        (["nothing=1"], "merge_releases.refresh: Ask the registries for what is new"),
        (["per_day='"], "the value is not readable as YAML"),
    ],
)
def test_a_setting_that_no_step_has_lists_those_that_there_are_with_their_help(
    home: Path, console: Console, capsys: pytest.CaptureFixture[str], settings: list[str], words: str
) -> None:
    assert launch.main(["job", "refresh_releases", "--set", *settings], console) == 1
    assert words in capsys.readouterr().err


def test_settings_reach_the_step_that_declares_them(
    home: Path, console: Console, executed: list[tuple[Any, ...]]
) -> None:
    arguments = ["job", "refresh_releases", "--set", "refresh=true", "--set", "draw_probe_items.per_day=5"]
    assert launch.main(arguments, console) == 0
    assert executed[-1][-1] == {
        "ops": {"merge_releases": {"config": {"refresh": True}}, "draw_probe_items": {"config": {"per_day": 5}}}
    }


def test_settings_are_added_to_the_given_configuration_and_take_nothing_from_it(
    home: Path, console: Console, executed: list[tuple[Any, ...]]
) -> None:
    given = (
        '{"ops": {"merge_releases": {"config": {"packages": ["a"]}}, "draw_probe_items": {"config": {"per_day": 5}}}}'
    )
    assert launch.main(["job", "refresh_releases", "--config", given, "--set", "refresh=true"], console) == 0
    steps = executed[-1][-1]["ops"]
    assert steps["merge_releases"]["config"] == {"packages": ["a"], "refresh": True}
    assert steps["draw_probe_items"]["config"] == {"per_day": 5}


def test_a_step_behind_a_closed_gate_is_left_out_in_words(
    monkeypatch: pytest.MonkeyPatch, home: Path, console: Console
) -> None:
    monkeypatch.setattr(runs, "held_back", lambda *_: ["spans.revisions has not passed its check meets_expectations"])
    monkeypatch.setattr(runs, "execute", lambda *_: pytest.fail("it ran"))
    with pytest.raises(CommandError, match=r"scores was left out: spans\.revisions has not passed its check"):
        runs.execute_behind_gates(console, "scores", "describe_models")


def test_a_section_is_added_to_the_report_by_one_record(tmp_path: Path) -> None:
    copy = PublishedCopy(tmp_path / "none")
    sections = [Section("IN SHORT", lambda *_: "known"), Section("TIDES", lambda _, model: f"{model}: high at noon")]
    assert full_report(copy, "m", sections).endswith("TIDES\n=====\nm: high at noon")
    assert full_report(copy, "m", [Section("IN SHORT", lambda *_: None), *sections]) == ""


def test_a_damaged_home_is_said_in_words_with_the_way_out(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "dagster.yaml").write_text("storage: [this is: no configuration\n")
    error = fails_in_one_line(capsys, "job", "describe_models")
    assert f"{home} cannot be used as Dagster's home" in error
    assert "Move it aside" in error


FIRST_USE = """
import sys
from console.location import Console
from assets.partitions import add, models
console = Console()
print(len(add(console.instance, models, [f"org/model-{n}" for n in range(40)])))
"""


@pytest.mark.slow
def test_four_commands_at_once_make_one_history_in_a_fresh_home(tmp_path: Path, root: Path) -> None:
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    environment = {**os.environ, "DAGSTER_HOME": str(tmp_path), "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", FIRST_USE]
    ran = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    said = [process.communicate(timeout=300) for process in ran]
    assert [process.returncode for process in ran] == [0] * 4, said
    assert sum(int(out) for out, _ in said) >= 40
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert len(instance.get_dynamic_partitions("models")) == 40


def test_what_stands_of_a_failed_step_is_judged_so_that_the_next_may_build_on_it(
    monkeypatch: pytest.MonkeyPatch, home: Path, console: Console, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def gated(_: Console, title: str, job: str, partition: str | None = None) -> None:
        ran.append(job)
        if job == "read_spans":
            raise CommandError("one month is not complete")

    monkeypatch.setattr(runs, "execute_behind_gates", gated)
    monkeypatch.setattr(runs, "execute", lambda _, title, job: ran.append(job))
    assert launch.main(["run"], console) == 1
    place = ran.index("read_spans")
    assert ran[place : place + 3] == ["read_spans", "check_spans", "score_models"]
    assert "one month is not complete" in capsys.readouterr().err
