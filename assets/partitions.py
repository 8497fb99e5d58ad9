"""Partitions: by model, by benchmark, by corpus and by month; never by release or document.

Keys are safe encodings of the names that users write, so that no name can break storage, the UI's range picker or a
URL; ``name_of`` takes them back.
"""

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

import dagster as dg

from resources.configured import BenchmarkListResource, CorpusListResource, ModelListResource
from strandline.models.keys import model_name, partition_key

models = dg.DynamicPartitionsDefinition(name="models")
benchmarks = dg.DynamicPartitionsDefinition(name="benchmarks")
corpora = dg.DynamicPartitionsDefinition(name="corpora")
months = dg.MonthlyPartitionsDefinition(start_date="2010-01-01", end_offset=1)
model_by_benchmark = dg.MultiPartitionsDefinition({"model": models, "benchmark": benchmarks})

# The tables that are partitioned by month.
BY_MONTH = frozenset({"spans.months", "spans.revisions", "spans.texts"})
ADDING_ATTEMPTS = 10
"""Tries at adding partitions beside other processes: each loses only to one that has added some, so few are needed."""

# The column that holds the partition, by the name of the partitions.
COLUMN = {"models": "model", "benchmarks": "benchmark", "corpora": "corpus"}


def key_for(name: str) -> str:
    """The partition key of a model, benchmark or corpus name."""
    return partition_key(name)


def name_of(key: str) -> str:
    """The name behind a partition key."""
    return model_name(key)


def names_by_partitions(
    model_list: ModelListResource, benchmark_list: BenchmarkListResource, corpus_list: CorpusListResource
) -> list[tuple[dg.DynamicPartitionsDefinition, list[str]]]:
    """Every name that the settings files list, by the partitions that it belongs to."""
    return [
        (models, [spec.name for spec in model_list.read()]),
        (benchmarks, [spec.benchmark for spec in benchmark_list.read()]),
        (corpora, [spec.corpus for spec in corpus_list.read()]),
    ]


def missing(
    instance: dg.DagsterInstance, definition: dg.DynamicPartitionsDefinition, names: Iterable[str]
) -> list[str]:
    """The partition keys that those names should have and that do not exist yet, in the order of the names."""
    assert definition.name
    known = set(instance.get_dynamic_partitions(definition.name))
    return [key for key in dict.fromkeys(key_for(name) for name in names) if key not in known]


def add(instance: dg.DagsterInstance, definition: dg.DynamicPartitionsDefinition, names: Iterable[str]) -> list[str]:
    """Add partitions for those names that have none, in one call; returns the keys that are new.

    Where another process adds the same ones meanwhile, those that are still missing are asked for again.
    """
    assert definition.name
    wanted = list(names)
    for attempt in range(ADDING_ATTEMPTS):
        new = missing(instance, definition, wanted)
        if not new:
            return []
        try:
            instance.add_dynamic_partitions(definition.name, new)
        except Exception as error:
            if "UNIQUE" not in str(error).upper() or attempt == ADDING_ATTEMPTS - 1:
                raise
        else:
            return new
    return []


def months_of(tags: Mapping[str, str]) -> list[date] | None:
    """The months of a run for some of them, from its tags; None for a run without a partition or of another kind."""
    ends = [tags.get(f"dagster/asset_partition_range_{end}") for end in ("start", "end")]
    first, last = (end or tags.get("dagster/partition") for end in ends)
    if not first or not last or not all(months.has_partition_key(key) for key in (first, last)):
        return None
    return [date.fromisoformat(key) for key in months.get_partition_keys_in_range(dg.PartitionKeyRange(first, last))]


def register_names(
    instance: dg.DagsterInstance,
    model_list: ModelListResource,
    benchmark_list: BenchmarkListResource,
    corpus_list: CorpusListResource,
) -> list[str]:
    """Add the partitions of every listed name; returns the keys that are new."""
    named = names_by_partitions(model_list, benchmark_list, corpus_list)
    return [key for definition, names in named for key in add(instance, definition, names)]


def rows_of(definition: dg.PartitionsDefinition | None, key: str | None) -> dict[str, Any]:
    """The columns and values that select the rows of one partition; empty where the table is not partitioned.

    A month partition selects by ``month``, a dynamic one by the column that ``COLUMN`` names, a combination by both.
    """
    if definition is None or key is None:
        return {}
    if isinstance(definition, dg.MultiPartitionsDefinition):
        values = definition.get_partition_key_from_str(key).keys_by_dimension
        dimensions = {dimension.name: dimension.partitions_def for dimension in definition.partitions_defs}
        return {c: v for name, one in dimensions.items() for c, v in rows_of(one, values[name]).items()}
    if isinstance(definition, dg.TimeWindowPartitionsDefinition):
        return {"month": date.fromisoformat(key[:10])}
    if isinstance(definition, dg.DynamicPartitionsDefinition) and definition.name:
        return {COLUMN.get(definition.name, definition.name): name_of(key)}
    raise TypeError(f"no column is known for partitions of kind {type(definition).__name__}")
