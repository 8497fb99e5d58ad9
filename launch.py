"""The commands behind ``make``: run, job, plan, report, query, ui, calibrate, bench, rebuild.

Every command keeps Dagster's history in ``data/dagster_home``, so that the UI shows what the command line did. Nothing
is computed here: commands launch jobs, print what is published, or start a server.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

ROOT = Path(__file__).resolve().parent
HOME = ROOT / "data" / "dagster_home"
LONGEST_REASON = 600
LOCATION = {".dagster/repository": "__repository__@strandline"}  # else no job's page in the UI lists the run


class CommandError(RuntimeError):
    """A command that cannot go on; the message is for the user."""


def run(options: argparse.Namespace) -> int:
    """Date a model on real input, step by step, then publish and print the report; a failed step stops no other."""
    from console.steps import steps

    model, failed = _model(options.model).name, []
    benchmark, corpus = _first_or_named(options.benchmark, options.corpus)
    _register()
    for step in steps(model, benchmark, corpus):
        try:
            _execute(step.title, step.job, step.partition)
        except CommandError as error:
            failed.append(str(error))
            print(f"  error: {error}", file=sys.stderr, flush=True)
    _published()
    _print_report(model)
    if failed:
        print(f"\n{len(failed)} of the steps failed; the same command tries them again:", file=sys.stderr)
    for reason in failed:
        print(f"error: {reason}", file=sys.stderr)
    return 1 if failed else 0


def job(options: argparse.Namespace) -> None:
    """Run one job of the code location, with configuration as JSON, then publish."""
    try:
        config = json.loads(options.config)
    except ValueError as error:
        raise CommandError(f"--config is not JSON: {error}") from None
    _register()
    _execute(options.name, options.name, options.partition, config)
    _published()


def plan(options: argparse.Namespace) -> None:
    """Print what ``run`` would ask of a model before anything is spent."""
    from console.report import plan_text
    from resources.configured import WarehouseResource

    store, spec = WarehouseResource().open(), _model(options.model)
    if store.query("select 1 from releases.probe_items limit 1").is_empty():
        _execute("dated releases and the questions made from them", "refresh_releases", None)
    print(plan_text(store, spec))


def report(options: argparse.Namespace) -> None:
    """Print the report of the published results."""
    model = _model(options.model).name
    if not _print_report(model):
        raise CommandError(f"nothing has been found out about {model} yet: `launch.py run --model '{model}'` dates it")


def query(options: argparse.Namespace) -> None:
    """Answer one SQL query from the published copy."""
    from console.row_text import as_text

    print(as_text(_published_copy().query(options.sql), shutil.get_terminal_size((160, 24)).columns))


def ui(options: argparse.Namespace) -> int:
    """Serve the Dagster UI; with ``--read-only`` nothing can be launched from it."""
    from filelock import FileLock, Timeout

    if not _is_loopback(options.host):
        print(
            f"warning: {options.host} is not a loopback address, and the Dagster UI has no login: whoever reaches it "
            "can launch runs and read every result. Put a proxy with authentication before it, or add --read-only.",
            file=sys.stderr,
        )
    home = Path(os.environ["DAGSTER_HOME"])
    _require_writable(home)
    _require_free(options.host, options.port)
    address = ["--host", options.host, "--port", str(options.port)]
    if options.read_only:
        return _serve("dagster-webserver", "-w", "workspace.yaml", *address, "--read-only")
    try:
        with FileLock(home / ".ui.lock", timeout=0):
            return _serve("dagster", "dev", "-w", "workspace.yaml", *address)
    except Timeout:
        raise CommandError("a UI of this folder is running already; --read-only serves a second one") from None


def calibrate(options: argparse.Namespace) -> None:
    """Run the estimators on planted truth, as far as that is missing, and print the summary."""
    from assets.calibration import chosen
    from console.row_text import as_text

    if not 0 < options.share <= 1:
        raise CommandError(f"--share is {options.share}; it must lie above 0 and not above 1")
    config: dict[str, Any] = {
        "only": options.only,
        "share": options.share,
        "methods": chosen(options.methods or [], options.only),
    }
    _execute("calibration on planted truth", "calibrate", None, {"ops": {"simulate_worlds": {"config": config}}})
    _published()
    rows = _published_copy().query(
        "select estimator, scenario, n_runs, n_found, coverage80, coverage95, rmse, median_width, false_findings, "
        "statuses from calibration.recoveries where contains(estimator || '/' || scenario, ?) order by all",
        [options.only],
    )
    print(as_text(rows, width=1000))


def bench(options: argparse.Namespace) -> int:
    """Run the benchmarks in ``bench/`` one after the other; each prints its ratios."""
    scripts = sorted((ROOT / "bench").glob(f"{options.only or ''}*.py"))
    if not scripts:
        raise CommandError(f"no script in bench/ has a name that starts with {options.only!r}")
    return max(subprocess.call([sys.executable, str(script)]) for script in scripts)


def rebuild(options: argparse.Namespace) -> None:
    """Set a damaged warehouse aside and start from the published copy; ``run`` then refills it from the caches."""
    from resources.configured import WarehouseResource

    aside = WarehouseResource().open().restore()
    print(f"it starts from the published copy (empty where none fits); the old file is {aside}; now `make run`")


def _print_report(model: str) -> bool:
    from console.report import full_report

    text = full_report(_published_copy(), model)
    if text:
        print(text)
    return bool(text)


def _model(name: str | None) -> Any:
    from resources.configured import ModelListResource

    models = ModelListResource()
    listed = [models.find(name)] if name else models.read()
    if not listed:
        raise CommandError(f"{models.path} lists no model; its comments show how to add one")
    return listed[0]


def _serve(program: str, *arguments: str) -> int:
    """Run a server until it ends; Ctrl-C reaches it by itself, and it is waited for so that nothing is left behind."""
    server = subprocess.Popen([str(Path(sys.executable).with_name(program)), *arguments])
    while True:
        try:
            return server.wait()
        except KeyboardInterrupt:
            print("stopping the UI …", file=sys.stderr)


def _require_free(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            why = error.strerror or error
            raise CommandError(f"{host} port {port}: {why}; a UI may run there already, --port takes another") from None


def _first_or_named(benchmark: str | None, corpus: str | None) -> tuple[str | None, str | None]:
    """The benchmark and the corpus asked for, else the first of each list; None where a list is empty."""
    from resources.configured import BenchmarkListResource, CorpusListResource

    benchmarks, corpora = BenchmarkListResource(), CorpusListResource()
    tested = benchmarks.find(benchmark) if benchmark else next(iter(benchmarks.read()), None)
    mined = corpora.find(corpus) if corpus else next(iter(corpora.read()), None)
    return tested and tested.benchmark, mined and mined.corpus


def _register() -> None:
    """Read every settings file, so that a mistake shows before anything is spent, and register what they list."""
    from assets.partitions import register_names
    from resources.configured import defaults

    resources: dict[str, Any] = defaults()
    resources["span_list"].read()
    resources["references"].listed()
    register_names(_instance(), *(resources[name] for name in ("model_list", "benchmark_list", "corpus_list")))


def _execute(title: str, job: str, partition: str | None, config: dict[str, Any] | None = None) -> None:
    from dagster import DagsterError

    from console import progress
    from console.dead_runs import process_tag, settle_dead_runs

    launched = _job(job, partition)
    settle_dead_runs(_instance())
    started = time.monotonic()
    print(f"· {title} …", file=sys.stderr, flush=True)
    try:
        with progress.shown():
            result = launched.execute_in_process(
                instance=_instance(),
                partition_key=partition,
                run_config={**progress.RUN_CONFIG, **(config or {})},
                raise_on_error=False,
                tags={**process_tag(), **LOCATION},
            )
    except DagsterError as error:
        raise CommandError(f"{title}: {_sentence(str(error))}") from error
    if any("ExecutionInterrupted" in str(event.event_specific_data) for event in result.all_events if event.is_failure):
        raise KeyboardInterrupt
    if not result.success:
        raise CommandError(f"{title} failed: {_why(result)} (`make ui` shows the run: /runs/{result.run_id})")
    print(f"  done in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


def _job(name: str, partition: str | None) -> Any:
    """The job of that name, once it is clear that it exists and that the partition is one of its own."""
    from dagster import TimeWindowPartitionsDefinition

    from definitions import defs

    named = {each.name for each in defs.resolve_all_job_defs()}
    if name not in named:
        shown = ", ".join(sorted(each for each in named if not each.startswith("__")))
        raise CommandError(f"there is no job {name!r}; there are {shown}")
    launched = defs.resolve_job_def(name)
    by = launched.partitions_def
    if by is None:
        if partition:
            raise CommandError(f"the job {name} has no partitions: leave --partition out")
        return launched
    keys = by.get_partition_keys(dynamic_partitions_store=_instance())
    if partition not in keys and (partition or not isinstance(by, TimeWindowPartitionsDefinition)):
        given = f"has no partition {partition!r}" if partition else "needs --partition"
        raise CommandError(f"the job {name} {given}; there are {', '.join(keys[-10:]) or 'none'}")
    return launched


def _why(result: Any) -> str:
    """The first failure of a run in one line: what the check found that blocks it, or a step's error."""
    checks = [check for check in result.get_asset_check_evaluations() if check.blocking and not check.passed]
    if checks:
        return "; ".join(str(check.description) for check in checks)
    for event in result.all_events:
        if event.is_step_failure:
            error = event.step_failure_data.error
            return f"{event.step_key}: {_sentence((error.cause or error).message)}"
    return "no step says why"


