"""The exhibits of mining: pictures of what a corpus holds, and pages of its duplicates. One record each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import polars as pl

from assets.corpus import readable
from assets.partitions import corpora, name_of
from assets.pictures import picture, report_text
from assets.tables import key_of, storable
from resources.configured import CorpusListResource, WarehouseResource
from resources.corpus import rows
from resources.corpus.mining import CorpusTexts
from resources.warehouse.store import Warehouse
from strandline.corpus.figures import BlackCurve, stacked_versions
from strandline.corpus.histograms import BY_EDITS, BY_NGRAMS
from strandline.corpus.pairs_display import as_html, as_markdown, compare
from strandline.corpus.settings import CorpusSpec
from strandline.perplexity.figures import CurveLine, CurvePanel, MinedBars, curve_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAIR_TITLES = {
    "citation_numbers": "Near duplicates that differ in citation numbers only",
    "whitespace": "Duplicates that differ in white space only",
    "exact": "Exact duplicates",
    "near": "Other near duplicates",
    "three_sentence_span": "Three sentences in common",
    "mirror": "Copies from outside the domains that the corpus leaves out",
}
"""What each class of pairs is called, in the order of the page."""

PAIRS_SHOWN = 3
"""Pairs of a class on the page: enough to see a kind, and still read at once."""


@dataclass(frozen=True)
class Shown:
    """What an exhibit is made from: the warehouse, the corpus and its cache, and where its files go."""

    store: Warehouse
    spec: CorpusSpec
    cache: str
    partition: str
    folder: Path

    def place(self, name: str) -> tuple[str, str, str]:
        """The parts of a file's place among the reports."""
        return "corpus", self.partition, name


Metadata = dict[str, dg.MetadataValue]


@dataclass(frozen=True)
class CorpusExhibit:
    """A picture or page of a corpus: its name, the tables that it reads, what it shows, and how it is made."""

    name: str
    tables: tuple[str, ...]
    description: str
    kind: str
    make: Callable[[Shown], Metadata]


def versions_by_subcorpus(shown: Shown) -> Metadata:
    """One picture a resource."""
    counts = _counts(shown, BY_EDITS)
    figures = {resource: _stacked(shown.store, shown.spec.corpus, resource, group) for resource, group in counts}
    return _pictures(shown, "versions_by_subcorpus", figures)


def ngrams_behind_curves(shown: Shown) -> Metadata:
    """One picture a resource."""
    counts = _counts(shown, BY_NGRAMS)
    figures = {resource: _behind_curves(shown.store, shown.spec, resource, group) for resource, group in counts}
    return _pictures(shown, "ngrams_behind_curves", figures)


def coloured_duplicates(shown: Shown) -> Metadata:
    """A coloured page, and the same in markdown."""
    store, texts = shown.store, CorpusTexts(readable(shown.store, shown.spec), shown.cache)
    pairs = _pairs(store, shown.spec.corpus)
    html, plain = [], []
    for kind, title in PAIR_TITLES.items():
        html.append(f"<h2>{title}</h2>")
        plain.append(f"### {title}")
        chosen = pairs.filter(pl.col("class") == kind).head(PAIRS_SHOWN)
        for row in chosen.iter_rows(named=True):
            original = rows.mirrored_text(store, row["right_id"])
            display = compare(texts(row["left_id"]), texts(row["right_id"]) if original is None else original)
            html.append(as_html(display, row["left_location"], row["right_location"]))
            plain.append(as_markdown(display, row["left_location"], row["right_location"]))
        if chosen.is_empty():
            plain.append("none found")
    title = f"Duplicates in {escape(shown.spec.corpus)}"
    page = f'<!doctype html><meta charset="utf-8"><title>{title}</title>{"".join(html)}'
    coloured = report_text(page, *shown.place("duplicates"), folder=shown.folder, ending="html")
    metadata = report_text("\n\n".join(plain), *shown.place("duplicates"), folder=shown.folder, ending="md")
    return {**metadata, "coloured_page": coloured["report_file"]}


