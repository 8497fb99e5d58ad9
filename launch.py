"""The door of the command line: run, job, plan, report, query, ui, calibrate, bench, rebuild.

Every command keeps Dagster's history in ``data/dagster_home``, so that the UI shows what the command line did. What the
commands do is in ``console``; here they get their options, and their errors become one line for the user.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from console.location import Console

ROOT = Path(__file__).resolve().parent
COMMANDS = ("run", "job", "plan", "report", "query", "ui", "calibrate", "bench", "rebuild")


def main(arguments: Sequence[str] | None = None, console: "Console | None" = None) -> int:
    """Run one command, on the code location of ``console`` where one is given; returns the exit status."""
    os.environ.setdefault("DAGSTER_HOME", str(ROOT / "data" / "dagster_home"))
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that wait must not burn a core that others need
    os.chdir(ROOT)
    try:
        from console import commands
        from console.location import Console

        options = _parser(commands).parse_args(arguments)
        status = int(options.command(console or Console(), options) or 0)
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
        _give_up_output_that_cannot_be_written()
    except ModuleNotFoundError as error:
        print(
            f"error: {sys.executable} has no {error.name}: use .venv/bin/python, which `make run` sets up",
            file=sys.stderr,
        )
    except (RuntimeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
    return 1


def _give_up_output_that_cannot_be_written() -> None:
    """On a full disk Python would fail again when it writes what is left at its end, with a status of its own."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser(commands: Any) -> argparse.ArgumentParser:
    """The options of every command; a command's help is the first line of its docstring."""
    parser = argparse.ArgumentParser(prog="launch.py", description="Strandline dates what a language model knows.")
    choices = parser.add_subparsers(required=True, metavar="command")
    one = {}
    for name in COMMANDS:
        function = getattr(commands, name)
        text = function.__doc__.splitlines()[0].replace("``", "")
        one[name] = choices.add_parser(name, help=text, description=text)
        one[name].set_defaults(command=function)
    for name in ("run", "plan", "report"):
        one[name].add_argument("--model", help="a name in data/models.yaml; the first one by default")
    one["run"].add_argument("--benchmark", help="a name in data/benchmarks.csv; the first one by default")
    one["run"].add_argument("--corpus", help="a name in data/corpora.yaml; the first one by default")
    one["job"].add_argument("name", help="for instance refresh_releases")
    one["job"].add_argument("--partition", help="a partition key; a wrong one lists those that there are")
    one["job"].add_argument(
        "--set",
        action="append",
        metavar="KEY=VALUE",
        help="a setting of a step; a wrong one lists those that there are",
    )
    one["job"].add_argument("--config", default="{}", help="run configuration as JSON")
    one["query"].add_argument("sql", help="a query in DuckDB's SQL")
    one["ui"].add_argument("--host", default="127.0.0.1", help="another address than loopback prints a warning")
    one["ui"].add_argument("--port", type=int, default=3000, help="3000 by default")
    one["ui"].add_argument("--read-only", action="store_true", help="no launching, no daemon")
    one["calibrate"].add_argument(
        "--methods", nargs="*", help="probe, perplexity, contamination, corpus; all by default"
    )
    one["calibrate"].add_argument("--only", default="", help="only scenarios whose estimator/name contains this")
    one["calibrate"].add_argument("--share", type=float, default=1.0, help="the part of each scenario's runs, 0 to 1")
    one["bench"].add_argument("--only", help="only scripts whose name starts with this")
    return parser


if __name__ == "__main__":
    sys.exit(main())
