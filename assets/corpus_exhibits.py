"""The exhibits of mining: Fig 7 and 8 as pictures, Tables 2 to 4 as coloured pairs of duplicates."""

from collections.abc import Mapping, Sequence
from datetime import date
from html import escape
from typing import TYPE_CHECKING, Any

import dagster as dg
import polars as pl

from assets.corpus import readable
from assets.partitions import corpora, name_of
from assets.pictures import picture, report_text
from assets.tables import storable
from resources.configured import CorpusListResource, WarehouseResource
from resources.corpus import rows
from resources.corpus.mining import CorpusTexts
from resources.warehouse.store import Warehouse
from strandline.corpus.figures import BlackCurve, stacked_versions
from strandline.corpus.pairs_display import as_html, as_markdown, compare
from strandline.corpus.settings import CorpusSpec
from strandline.perplexity.figures import CurveLine, CurvePanel, MinedBars, curve_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLES = {
    "table2": ("citation_numbers", "Near duplicates that differ in citation numbers only"),
    "table3": ("whitespace", "Duplicates that differ in white space only"),
    "table4": ("exact", "Exact duplicates"),
    "near": ("near", "Other near duplicates"),
    "span": ("three_sentence_span", "Three sentences in common"),
    "mirror": ("mirror", "Copies from outside the domains that the corpus leaves out"),
}
PAIRS_SHOWN = 3
COUNTS = [dg.AssetKey(["corpus", "version_counts"]), dg.AssetKey(["corpus", "explanations"])]
PAIRS = [dg.AssetKey(["corpus", "duplicate_pairs"])]


@dg.asset(
    key=["exhibits", "fig7_versions_by_subcorpus"],
    deps=COUNTS,
    partitions_def=corpora,
    group_name="exhibits",
    kinds={"matplotlib"},
)
def fig7(context: dg.AssetExecutionContext, warehouse: WarehouseResource) -> dg.MaterializeResult[None]:
    """Fig 7: versions in a corpus by sub-corpus, with the curve of a model trained on it, one picture a resource."""
    store, corpus = warehouse.open(), name_of(context.partition_key)
    figures = {
        resource: _stacked(store, corpus, resource, group)
        for resource, group in _counts(store, corpus, "edit_distance")
    }
    return _shown(context, warehouse, "fig7", figures)


@dg.asset(
    key=["exhibits", "fig8_ngrams_and_curves"],
    deps=COUNTS,
    partitions_def=corpora,
    group_name="exhibits",
    kinds={"matplotlib"},
)
def fig8(
    context: dg.AssetExecutionContext, warehouse: WarehouseResource, corpus_list: CorpusListResource
) -> dg.MaterializeResult[None]:
    """Fig 8: discounted n-gram counts in grey behind the curves of the models trained on the corpus."""
    store, spec = warehouse.open(), corpus_list.find(name_of(context.partition_key))
    figures = {
        resource: _behind_curves(store, spec, resource, group)
        for resource, group in _counts(store, spec.corpus, "ngram")
    }
    return _shown(context, warehouse, "fig8", figures)


@dg.asset(
    key=["exhibits", "tables2_to_4_duplicates"],
    deps=PAIRS,
    partitions_def=corpora,
    group_name="exhibits",
    kinds={"html"},
)
def duplicate_tables(
    context: dg.AssetExecutionContext, warehouse: WarehouseResource, corpus_list: CorpusListResource
) -> dg.MaterializeResult[None]:
    """Tables 2 to 4: pairs of duplicates with their places and exact matches coloured, copies of a resource first."""
    store, spec = warehouse.open(), corpus_list.find(name_of(context.partition_key))
    texts = CorpusTexts(readable(store, spec), str(corpus_list.cache()))
    pairs = _pairs(store, spec.corpus)
    html, shown = [], []
    for kind, title in TABLES.values():
        html.append(f"<h2>{title}</h2>")
        shown.append(f"### {title}")
        chosen = pairs.filter(pl.col("class") == kind).head(PAIRS_SHOWN)
        for row in chosen.iter_rows(named=True):
            original = rows.mirrored_text(store, row["right_id"])
            display = compare(texts(row["left_id"]), texts(row["right_id"]) if original is None else original)
            html.append(as_html(display, row["left_location"], row["right_location"]))
            shown.append(as_markdown(display, row["left_location"], row["right_location"]))
        if chosen.is_empty():
            shown.append("none found")
    page = f'<!doctype html><meta charset="utf-8"><title>Duplicates in {escape(spec.corpus)}</title>{"".join(html)}'
    place, folder = ("corpus", context.partition_key, "duplicates"), warehouse.reports_folder()
    coloured = report_text(page, *place, folder=folder, ending="html")
    plain = report_text("\n\n".join(shown), *place, folder=folder, ending="md")
    return dg.MaterializeResult(metadata={**plain, "coloured_page": coloured["report_file"]})


