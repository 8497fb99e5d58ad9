"""Jobs, schedules and sensors: what runs, and when.

Everything is off until a user switches it on, except the sensor that publishes a readers' copy when a run ends.
"""

import dagster as dg
from dagster import AssetSelection as Select

from assets.partitions import models
from resources.configured import ModelListResource, WarehouseResource
from strandline.models.changes import ModelRun, changes

RUN_KEY_TAG = "dagster/run_key"
ATTEMPTS = 2

refresh_releases = dg.define_asset_job(
    "refresh_releases",
    selection=Select.groups("releases"),
    description="Merge what is new in the registries into the release tables and derive the questions anew.",
)
describe_models = dg.define_asset_job(
    "describe_models",
    selection=Select.groups("models"),
    description="Read data/models.yaml and the committed facts about models.",
)
date_models = dg.define_asset_job(
    "date_models",
    selection=Select.groups("probe"),
    partitions_def=models,
    description="Ask a model about dated releases and date where its knowledge stops.",
)

daily_refresh = dg.ScheduleDefinition(
    name="daily_refresh_releases",
    job=refresh_releases,
    cron_schedule="17 4 * * *",
    execution_timezone="UTC",
    run_config={"ops": {"releases_sources__releases_releases": {"config": {"refresh": True}}}},
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Every day at 04:17 UTC; two refreshes of one day leave identical tables.",
)


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


@dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.SUCCESS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=30,
    description="Swaps a fresh copy of the warehouse in for readers when a run has ended.",
)
def publish_after_run(context: dg.RunStatusSensorContext, warehouse: WarehouseResource) -> None:
    """Publish after a successful run."""
    context.log.info(f"published {warehouse.open().publish()}")


JOBS = [refresh_releases, describe_models, date_models]
SCHEDULES = [daily_refresh]
SENSORS = [new_models, publish_after_run]
