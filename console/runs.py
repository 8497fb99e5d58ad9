"""Runs of jobs in this process: launched, watched and explained in words."""

import sys
import time
from typing import Any
from uuid import uuid4

import dagster as dg

from assets.gates import held_back
from assets.jobs import date_models
from assets.partitions import name_of
from assets.sensors import entry_tags
from console import progress, waiting
from console.dead_runs import process_tag, settle_dead_runs
from console.location import CommandError, Console

LONGEST_REASON = 600
"""Characters of an error that are printed: what a person reads; the whole stands in the run's page."""

LOCATION = {".dagster/repository": "__repository__@strandline"}
"""The tag by which a job's page in the UI lists its runs."""


def execute(
    console: Console, title: str, job: str, partition: str | None = None, config: dict[str, Any] | None = None
) -> None:
    """Run one job in this process, with its progress on the terminal.

    Raises:
        CommandError: there is no such job or partition, or the run failed; the message says why.
        KeyboardInterrupt: somebody stopped it.
    """
    launched = job_named(console, job, partition)
    settle_dead_runs(console.instance)
    started, run_id = time.monotonic(), str(uuid4())
    print(f"· {title} …", file=sys.stderr, flush=True)
    try:
        with progress.shown() as terminal, waiting.told(console.instance, terminal, run_id):
            result = launched.execute_in_process(
                instance=console.instance,
                partition_key=partition,
                run_config={**progress.RUN_CONFIG, **(config or {})},
                raise_on_error=False,
                run_id=run_id,
                tags={**process_tag(), **LOCATION, **_entry(console, job, partition)},
            )
    except dg.DagsterExecutionInterruptedError:
        raise KeyboardInterrupt from None
    except dg.DagsterError as error:
        raise CommandError(f"{title}: {sentence(str(error))}") from error
    if any("ExecutionInterrupted" in str(event.event_specific_data) for event in result.all_events if event.is_failure):
        raise KeyboardInterrupt
    if not result.success:
        raise CommandError(f"{title} failed: {reason_of(result)} (`make ui` shows the run: /runs/{result.run_id})")
    print(f"  done in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


def execute_behind_gates(console: Console, title: str, job: str, partition: str | None = None) -> None:
    """The same, unless a table that the job reads has not passed its blocking checks; CommandError then names it."""
    repository = console.definitions.get_repository_def()
    closed = held_back(console.instance, repository, job, partition)
    if closed:
        raise CommandError(f"{title} was left out: {'; '.join(closed)}")
    execute(console, title, job, partition)


def job_named(console: Console, name: str, partition: str | None) -> dg.JobDefinition:
    """The job of that name, once it is clear that it exists and that the partition is one of its own."""
    named = {each.name for each in console.definitions.resolve_all_job_defs()}
    if name not in named:
        shown = ", ".join(sorted(each for each in named if not each.startswith("__")))
        raise CommandError(f"there is no job {name!r}; there are {shown}")
    launched = console.definitions.resolve_job_def(name)
    by = launched.partitions_def
    if by is None:
        if partition:
            raise CommandError(f"the job {name} has no partitions: leave --partition out")
        return launched
    keys = by.get_partition_keys(dynamic_partitions_store=console.instance)
    if partition not in keys and (partition or not isinstance(by, dg.TimeWindowPartitionsDefinition)):
        given = f"has no partition {partition!r}" if partition else "needs --partition"
        raise CommandError(f"the job {name} {given}; there are {', '.join(keys[-10:]) or 'none'}")
    return launched


def reason_of(result: dg.ExecuteInProcessResult) -> str:
    """The first failure of a run in one line: what the check found that blocks it, or a step's error."""
    checks = [check for check in result.get_asset_check_evaluations() if check.blocking and not check.passed]
    if checks:
        return "; ".join(str(check.description) for check in checks)
    for event in result.all_events:
        if event.is_step_failure:
            error = event.step_failure_data.error
            if error is not None:
                return f"{event.step_key}: {sentence((error.cause or error).message)}"
    return "no step says why"


def sentence(message: str) -> str:
    """An error's message in one line, without the name of its class where what follows is a sentence."""
    text = " ".join(message.split())
    name, _, rest = text.partition(": ")
    return (rest if name.replace(".", "").isidentifier() and " " in rest else text)[:LONGEST_REASON]


def _entry(console: Console, job: str, partition: str | None) -> dict[str, str]:
    """For a run that dates a listed model: the tags by which the sensor knows that the entry is dated."""
    if job != date_models.name or partition is None:
        return {}
    return entry_tags(console.model(name_of(partition)))
