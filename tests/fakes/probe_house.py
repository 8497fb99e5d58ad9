"""A small house to probe in: a warehouse with a calendar, one listed model, and Dagster's memory of runs."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl

from assets.asset_checks import checks
from assets.partitions import add, key_for, models
from assets.probe import ASSETS
from assets.suites.probe import SUITES
from resources.configured import ModelListResource, WarehouseResource
from strandline.probe.calendar import Calendar


def item_rows(calendar: Calendar) -> pl.DataFrame:
    """Rows of releases.probe_items for a calendar."""
    return pl.DataFrame(
        [
            {
                "dataset_version": calendar.dataset_version,
                "position": position,
                "released_on": item.released_on,
                "project": item.project,
                "version": item.version,
                "decoy_version": item.decoy_version,
                "decoy_kind": "patch_jump" if item.decoy_version else None,
                "salience_rank": item.salience_rank + 1,
                "prompt": "as asked",
            }
            for position, items in enumerate(calendar.items)
            for item in items
        ]
    )


class House:
    """Asks and dates one model; `entry` is its line in the models file."""

    def __init__(self, folder: Path, calendar: Calendar, model: str, entry: str) -> None:
        self.folder, self.model, self.listed = folder, model, f"models:\n  - {entry}\n"
        (folder / "models.yaml").write_text(self.listed, encoding="utf-8")
        self.instance = dg.DagsterInstance.ephemeral()
        add(self.instance, models, [model])
        self.warehouse = WarehouseResource(
            path=str(folder / "w.duckdb"), published=str(folder / "p.duckdb"), reports=str(folder / "reports")
        )
        self.store = self.warehouse.open()
        self.store.replace("releases.probe_items", item_rows(calendar))

    def date(self, asking: Any, *, checked: bool = False, **config: Any) -> dg.ExecuteInProcessResult:
        """Ask and date the model, with or without the blocking checks; `asking` opens the asker."""
        is_resource = isinstance(asking, dg.ConfigurableResource)
        return dg.materialize(
            [*ASSETS, *(checks(ASSETS, SUITES) if checked else [])],
            partition_key=key_for(self.model),
            instance=self.instance,
            resources={
                "warehouse": self.warehouse,
                "model_list": ModelListResource(path=str(self.folder / "models.yaml")),
                "asking": asking if is_resource else dg.ResourceDefinition.hardcoded_resource(asking),
            },
            run_config={"ops": {ASSETS[0].op.name: {"config": config}}},
            raise_on_error=False,
        )

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The rows of one query."""
        return self.store.query(sql).to_dicts()

    def digests(self, tables: Iterable[str]) -> dict[str, str]:
        """A digest of each probe table."""
        return {name: self.store.digest(f"probe.{name}") for name in tables}
