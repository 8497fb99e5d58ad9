"""Contamination: benchmarks in their published order, the order check, scored orderings, and the verdict.

Nothing is spent before the plan is in the log. Orderings are rows as they come: a killed run goes on where it was.
"""

from collections.abc import Iterator

import dagster as dg
import polars as pl

from assets import pictures
from assets.partitions import benchmarks, model_by_benchmark, name_of
from assets.tables import materialized, table_asset, table_multi_asset
from resources.configured import (
    BenchmarkListResource,
    ComputeResource,
    ContaminationResource,
    ModelListResource,
    NetworkResource,
    OrderScoringResource,
    WarehouseResource,
    rooted,
)
from resources.contamination.benchmark_files import load_benchmark
from resources.contamination.order_scoring import OrderJob, OrderScorer, Tokens, score_design, tokens_of
from resources.contamination.rows import (
    benchmark_row,
    changes,
    drawn_from,
    order_check_p,
    order_check_rows,
    q_values,
    scores_in,
    shard_rows,
    stored_scores,
    verdict_rows,
)
from resources.network.download_cache import DownloadCache
from resources.network.http import FetchError
from strandline.contamination.benchmarks import Benchmark, BenchmarkSpec
from strandline.contamination.figures import published_among_shuffled
from strandline.contamination.orderings import CANONICAL, PermutationGroup
from strandline.contamination.planner import Plan, make_plan
from strandline.contamination.verdict import judge


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
) -> dg.MaterializeResult:
    """Fetch a benchmark's file and count its examples; one that cannot be had is a row that says why."""
    spec = benchmark_list.find(name_of(context.partition_key))
    found, reason = None, None
    try:
        found = _read(spec, network)
    except (ValueError, FetchError) as error:
        reason = str(error)
    row = benchmark_row(spec, found, reason)
    frame = pl.DataFrame([row], infer_schema_length=None)
    warehouse.open().replace("contamination.benchmarks", frame, {"benchmark": spec.benchmark})
    return materialized("contamination.benchmarks", row)


@table_asset(
    "contamination.order_checks",
    reads=["benchmarks_csv", "benchmark_files"],
    partitions_def=benchmarks,
    code_version="2",
)
def check_order(
    context: dg.AssetExecutionContext,
    warehouse: WarehouseResource,
    network: NetworkResource,
    benchmark_list: BenchmarkListResource,
    contamination: ContaminationResource,
) -> dg.MaterializeResult:
    """Ask, without any model, whether the published order is as good as any other."""
    settings = contamination.open()
    benchmark = _read(benchmark_list.find(name_of(context.partition_key)), network)
    groups = list(dict.fromkeys([PermutationGroup(), PermutationGroup.parse(settings.group)]))
    rows = order_check_rows(benchmark, settings.shards(benchmark), groups, settings.order_permutations, settings.gate)
    frame = pl.DataFrame(rows, infer_schema_length=None)
    warehouse.open().replace("contamination.order_checks", frame, {"benchmark": benchmark.spec.benchmark})
    combined = {row["check_name"]: row["p_value"] for row in rows if row["check_name"].endswith("combined")}
    return materialized("contamination.order_checks", p_values=combined, failed=_failed(rows))


@table_asset(
    "contamination.order_logliks",
    reads=["benchmarks_csv", "benchmark_files", "models_yaml", "models"],
    needs=["model", "money"],
    partitions_def=model_by_benchmark,
    code_version="1",
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
) -> dg.MaterializeResult:
    """Score orderings look by look until the design has decided; the plan is told before."""
    settings, (model, name) = contamination.open(), _names(context)
    benchmark = _read(benchmark_list.find(name), network)
    with order_scoring.open(model_list.find(model), compute.open()) as scorer:
        job = job_of(model, benchmark, settings, scorer)

        def tokens() -> Tokens:
            found = tokens_of(job, benchmark.texts, scorer)
            context.log.info(f"{model} on {name}\n{planned(job, found, settings).text()}")
            return found

        design = settings.look_design(len(job.shards))
        scored = score_design(job, tokens, scorer, warehouse.open(), design, settings.alpha, context.log.info)
    return materialized("contamination.order_logliks", scored_now=scored, shards=len(job.shards), dtype=scorer.dtype)


