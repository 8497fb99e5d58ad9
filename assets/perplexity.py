"""From scores on: monthly curves, tested references, and effective cutoffs of resources and of single topics.

Each is partitioned by model and made from ``perplexity.scores``; nothing here loads a model. Scoring is in ``scoring``.
"""

import dagster as dg
import polars as pl
from pydantic import Field

from assets.partitions import models, name_of
from assets.pictures import picture
from assets.tables import materialized, table_asset
from resources.configured import ModelListResource, ReferenceResource, WarehouseResource
from resources.perplexity.reference_scores import Encoder, ngram_reference
from resources.perplexity.version_texts import edit_paths, versions
from resources.warehouse.store import Warehouse
from strandline.perplexity.figures import model_curves
from strandline.perplexity.rows import (
    REFERENCE_COLUMNS,
    TOPIC_COLUMNS,
    ScoredResource,
    curve_lines,
    curve_rows,
    cutoff_rows,
    ngram_row,
    reference_rows,
    scored_resources,
    topic_rows,
)
from strandline.perplexity.settings import ReferenceSetting

SCORED = ["perplexity.scores", "spans.resources", "spans.revisions"]


class CurveConfig(dg.Config):
    """How months are averaged."""

    complete_cases: bool = Field(
        default=True, description="Leave out topics that lack any month, as the published analysis does."
    )


@table_asset("perplexity.monthly_curves", deps=SCORED, partitions_def=models, code_version="1", follows=True)
def average_months(
    context: dg.AssetExecutionContext, config: CurveConfig, warehouse: WarehouseResource
) -> dg.MaterializeResult:
    """The trimmed mean perplexity of every month of every resource that the model was scored on."""
    store, model = warehouse.open(), name_of(context.partition_key)
    rows, left_out = _with_documents(curve_rows(model, _scored(store, model), complete_cases=config.complete_cases))
    if rows.is_empty():
        raise dg.Failure(left_out, allow_retries=False)
    store.replace("perplexity.monthly_curves", rows, {"model": model})
    shown = picture(
        model_curves(model, curve_lines(rows)), "curves", context.partition_key, folder=warehouse.reports_folder()
    )
    return materialized("perplexity.monthly_curves", shown, **_counts(rows), points=rows.height, left_out=left_out)


@table_asset(
    "perplexity.reference_tests",
    deps=[*SCORED, "spans.texts"],
    reads=["models_yaml", "references_yaml"],
    partitions_def=models,
    code_version="1",
    follows=True,
)
def test_references(
    context: dg.AssetExecutionContext,
    warehouse: WarehouseResource,
    model_list: ModelListResource,
    references: ReferenceResource,
) -> dg.MaterializeResult:
    """The references of every resource, the n-gram one fitted where it is missing, each tested for its own cutoff."""
    store, spec = warehouse.open(), model_list.find(name_of(context.partition_key))
    listed, encoder = references.listed(), references.encoder(spec)
    rows = []
    for resource in scored_resources(_scored(store, spec.name)):
        serving = [setting for setting in listed if setting.serves(spec.name, resource.name)]
        rows.append(_listed(store, spec.name, resource, serving))
        rows.append(_ngram(context, store, spec.name, resource, encoder, len(serving) + 1))
    frame = pl.concat([pl.DataFrame(schema=REFERENCE_COLUMNS), *rows])
    store.replace("perplexity.reference_tests", frame, {"model": spec.name})
    usable = frame.filter("is_usable").height
    return materialized("perplexity.reference_tests", references=frame.height, usable=usable, **_counts(frame))


@table_asset(
    "perplexity.effective_cutoffs",
    deps=[*SCORED, "perplexity.reference_tests", "models.declared_cutoffs", "models.models"],
    partitions_def=models,
    code_version="1",
    follows=True,
)
def estimate_cutoffs(context: dg.AssetExecutionContext, warehouse: WarehouseResource) -> dg.MaterializeResult:
    """Every estimator with every reference; a month is a finding only where the status says found."""
    store, model = warehouse.open(), name_of(context.partition_key)
    rows = cutoff_rows(model, _scored(store, model), _references(store, model))
    store.replace("perplexity.effective_cutoffs", rows, {"model": model})
    warned = store.query("select warning from perplexity.warnings where model = ? order by 1", [model])
    for warning in warned["warning"]:
        context.log.warning(warning)
    reported = rows.filter("is_default").select("resource", "estimator", "reference", "status", "month", "reason")
    return materialized(
        "perplexity.effective_cutoffs", reported=reported.to_dicts(), warnings=warned["warning"].to_list()
    )


