"""Dagster's view of the adapters: configuration in, plain objects out.

Nothing is opened, created or fetched before a step asks for it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from resources.compute.ray_cluster import RayCompute
from resources.compute.tasks import Compute, LocalCompute
from resources.contamination.benchmark_files import load_benchmark
from resources.contamination.order_scoring import OrderScorer
from resources.contamination.scorers import scorer_of
from resources.endpoints.exchange import Patience
from resources.models.weights import LanguageModels
from resources.network.download_cache import DownloadCache
from resources.network.http import Http, Limits
from resources.perplexity.reference_scores import Encoder, words_encoder
from resources.places import rooted
from resources.probe.asking import Asker, open_asker
from resources.spans.sources import known_kinds
from resources.spans.topic_lists import read_topics
from resources.warehouse.store import Warehouse
from strandline.contamination.benchmarks import Benchmark, BenchmarkSpec, read_specs
from strandline.contamination.order_check import GATE
from strandline.contamination.sequential import DESIGNS
from strandline.contamination.settings import FEWEST_PERMUTATIONS, ContaminationSettings
from strandline.corpus.settings import CorpusSpec, corpora_of
from strandline.models import ModelSpec
from strandline.models.spec import read_models
from strandline.perplexity.settings import ReferenceSetting, read_references
from strandline.spans import Span
from strandline.spans.settings import spans_of
from strandline.yaml_text import read_yaml


class WarehouseResource(dg.ConfigurableResource[Any]):
    """Where results are kept: the warehouse file, the copy that people read, and pictures and reports as files.

    Relative paths start at the project's root.
    """

    path: str = Field(
        default="data/warehouse/strandline.duckdb", description="The DuckDB file that the pipeline writes."
    )
    published: str = Field(default="data/published/strandline.duckdb", description="The copy that people read.")
    reports: str = Field(default="data/reports", description="Folder of pictures and reports.")
    patience_seconds: float = Field(
        default=300.0, description="Seconds to wait for another process that holds the file."
    )

    def open(self) -> Warehouse:
        """The plain warehouse; no connection is opened yet."""
        return Warehouse(rooted(self.path), rooted(self.published), self.patience_seconds)

    def reports_folder(self) -> Path:
        """Where pictures and reports are saved as files."""
        return rooted(self.reports)


class ModelListResource(dg.ConfigurableResource[Any]):
    """The models that a user lists in ``data/models.yaml``."""

    path: str = Field(default="data/models.yaml", description="The listed models.")

    def read(self) -> list[ModelSpec]:
        """The listed models; ValueError names every faulty entry."""
        return read_models(rooted(self.path))

    def find(self, name: str) -> ModelSpec:
        """The listed model of that name; ValueError where it is not listed."""
        listed = {spec.name: spec for spec in self.read()}
        if name not in listed:
            names = ", ".join(listed) or "none"
            raise ValueError(
                f"{self.path} does not list a model named {name!r}; it lists {names}. A model that was renamed runs "
                "under its new name; what is stored under the old one stays"
            )
        return listed[name]


class NetworkResource(dg.ConfigurableResource[Any]):
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


class AskingResource(dg.ConfigurableResource[Any]):
    """How models are asked: the patience with an endpoint. `open` gives the asker of a listed model; close it."""

    attempts: int = Field(default=6, ge=1, description="Attempts at one exchange before it is given up.")
    first_wait: float = Field(default=1.0, ge=0, description="Seconds before the second attempt; doubled each time.")
    longest_wait: float = Field(default=600.0, ge=0, description="Longest single wait, in seconds, that is granted.")
    timeout: float = Field(default=300.0, gt=0, description="Seconds without a byte before an attempt is given up.")

    loading: float = Field(default=900.0, ge=0, description="Seconds granted besides to a server that loads a model.")

    def open(self, spec: ModelSpec, negotiated: Mapping[str, Any] | None = None) -> Asker:
        """The asker of that model; its key is read from the environment here and kept nowhere else.

        ``negotiated`` are the parameters that the run's last round was asked with.
        """
        patience = Patience(self.attempts, self.first_wait, self.longest_wait, self.timeout, self.loading)
        return open_asker(spec, patience, negotiated)


class SpanListResource(dg.ConfigurableResource[Any]):
    """The resources listed in a settings file; those that are not enabled are left out."""

    path: str = Field(default="data/spans.yaml", description="The listed versioned resources.")

    def read(self, now: datetime | None = None) -> tuple[Span, ...]:
        """The enabled resources. ValueError names the file, the resource and the setting that is wrong."""
        file = rooted(self.path)
        try:
            raw = read_yaml(file.read_text(encoding="utf-8"))
            return spans_of(raw, known_kinds(), read_topics, now or datetime.now(UTC))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self.path}: {error}") from error


class BenchmarkListResource(dg.ConfigurableResource[Any]):
    """The benchmarks that a user lists in ``data/benchmarks.csv``; one line adds a file."""

    path: str = Field(default="data/benchmarks.csv", description="The listed benchmarks.")

    def read(self) -> list[BenchmarkSpec]:
        """The listed benchmarks; ValueError names every faulty line, or says why the list cannot be opened."""
        try:
            text = rooted(self.path).read_text(encoding="utf-8")
        except OSError as error:
            raise ValueError(f"the list of benchmarks {self.path} cannot be opened: {error.strerror}") from error
        return read_specs(text)

    def find(self, name: str) -> BenchmarkSpec:
        """The listed benchmark of that name; ValueError where it is not listed."""
        listed = {spec.benchmark: spec for spec in self.read()}
        if name not in listed:
            names = ", ".join(listed) or "none"
            raise ValueError(f"{self.path} does not list a benchmark named {name!r}; it lists {names}")
        return listed[name]

    def load(self, spec: BenchmarkSpec, network: NetworkResource) -> Benchmark:
        """The examples of a listed benchmark: from its file, or fetched once. Errors as ``load_benchmark``."""
        with network.open() as http:
            return load_benchmark(spec, http, DownloadCache(rooted(network.cache_dir) / "benchmarks"))


class CorpusListResource(dg.ConfigurableResource[Any]):
    """The corpora listed in a settings file; those that are not enabled are left out."""

    path: str = Field(default="data/corpora.yaml", description="The listed corpora.")
    cache_dir: str = Field(default="data/cache/corpora", description="Folder of indexes and finished matches.")

    def read(self) -> tuple[CorpusSpec, ...]:
        """The enabled corpora. ValueError names the file, the corpus and the setting that is wrong."""
        file = rooted(self.path)
        try:
            return corpora_of(read_yaml(file.read_text(encoding="utf-8")))
        except ValueError as error:
            raise ValueError(f"{self.path}: {error}") from error

    def find(self, corpus: str) -> CorpusSpec:
        """The listed corpus of that name; ValueError where it is not listed."""
        enabled = {spec.corpus: spec for spec in self.read()}
        if corpus not in enabled:
            names = ", ".join(enabled) or "none"
            raise ValueError(f"{self.path} has no corpus named {corpus!r} that is enabled; enabled are {names}")
        return enabled[corpus]

    def cache(self) -> Path:
        """Where indexes and finished matches are kept."""
        return rooted(self.cache_dir)


class OrderScoringResource(dg.ConfigurableResource[Any]):
    """How orderings are scored; ``open`` gives the scorer of a listed model and lets go of the model at the end."""

    dtype: str | None = Field(
        default=None, description="float32, bfloat16, float16, auto. None: the model's own entry."
    )

    @contextmanager
    def open(self, spec: ModelSpec, compute: Compute) -> Iterator[OrderScorer]:
        """The scorer of that model; nothing is loaded before something is missing."""
        try:
            yield scorer_of(spec, compute, self.dtype)
        finally:
            LanguageModels().release()


class ComputeResource(dg.ConfigurableResource[Any]):
    """Where scoring runs: threads of the step's process, or actors of a Ray cluster. The numbers are the same."""

    backend: str = Field(default="local", description="local, or ray.")
    workers: int | None = Field(default=None, ge=1, description="Threads, or actors. None: as many as there are cores.")
    address: str = Field(default="auto", description="The Ray cluster; auto is the one this machine belongs to.")
    cpus_per_worker: float = Field(default=1, gt=0, description="Cores of a Ray actor.")
    gpus_per_worker: float = Field(default=0, ge=0, description="Accelerators of a Ray actor, or a fraction of one.")

    def open(self) -> Compute:
        """The plain adapter; nothing is started before it is given work. ValueError for an unknown backend."""
        if self.backend == "local":
            return LocalCompute(self.workers)
        if self.backend == "ray":
            return RayCompute(self.address, workers=self.workers, cpus=self.cpus_per_worker, gpus=self.gpus_per_worker)
        raise ValueError(f"the compute backend is local or ray, not {self.backend!r}")


