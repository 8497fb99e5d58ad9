"""From scores on: monthly curves, tested references, and effective cutoffs of resources and of single topics.

Each is partitioned by model and made from ``perplexity.scores``; nothing here loads a model. Scoring is in ``scoring``.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import dagster as dg
import polars as pl
from pydantic import Field

from assets.partitions import models, name_of
from assets.pictures import picture
from assets.tables import materialized, table_asset, version_of
from resources.configured import ModelListResource, ReferenceResource, WarehouseResource
from resources.perplexity.reference_scores import Encoder, ngram_reference
from resources.perplexity.version_texts import edit_paths, versions
from resources.warehouse.frames import typed_frame
from resources.warehouse.store import Warehouse
from strandline.perplexity.curves import CURVES_VERSION
from strandline.perplexity.estimates import ESTIMATES_VERSION
from strandline.perplexity.figures import model_curves
from strandline.perplexity.reference import NGRAM_VERSION
from strandline.perplexity.rows import (
    Row,
    curve_lines,
    curve_rows,
    cutoff_rows,
    ngram_row,
    reference_rows,
    topic_rows,
)
from strandline.perplexity.score_matrices import ScoredResource, resources_of
from strandline.perplexity.settings import ReferenceSetting
from strandline.perplexity.topic import TOPICS_VERSION

SCORED = ["perplexity.scores", "spans.resources", "spans.revisions"]
"""The tables behind ``perplexity.versions_of``, which every step here reads."""


class CurveConfig(dg.Config):
    """How months are averaged."""

    complete_cases: bool = Field(
        default=True, description="Leave out topics that lack any month, as the published analysis does."
    )


@table_asset(
    "perplexity.monthly_curves",
    deps=SCORED,
    partitions_def=models,
    code_version=version_of("1", curves=CURVES_VERSION),
    follows=True,
)
def average_months(
    context: dg.AssetExecutionContext, config: CurveConfig, warehouse: WarehouseResource
) -> dg.MaterializeResult[None]:
    """The trimmed mean perplexity of every month of every resource that the model was scored on."""
    store, model = warehouse.open(), name_of(context.partition_key)
    rows = curve_rows(model, _scored(store, model), complete_cases=config.complete_cases)
    missing = list(dict.fromkeys(str(row["reason"]) for row in rows if row["status"] == "missing"))
    if all(row["status"] == "missing" for row in rows):
        raise dg.Failure("; ".join(missing), allow_retries=False)
    store.replace("perplexity.monthly_curves", rows, {"model": model})
    shown = picture(
        model_curves(model, curve_lines(typed_frame("perplexity.monthly_curves", rows))),
        "curves",
        context.partition_key,
        folder=warehouse.reports_folder(),
    )
    return materialized(
        "perplexity.monthly_curves", shown, **_counts(rows), points=len(rows), left_out="; ".join(missing) or None
    )


@table_asset(
    "perplexity.reference_tests",
    deps=[*SCORED, "spans.texts"],
    reads=["models_yaml", "references_yaml"],
    partitions_def=models,
    code_version=version_of("1", ngram=NGRAM_VERSION),
    follows=True,
)
def test_references(
    context: dg.AssetExecutionContext,
    warehouse: WarehouseResource,
    model_list: ModelListResource,
    references: ReferenceResource,
) -> dg.MaterializeResult[None]:
    """The references of every resource, the n-gram one fitted where it is missing, each tested for its own cutoff."""
    store, spec = warehouse.open(), model_list.find(name_of(context.partition_key))
    listed, encoder = references.listed(), references.encoder(spec)
    rows: list[Row] = []
    for resource in _with_scores(store, spec.name):
        serving = [setting for setting in listed if setting.serves(spec.name, resource.name)]
        rows += _listed(store, spec.name, resource, serving)
        rows += _ngram(context, store, spec.name, resource, encoder, len(serving) + 1)
    store.replace("perplexity.reference_tests", rows, {"model": spec.name})
    usable = sum(bool(row["is_usable"]) for row in rows)
    return materialized("perplexity.reference_tests", references=len(rows), usable=usable, **_counts(rows))


@table_asset(
    "perplexity.effective_cutoffs",
    deps=[*SCORED, "perplexity.reference_tests", "models.declared_cutoffs", "models.models"],
    partitions_def=models,
    code_version=version_of("1", estimates=ESTIMATES_VERSION),
    follows=True,
)
def estimate_cutoffs(context: dg.AssetExecutionContext, warehouse: WarehouseResource) -> dg.MaterializeResult[None]:
    """Every estimator with every reference; a month is a finding only where the status says found."""
    store, model = warehouse.open(), name_of(context.partition_key)
    rows = cutoff_rows(model, _scored(store, model), _references(store, model))
    store.replace("perplexity.effective_cutoffs", rows, {"model": model})
    warned = store.query("select warning from perplexity.warnings where model = ? order by 1", [model])
    for warning in warned["warning"]:
        context.log.warning(warning)
    shown = ("resource", "estimator", "reference", "status", "month", "reason")
    reported = [{name: row[name] for name in shown} for row in rows if row["is_default"]]
    return materialized("perplexity.effective_cutoffs", reported=reported, warnings=warned["warning"].to_list())


@table_asset(
    "perplexity.topic_cutoffs",
    deps=[*SCORED, "spans.texts", "perplexity.reference_tests"],
    partitions_def=models,
    code_version=version_of("1", topics=TOPICS_VERSION),
    follows=True,
)
def estimate_topic_cutoffs(
    context: dg.AssetExecutionContext, warehouse: WarehouseResource
) -> dg.MaterializeResult[None]:
    """Single topics of panel resources, with the reference that is reported for the resource."""
    store, model = warehouse.open(), name_of(context.partition_key)
    references = _references(store, model, only_usable=True)
    rows: list[Row] = []
    for resource in _with_scores(store, model):
        if resource.is_panel and references.get(resource.name):
            name, scores = references[resource.name][0]
            paths = edit_paths(
                store, resource.name, resource.months, resource.versions["topic"].unique().sort().to_list()
            )
            rows += topic_rows(model, resource, name, scores, paths)
    store.replace("perplexity.topic_cutoffs", rows, {"model": model})
    return materialized("perplexity.topic_cutoffs", topics=len(rows), **_counts(rows))


def _scored(store: Warehouse, model: str) -> pl.DataFrame:
    """The versions of all resources with the model's scores; a failure with what to do where it has none."""
    scored = versions(store, model)
    if scored["mean_nll"].null_count() == scored.height:
        raise dg.Failure(f"{model} has no score of any resource: materialize perplexity.scores", allow_retries=False)
    return scored