@table_multi_asset(
    ["contamination.shard_tests", "contamination.tests"],
    deps=["contamination.order_logliks", "contamination.order_checks"],
    partitions_def=model_by_benchmark,
    code_version="1",
)
def judge_orders(
    context: dg.AssetExecutionContext, warehouse: WarehouseResource, contamination: ContaminationResource
) -> Iterator[dg.MaterializeResult]:
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
        n_orders=PermutationGroup.parse(group).n_orders(min(stored["n_examples"])) if shards else None,
    )
    each = shard_rows(verdict, shards, backwards)
    store.write(*changes(verdict, verdict_rows(verdict, shards, stored, _plan_of(stored, settings)), each))
    if (merge := q_values(store)) is not None:
        store.write(merge)
    text, figure = verdict.summary(), published_among_shuffled(verdict, shards)
    place, folder = ("contamination", context.partition_key), warehouse.reports_folder()
    shown = pictures.picture(figure, *place, folder=folder) | pictures.report_text(text, *place, folder=folder)
    yield materialized("contamination.shard_tests", shards=len(each))
    yield materialized("contamination.tests", shown, verdict=verdict.verdict, ln_p=verdict.log_p, reason=verdict.reason)


def job_of(model: str, benchmark: Benchmark, settings: ContaminationResource, scorer: OrderScorer) -> OrderJob:
    """What is to be ordered and scored: the shards that the budget pays for, under these weights."""
    return OrderJob(
        model=model,
        benchmark=benchmark.spec.benchmark,
        order_digest=benchmark.digest,
        shards=tuple(settings.tested_shards(benchmark)),
        weights=scorer.weights,
        dtype=scorer.dtype,
        group=PermutationGroup.parse(settings.group),
        run_seed=settings.run_seed,
    )


def planned(job: OrderJob, tokens: Tokens, settings: ContaminationResource) -> Plan:
    """What a test of this job can reach and costs, at the rate that one worker was measured at."""
    n_shards = len(job.shards)
    return make_plan(
        sum(tokens.in_shard(shard) for shard in job.shards),
        n_shards,
        max(shard.size for shard in job.shards),
        alpha=settings.alpha,
        design=settings.look_design(n_shards),
        tokens_per_second=tokens.tokens_per_second,
        n_orders=min(job.group.n_orders(shard.size) for shard in job.shards),
    )


def estimated_plan(listed: BenchmarkListResource) -> str | None:
    """What a test of the first listed benchmark can reach and takes where nothing is scored yet; no model is loaded."""
    spec = next(iter(listed.read()), None)
    if spec is None:
        return None
    title = f"contamination by {spec.benchmark}, where nothing is scored yet, a token taken as three characters"
    try:
        return f"{title}\n{ContaminationResource().open().estimated(_read(spec, NetworkResource())).text()}"
    except (ValueError, FetchError) as error:
        return f"{title}\nno plan: {error}"


def _plan_of(stored: pl.DataFrame, settings: ContaminationResource) -> str | None:
    """The plan as it stood before scoring, from what one published order of every shard holds."""
    published = stored.filter(pl.col("permutation") == CANONICAL)
    if published.is_empty():
        return None
    tokens, n_shards = int(published["n_tokens"].sum()), published.height
    sizes = published["n_examples"].to_list()
    return make_plan(
        tokens,
        n_shards,
        max(sizes),
        alpha=settings.alpha,
        design=settings.look_design(n_shards),
        n_orders=PermutationGroup.parse(published["permutation_group"][0]).n_orders(min(sizes)),
    ).text()


def _read(spec: BenchmarkSpec, network: NetworkResource) -> Benchmark:
    shelf = DownloadCache(rooted(network.cache_dir) / "benchmarks")
    with network.open() as http:
        return load_benchmark(spec, http, shelf)


def _names(context: dg.AssetExecutionContext) -> tuple[str, str]:
    """Model and benchmark of the partition."""
    key = context.partition_key
    assert isinstance(key, dg.MultiPartitionKey)
    return name_of(key.keys_by_dimension["model"]), name_of(key.keys_by_dimension["benchmark"])


def _failed(rows: list[dict[str, object]]) -> list[str]:
    return [str(row["check_name"]) for row in rows if row["status"] == "order_not_exchangeable"]


ASSETS = [fetch_benchmark, check_order, score_orders, judge_orders]
