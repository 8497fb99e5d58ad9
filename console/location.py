"""The code location as the command line sees it: one object from which every command takes its resources and jobs.

Resources that a deployment or a test overrides reach every command through it. The code location itself is built only
when a job is launched, so that asking for results stays quick. What a command prints belongs to ``commands``.
"""

import os
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import dagster as dg
from filelock import FileLock

from resources.configured import defaults
from resources.warehouse.store import PublishedCopy, Warehouse
from strandline.models import ModelSpec


class CommandError(RuntimeError):
    """A command that cannot go on; the message is for the user."""


class Console:
    """The resources, the jobs and the history of runs behind the commands.

    Args:
        overrides: resources by name that replace the defaults, as in ``build_definitions``.
    """

    def __init__(self, **overrides: Any) -> None:
        self._overrides = overrides
        self.resources: dict[str, Any] = {**defaults(), **overrides}

    @cached_property
    def definitions(self) -> dg.Definitions:
        """The code location with the same resources."""
        from definitions import build_definitions

        return build_definitions(**self._overrides)

    @property
    def warehouse(self) -> Warehouse:
        """The warehouse; no connection is opened yet."""
        store: Warehouse = self.resources["warehouse"].open()
        return store

    @property
    def published(self) -> PublishedCopy:
        """The readers' copy."""
        return PublishedCopy(self.warehouse.published)

    @cached_property
    def instance(self) -> dg.DagsterInstance:
        """The history of runs; two commands at once in a fresh checkout make it one after the other.

        CommandError where its folder cannot be written, or holds what Dagster cannot read.
        """
        require_writable(home())
        with FileLock(home() / ".first_use.lock"):
            return opened_history(home())

    def model(self, name: str | None) -> ModelSpec:
        """The listed model of that name, the first one where none is named; ValueError where it is not listed."""
        models = self.resources["model_list"]
        listed = [models.find(name)] if name else models.read()
        if not listed:
            raise CommandError(f"{models.path} lists no model; its comments show how to add one")
        spec: ModelSpec = listed[0]
        return spec

    def benchmark(self, name: str | None) -> str | None:
        """The name of the listed benchmark, of the first one where none is named; None where the list is empty."""
        benchmarks = self.resources["benchmark_list"]
        spec = benchmarks.find(name) if name else next(iter(benchmarks.read()), None)
        return spec.benchmark if spec else None

    def corpus(self, name: str | None) -> str | None:
        """The same of the listed and enabled corpora."""
        corpora = self.resources["corpus_list"]
        spec = corpora.find(name) if name else next(iter(corpora.read()), None)
        return spec.corpus if spec else None

    def register(self) -> None:
        """Read every settings file, so that a mistake shows before anything is spent, and register what they list."""
        from assets.partitions import register_names

        self.resources["span_list"].read()
        self.resources["references"].listed()
        lists = (self.resources[name] for name in ("model_list", "benchmark_list", "corpus_list"))
        register_names(self.instance, *lists)


def opened_history(folder: Path) -> dg.DagsterInstance:
    """Dagster's instance of a folder, its database created and upgraded. CommandError in words where that fails."""
    try:
        instance = dg.DagsterInstance.get()
        instance.get_runs_count()
        instance.event_log_storage.get_concurrency_keys()
    except Exception as error:  # Dagster, SQLAlchemy, Alembic and YAML each raise their own
        said = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        raise CommandError(
            f"{folder} cannot be used as Dagster's home: {said}. Move it aside and take its dagster.yaml along "
            f"(`git checkout data/dagster_home/dagster.yaml`): only the history of runs is lost, results stay"
        ) from error
    return instance


def home() -> Path:
    """Dagster's home: where the history of runs is kept."""
    return Path(os.environ["DAGSTER_HOME"])


def require_writable(folder: Path) -> None:
    """CommandError, in words, where the history of runs cannot be kept in a folder."""
    if not folder.is_absolute():
        raise CommandError(f"DAGSTER_HOME is {folder}; it must be an absolute path")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CommandError(
            f"{folder} cannot be written ({error.strerror}), and the history of runs is kept there; "
            "DAGSTER_HOME may name another folder"
        ) from None
