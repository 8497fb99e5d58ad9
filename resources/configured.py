"""Dagster's view of the adapters: configuration in, plain objects out.

Nothing is opened, created or fetched before a step asks for it.
"""

from pathlib import Path

import dagster as dg

from resources.schema import ROOT
from resources.warehouse import Warehouse
from strandline.models import ModelSpec
from strandline.models.spec import read_models


class WarehouseResource(dg.ConfigurableResource):
    """The warehouse file and the copy that people read; relative paths start at the project's root."""

    path: str = "data/warehouse/strandline.duckdb"
    published: str = "data/published/strandline.duckdb"
    patience_seconds: float = 300.0

    def open(self) -> Warehouse:
        """The plain warehouse; no connection is opened yet."""
        return Warehouse(rooted(self.path), rooted(self.published), self.patience_seconds)


class ModelListResource(dg.ConfigurableResource):
    """The models that a user lists in ``data/models.yaml``."""

    path: str = "data/models.yaml"

    def read(self) -> list[ModelSpec]:
        """The listed models; ValueError names every faulty entry."""
        return read_models(rooted(self.path))

    def find(self, name: str) -> ModelSpec:
        """The listed model of that name; ValueError where it is not listed."""
        for spec in self.read():
            if spec.name == name:
                return spec
        raise ValueError(f"{self.path} does not list a model named {name!r}")


def defaults() -> dict[str, object]:
    """The resources of the code location by the name under which assets ask for them."""
    return {"warehouse": WarehouseResource(), "model_list": ModelListResource()}


def rooted(path: str) -> Path:
    """A path as users write it, relative to the project's root unless absolute."""
    return ROOT / Path(path).expanduser()
