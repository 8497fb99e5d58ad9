"""Dagster's view of the adapters: configuration in, plain objects out.

Nothing is opened, created or fetched before a step asks for it.
"""

from collections.abc import Mapping
from importlib.metadata import version

import dagster as dg
from pydantic import Field

from resources.asking import Asker, open_asker
from resources.benchmark_files import BenchmarkListResource
from resources.chat import Patience
from resources.compute_settings import ComputeResource
from resources.contamination_settings import ContaminationResource
from resources.corpora import CorpusListResource
from resources.http import Http, Limits
from resources.order_scorers import OrderScoringResource
from resources.places import rooted
from resources.reference_settings import ReferenceResource
from resources.span_settings import SpanListResource
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
        listed = {spec.name: spec for spec in self.read()}
        if name not in listed:
            raise ValueError(
                f"{self.path} does not list a model named {name!r}; it lists {', '.join(listed) or 'none'}"
            )
        return listed[name]


class NetworkResource(dg.ConfigurableResource):
    """How the pipeline reads from servers. `open()` gives the plain adapter; use it as a context, or close it."""

    cache_dir: str = Field(default="data/cache", description="Folder of the HTTP cache and the pacing marks.")
    contact: str = Field(
        default="",
        description="Who runs this, as an e-mail address or URL, sent in the User-Agent. Empty: STRANDLINE_CONTACT.",
    )
    min_interval: float = Field(default=0.2, ge=0, description="Seconds between two requests to one host.")
    attempts: int = Field(default=4, ge=1, description="Attempts at one read before it is given up.")
    read_timeout: float = Field(default=60.0, gt=0, description="Seconds without a byte before a read is repeated.")
    max_wait: float = Field(default=120.0, ge=0, description="Longest single pause, in seconds, that a server may ask.")

    def open(self, authorization: Mapping[str, str] | None = None) -> Http:
        """A plain `Http` with these settings; `authorization` gives a host its header, and is stored nowhere."""
        limits = Limits(read=self.read_timeout, attempts=self.attempts, max_wait=self.max_wait)
        return Http(
            rooted(self.cache_dir),
            contact=self.contact or None,
            version=version("strandline"),
            limits=limits,
            min_interval=self.min_interval,
            authorization=authorization,
        )


class AskingResource(dg.ConfigurableResource):
    """How models are asked: the patience with an endpoint. `open` gives the asker of a listed model; close it."""

    attempts: int = Field(default=6, ge=1, description="Attempts at one exchange before it is given up.")
    first_wait: float = Field(default=1.0, ge=0, description="Seconds before the second attempt; doubled each time.")
    longest_wait: float = Field(default=600.0, ge=0, description="Longest single wait, in seconds, that is granted.")
    timeout: float = Field(default=300.0, gt=0, description="Seconds without a byte before an attempt is given up.")

    def open(self, spec: ModelSpec) -> Asker:
        """The asker of that model; its key is read from the environment here and kept nowhere else."""
        return open_asker(spec, Patience(self.attempts, self.first_wait, self.longest_wait, self.timeout))


def defaults() -> dict[str, object]:
    """The resources of the code location by the name under which assets ask for them."""
    return {
        "warehouse": WarehouseResource(),
        "model_list": ModelListResource(),
        "network": NetworkResource(),
        "span_list": SpanListResource(),
        "asking": AskingResource(),
        "compute": ComputeResource(),
        "benchmark_list": BenchmarkListResource(),
        "contamination": ContaminationResource(),
        "order_scoring": OrderScoringResource(),
        "references": ReferenceResource(),
        "corpus_list": CorpusListResource(),
    }
