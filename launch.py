"""The commands behind ``make``: run, job, plan, report, query, ui, calibrate, bench, rebuild.

Every command keeps Dagster's history in ``data/dagster_home``, so that the UI shows what the command line did. Nothing
is computed here: commands launch jobs, print what is published, or start a server.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
HOME = ROOT / "data" / "dagster_home"
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class CommandError(RuntimeError):
    """A command that cannot go on; the message is for the user."""


def run(options: argparse.Namespace) -> int:
    """Date a model on real input, step by step, then publish and print the report; a failed step stops no other."""
    from assets.automation import register_names
    from assets.first_look import steps
    from resources.configured import defaults

    resources, failed = defaults(), []
    register_names(_instance(), resources["benchmark_list"], resources["corpus_list"])
    for step in steps(_model(options.model).name):
        try:
            _execute(step.title, step.job, step.partition)
        except CommandError as error:
            failed.append(str(error))
    _published()
    report(options)
    for reason in failed:
        print(f"error: {reason}", file=sys.stderr)
    return 1 if failed else 0


def job(options: argparse.Namespace) -> None:
    """Run one job of the code location, with configuration as JSON, then publish."""
    _execute(options.name, options.name, options.partition, json.loads(options.config))
    _published()


def plan(options: argparse.Namespace) -> None:
    """Print what ``run`` would ask of a model before anything is spent."""
    from assets.report import plan_text
    from resources.configured import WarehouseResource

    print(plan_text(WarehouseResource().open(), _model(options.model)))


def report(options: argparse.Namespace) -> None:
    """Print the report of the published results."""
    from assets.report import full_report

    print(full_report(_published_copy(), _model(options.model).name))


def query(options: argparse.Namespace) -> None:
    """Answer one SQL query from the published copy."""
    import polars as pl

    with pl.Config(tbl_rows=-1, tbl_cols=-1, fmt_str_lengths=80, tbl_width_chars=200, tbl_hide_dataframe_shape=True):
        print(_published_copy().query(options.sql))


def ui(options: argparse.Namespace) -> int:
    """Serve the Dagster UI; with ``--read-only`` nothing can be launched from it."""
    if not _is_loopback(options.host):
        print(
            f"warning: {options.host} is not a loopback address, and the Dagster UI has no login: whoever reaches it "
            "can launch runs and read every result. Put a proxy with authentication before it, or add --read-only.",
            file=sys.stderr,
        )
    address = ["--host", options.host, "--port", str(options.port)]
    binary = Path(sys.executable).with_name("dagster-webserver" if options.read_only else "dagster")
    command = [str(binary), *([] if options.read_only else ["dev"]), "-w", "workspace.yaml", *address]
    return subprocess.call([*command, *(["--read-only"] if options.read_only else [])])


def calibrate(options: argparse.Namespace) -> None:
    """Run the estimators on planted truth, as far as that is missing, and print the summary."""
    config: dict[str, Any] = {"only": options.only, "share": options.share}
    if options.methods:
        config["methods"] = options.methods
    _execute("calibration on planted truth", "calibrate", None, {"ops": {"calibration_runs": {"config": config}}})
    _published()
    options.sql = "from calibration.recoveries order by estimator, scenario"
    query(options)


def bench(options: argparse.Namespace) -> int:
    """Run the benchmarks in ``bench/`` one after the other; each prints its ratios."""
    scripts = sorted((ROOT / "bench").glob(f"{options.only or ''}*.py"))
    return max((subprocess.call([sys.executable, str(script)]) for script in scripts), default=0)


def rebuild(options: argparse.Namespace) -> None:
    """Set a damaged warehouse aside and start from the published copy; ``run`` then refills it from the caches."""
    from resources.configured import WarehouseResource

    aside = WarehouseResource().open().restore()
    print(f"it starts from the published copy (empty where none fits); the old file is {aside}; now `make run`")


def _model(name: str | None) -> Any:
    from resources.configured import ModelListResource

    listed = ModelListResource()
    return listed.find(name) if name else listed.read()[0]


def _execute(title: str, job: str, partition: str | None, config: dict[str, Any] | None = None) -> None:
    from assets.dead_runs import process_tag, settle_dead_runs
    from definitions import defs

    settle_dead_runs(_instance())

    started = time.monotonic()
    print(f"· {title} …", file=sys.stderr, flush=True)
    result = defs.resolve_job_def(job).execute_in_process(
        instance=_instance(),
        partition_key=partition,
        run_config={**QUIET, **(config or {})},
        raise_on_error=False,
        tags=process_tag(),
    )
    if any("ExecutionInterrupted" in str(event.event_specific_data) for event in result.all_events if event.is_failure):
        raise KeyboardInterrupt
    if not result.success:
        raise CommandError(
            f"{title}: run {result.run_id} of job {job} failed; `make ui` shows why (/runs/{result.run_id})"
        )
    print(f"  done in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


def _why(result: Any) -> str:
    """The first failure of a run in one line: a step's error, or the check that did not pass."""
    for event in result.all_events:
        if event.is_step_failure:
            error = event.step_failure_data.error
            return f"{event.step_key}: {(error.cause or error).message.strip().splitlines()[0]}"
    checks = [check for check in result.get_asset_check_evaluations() if not check.passed]
    return "; ".join(str(check.description) for check in checks) or "the run failed"


def _published() -> None:
    from resources.configured import WarehouseResource

    WarehouseResource().open().publish()


def _published_copy() -> Any:
    from resources.configured import WarehouseResource
    from resources.warehouse import PublishedCopy

    return PublishedCopy(WarehouseResource().open().published)


def _instance() -> Any:
    from dagster import DagsterInstance

    return DagsterInstance.get()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="launch.py", description="Strandline dates what a language model knows.")
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(function: Any) -> argparse.ArgumentParser:
        text = function.__doc__.splitlines()[0]
        one = commands.add_parser(function.__name__, help=text, description=text)
        one.set_defaults(command=function)
        return one

    for function in (run, plan, report):
        command(function).add_argument("--model", help="a name in data/models.yaml; the first one by default")
    one_job = command(job)
    one_job.add_argument("name", help="for instance refresh_releases")
    one_job.add_argument("--partition", help="a partition key")
    one_job.add_argument("--config", default="{}", help="run configuration as JSON")
    command(query).add_argument("sql", help="a query in DuckDB's SQL")
    _ui_arguments(command(ui))
    calibration = command(calibrate)
    calibration.add_argument("--methods", nargs="*", help="probe, perplexity, contamination, corpus; all by default")
    calibration.add_argument("--only", default="", help="only scenarios whose estimator/name contains this")
    calibration.add_argument("--share", type=float, default=1.0, help="the part of each scenario's runs, 0 to 1")
    command(bench).add_argument("--only", help="only scripts whose name starts with this")
    command(rebuild)
    return parser


def _ui_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="another address than loopback prints a warning")
    parser.add_argument("--port", type=int, default=3000)
    parser.add_argument("--read-only", action="store_true", help="no launching, no daemon")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = _parser().parse_args(arguments)
    os.environ.setdefault("DAGSTER_HOME", str(HOME))
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that wait must not burn a core that others need
    os.chdir(ROOT)
    try:
        return int(options.command(options) or 0)
    except KeyboardInterrupt:
        print("interrupted; what was finished is kept, and the same command goes on from there", file=sys.stderr)
        return 130
    except (RuntimeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