def _with_scores(store: Warehouse, model: str) -> Iterator[ScoredResource]:
    """The resources that the model has any score of."""
    return (resource for resource in resources_of(_scored(store, model)) if resource.has_scores)


def _listed(store: Warehouse, model: str, resource: ScoredResource, serving: list[ReferenceSetting]) -> list[Row]:
    scores = [(setting.model, versions(store, setting.model, resource.name)) for setting in serving]
    return reference_rows(model, resource, scores)


def _ngram(
    context: dg.AssetExecutionContext,
    store: Warehouse,
    model: str,
    resource: ScoredResource,
    encoder: Encoder,
    rank: int,
) -> list[Row]:
    """The row of the n-gram reference, fitted where it is missing; none where there is nothing to fit on."""
    fitted = ngram_reference(store, model, resource.name, encoder)
    if fitted is None:
        context.log.info(f"{resource.name}: fewer than two topics, so no n-gram reference")
        return []
    context.log.info(f"{fitted.name}: {fitted.n_texts} texts {'scored' if fitted.is_new else 'were scored before'}")
    scores = versions(store, fitted.name, resource.name)
    return [ngram_row(model, resource, fitted.name, scores, rank, encoder.name, fitted.texts_digest, fitted.n_texts)]


def _references(
    store: Warehouse, model: str, *, only_usable: bool = False
) -> dict[str, list[tuple[str, pl.DataFrame]]]:
    tests = store.query(
        "select resource, reference from perplexity.reference_tests "
        "where model = ? and n_texts > 0 and (is_usable or not ?) order by resource, rank",
        [model, only_usable],
    )
    references: dict[str, list[tuple[str, pl.DataFrame]]] = {}
    for resource, reference in tests.iter_rows():
        references.setdefault(resource, []).append((reference, versions(store, reference, resource)))
    return references


def _counts(rows: Sequence[Row]) -> dict[str, object]:
    statuses = Counter(str(row["status"]) for row in rows)
    return {"resources": sorted({str(row["resource"]) for row in rows}), "statuses": dict(sorted(statuses.items()))}


# What the code location collects from this module.
ASSETS = [average_months, test_references, estimate_cutoffs, estimate_topic_cutoffs]
