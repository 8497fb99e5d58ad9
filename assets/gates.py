"""Gates across runs: which tables a run must not be built from, because a blocking check of theirs has not passed.

Inside one run Dagster itself stops what is downstream of a failed blocking check. Here is what holds between runs: the
condition under which tables follow by themselves, and the list that the command line and the sensors ask before they
launch a job.
"""

from collections.abc import Iterator

import dagster as dg

from assets.partitions import name_of

NEVER_MISSED = dg.AssetSelection.groups("spans", "sources")
"""Span months, as a resource need not exist in every month that has a partition, and what others make."""

FOLLOW = (
    dg.AutomationCondition.eager()
    .replace("any_deps_missing", dg.AutomationCondition.any_deps_missing().ignore(NEVER_MISSED))
    .with_label("something that it is made from is new")
    & dg.AutomationCondition.all_deps_blocking_checks_passed()
).with_label("follows what it is made from, once its gates have passed")
"""Rebuilt when what it is made from has changed and every blocking check of that has passed. Missing span months
and sources are ignored."""


def held_back(
    instance: dg.DagsterInstance, repository: dg.RepositoryDefinition, job: str, partition: str | None = None
) -> list[str]:
    """Why a job must not run now: one sentence for each table that it reads whose blocking check has not passed.

    A table that was materialized and whose check failed, was interrupted or never ran on the newest rows holds the job
    back. A table that was never materialized does not: its readers say themselves what they lack. Only tables that the
    job does not make itself are asked about.

    Args:
        instance: where the history of runs is kept.
        repository: the code location.
        job: the name of one of its jobs.
        partition: the partition that is to run; only the rows that this partition reads are asked about.
    """
    graph = repository.asset_graph
    running = repository.get_job(job)
    made = running.asset_layer.selected_asset_keys
    read = {parent for key in made for parent in graph.get(key).parent_keys} - set(made)
    return [
        reason
        for table in sorted(read, key=lambda key: tuple(key.path))
        for check in sorted(graph.get(table).check_keys)
        if graph.get(check).blocking
        for rows in _rows_read(instance, table, graph.get(check).partitions_def, running.partitions_def, partition)
        for reason in _unmet(instance, check, rows)
    ]


def _rows_read(
    instance: dg.DagsterInstance,
    table: dg.AssetKey,
    judged_by: dg.PartitionsDefinition | None,
    runs_by: dg.PartitionsDefinition | None,
    partition: str | None,
) -> list[str | None]:
    """The partitions of a table that a run reads, None for a table that is judged as a whole.

    A run reads the partition of its own name, the one of its own dimension where it runs by model and benchmark, and
    otherwise every partition that there is.
    """
    if judged_by is None:
        return [None]
    if partition is not None and judged_by == runs_by:
        return [partition]
    if partition is not None and isinstance(runs_by, dg.MultiPartitionsDefinition):
        keys = runs_by.get_partition_key_from_str(partition).keys_by_dimension
        named = [keys[each.name] for each in runs_by.partitions_defs if each.partitions_def == judged_by]
        if named:
            return [*named]
    return [*sorted(instance.get_materialized_partitions(table))]


def _unmet(instance: dg.DagsterInstance, check: dg.AssetCheckKey, partition: str | None) -> Iterator[str]:
    """Why the newest rows of a partition have not passed this check; nothing where they have, or where there are none.

    A check that ran in the run that wrote the rows counts as being of those rows.
    """
    partitions = [partition] if partition else None
    written = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=check.asset_key, asset_partitions=partitions), limit=1
    ).records
    if not written:
        return
    rows = ".".join(check.asset_key.path) + (f" ({name_of(partition)})" if partition else "")
    latest = next(
        (
            info
            for info in instance.event_log_storage.get_asset_check_partition_info([check], partition_keys=partitions)
            if info.partition_key == partition
        ),
        None,
    )
    if latest is None or not (latest.is_current or latest.latest_planned_run_id == written[0].run_id):
        yield f"{rows} was not checked by {check.name} since it was last written"
    elif latest.latest_execution_status.value != "SUCCEEDED":
        yield f"{rows} has not passed its check {check.name}"