def _sentence(message: str) -> str:
    """An error's message in one line, without the name of its class where what follows is a sentence."""
    text = " ".join(message.split())
    name, _, rest = text.partition(": ")
    return (rest if name.replace(".", "").isidentifier() and " " in rest else text)[:LONGEST_REASON]


def _published() -> None:
    from resources.configured import WarehouseResource

    WarehouseResource().open().publish()


def _published_copy() -> Any:
    from resources.configured import WarehouseResource
    from resources.warehouse.store import PublishedCopy

    return PublishedCopy(WarehouseResource().open().published)


def _instance() -> Any:
    from dagster import DagsterInstance

    _require_writable(Path(os.environ["DAGSTER_HOME"]))
    return DagsterInstance.get()


def _require_writable(home: Path) -> None:
    if not home.is_absolute():
        raise CommandError(f"DAGSTER_HOME is {home}; it must be an absolute path")
    try:
        home.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=home):
            pass
    except OSError as error:
        raise CommandError(
            f"{home} cannot be written ({error.strerror}), and the history of runs is kept there; "
            "DAGSTER_HOME may name another folder"
        ) from None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="launch.py", description="Strandline dates what a language model knows.")
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(function: Any) -> argparse.ArgumentParser:
        text = function.__doc__.splitlines()[0].replace("``", "")
        one = commands.add_parser(function.__name__, help=text, description=text)
        one.set_defaults(command=function)
        return one

    for function in (run, plan, report):
        command(function).add_argument("--model", help="a name in data/models.yaml; the first one by default")
    running = commands.choices["run"]
    running.add_argument("--benchmark", help="a name in data/benchmarks.csv; the first one by default")
    running.add_argument("--corpus", help="a name in data/corpora.yaml; the first one by default")
    one_job = command(job)
    one_job.add_argument("name", help="for instance refresh_releases")
    one_job.add_argument("--partition", help="a partition key; a wrong one lists those that there are")
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
    parser.add_argument("--port", type=int, default=3000, help="3000 by default")
    parser.add_argument("--read-only", action="store_true", help="no launching, no daemon")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = _parser().parse_args(arguments)
    os.environ.setdefault("DAGSTER_HOME", str(HOME))
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that wait must not burn a core that others need
    os.chdir(ROOT)
    try:
        status = int(options.command(options) or 0)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("interrupted; what was finished is kept, and the same command goes on from there", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"error: {error.filename or 'a file'}: {error.strerror or error}", file=sys.stderr)
    except ModuleNotFoundError as error:
        print(
            f"error: {sys.executable} has no {error.name}: use .venv/bin/python, which `make run` sets up",
            file=sys.stderr,
        )
    except (RuntimeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
