"""Dagster's view of the adapters: configuration in, plain objects out.

Nothing is opened, created or fetched before a step asks for it.
"""

from pathlib import Path

import dagster as dg

from resources.schema import ROOT
from resources.warehouse import Warehouse


class WarehouseResource(dg.ConfigurableResource):
    """The warehouse file and the copy that people read; relative paths start at the project's root."""

    path: str = "data/warehouse/strandline.duckdb"
    published: str = "data/published/strandline.duckdb"
    patience_seconds: float = 300.0

    def open(self) -> Warehouse:
        """The plain warehouse; no connection is opened yet."""
        return Warehouse(rooted(self.path), rooted(self.published), self.patience_seconds)


def rooted(path: str) -> Path:
    """A path as users write it, relative to the project's root unless absolute."""
    return ROOT / Path(path).expanduser()
