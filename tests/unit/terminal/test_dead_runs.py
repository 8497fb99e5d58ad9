"""A killed command gives back what it held, and a living one is left alone."""

import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from console.dead_runs import PROCESS_TAG, process_tag, settle_dead_runs


@dg.op(pool="model")
def hold() -> None:
    """Holds the pool."""


@dg.job
def holding() -> None:
    hold()


@pytest.fixture
def instance(tmp_path: Path) -> dg.DagsterInstance:
    made = dg.DagsterInstance.local_temp(str(tmp_path))
    made.event_log_storage.set_concurrency_slots("model", 1)
    return made


def started(instance: dg.DagsterInstance, tags: dict[str, str]) -> dg.DagsterRun:
    run = instance.create_run_for_job(holding, status=dg.DagsterRunStatus.STARTED, tags=tags)
    claim = instance.event_log_storage.claim_concurrency_slot("model", run.run_id, "hold")
    assert claim.is_claimed
    return run


def killed_process_tag() -> dict[str, str]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    tag = process_tag(process.pid)
    process.kill()
    process.wait()
    return tag


def test_a_run_of_a_killed_process_fails_and_its_slot_is_free_again(instance: dg.DagsterInstance) -> None:
    run = started(instance, killed_process_tag())
    assert settle_dead_runs(instance) == [run.run_id]
    settled = instance.get_run_by_id(run.run_id)
    assert settled
    assert settled.status == dg.DagsterRunStatus.FAILURE
    assert instance.event_log_storage.claim_concurrency_slot("model", "another", "hold").is_claimed


def test_a_run_of_a_living_process_or_of_the_daemon_is_left_alone(instance: dg.DagsterInstance) -> None:
    run = started(instance, process_tag())
    daemons = instance.create_run_for_job(holding, status=dg.DagsterRunStatus.STARTED)
    assert settle_dead_runs(instance) == []
    for run_id in (run.run_id, daemons.run_id):
        left = instance.get_run_by_id(run_id)
        assert left
        assert left.status == dg.DagsterRunStatus.STARTED


def test_another_process_that_was_given_the_same_id_does_not_keep_a_dead_run_alive(
    instance: dg.DagsterInstance,
) -> None:
    pid = process_tag()[PROCESS_TAG].split()[0]
    run = started(instance, {PROCESS_TAG: f"{pid} Thu Jan  1 00:00:00 1970"})
    assert settle_dead_runs(instance) == [run.run_id]
