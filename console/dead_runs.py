"""Runs whose process is gone: a killed command must not leave a pool slot taken, or the next one would wait for ever.

The daemon watches the runs that it launched itself; this is for runs of the command line.
"""

import os
import subprocess

import dagster as dg

PROCESS_TAG = ".dagster/strandline_process"
"""The UI does not list tags that begin so."""


def process_tag(pid: int | None = None) -> dict[str, str]:
    """The tag by which a run can be told to belong to a living process: its id and when it was started."""
    pid = pid or os.getpid()
    return {PROCESS_TAG: f"{pid} {_started(pid)}"}


def settle_dead_runs(instance: dg.DagsterInstance) -> list[str]:
    """Mark unfinished runs of processes that are gone as failed and free their pool slots; returns their ids."""
    unfinished = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING])
    dead = [run for run in instance.get_runs(unfinished) if _is_dead(run.tags.get(PROCESS_TAG))]
    for run in dead:
        instance.report_run_failed(run, "the process that ran it is gone")
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
    return [run.run_id for run in dead]


def _is_dead(tag: str | None) -> bool:
    if not tag:
        return False
    pid, _, started = tag.partition(" ")
    return _started(int(pid)) != started


def _started(pid: int) -> str:
    """When a process was started, as ``ps`` tells it; empty where there is no such process.

    Without ``ps`` the answer is always the same, so that no run is ever taken for dead.
    """
    try:
        listing = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return listing.stdout.strip()
