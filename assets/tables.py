"""Asset decorators whose key, group, description and column schema derive from the DDL.

A table is declared once, in ``sql/schema``; an asset names the table and adds only how it is made.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import wraps
from math import isfinite
from pathlib import Path
from typing import Any

import dagster as dg

from assets import sources
from assets.gates import FOLLOW
from assets.partitions import BY_MONTH, months, rows_of
from resources.warehouse.schema import Table, table
from resources.warehouse.store import Warehouse

OWNER = "team:strandline"
"""Who answers for the tables in the UI; a deployment of its own replaces it by its team."""

NEEDS = {"network": "true", "model": "true", "money": "where-the-endpoint-charges"}
"""What making a table takes: servers of others, a model in memory or at an endpoint, and money for its answers."""

READERS_COPY = "data/published/strandline.duckdb"
"""Where people read the tables, relative to the project's root unless a deployment sets another place."""


def key_of(name: str) -> dg.AssetKey:
    """The asset key of ``schema.table``: the same two words."""
    return dg.AssetKey(name.split("."))


def needs_tag(need: str) -> str:
    """The tag of tables that need this to be made; ``need`` is one of ``NEEDS``."""
    return f"strandline/needs_{need}"


def version_of(step: str, **methods: str) -> str:
    """A code version from the step's own and those of the methods that it calls, so that the UI shows what is stale."""
    return " ".join([step, *(f"{name}={version}" for name, version in methods.items())])


def table_spec(
    name: str,
    *,
    deps: Iterable[str | dg.AssetKey | dg.AssetDep] = (),
    reads: Iterable[str] = (),
    partitions_def: dg.PartitionsDefinition | None = None,
    code_version: str = "1",
    kinds: set[str] | None = None,
    follows: bool = False,
    needs: Iterable[str] = (),
    fresh_for: timedelta | None = None,
    made_by: str = "",
) -> dg.AssetSpec:
    """The specification of a declared table.

    Args:
        name: ``schema.table``.
        deps: tables (by the same kind of name) or asset keys it is made from: those that its step's SQL reads.
        reads: what it is made from that is not a table, by the names in ``assets.sources``.
        partitions_def, kinds: how it is partitioned, and its labels beside ``duckdb``.
        code_version: raise it when the meaning of the rows changes.
        follows: rebuild it automatically whenever what it is made from has changed and has passed its checks.
        needs: what making it takes, of ``NEEDS``; each is a tag by which assets can be selected in the UI.
        fresh_for: how long after it was made the table counts as fresh in the UI; None for tables that do not age.
        made_by: what the step does that makes it, as its docstring says.
    """
    return dg.AssetSpec(
        key=key_of(name),
        deps=_deps(deps, reads, partitions_def),
        description="\n\n".join(part for part in (_sentence(table(name)), made_by) if part),
        group_name=table(name).schema,
        kinds={"duckdb", *(kinds or ())},
        code_version=code_version,
        partitions_def=partitions_def,
        automation_condition=FOLLOW if follows else None,
        freshness_policy=dg.FreshnessPolicy.time_window(fail_window=fresh_for) if fresh_for else None,
        owners=[OWNER],
        tags={needs_tag(need): NEEDS[need] for need in needs},
        metadata=_metadata(name, table(name)),
    )


def _metadata(name: str, declared: Table) -> dict[str, Any]:
    """What the UI shows of a table: its name, its columns and where it lies."""
    return {
        "dagster/table_name": name,
        "dagster/column_schema": column_schema(declared),
        "dagster/uri": f"duckdb:{READERS_COPY}#{name}",
    }


def _deps(
    deps: Iterable[str | dg.AssetKey | dg.AssetDep],
    reads: Iterable[str],
    partitions_def: dg.PartitionsDefinition | None,
) -> list[dg.AssetKey | dg.AssetDep]:
    """What a table is made from, tables first, then sources."""
    return [
        *(_dep(dep, partitions_def) if isinstance(dep, str) else dep for dep in deps),
        *(sources.key(source) for source in reads),
    ]