EXHIBITS = (
    CorpusExhibit(
        "versions_by_subcorpus",
        ("corpus.version_counts", "corpus.explanations", "perplexity.monthly_curves"),
        "Versions in a corpus by sub-corpus, with the curve of a model trained on it (Fig 7 of the paper)",
        "matplotlib",
        versions_by_subcorpus,
    ),
    CorpusExhibit(
        "ngrams_behind_curves",
        ("corpus.version_counts", "perplexity.monthly_curves"),
        "Discounted n-gram counts in grey behind the curves of the models trained on the corpus (Fig 8 of the paper)",
        "matplotlib",
        ngrams_behind_curves,
    ),
    CorpusExhibit(
        "coloured_duplicates",
        ("corpus.duplicate_pairs", "corpus.matches", "corpus.corpora", "spans.revisions", "spans.texts"),
        "Pairs of duplicates with their places and exact matches coloured, copies of a resource first (Tables 2 to 4)",
        "html",
        coloured_duplicates,
    ),
)
"""The one place where an exhibit of a corpus is listed."""


def exhibit_asset(exhibit: CorpusExhibit) -> dg.AssetsDefinition:
    """The asset that makes an exhibit of one corpus."""

    @dg.asset(
        key=["exhibits", exhibit.name],
        deps=[key_of(table) for table in exhibit.tables],
        partitions_def=corpora,
        group_name="exhibits",
        description=exhibit.description,
        kinds={exhibit.kind},
    )
    def made(
        context: dg.AssetExecutionContext, warehouse: WarehouseResource, corpus_list: CorpusListResource
    ) -> dg.MaterializeResult[None]:
        spec = corpus_list.find(name_of(context.partition_key))
        shown = Shown(
            store=warehouse.open(),
            spec=spec,
            cache=str(corpus_list.cache()),
            partition=context.partition_key,
            folder=warehouse.reports_folder(),
        )
        return dg.MaterializeResult(metadata=exhibit.make(shown))

    return made


def _counts(shown: Shown, method: str) -> list[tuple[str, pl.DataFrame]]:
    """The counts of a method by resource."""
    stored = rows.stored(shown.store, "corpus.version_counts", shown.spec.corpus)
    counts = stored.filter(pl.col("method") == method).sort("month")
    return [(str(resource), group) for (resource,), group in counts.group_by(["resource"], maintain_order=True)]


def _pictures(shown: Shown, name: str, figures: Mapping[str, "Figure"]) -> Metadata:
    """A picture file for each resource, and what is known of it."""
    metadata: Metadata = {}
    for resource, figure in figures.items():
        drawn = picture(figure, *shown.place(f"{name}_{resource}"), folder=shown.folder)
        metadata |= {f"{key}_{resource}": value for key, value in drawn.items()}
    return storable(metadata)


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
    curve = store.query(
        "select month, relative_perplexity, low95, high95 from perplexity.monthly_curves "
        "where model = ? and resource = ? order by month",
        [model, resource],
    )
    if curve.is_empty():
        return None
    months, values, low95, high95 = (curve[column].to_list() for column in curve.columns)
    return CurveLine(model, months, values, low95, high95)


def _weights(group: pl.DataFrame, months: Sequence[date]) -> Mapping[str, Sequence[float]]:
    by_subcorpus: dict[str, dict[date, float]] = {}
    for name, month, weight in group.select("subcorpus", "month", "weight").iter_rows():
        by_subcorpus.setdefault(name, {})[month] = weight
    return {name: [values.get(month, 0.0) for month in months] for name, values in by_subcorpus.items()}


def _explanation(store: Warehouse, corpus: str, resource: str) -> dict[str, Any]:
    """The explanation with a model's curve where there is one, else without."""
    explanations = rows.stored(store, "corpus.explanations", corpus).filter(pl.col("resource") == resource)
    ordered = explanations.sort(pl.col("correlation").is_null(), pl.col("model"))
    return dict(ordered.row(0, named=True)) if explanations.height else {}


def _black_curve(store: Warehouse, model: str, resource: str) -> BlackCurve | None:
    curve = store.query(
        "select month, relative_perplexity from perplexity.monthly_curves "
        "where model = ? and resource = ? order by month",
        [model, resource],
    )
    if curve.is_empty():
        return None
    return BlackCurve(model, curve["month"].to_list(), curve["relative_perplexity"].to_list())


def _pairs(store: Warehouse, corpus: str) -> pl.DataFrame:
    """The duplicate pairs, those whose documents are copies of a resource first."""
    copies = rows.stored(store, "corpus.matches", corpus).filter(pl.col("weight") > 0)["document_id"]
    pairs = rows.stored(store, "corpus.duplicate_pairs", corpus)
    is_copy = pl.col("left_id").is_in(copies.implode()) & pl.col("right_id").is_in(copies.implode())
    return pairs.sort(~is_copy, "distance", "left_id", "right_id", descending=[False, True, False, False])


# What the code location collects from this module.
ASSETS = [exhibit_asset(exhibit) for exhibit in EXHIBITS]
