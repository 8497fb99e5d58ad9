"""Jobs: which assets are materialized together. When they run is said in ``schedules`` and ``sensors``."""

import dagster as dg
from dagster import AssetSelection as Select

from assets import corpus_exhibits
from assets.tables import key_of

# The tables that reading the resources writes.
SPAN_TABLES = [key_of(f"spans.{name}") for name in ("resources", "months", "revisions", "texts")]
# The tables that need no model: the benchmark as read, and the check of its order.
BENCHMARK_TABLES = [key_of("contamination.benchmarks"), key_of("contamination.order_checks")]
# The keys of the corpora's exhibits.
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
check_spans = dg.define_asset_job(
    "check_spans",
    selection=Select.checks_for_assets(*SPAN_TABLES),
    description="Judge the stored documents, where a run could not complete some months and the others stand.",
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


# What the code location collects from this module.
JOBS = [
    describe_models,
    refresh_releases,
    date_models,
    read_spans,
    check_spans,
    score_models,
    read_benchmarks,
    test_contamination,
    mine_corpora,
    draw_exhibits,
    calibrate,
]
