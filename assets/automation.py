"""Jobs, schedules and sensors: what runs, and when.

Everything that asks, fetches or computes is off until a user switches it on. Running from the start are the sensor that
publishes a readers' copy when a run ends and the one that registers the names in the settings files.
"""

import dagster as dg
from dagster import AssetSelection as Select

from assets import corpus_exhibits
from assets.partitions import add, benchmarks, corpora, models
from assets.tables import key_of
from resources.benchmark_files import BenchmarkListResource
from resources.configured import ModelListResource, WarehouseResource
from resources.corpora import CorpusListResource
from strandline.models.changes import ModelRun, changes

RUN_KEY_TAG = "dagster/run_key"
ATTEMPTS = 2
BENCHMARK_TABLES = [key_of("contamination.benchmarks"), key_of("contamination.order_checks")]
CORPUS_PICTURES = [key for asset in corpus_exhibits.ASSETS for key in asset.keys]

describe_models = dg.define_asset_job(
    "describe_models",
    selection=Select.groups("models"),
    description="Read data/models.yaml and the committed facts about models.",
)
refresh_releases = dg.define_asset_job(
    "refresh_releases",
    selection=Select.groups("releases"),
    description="Merge what is new in the registries into the release tables and derive the questions anew.",
)
date_models = dg.define_asset_job(
    "date_models",
    selection=Select.groups("probe"),
    description="Ask a model about dated releases and date where its knowledge stops.",
)
read_spans = dg.define_asset_job(
    "read_spans",
    selection=Select.groups("spans"),
    description="Bring every enabled resource of data/spans.yaml up to date, month by month.",
)
score_models = dg.define_asset_job(
    "score_models",
    selection=Select.groups("perplexity"),
    description="Score what a model has not scored yet, and estimate its effective cutoffs.",
)
read_benchmarks = dg.define_asset_job(
    "read_benchmarks",
    selection=Select.assets(*BENCHMARK_TABLES),
    description="Fetch a benchmark and ask whether its published order is as good as any other.",
)
test_contamination = dg.define_asset_job(
    "test_contamination",
    selection=Select.groups("contamination") - Select.assets(*BENCHMARK_TABLES),
    description="Test whether a benchmark leaked into a model's training.",
)
mine_corpora = dg.define_asset_job(
    "mine_corpora",
    selection=Select.groups("corpus"),
    description="Index a corpus, find the versions and copies that it holds, and explain the cutoff by them.",
)
draw_exhibits = dg.define_asset_job(
    "draw_exhibits",
    selection=Select.groups("exhibits") - Select.assets(*CORPUS_PICTURES),
    description="Draw the pictures that compare models.",
)
calibrate = dg.define_asset_job(
    "calibrate",
    selection=Select.groups("calibration"),
    executor_def=dg.in_process_executor,
    description="Run the estimators on planted truth, as far as that is missing.",
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


JOBS = [
    describe_models,
    refresh_releases,
    date_models,
    read_spans,
    score_models,
    read_benchmarks,
    test_contamination,
    mine_corpora,
    draw_exhibits,
    calibrate,
]
SCHEDULES = [daily_refresh]
SENSORS = [new_models, listed_names, publish_after_run]
