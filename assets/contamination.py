"""Contamination: benchmarks in their published order, the order check, scored orderings, and the verdict.

Nothing is spent before the plan is in the log. Orderings are rows as they come: a killed run goes on where it was.
"""

from collections.abc import Iterator

import dagster as dg

from assets import pictures
from assets.partitions import benchmarks, model_by_benchmark, name_of
from assets.tables import materialized, table_asset, table_multi_asset, version_of
from resources.configured import (
    BenchmarkListResource,
    ComputeResource,
    ContaminationResource,
    ModelListResource,
    NetworkResource,
    OrderScoringResource,
    WarehouseResource,
)
from resources.contamination.order_scoring import score_design, tokens_of
from resources.contamination.rows import (
    benchmark_fault,
    benchmark_row,
    drawn_from,
    order_check_p,
    order_check_rows,
    plan_of,
    scores_in,
    shard_rows,
    stored_scores,
    verdict_rows,
    verdict_writes,
)
from resources.network.http import FetchError
from strandline.contamination.figures import published_among_shuffled
from strandline.contamination.levels import as_level
from strandline.contamination.order_batches import Tokens
from strandline.contamination.order_check import ORDER_CHECK_VERSION
from strandline.contamination.orderings import PermutationGroup
from strandline.contamination.statuses import ORDER_NOT_EXCHANGEABLE
from strandline.contamination.verdict import VERDICT_VERSION, judge
from strandline.scoring.engine import SCORER_VERSION


@table_asset(
    "contamination.benchmarks",
    reads=["benchmarks_csv", "benchmark_files"],
    needs=["network"],
    partitions_def=benchmarks,
    code_version="1",
)
def fetch_benchmark(
    context: dg.AssetExecutionContext,
    warehouse: WarehouseResource,
    network: NetworkResource,
    benchmark_list: BenchmarkListResource,
) -> dg.MaterializeResult[None]:
    """Fetch a benchmark's file and count its examples; one that cannot be had is a row that says why."""
    spec = benchmark_list.find(name_of(context.partition_key))
    benchmark, reason = None, None
    try:
        benchmark = benchmark_list.load(spec, network)
    except (ValueError, FetchError) as error:
        reason = str(error)
    row = benchmark_row(spec, benchmark, reason)
    warehouse.open().replace("contamination.benchmarks", [row], {"benchmark": spec.benchmark})
    return materialized("contamination.benchmarks", row)


@table_asset(
    "contamination.order_checks",
    deps=["contamination.benchmarks"],
    reads=["benchmarks_csv", "benchmark_files"],
    partitions_def=benchmarks,
    code_version=version_of("1", check=ORDER_CHECK_VERSION),
)
def check_order(
    context: dg.AssetExecutionContext,
    warehouse: WarehouseResource,
    network: NetworkResource,
    benchmark_list: BenchmarkListResource,
    contamination: ContaminationResource,
) -> dg.MaterializeResult[None]:
    """Ask, without any model, whether the published order is as good as any other."""
    settings, name = contamination.open(), name_of(context.partition_key)
    if fault := benchmark_fault(warehouse.open(), name):
        raise ValueError(f"{name} could not be read ({fault}); once it can, run read_benchmarks again")
    benchmark = benchmark_list.load(benchmark_list.find(name), network)
    groups = list(dict.fromkeys([PermutationGroup(), PermutationGroup.parse(settings.group)]))
    rows = order_check_rows(benchmark, settings.shards(benchmark), groups, settings.order_permutations, settings.gate)
    warehouse.open().replace("contamination.order_checks", rows, {"benchmark": benchmark.spec.benchmark})
    combined = {row["check_name"]: row["p_value"] for row in rows if row["check_name"].endswith("combined")}
    return materialized("contamination.order_checks", p_values=combined, failed=_failed(rows))


