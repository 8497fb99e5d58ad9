"""A command that waits for a pool says for whom, and ends at Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest

from console.waiting import blocked_by

WAITER = """
import sys, uuid
import dagster as dg
from console import waiting

waiting.LOOK_EVERY = 0.2

@dg.op(pool="model")
def hold():
    print("STARTED", flush=True)

@dg.job
def job():
    hold()

if __name__ == "__main__":
    run_id = str(uuid.uuid4())
    instance = dg.DagsterInstance.get()
    with waiting.told(instance, sys.stdout, run_id):
        result = job.execute_in_process(instance=instance, run_id=run_id, raise_on_error=False)
    failures = [str(event.event_specific_data) for event in result.all_events if event.is_failure]
    print("INTERRUPTED" if any("ExecutionInterrupted" in failure for failure in failures) else failures, flush=True)
    print(instance.get_run_by_id(run_id).is_finished, flush=True)
"""


@dg.op(pool="model")
def hold() -> None:
    """Holds the pool."""


@dg.job
def holding() -> None:
    hold()


@pytest.fixture
def instance(tmp_path: Path) -> dg.DagsterInstance:
    (tmp_path / "dagster.yaml").write_text("concurrency: {pools: {default_limit: 1}}\n")
    made = dg.DagsterInstance.from_config(str(tmp_path))
    made.event_log_storage.set_concurrency_slots("model", 1)
    return made


def claimed(instance: dg.DagsterInstance) -> dg.DagsterRun:
    run = instance.create_run_for_job(holding, status=dg.DagsterRunStatus.STARTED)
    assert instance.event_log_storage.claim_concurrency_slot("model", run.run_id, "hold").is_claimed
    return run


def test_the_one_that_waits_is_told_who_holds_and_the_holder_is_told_nothing(instance: dg.DagsterInstance) -> None:
    holder = claimed(instance)
    waiter = instance.create_run_for_job(holding, status=dg.DagsterRunStatus.STARTED)
    assert not instance.event_log_storage.claim_concurrency_slot("model", waiter.run_id, "hold").is_claimed
    assert blocked_by(instance, waiter.run_id) == [f"hold waits for the pool `model`, which run {holder.run_id} holds"]
    assert blocked_by(instance, holder.run_id) == []


@pytest.mark.slow
def test_a_command_that_waits_says_so_and_ends_at_ctrl_c(
    instance: dg.DagsterInstance, tmp_path: Path, root: Path
) -> None:
    holder = claimed(instance)
    script = tmp_path / "waiter.py"
    script.write_text(WAITER)
    environment = {**os.environ, "DAGSTER_HOME": str(tmp_path), "PYTHONPATH": str(root)}
    waiter = subprocess.Popen(
        [sys.executable, str(script)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert waiter.stdout
    said = ""
    while f"which run {holder.run_id} holds" not in said:
        line = waiter.stdout.readline()
        assert line, said
        said += line
    interrupted = time.monotonic()
    waiter.send_signal(signal.SIGINT)
    rest = waiter.communicate(timeout=60)[0]
    assert time.monotonic() - interrupted < 20
    assert rest.split()[-2:] == ["INTERRUPTED", "True"]
    assert "STARTED" not in said + rest
    queue = instance.event_log_storage.get_concurrency_info("model").pending_steps
    assert {step.run_id for step in queue} <= {holder.run_id}
