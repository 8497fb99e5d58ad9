"""Sensors: what runs because something was seen.

Everything that asks, fetches or computes is off until a user switches it on. Running from the start are the sensor that
publishes a readers' copy when a run ends and the one that registers the names in the settings files.
"""

import dagster as dg

from assets.gates import held_back
from assets.jobs import date_models
from assets.partitions import missing, models, names_by_partitions
from resources.configured import BenchmarkListResource, CorpusListResource, ModelListResource, WarehouseResource
from strandline.models import ModelSpec
from strandline.models.changes import ModelRun, changes, run_key

RUN_KEY_TAG = "dagster/run_key"
"""Dagster's tag for the key under which a sensor asked for a run."""

ENTRY_TAG = "strandline/model_entry"
"""The same key on runs that the command line launched, so that the sensor does not date such a model again."""

ATTEMPTS = 2
"""Runs that an unchanged entry may have: one that failed is tried once more, as most failures are an endpoint's."""


@dg.sensor(
    job=date_models,
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Notices a model that is new or changed in data/models.yaml, gives it a partition and dates it, once.",
)
def new_models(context: dg.SensorEvaluationContext, model_list: ModelListResource) -> dg.SensorResult:
    """One run for each listed model and digest; a failed run is asked for once more.

    A model whose run is held back by a gate gets its partition and waits.
    """
    try:
        listed = model_list.read()
    except (OSError, ValueError) as error:
        return dg.SensorResult(skip_reason=f"data/models.yaml cannot be read: {error}")
    known = context.instance.get_dynamic_partitions("models")
    seen = changes(listed, known, _past_runs(context.instance), max_attempts=ATTEMPTS)
    held = {run.run_key: _gates(context, run) for run in seen.to_run}
    asked = [_request(run) for run in seen.to_run if not held[run.run_key]]
    waiting = "; ".join(f"{run.model}: {why[0]}" for run in seen.to_run if (why := held[run.run_key]))
    return dg.SensorResult(
        run_requests=asked,
        skip_reason=None if asked else waiting or seen.reason,
        dynamic_partitions_requests=[models.build_add_request(list(seen.to_register))] if seen.to_register else [],
    )


def entry_tags(spec: ModelSpec) -> dict[str, str]:
    """The tags of a run that dates this entry and that no sensor asked for."""
    return {ENTRY_TAG: run_key(spec)}


def _gates(context: dg.SensorEvaluationContext, run: ModelRun) -> list[str]:
    """Why the run has to wait for a check."""
    if context.repository_def is None:
        return []
    return held_back(context.instance, context.repository_def, date_models.name, run.partition_key)


def _past_runs(instance: dg.DagsterInstance) -> dict[str, str]:
    """Key of the entry to status of every run of the job, whoever launched it; one that went well stays so."""
    statuses: dict[str, str] = {}
    for run in reversed(instance.get_runs(dg.RunsFilter(job_name=date_models.name))):
        key = run.tags.get(RUN_KEY_TAG) or run.tags.get(ENTRY_TAG)
        if key and statuses.get(key) != dg.DagsterRunStatus.SUCCESS.value:
            statuses[key] = run.status.value
    return statuses


def _request(run: ModelRun) -> dg.RunRequest:
    return dg.RunRequest(run_key=run.run_key, partition_key=run.partition_key, tags={"strandline/reason": run.reason})


@dg.sensor(
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Gives every listed model, benchmark and corpus its partition; launches nothing.",
)
def listed_names(
    context: dg.SensorEvaluationContext,
    model_list: ModelListResource,
    benchmark_list: BenchmarkListResource,
    corpus_list: CorpusListResource,
) -> dg.SensorResult:
    """Ask for the partitions of what the settings files list."""
    try:
        named = names_by_partitions(model_list, benchmark_list, corpus_list)
    except (OSError, ValueError) as error:
        return dg.SensorResult(skip_reason=str(error))
    new = {by: missing(context.instance, by, names) for by, names in named}
    keys = [key for missing_keys in new.values() for key in missing_keys]
    return dg.SensorResult(
        skip_reason=f"new partitions: {', '.join(keys)}" if keys else "every listed name has its partition",
        dynamic_partitions_requests=[by.build_add_request(keys) for by, keys in new.items() if keys],
    )


@dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.SUCCESS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=30,
    description="Swaps a fresh copy of the warehouse in for readers when a run has ended.",
)
def publish_after_run(context: dg.RunStatusSensorContext, warehouse: WarehouseResource) -> None:
    """Publish after a successful run."""
    context.log.info(f"published {warehouse.open().publish()}")


# What the code location collects from this module.
SENSORS = [new_models, listed_names, publish_after_run]