@table_asset(
    "contamination.order_logliks",
    deps=["contamination.order_checks"],
    reads=["benchmarks_csv", "benchmark_files", "models_yaml", "models"],
    needs=["model", "money"],
    partitions_def=model_by_benchmark,
    code_version=version_of("1", scorer=SCORER_VERSION),
    pool="model",
)
def score_orders(
    context: dg.AssetExecutionContext,
    warehouse: WarehouseResource,
    network: NetworkResource,
    benchmark_list: BenchmarkListResource,
    model_list: ModelListResource,
    contamination: ContaminationResource,
    compute: ComputeResource,
    order_scoring: OrderScoringResource,
) -> dg.MaterializeResult[None]:
    """Score orderings look by look until the design has decided; the plan is told before."""
    settings, (model, name) = contamination.open(), _names(context)
    benchmark = benchmark_list.load(benchmark_list.find(name), network)
    with order_scoring.open(model_list.find(model), compute.open()) as scorer:
        job = settings.job(model, benchmark, weights=scorer.weights, dtype=scorer.dtype)
        order_p = order_check_p(warehouse.open(), name, str(job.group), job.order_digest)
        if order_p is None or order_p <= float(as_level(settings.gate)):
            context.log.warning(f"{name} has not passed the order check: what is scored can give no verdict")

        def tokens() -> Tokens:
            made = tokens_of(job, benchmark.texts, scorer)
            context.log.info(f"{model} on {name}\n{settings.planned(job, made).text()}")
            return made

        design = settings.look_design(len(job.shards))
        n_scored = score_design(job, tokens, scorer, warehouse.open(), design, settings.alpha, context.log.info)
    return materialized("contamination.order_logliks", scored_now=n_scored, shards=len(job.shards), dtype=scorer.dtype)


@table_multi_asset(
    ["contamination.shard_tests", "contamination.tests"],
    deps=["contamination.order_logliks", "contamination.order_checks"],
    partitions_def=model_by_benchmark,
    code_version=version_of("1", verdict=VERDICT_VERSION),
)
def judge_orders(
    context: dg.AssetExecutionContext, warehouse: WarehouseResource, contamination: ContaminationResource
) -> Iterator[dg.MaterializeResult[None]]:
    """Judge what has been scored, behind the order check; q-values are over all verdicts there are."""
    settings, (model, name), store = contamination.open(), _names(context), warehouse.open()
    stored = stored_scores(store, model, name)
    shards, backwards, moved = scores_in(stored)
    group, order_digest = drawn_from(stored, settings.group)
    verdict = judge(
        model,
        name,
        shards,
        order_p=order_check_p(store, name, group, order_digest),
        alpha=settings.alpha,
        gate=settings.gate,
        design=settings.look_design(len(shards)) if shards else None,
        group=group,
        sentinel_difference=moved,
    )
    tests = verdict_rows(verdict, shards, stored, plan_of(stored, settings))
    each = shard_rows(verdict, shards, backwards)
    store.write(*verdict_writes(store, verdict, tests, each))
    text, figure = verdict.summary(), published_among_shuffled(verdict, shards)
    place, folder = ("contamination", context.partition_key), warehouse.reports_folder()
    shown = pictures.picture(figure, *place, folder=folder) | pictures.report_text(text, *place, folder=folder)
    yield materialized("contamination.shard_tests", shards=len(each))
    yield materialized("contamination.tests", shown, verdict=verdict.verdict, ln_p=verdict.log_p, reason=verdict.reason)


def _names(context: dg.AssetExecutionContext) -> tuple[str, str]:
    """Model and benchmark of the partition."""
    key = context.partition_key
    assert isinstance(key, dg.MultiPartitionKey)
    return name_of(key.keys_by_dimension["model"]), name_of(key.keys_by_dimension["benchmark"])


def _failed(rows: list[dict[str, object]]) -> list[str]:
    return [str(row["check_name"]) for row in rows if row["status"] == ORDER_NOT_EXCHANGEABLE]


# What the code location collects from this module.
ASSETS = [fetch_benchmark, check_order, score_orders, judge_orders]