def table_asset(
    name: str,
    *,
    backfill_policy: dg.BackfillPolicy | None = None,
    pool: str | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    **spec: Any,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Decorate a function that materializes one declared table; see ``table_spec`` for the other arguments."""
    return table_multi_asset([name], backfill_policy=backfill_policy, pool=pool, retry_policy=retry_policy, **spec)


def table_multi_asset(
    names: Sequence[str],
    *,
    backfill_policy: dg.BackfillPolicy | None = None,
    pool: str | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    **spec: Any,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Decorate a function that materializes several declared tables in one step.

    ``pool="model"`` holds the step back while another one has a model in memory.
    """

    def decorate(function: Callable[..., Any]) -> dg.AssetsDefinition:
        made_by = " ".join((function.__doc__ or "").split())
        return dg.multi_asset(
            name=function.__name__,
            specs=[table_spec(name, made_by=made_by, **spec) for name in names],
            backfill_policy=backfill_policy,
            pool=pool,
            retry_policy=retry_policy,
        )(_counted(function, spec.get("partitions_def")))

    return decorate


def _counted(function: Callable[..., Any], partitions_def: dg.PartitionsDefinition | None) -> Callable[..., Any]:
    """The step, whose results also say how many rows the table has, and the partition that was written."""

    @wraps(function)
    def step(*args: Any, **resources: Any) -> Iterator[Any]:
        results = function(*args, **resources)
        key = _written_partition(args)
        for result in [results] if isinstance(results, dg.MaterializeResult) else results or ():
            if isinstance(result, dg.MaterializeResult) and result.asset_key and "warehouse" in resources:
                counts = row_counts(resources["warehouse"].open(), result.asset_key, rows_of(partitions_def, key))
                result = result._replace(metadata={**counts, **(result.metadata or {})})
            yield result

    return step


def row_counts(store: Warehouse, asset: dg.AssetKey, partition: Mapping[str, Any]) -> dict[str, int]:
    """How many rows a table has, and those that a partition selects where there is one, under Dagster's own names."""
    table_name = ".".join(asset.path)
    condition = " and ".join(f"{column} is not distinct from ?" for column in partition) or "true"
    rows, here = store.query(
        f"select count(*), count(*) filter ({condition}) from {table_name}", list(partition.values())
    ).row(0)
    return {"dagster/row_count": rows} | ({"dagster/partition_row_count": here} if partition else {})


def _written_partition(args: Sequence[Any]) -> str | None:
    """The one partition of a step's run; None for a run of several, or of the whole table."""
    context = args[0] if args and isinstance(args[0], dg.AssetExecutionContext) else None
    return context.partition_key if context is not None and context.has_partition_key else None


def column_schema(declared: Table) -> dg.TableSchema:
    """Dagster's view of the declared columns."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                column.name,
                column.type,
                description=column.comment,
                constraints=dg.TableColumnConstraints(nullable=column.nullable),
            )
            for column in declared.columns
        ]
    )


def materialized(name: str, metadata: Mapping[str, Any] | None = None, /, **more: Any) -> dg.MaterializeResult[None]:
    """The result of a step for one table, with metadata that Dagster can store."""
    return dg.MaterializeResult(asset_key=key_of(name), metadata=storable({**(metadata or {}), **more}))


def storable(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata with numpy and polars scalars, dates and paths made plain; unstorable values become text."""
    return {name: _plain(value) for name, value in metadata.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return str(float(value))  # JSON has no NaN and no infinity
    if isinstance(value, (dg.MetadataValue, bool, int, float, str)) and not hasattr(value, "dtype"):
        return value
    if isinstance(value, datetime):
        return dg.MetadataValue.timestamp(value) if value.tzinfo else value.isoformat()
    if isinstance(value, (date, Path)):
        return str(value)
    if hasattr(value, "item") and getattr(value, "shape", ()) == ():
        return _plain(value.item())
    if isinstance(value, Mapping):
        return dg.MetadataValue.json({str(key): _jsonable(item) for key, item in value.items()})
    if isinstance(value, (list, tuple, set)):
        return dg.MetadataValue.json([_jsonable(item) for item in value])
    return str(value)


def _jsonable(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return str(float(value))
    if value is None or (isinstance(value, (bool, int, float, str)) and not hasattr(value, "dtype")):
        return value
    if hasattr(value, "item") and getattr(value, "shape", ()) == ():
        return _jsonable(value.item())
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_jsonable(item) for item in value]
    return str(value)


def _dep(name: str, partitions_def: dg.PartitionsDefinition | None) -> dg.AssetDep:
    """A dependency on a table. What is not itself by month depends on all months of a table that is."""
    every = name in BY_MONTH and partitions_def is not None and partitions_def != months
    return dg.AssetDep(key_of(name), partition_mapping=dg.AllPartitionMapping() if every else None)


def _sentence(declared: Table) -> str:
    return f"One row: {declared.comment}. Key: {', '.join(declared.primary_key)}."