class ReferenceResource(dg.ConfigurableResource[Any]):
    """The references of ``data/references.yaml`` and the tokenizers of the n-gram reference."""

    path: str = Field(default="data/references.yaml", description="The listed references.")

    def listed(self) -> list[ReferenceSetting]:
        """The listed references in order of preference; ValueError names a faulty entry."""
        return read_references(rooted(self.path))

    def encoder(self, spec: ModelSpec) -> Encoder:
        """How the model reads a text: its own tokens, or words where an endpoint keeps its tokenizer to itself."""
        if spec.backend != "transformers":
            return words_encoder()
        from resources.perplexity.tokenizers import tokenizer_encoder

        return tokenizer_encoder(spec)


class ContaminationResource(dg.ConfigurableResource[Any]):
    """Level, design and budget of the tests. They are fixed before scoring; changing them means another test."""

    alpha: str = Field(default="0.05", description="Level of the verdict, as a decimal or a fraction.")
    gate: str = Field(default=GATE, description="Level at which the order check blocks a verdict.")
    design: str = Field(
        default="",
        description=f"One of {', '.join(DESIGNS)}. Empty: looks after 2, 5 and 19 orders; with 2 or 3 shards the last "
        "look is at 59 or 29.",
    )
    group: str = Field(default="all", description="Which orders count as equally natural: all, or window:w.")
    token_budget: int = Field(
        default=400_000,
        ge=1,
        description="Tokens that a verdict on a clean model may be expected to take; fewer shards are tested where the "
        "whole benchmark would take more.",
    )
    examples_per_shard: int | None = Field(default=None, description="Examples in a shard. None: up to 25.")
    order_permutations: int = Field(
        default=499, ge=FEWEST_PERMUTATIONS, description="Shuffled orders of the order check."
    )
    run_seed: int = Field(default=0, description="Another seed draws other permutations.")

    def open(self) -> ContaminationSettings:
        """The plain settings, after ValueError for one that makes no sense."""
        return ContaminationSettings(**self.model_dump())


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