@table_asset(
    "perplexity.topic_cutoffs",
    deps=[*SCORED, "spans.texts", "perplexity.reference_tests"],
    partitions_def=models,
    code_version="1",
    follows=True,
)
def estimate_topic_cutoffs(context: dg.AssetExecutionContext, warehouse: WarehouseResource) -> dg.MaterializeResult:
    """Single topics of panel resources, with the reference that is reported for the resource."""
    store, model = warehouse.open(), name_of(context.partition_key)
    references = _references(store, model, only_usable=True)
    rows = []
    for resource in scored_resources(_scored(store, model)):
        if resource.is_panel and references.get(resource.name):
            name, scores = references[resource.name][0]
            paths = edit_paths(store, resource.name, resource.months, resource.versions["topic"].unique().sort())
            rows.append(topic_rows(model, resource, name, scores, paths))
    frame = pl.concat([pl.DataFrame(schema=TOPIC_COLUMNS), *rows])
    store.replace("perplexity.topic_cutoffs", frame, {"model": model})
    return materialized("perplexity.topic_cutoffs", topics=frame.height, **_counts(frame))


def _with_documents(rows: pl.DataFrame) -> tuple[pl.DataFrame, str | None]:
    """The curves that average anything, and a sentence on those of which no topic has a score in every month."""
    totals = rows.group_by("resource").agg(pl.col("n_documents").sum(), months=pl.len()).sort("resource")
    empty = totals.filter(pl.col("n_documents") == 0)
    if empty.is_empty():
        return rows, None
    named = ", ".join(f"{resource} ({months} months)" for resource, _, months in empty.iter_rows())
    advice = "begin `months` in data/spans.yaml later, or set complete_cases to false"
    why = f"no topic has a score in every month of {named}, and topics that lack one are left out: {advice}"
    return rows.filter(~pl.col("resource").is_in(empty["resource"].to_list())), why


def _scored(store: Warehouse, model: str) -> pl.DataFrame:
    found = versions(store, model)
    if found["mean_nll"].null_count() == found.height:
        raise dg.Failure(f"{model} has no score of any resource: materialize perplexity.scores", allow_retries=False)
    return found


def _listed(store: Warehouse, model: str, resource: ScoredResource, serving: list[ReferenceSetting]) -> pl.DataFrame:
    scores = [(setting.model, versions(store, setting.model, resource.name)) for setting in serving]
    return reference_rows(model, resource, scores)


def _ngram(
    context: dg.AssetExecutionContext,
    store: Warehouse,
    model: str,
    resource: ScoredResource,
    encoder: Encoder,
    rank: int,
) -> pl.DataFrame:
    fitted = ngram_reference(store, model, resource.name, encoder)
    if fitted is None:
        context.log.info(f"{resource.name}: fewer than two topics, so no n-gram reference")
        return reference_rows(model, resource, [])
    context.log.info(f"{fitted.name}: {fitted.n_texts} texts {'scored' if fitted.is_new else 'were scored before'}")
    scores = versions(store, fitted.name, resource.name)
    return ngram_row(model, resource, fitted.name, scores, rank, encoder.name, fitted.texts_digest, fitted.n_texts)


def _references(
    store: Warehouse, model: str, *, only_usable: bool = False
) -> dict[str, list[tuple[str, pl.DataFrame]]]:
    tests = store.query(
        "select resource, reference from perplexity.reference_tests "
        "where model = ? and n_texts > 0 and (is_usable or not ?) order by resource, rank",
        [model, only_usable],
    )
    found: dict[str, list[tuple[str, pl.DataFrame]]] = {}
    for resource, reference in tests.iter_rows():
        found.setdefault(resource, []).append((reference, versions(store, reference, resource)))
    return found


def _counts(rows: pl.DataFrame) -> dict[str, object]:
    counts: dict[str, object] = {"resources": sorted(rows["resource"].unique())}
    if "status" in rows.columns:
        counts["statuses"] = dict(rows["status"].value_counts().sort("status").iter_rows())
    return counts


ASSETS = [average_months, test_references, estimate_cutoffs, estimate_topic_cutoffs]
