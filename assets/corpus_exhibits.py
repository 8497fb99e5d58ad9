"""The exhibits of mining: Fig 7 and 8 as pictures, Tables 2 to 4 as coloured pairs of duplicates."""

from collections.abc import Mapping, Sequence
from datetime import date
from html import escape

import dagster as dg
import polars as pl

from assets.corpus import readable
from assets.partitions import corpora, name_of
from assets.pictures import picture, report_text
from assets.tables import storable
from resources import corpus_rows as rows
from resources.configured import WarehouseResource
from resources.corpora import CorpusListResource
from resources.corpus_mining import CorpusTexts
from resources.warehouse import Warehouse
from strandline.corpus.figures import BlackCurve, stacked_versions
from strandline.corpus.pairs_display import as_html, as_markdown, compare

TABLES = {
    "table2": ("citation_numbers", "Near duplicates that differ in citation numbers only"),
    "table3": ("whitespace", "Duplicates that differ in white space only"),
    "table4": ("exact", "Exact duplicates"),
    "near": ("near", "Other near duplicates"),
    "span": ("three_sentence_span", "Three sentences in common"),
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
def fig7(context: dg.AssetExecutionContext, warehouse: WarehouseResource) -> dg.MaterializeResult:
    """Fig 7: versions in a corpus by sub-corpus, with the curve of a model trained on it, one picture a resource."""
    return _pictures(context, warehouse.open(), "fig7", "edit_distance", "copies")


@dg.asset(
    key=["exhibits", "fig8_ngrams_by_subcorpus"],
    deps=COUNTS,
    partitions_def=corpora,
    group_name="exhibits",
    kinds={"matplotlib"},
)
def fig8(context: dg.AssetExecutionContext, warehouse: WarehouseResource) -> dg.MaterializeResult:
    """Fig 8: the same with discounted n-gram counts in place of copies."""
    return _pictures(context, warehouse.open(), "fig8", "ngram", "n-grams")


@dg.asset(
    key=["exhibits", "tables2_to_4_duplicates"],
    deps=PAIRS,
    partitions_def=corpora,
    group_name="exhibits",
    kinds={"html"},
)
def duplicate_tables(
    context: dg.AssetExecutionContext, warehouse: WarehouseResource, corpus_list: CorpusListResource
) -> dg.MaterializeResult:
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
            display = compare(texts(row["left_id"]), texts(row["right_id"]))
            html.append(as_html(display, row["left_location"], row["right_location"]))
            shown.append(as_markdown(display, row["left_location"], row["right_location"]))
        if chosen.is_empty():
            shown.append("none found")
    page = f'<!doctype html><meta charset="utf-8"><title>Duplicates in {escape(spec.corpus)}</title>{"".join(html)}'
    coloured = report_text(page, "corpus", context.partition_key, "duplicates", ending="html")
    plain = report_text("\n\n".join(shown), "corpus", context.partition_key, "duplicates", ending="md")
    return dg.MaterializeResult(metadata={**plain, "coloured_page": coloured["report_file"]})


def _pictures(
    context: dg.AssetExecutionContext, store: Warehouse, name: str, method: str, unit: str
) -> dg.MaterializeResult:
    corpus = name_of(context.partition_key)
    counts = rows.stored(store, "corpus.version_counts", corpus).filter(pl.col("method") == method)
    metadata: dict[str, dg.MetadataValue] = {}
    for (resource,), group in counts.group_by(["resource"], maintain_order=True):
        months = group["month"].unique().sort().to_list()
        why = _explanation(store, corpus, str(resource))
        bulk = (why["bulk_from"], why["bulk_to"]) if method == "edit_distance" and why.get("bulk_from") else None
        figure = stacked_versions(
            f"Versions of {resource} in {corpus}",
            months,
            _weights(group, months),
            _black_curve(store, str(why.get("model")), str(resource)),
            why.get("reported_month"),
            bulk,
            unit,
        )
        shown = picture(figure, "corpus", context.partition_key, f"{name}_{resource}")
        metadata |= {f"{key}_{resource}": value for key, value in shown.items()}
    return dg.MaterializeResult(metadata=storable(metadata))


def _weights(group: pl.DataFrame, months: Sequence[date]) -> Mapping[str, Sequence[float]]:
    found: dict[str, dict[date, float]] = {}
    for name, month, weight in group.select("subcorpus", "month", "weight").iter_rows():
        found.setdefault(name, {})[month] = weight
    return {name: [values.get(month, 0.0) for month in months] for name, values in found.items()}


def _explanation(store: Warehouse, corpus: str, resource: str) -> dict[str, object]:
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
