"""Sensors: what runs because something was seen.

Everything that asks, fetches or computes is off until a user switches it on. Running from the start are the sensor that
publishes a readers' copy when a run ends and the one that registers the names in the settings files.
"""

import dagster as dg

from assets.jobs import date_models
from assets.partitions import add, benchmarks, corpora, models
from resources.configured import BenchmarkListResource, CorpusListResource, ModelListResource, WarehouseResource
from strandline.models.changes import ModelRun, changes

RUN_KEY_TAG = "dagster/run_key"
ATTEMPTS = 2


@dg.sensor(
    job=date_models,
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Notices a model that is new or changed in data/models.yaml, gives it a partition and dates it, once.",
)
def new_models(context: dg.SensorEvaluationContext, model_list: ModelListResource) -> dg.SensorResult | dg.SkipReason:
    """One run for each listed model and digest; a failed run is asked for once more."""
    try:
        listed = model_list.read()
    except (OSError, ValueError) as error:
        return dg.SkipReason(f"data/models.yaml cannot be read: {error}")
    known = context.instance.get_dynamic_partitions("models")
    found = changes(listed, known, _past_runs(context.instance), max_attempts=ATTEMPTS)
    if not found.to_run and not found.to_register:
        return dg.SkipReason(found.reason)
    return dg.SensorResult(
        run_requests=[_request(run) for run in found.to_run],
        dynamic_partitions_requests=[models.build_add_request(list(found.to_register))] if found.to_register else [],
    )


def _past_runs(instance: dg.DagsterInstance) -> dict[str, str]:
    """Run key to status of every run of the job; a key whose run went well stays so."""
    runs = instance.get_runs(dg.RunsFilter(job_name=date_models.name))
    return {run.tags[RUN_KEY_TAG]: run.status.value for run in reversed(runs) if RUN_KEY_TAG in run.tags}


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
) -> dg.SkipReason:
    """Register partitions for what the settings files list."""
    try:
        new = register_names(context.instance, model_list, benchmark_list, corpus_list)
    except (OSError, ValueError) as error:
        return dg.SkipReason(str(error))
    return dg.SkipReason(f"new partitions: {', '.join(new)}" if new else "every listed name has its partition")


def register_names(
    instance: dg.DagsterInstance,
    model_list: ModelListResource,
    benchmark_list: BenchmarkListResource,
    corpus_list: CorpusListResource,
) -> list[str]:
    """Add the partitions of the listed models, benchmarks and corpora; returns the keys that are new."""
    return [
        *add(instance, models, [spec.name for spec in model_list.read()]),
        *add(instance, benchmarks, [spec.benchmark for spec in benchmark_list.read()]),
        *add(instance, corpora, [spec.corpus for spec in corpus_list.read()]),
    ]


@dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.SUCCESS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=30,
    description="Swaps a fresh copy of the warehouse in for readers when a run has ended.",
)
def publish_after_run(context: dg.RunStatusSensorContext, warehouse: WarehouseResource) -> None:
    """Publish after a successful run."""
    context.log.info(f"published {warehouse.open().publish()}")


SENSORS = [new_models, listed_names, publish_after_run]
