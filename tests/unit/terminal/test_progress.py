"""What the command line shows while a step works, and what it does not."""

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from assets import loggers
from console import progress

SLEEPER = """
import pathlib, time, dagster as dg
from assets import loggers
from console import progress

@dg.op
def working(context):
    context.log.info("round 1 of 2")
    print("noise of a library")
    pathlib.Path({flag!r}).touch()
    time.sleep(30)

@dg.job(logger_defs={{"progress": loggers.progress}})
def job():
    working()

if __name__ == "__main__":
    with progress.shown():
        job.execute_in_process(instance=dg.DagsterInstance.get(), run_config=progress.RUN_CONFIG, raise_on_error=False)
"""


def test_what_a_step_logs_is_one_line_and_dagsters_own_events_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    @dg.op
    def working(context: dg.OpExecutionContext) -> None:
        context.log.info("round 1 of 2\nwith details")
        context.log.info("round 2 of 2")

    @dg.job(logger_defs={"progress": loggers.progress})
    def job() -> None:
        working()

    terminal = io.StringIO()
    monkeypatch.setattr(progress.HANDLER, "stream", terminal)
    job.execute_in_process(run_config=progress.RUN_CONFIG)
    assert terminal.getvalue() == "\r\x1b[K  round 1 of 2\r\x1b[K  round 2 of 2"


def test_where_nobody_watches_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.shown():
        assert progress.HANDLER.stream is None
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_an_interrupted_step_shows_its_progress_and_leaves_no_traceback_on_the_terminal(
    tmp_path: Path, root: Path
) -> None:
    flag, script = tmp_path / "ready", tmp_path / "sleeper.py"
    script.write_text(SLEEPER.format(flag=str(flag)))
    ours, theirs = pty.openpty()
    environment = {**os.environ, "DAGSTER_HOME": str(tmp_path), "PYTHONPATH": str(root)}
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    while not flag.exists():
        assert process.poll() is None
    os.killpg(process.pid, 2)
    process.wait(30)
    said = b""
    try:
        while chunk := os.read(ours, 65536):
            said += chunk
    except OSError:
        pass  # the other end is closed
    assert b"round 1 of 2" in said
    assert b"noise of a library" not in said
    assert b"watch_orphans" not in said