def _counts(store: Warehouse, corpus: str, method: str) -> list[tuple[str, pl.DataFrame]]:
    """The counts of a method by resource."""
    counts = rows.stored(store, "corpus.version_counts", corpus).filter(pl.col("method") == method).sort("month")
    return [(str(resource), group) for (resource,), group in counts.group_by(["resource"], maintain_order=True)]


def _shown(
    context: dg.AssetExecutionContext, warehouse: WarehouseResource, name: str, figures: Mapping[str, "Figure"]
) -> dg.MaterializeResult[None]:
    metadata: dict[str, dg.MetadataValue] = {}
    for resource, figure in figures.items():
        place = ("corpus", context.partition_key, f"{name}_{resource}")
        shown = picture(figure, *place, folder=warehouse.reports_folder())
        metadata |= {f"{key}_{resource}": value for key, value in shown.items()}
    return dg.MaterializeResult(metadata=storable(metadata))


def _stacked(store: Warehouse, corpus: str, resource: str, group: pl.DataFrame) -> "Figure":
    months = group["month"].unique().sort().to_list()
    why = _explanation(store, corpus, resource)
    return stacked_versions(
        f"Versions of {resource} in {corpus}",
        months,
        _weights(group, months),
        _black_curve(store, str(why.get("model")), resource),
        why.get("reported_month"),
        (why["bulk_from"], why["bulk_to"]) if why.get("bulk_from") else None,
    )


def _behind_curves(store: Warehouse, spec: CorpusSpec, resource: str, group: pl.DataFrame) -> "Figure":
    """Curves with grey bars where a model trained on the corpus is scored, else the counts by sub-corpus alone."""
    title = f"{resource} in {spec.corpus}, by n-grams that a month does not share with all"
    months = group["month"].unique().sort().to_list()
    lines = [line for model in spec.models if (line := _line(store, model, resource)) is not None]
    if not lines:
        return stacked_versions(title, months, _weights(group, months), unit="n-grams")
    total = group.group_by("month").agg(pl.col("weight").sum()).sort("month")
    bars = MinedBars(spec.corpus, total["month"].to_list(), total["weight"].to_list(), "n-grams")
    return curve_panels([CurvePanel(title, lines, bars)])


def _line(store: Warehouse, model: str, resource: str) -> CurveLine | None:
    found = store.query(
        "select month, relative_perplexity, low95, high95 from perplexity.monthly_curves "
        "where model = ? and resource = ? order by month",
        [model, resource],
    )
    if found.is_empty():
        return None
    months, values, low95, high95 = (found[column].to_list() for column in found.columns)
    return CurveLine(model, months, values, low95, high95)


def _weights(group: pl.DataFrame, months: Sequence[date]) -> Mapping[str, Sequence[float]]:
    found: dict[str, dict[date, float]] = {}
    for name, month, weight in group.select("subcorpus", "month", "weight").iter_rows():
        found.setdefault(name, {})[month] = weight
    return {name: [values.get(month, 0.0) for month in months] for name, values in found.items()}


def _explanation(store: Warehouse, corpus: str, resource: str) -> dict[str, Any]:
    """The explanation with a model's curve where there is one, else without."""
    found = rows.stored(store, "corpus.explanations", corpus).filter(pl.col("resource") == resource)
    ordered = found.sort(pl.col("correlation").is_null(), pl.col("model"))
    return dict(ordered.row(0, named=True)) if found.height else {}


def _black_curve(store: Warehouse, model: str, resource: str) -> BlackCurve | None:
    found = store.query(
        "select month, relative_perplexity from perplexity.monthly_curves "
        "where model = ? and resource = ? order by month",
        [model, resource],
    )
    if found.is_empty():
        return None
    return BlackCurve(model, found["month"].to_list(), found["relative_perplexity"].to_list())


def _pairs(store: Warehouse, corpus: str) -> pl.DataFrame:
    """The duplicate pairs, those whose documents are copies of a resource first."""
    copies = rows.stored(store, "corpus.matches", corpus).filter(pl.col("weight") > 0)["document_id"]
    pairs = rows.stored(store, "corpus.duplicate_pairs", corpus)
    is_copy = pl.col("left_id").is_in(copies.implode()) & pl.col("right_id").is_in(copies.implode())
    return pairs.sort(~is_copy, "distance", "left_id", "right_id", descending=[False, True, False, False])


ASSETS = [fig7, fig8, duplicate_tables]
