"""The commands of ``launch.py``: each takes the console and its options, prints, and returns an exit status or None.

Nothing is computed here: commands launch jobs, print what is published, or start a server.
"""

import argparse
import json
import shutil
import subprocess
import sys
from typing import Any

from console.location import CommandError, Console
from console.steps import Step, steps, without_a_model
from resources.places import ROOT


def run(console: Console, options: argparse.Namespace) -> int:
    """Date a model on real input, step by step, then publish and print the report; a failed step stops no other."""
    model, failed = console.model(options.model).name, list[str]()
    benchmark, corpus = console.benchmark(options.benchmark), console.corpus(options.corpus)
    console.register()
    for step in steps(model, benchmark, corpus):
        failed += _failures(console, step)
    console.warehouse.publish()
    _print_report(console, model)
    if failed:
        print(f"\n{len(failed)} of the steps failed; the same command tries them again:", file=sys.stderr)
    for reason in failed:
        print(f"error: {reason}", file=sys.stderr)
    return 1 if failed else 0


def job(console: Console, options: argparse.Namespace) -> None:
    """Run one job of the code location, with settings of its steps, then publish."""
    from console.runs import execute, job_named
    from console.settings import run_config

    try:
        config: dict[str, Any] = json.loads(options.config)
    except ValueError as error:
        raise CommandError(f"--config is not JSON: {error}") from None
    console.register()
    launched = job_named(console, options.name, options.partition)
    config = run_config(launched, options.set or [], config)
    execute(console, options.name, options.name, options.partition, config)
    console.warehouse.publish()


def plan(console: Console, options: argparse.Namespace) -> None:
    """Print what ``run`` would ask of a model before anything is spent."""
    from console.plans import plan_text
    from console.runs import execute

    store, spec = console.warehouse, console.model(options.model)
    if store.query("select 1 from releases.probe_items limit 1").is_empty():
        execute(console, "dated releases and the questions made from them", "refresh_releases")
    print(plan_text(store, spec, console.resources))


def report(console: Console, options: argparse.Namespace) -> None:
    """Print the report of the published results."""
    model = console.model(options.model).name
    if not _print_report(console, model):
        raise CommandError(f"nothing has been found out about {model} yet: `launch.py run --model '{model}'` dates it")


def query(console: Console, options: argparse.Namespace) -> None:
    """Answer one SQL query from the published copy."""
    from console.row_text import as_text

    print(as_text(console.published.query(options.sql), shutil.get_terminal_size((160, 24)).columns))


def ui(_: Console, options: argparse.Namespace) -> int:
    """Serve the Dagster UI; with ``--read-only`` nothing can be launched from it."""
    from console.server import serve_ui

    return serve_ui(options.host, options.port, read_only=options.read_only)


def calibrate(console: Console, options: argparse.Namespace) -> None:
    """Run the estimators on planted truth, as far as that is missing, and print the summary."""
    from assets.calibration import selected_families
    from console.row_text import as_text
    from console.runs import execute

    if not 0 < options.share <= 1:
        raise CommandError(f"--share is {options.share}; it must lie above 0 and not above 1")
    methods = selected_families(options.methods or [], options.only)
    config = {"only": options.only, "share": options.share, "methods": methods}
    steps = {"ops": {"simulate_worlds": {"config": config}}}
    execute(console, "calibration on planted truth", "calibrate", None, steps)
    console.warehouse.publish()
    rows = console.published.query(
        "select estimator, scenario, n_runs, n_found, coverage80, coverage95, rmse, median_width, false_findings, "
        "statuses from calibration.recoveries where contains(estimator || '/' || scenario, ?) order by all",
        [options.only],
    )
    print(as_text(rows, width=1000))


def bench(_: Console, options: argparse.Namespace) -> int:
    """Run the benchmarks in ``bench/`` one after the other; each prints its ratios."""
    scripts = sorted((ROOT / "bench").glob(f"{options.only or ''}*.py"))
    if not scripts:
        raise CommandError(f"no script in bench/ has a name that starts with {options.only!r}")
    return max(subprocess.call([sys.executable, str(script)]) for script in scripts)


def rebuild(console: Console, _: argparse.Namespace) -> int:
    """Set a damaged warehouse aside, start from the newest good copy, and refill what needs no model."""
    from console.runs import execute

    store = console.warehouse
    aside, copy = store.restore()
    start = f"starts from {copy}" if copy else "is empty, as no published copy could be read whole"
    print(f"the new warehouse {store.path} {start}; the old file is {aside}")
    console.register()
    failed = 0
    for step in without_a_model(
        console.definitions.get_repository_def(), console.benchmark(None), console.corpus(None)
    ):
        try:
            execute(console, step.title, step.job, step.partition)
        except CommandError as error:
            failed += 1
            print(f"  error: {error}", file=sys.stderr, flush=True)
    store.publish()
    print("now `make run`, or `launch.py run --model NAME`, computes what is missing of a model")
    return 1 if failed else 0


def _failures(console: Console, step: Step) -> list[str]:
    """Run one step of the sequence; what it failed for, already printed. What stands of it is then judged."""
    from console.runs import execute, execute_behind_gates

    try:
        execute_behind_gates(console, step.title, step.job, step.partition)
    except CommandError as error:
        print(f"  error: {error}", file=sys.stderr, flush=True)
        if step.judged_by is None:
            return [str(error)]
        try:
            execute(console, f"checks of what stands of: {step.title}", step.judged_by)
        except CommandError as unsound:
            return [str(error), str(unsound)]
        return [str(error)]
    return []


def _print_report(console: Console, model: str) -> bool:
    """Print the report where there is one; whether there was."""
    from console.report import full_report

    text = full_report(console.published, model)
    if text:
        print(text)
    return bool(text)
