"""A small house to test contamination in: a warehouse, listed benchmarks, one model, and a scripted scorer."""

import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np

from assets.asset_checks import checks
from assets.contamination import check_order, fetch_benchmark, judge_orders, score_orders
from assets.partitions import add, benchmarks, key_for, models
from assets.suites.contamination import SUITES
from resources.configured import (
    BenchmarkListResource,
    ComputeResource,
    ContaminationResource,
    ModelListResource,
    NetworkResource,
    WarehouseResource,
)
from strandline.contamination.benchmarks import COLUMNS

MODEL = "org/tiny:1"
HERE = 'backend: transformers, source: "folder:x", ask: likelihood'
WORDS = ["river", "copper", "lantern", "quilt", "harbour", "maple", "engine", "violin", "glacier", "saddle"]


def invented(n: int, seed: int = 0) -> list[str]:
    """Sentences of words drawn at random: an exchangeable order."""
    rng = np.random.default_rng(seed)
    return [" ".join(f"{WORDS[i]}{j}" for i, j in zip(rng.integers(0, 10, 6), rng.integers(0, 99, 6), strict=True))
            for _ in range(n)]  # fmt: skip


class Scripted:
    """Opens the same scorer for every model and counts how often."""

    def __init__(self, scorer: Any) -> None:
        self.scorer, self.opened = scorer, 0

    @contextmanager
    def open(self, *_: Any) -> Iterator[Any]:
        """The scorer, whatever the model."""
        self.opened += 1
        yield self.scorer


class House:
    """Benchmarks by name, read from files; ``test`` materializes one of them from file to verdict."""

    def __init__(self, folder: Path, files: dict[str, Sequence[str]], **settings: Any) -> None:
        self.folder, self.settings = folder, settings
        self.list_models(HERE)
        self.instance = dg.DagsterInstance.ephemeral()
        add(self.instance, models, [MODEL])
        self.warehouse = WarehouseResource(
            path=str(folder / "w.duckdb"), published=str(folder / "p.duckdb"), reports=str(folder / "reports")
        )
        self.store = self.warehouse.open()
        self.list_benchmarks(files)

    def list_models(self, entry: str) -> None:
        """List the one model; ``entry`` says where it is."""
        text = f'models:\n  - {{name: "{MODEL}", {entry}}}\n'
        (self.folder / "models.yaml").write_text(text, encoding="utf-8")

    def list_benchmarks(self, files: dict[str, Sequence[str]], **more: str) -> None:
        """Write the files and their list; ``more`` replaces columns of every line."""
        rows = []
        for name, texts in files.items():
            path = self.folder / f"{name}.jsonl"
            path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
            line = {"benchmark": name, "version": "1", "address": str(path), "format": "jsonl", "text": "text"}
            rows.append(dict.fromkeys(COLUMNS, "") | line | more)
        with (self.folder / "benchmarks.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
        add(self.instance, benchmarks, list(files))

    @property
    def listed(self) -> BenchmarkListResource:
        """The list of benchmarks as it stands."""
        return BenchmarkListResource(path=str(self.folder / "benchmarks.csv"))

    def resources(self, scoring: Any, **changed: Any) -> dict[str, Any]:
        """What the assets ask for."""
        real = isinstance(scoring, dg.ConfigurableResource)
        scripted = scoring if real else dg.ResourceDefinition.hardcoded_resource(scoring)
        return {
            "warehouse": self.warehouse,
            "network": NetworkResource(cache_dir=str(self.folder / "cache")),
            "benchmark_list": self.listed,
            "model_list": ModelListResource(path=str(self.folder / "models.yaml")),
            "contamination": ContaminationResource(**(self.settings | changed)),
            "compute": ComputeResource(workers=1),
            "order_scoring": scripted,
        }

    def read(self, name: str, *, checked: bool = False, **changed: Any) -> dg.ExecuteInProcessResult:
        """Read a benchmark and check its order."""
        return self._materialize([fetch_benchmark, check_order], key_for(name), None, checked, changed)

    def score(self, name: str, scoring: Any, *, checked: bool = False, **changed: Any) -> dg.ExecuteInProcessResult:
        """Score the orderings of a benchmark that was read, and judge them."""
        return self._materialize([score_orders, judge_orders], self._key(name), scoring, checked, changed)

    def judge(self, name: str, **changed: Any) -> dg.ExecuteInProcessResult:
        """Judge what has been scored, and score nothing."""
        return self._materialize([judge_orders], self._key(name), None, False, changed)

    def test(self, name: str, scoring: Any, **changed: Any) -> dict[str, Any]:
        """From file to verdict; the verdict's row."""
        assert self.read(name, **changed).success
        assert self.score(name, scoring, **changed).success
        return self.verdict(name)

    def verdict(self, name: str) -> dict[str, Any]:
        """The row of contamination.tests that is the verdict."""
        [row] = self.rows(f"select * from contamination.tests where is_verdict and benchmark = '{name}'")
        return row

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The rows of one query."""
        return self.store.query(sql).to_dicts()

    def _key(self, name: str) -> dg.MultiPartitionKey:
        return dg.MultiPartitionKey({"model": key_for(MODEL), "benchmark": key_for(name)})

    def _materialize(
        self, assets: Sequence[Any], key: Any, scoring: Any, checked: bool, changed: dict[str, Any]
    ) -> dg.ExecuteInProcessResult:
        return dg.materialize(
            [*assets, *(checks(assets, SUITES) if checked else [])],
            partition_key=key,
            instance=self.instance,
            resources=self.resources(scoring, **changed),
            raise_on_error=False,
        )
