"""How the estimators do on planted truth: single runs as they finish, and their summary.

The planted worlds belong to ``strandline/<noun>/simulation.py``; each gives ``scenarios()`` and ``run_once``. Runs go
to as many processes as there are cores and are stored in batches, so that an interrupted calibration goes on where it
was.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from importlib import import_module
from itertools import islice
from multiprocessing import get_context
from os import cpu_count

import dagster as dg
import polars as pl
from pydantic import Field

from assets.tables import materialized, table_asset
from resources.configured import WarehouseResource
from resources.warehouse.store import Warehouse
from strandline.calibration import Recovery, Scenario, summarise

SIMULATIONS = ("probe", "perplexity", "contamination", "corpus")
"""The families: packages of ``strandline`` with a module ``simulation``."""

BATCH = 20
"""Runs that are stored together: a trade-off between commits and what an interruption loses."""


class CalibrationConfig(dg.Config):
    """Which planted worlds are run.

    ``methods`` names the families; ``only`` keeps the scenarios whose name contains it; ``share`` runs a part of each
    scenario's runs; seeds start at ``first_seed``, so that another one gives fresh worlds.
    """

    methods: list[str] = Field(default=list(SIMULATIONS), description=f"Families to run, of {', '.join(SIMULATIONS)}.")
    only: str = Field(default="", description="Run only scenarios whose name contains this; empty: all.")
    share: float = Field(default=1.0, gt=0, description="Part of each scenario's runs, at least one run.")
    first_seed: int = Field(default=20_261_129, ge=0, description="Seed of the first run; another gives fresh worlds.")
    processes: int = Field(default=0, ge=0, description="Processes to run in; 0: as many as there are cores.")


@table_asset("calibration.runs", kinds={"scipy"})
def simulate_worlds(
    context: dg.AssetExecutionContext, config: CalibrationConfig, warehouse: WarehouseResource
) -> dg.MaterializeResult[None]:
    """Run what is missing; a run is known by estimator, scenario and seed."""
    store = warehouse.open()
    tasks = missing(store, config)
    context.log.info(f"{len(tasks)} runs are missing")
    for done in _in_batches(tasks, config.processes or cpu_count() or 1):
        store.merge("calibration.runs", done)
        context.log.info(f"stored {len(done)} runs")
    return materialized("calibration.runs", new_runs=len(tasks))


@table_asset("calibration.recoveries", deps=["calibration.runs"], follows=True)
def summarise_recoveries(warehouse: WarehouseResource) -> dg.MaterializeResult[None]:
    """Summarise the runs of each estimator and scenario."""
    store = warehouse.open()
    runs = store.query("select * from calibration.runs order by estimator, scenario, seed")
    if runs.is_empty():
        raise dg.Failure("there are no runs yet: materialize calibration.runs first", allow_retries=False)
    rows = [
        _summary(str(estimator), str(scenario), group)
        for (estimator, scenario), group in runs.group_by(["estimator", "scenario"], maintain_order=True)
    ]
    store.replace("calibration.recoveries", rows)
    return materialized("calibration.recoveries", scenarios=len(rows))


def selected_families(methods: Sequence[str], only: str = "") -> list[str]:
    """The families to run, all where none is named; ValueError where one is unknown or no scenario is named so."""
    if unknown := sorted(set(methods) - set(SIMULATIONS)):
        raise ValueError(f"there is no method {unknown[0]!r}; there are {', '.join(SIMULATIONS)}")
    families = list(methods or SIMULATIONS)
    names = [f"{each.estimator}/{each.name}" for family in families for each in scenarios(family)]
    if not any(only in name for name in names):
        raise ValueError(f"no scenario has {only!r} in its name; there are {', '.join(names)}")
    return families


def scenarios(method: str) -> Sequence[Scenario]:
    """The planted worlds of a family."""
    worlds: Sequence[Scenario] = import_module(f"strandline.{method}.simulation").scenarios()
    return worlds


def missing(store: Warehouse, config: CalibrationConfig) -> list[tuple[str, Scenario, int]]:
    """The runs that the configuration asks for and the warehouse does not hold."""
    known = set(store.query("select estimator, scenario, seed from calibration.runs").iter_rows())
    return [
        (method, scenario, seed)
        for method in config.methods
        for scenario in scenarios(method)
        if config.only in f"{scenario.estimator}/{scenario.name}"
        for seed in range(config.first_seed, config.first_seed + max(1, round(scenario.n_runs * config.share)))
        if (scenario.estimator, scenario.name, seed) not in known
    ]


def simulate(method: str, scenario: Scenario, seed: int) -> dict[str, object]:
    """One run as a row of ``calibration.runs``; importable, so that another process can call it."""
    run = import_module(f"strandline.{method}.simulation").run_once(scenario.estimator, scenario.name, seed)
    return {
        "estimator": scenario.estimator,
        "scenario": scenario.name,
        "seed": seed,
        "has_truth": scenario.has_truth,
        **asdict(run),
    }


def _in_batches(tasks: list[tuple[str, Scenario, int]], processes: int) -> Iterator[list[dict[str, object]]]:
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        results = (future.result() for future in as_completed([pool.submit(simulate, *task) for task in tasks]))
        while batch := list(islice(results, BATCH)):
            yield batch


def _summary(estimator: str, scenario: str, group: pl.DataFrame) -> dict[str, object]:
    names = list(Recovery.__dataclass_fields__)
    runs = [Recovery(**{name: row[name] for name in names}) for row in group.iter_rows(named=True)]
    has_truth = bool(group["has_truth"].all())
    of_findings = summarise(runs, has_truth=has_truth, found_only=True)
    counts = sorted(Counter(run.status for run in runs).items(), key=lambda pair: (-pair[1], pair[0]))
    return {
        "estimator": estimator,
        "scenario": scenario,
        "seed": group["seed"].min(),
        **asdict(summarise(runs, has_truth=has_truth)),
        "coverage80_found": of_findings.coverage80,
        "coverage95_found": of_findings.coverage95,
        "statuses": ", ".join(f"{status} {count}" for status, count in counts),
    }


# What the code location collects from this module.
ASSETS = [simulate_worlds, summarise_recoveries]
