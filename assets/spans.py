"""The span tables: which versioned resources there are, and every document as it stood in each month.

Months are partitions. A run without a partition brings all months of all enabled resources up to date; a backfill of
some months fetches those alone, in one run. Either way only months that are not complete cost anything.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import dagster as dg
from pydantic import Field

from assets.partitions import months as month_partitions
from assets.partitions import months_of
from assets.tables import key_of, materialized, table_asset, table_multi_asset, version_of
from resources.configured import NetworkResource, SpanListResource, WarehouseResource
from resources.places import rooted
from resources.releases.registries import configured
from resources.spans.refresh import digest_of, refresh
from resources.spans.sources import source_of
from resources.warehouse.store import Warehouse
from strandline.spans import Span, article, git, readme, wikitext
from strandline.spans.selection import COMPLETE, Month, describe_failures

TABLES = ["spans.months", "spans.revisions", "spans.texts"]
"""What one reading of documents fills."""


READ_WITHIN = timedelta(days=35)
"""Months are read on the second of each month: a longest month and a few days of trouble."""


class SpansConfig(dg.Config):
    """Which of the enabled resources to bring up to date."""

    resources: list[str] = Field(default=[], description="Only these resources; empty: all that are enabled.")


@table_asset("spans.resources", reads=["spans_yaml"], code_version="1")
def list_resources(
    warehouse: WarehouseResource, network: NetworkResource, span_list: SpanListResource
) -> dg.MaterializeResult[None]:
    """The enabled resources of the settings file."""
    store, spans = warehouse.open(), span_list.read()
    with network.open() as http:
        digests = [digest_of(span, source_of(span.source).open(http, rooted(network.cache_dir))) for span in spans]
    store.replace("spans.resources", [_resource_row(*pair) for pair in zip(spans, digests, strict=True)])
    return materialized("spans.resources", resources={span.resource: len(span.months) for span in spans})


@table_multi_asset(
    TABLES,
    reads=["spans_yaml", "documents"],
    needs=["network"],
    fresh_for=READ_WITHIN,
    partitions_def=month_partitions,
    backfill_policy=dg.BackfillPolicy.single_run(),
    code_version=version_of(
        "1", article=article.CLEANER, git=git.CLEANER, readme=readme.CLEANER, wikitext=wikitext.CLEANER
    ),
    kinds={"text"},
)
def fetch_documents(
    context: dg.AssetExecutionContext,
    config: SpansConfig,
    warehouse: WarehouseResource,
    network: NetworkResource,
    span_list: SpanListResource,
) -> Iterator[dg.MaterializeResult[None]]:
    """The documents of the months asked for; a month that cannot be completed is named at the end, the others stand."""
    store, wanted = warehouse.open(), _months_of(context)
    spans = [span for span in span_list.read() if not config.resources or span.resource in config.resources]
    outcomes: dict[str, list[Month]] = {}
    with network.open(configured().authorization) as http:
        for span in spans:
            reader = source_of(span.source).open(http, rooted(network.cache_dir))
            months = span.months if wanted is None else [month for month in span.months if month in wanted]
            outcomes[span.resource] = refresh(store, span, reader, months, datetime.now(UTC))
            context.log.info(f"{span.resource}: {len(outcomes[span.resource])} of {len(months)} months were open")
            for note in {month.note for month in outcomes[span.resource]} - {None}:
                context.log.warning(f"{span.resource}: left out {note}")
        requests = dict(http.counters)
    _settle(context, outcomes, wanted)
    for table in TABLES:
        yield materialized(table, **_table_summary(store, table), requests=requests)


def _months_of(context: dg.AssetExecutionContext) -> set[date] | None:
    """The months of a partitioned run, None where the run is for all of them."""
    if not (context.has_partition_key or context.has_partition_key_range):
        return None
    return {date.fromisoformat(key) for key in context.partition_keys}


def _settle(context: dg.AssetExecutionContext, outcomes: dict[str, list[Month]], wanted: set[date] | None) -> None:
    """Mark finished months as materialized where the run as a whole cannot, and fail naming the unfinished ones."""
    touched = {month.month for months in outcomes.values() for month in months}
    bad = {m.month for months in outcomes.values() for m in months if m.status not in COMPLETE}
    if bad or wanted is None:
        keys = {month.isoformat() for month in (wanted or touched) - bad} & set(month_partitions.get_partition_keys())
        for table in TABLES:
            for key in sorted(keys):
                context.log_event(dg.AssetMaterialization(key_of(table), partition=key))
    if bad:
        named = [f"{name}: {text}" for name, months in outcomes.items() if (text := describe_failures(months))]
        raise dg.Failure(f"{len(bad)} of {len(wanted or touched)} months are not complete: {'; '.join(named)}")


def _table_summary(store: Warehouse, table: str) -> dict[str, object]:
    """What the table holds now, for its metadata."""
    rows = store.query(f"select count(*) as n from {table}").item()
    if table != "spans.revisions":
        return {"rows": rows}
    statuses = store.query("select status, count(*) as n from spans.revisions group by all order by all")
    return {"rows": rows, "statuses": dict(statuses.iter_rows())}


def _resource_row(span: Span, digest: str) -> dict[str, object]:
    return {
        "resource": span.resource,
        "kind": span.kind,
        "source": span.source,
        "max_tokens": span.max_tokens,
        "description": span.description or None,
        "snapshot_day": span.snapshot_day,
        "first_month": span.months[0],
        "last_month": span.months[-1],
        "n_topics": len(span.topics) or None,
        "settings_sha256": digest,
    }


@dg.asset_check(
    asset=key_of("spans.revisions"),
    name="no_contradictions",
    description="Every text that a version names is stored, and no version is younger than its month's instant.",
    blocking=True,
)
def no_contradictions(context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource) -> dg.AssetCheckResult:
    """Judge all rows, or those of the run's months: what no expectation on one column can say."""
    wanted = months_of(context.run.tags)
    contradictions = warehouse.open().query(
        "select * from spans.contradictions where ? or month in ? order by all", [wanted is None, wanted or []]
    )
    rows = [
        f"{row['resource']} {row['topic']} {row['month']}: {row['what']}"
        for row in contradictions.iter_rows(named=True)
    ]
    return dg.AssetCheckResult(
        passed=not rows,
        description=f"{len(rows)} versions contradict: {rows[0]}" if rows else "no version contradicts",
        metadata={"n_contradictions": len(rows), "samples": dg.MetadataValue.json(rows[:10])},
    )


# What the code location collects from this module.
ASSETS = [list_resources, fetch_documents]
# What the code location collects from this module.
CHECKS = [no_contradictions]
