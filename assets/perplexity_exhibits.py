"""The exhibits of the perplexity family: pictures made from tables, one asset each.

The drawing is in ``strandline.perplexity.figures``; a picture without data says what is missing. Exhibits of the corpus
family are in ``corpus_exhibits``.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg
import polars as pl

from assets.gates import FOLLOW
from assets.pictures import picture
from assets.tables import key_of
from resources.configured import WarehouseResource
from resources.warehouse.store import Warehouse
from strandline.perplexity import figures
from strandline.perplexity.figures import AdvertisedActual, CurveLine, CurvePanel, MinedBars

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The tables that every picture of curves reads.
CURVES = (
    "perplexity.monthly_curves",
    "perplexity.effective_cutoffs",
    "spans.resources",
    "models.models",
    "models.training_corpora",
)


@dataclass(frozen=True)
class Exhibit:
    """A picture: its name, what it shows, the tables it is made from, and how."""

    name: str
    description: str
    tables: tuple[str, ...]
    draw: Callable[[Warehouse], "Figure"]


def advertised_versus_actual(store: Warehouse) -> "Figure":
    """One row a model and resource, the largest gap first."""
    rows = store.query(
        "select model, resource, advertised_from as advertised, effective_month as actual, low95, high95, status "
        "from perplexity.advertised_and_effective where advertised_from is not null "
        "order by months_older desc nulls last, model, resource limit 30"
    )
    return figures.advertised_versus_actual([AdvertisedActual(**row) for row in rows.iter_rows(named=True)])


def topic_curve(store: Warehouse) -> "Figure":
    """The topic that is resolved best, or the first of a panel where none is."""
    chosen = store.query(
        "select model, resource, topic, low95, high95 from perplexity.topic_cutoffs "
        "order by q_value nulls last, p_value nulls last, model, resource, topic limit 1"
    )
    if chosen.is_empty():
        return figures.empty("no panel resource has topics with a reference yet")
    model, resource, topic, low95, high95 = chosen.row(0)
    points = store.query(
        "select month, exp(mean_nll) as perplexity from perplexity.versions_of(?) "
        "where resource = ? and topic = ? order by month",
        [model, resource, topic],
    )
    interval = (low95, high95) if low95 and high95 else None
    return figures.topic_curve(model, topic, points["month"].to_list(), points["perplexity"].to_list(), interval)


def news_curves(store: Warehouse) -> "Figure":
    """All models on unpaired resources."""
    return figures.news_curves(_lines(_points(store, "kind = 'unpaired'"), with_resource=True))


def corpus_panels(store: Warehouse) -> "Figure":
    """One panel a lineage and resource, with the mined copies of the lineage's corpora in grey."""
    points = _points(store, "kind = 'panel' and not is_closed")
    panels = []
    for (lineage, resource), group in points.group_by(["lineage", "resource"], maintain_order=True):
        corpora = sorted({name for names in group["corpora"].drop_nulls().to_list() for name in names})
        panels.append(CurvePanel(f"{lineage}: {resource}", _lines(group), _bars(store, str(resource), corpora)))
    return figures.curve_panels(panels)


def size_suites(store: Warehouse) -> "Figure":
    """Families of which two sizes or more are scored on a resource."""
    points = _points(store, "kind = 'panel' and n_params is not null and family is not null and not is_deduplicated")
    suites = {
        f"{family} on {resource}": _lines(group)
        for (family, resource), group in points.group_by(["family", "resource"], maintain_order=True)
        if group["n_params"].n_unique() > 1
    }
    return figures.size_suites(suites)


def paired_models(store: Warehouse) -> "Figure":
    """Models beside the ones of the same name whose training was deduplicated."""
    points = _points(store, "kind = 'panel'").with_columns(
        base=pl.col("model").str.replace(r"(?i)[-_ ]?dedup(licated|ed)?", "")
    )
    pairs = {}
    for (base, resource), group in points.group_by(["base", "resource"], maintain_order=True):
        lines = _lines(group.sort("is_deduplicated", "model", "month"))
        if len(lines) == 2 and group["is_deduplicated"].n_unique() == 2:
            pairs[f"{base} and its deduplicated training: {resource}"] = (lines[0], lines[1])
    return figures.paired_models(pairs)


def closed_models(store: Warehouse) -> "Figure":
    """Models whose training data are not public."""
    return figures.closed_models(_lines(_points(store, "is_closed"), with_resource=True))


def exhibit_asset(exhibit: Exhibit) -> dg.AssetsDefinition:
    """The asset of one exhibit: draw, save, show."""

    @dg.asset(
        key=["exhibits", exhibit.name],
        deps=[key_of(table) for table in exhibit.tables],
        group_name="exhibits",
        description=exhibit.description,
        kinds={"matplotlib"},
        automation_condition=FOLLOW,
    )
    def drawn(warehouse: WarehouseResource) -> dg.MaterializeResult[None]:
        figure = exhibit.draw(warehouse.open())
        return dg.MaterializeResult(
            metadata=picture(figure, "exhibits", exhibit.name, folder=warehouse.reports_folder())
        )

    return drawn


def _points(store: Warehouse, condition: str) -> pl.DataFrame:
    return store.query(
        f"select * from perplexity.curve_points where {condition} "
        "order by lineage, resource, family, n_params, model, month"
    )


def _lines(points: pl.DataFrame, *, with_resource: bool = False) -> list[CurveLine]:
    groups: Iterable[tuple[tuple[object, ...], pl.DataFrame]] = points.group_by(
        ["model", "resource"], maintain_order=True
    )
    return [
        CurveLine(
            label=f"{model}, {resource}" if with_resource else str(model),
            months=rows["month"].to_list(),
            values=rows["relative_perplexity"].to_list(),
            low95=rows["low95"].to_list(),
            high95=rows["high95"].to_list(),
            found=rows["found_month"][0],
            n_params=rows["n_params"][0],
            note=rows["tokens_note"][0],
        )
        for (model, resource), rows in groups
    ]


def _bars(store: Warehouse, resource: str, corpora: list[str]) -> MinedBars | None:
    mined = store.query(
        "select month, sum(weight) as weight from corpus.version_counts "
        "where resource = ? and method = 'edit_distance' and list_contains(?, corpus) group by month order by month",
        [resource, corpora],
    )
    if mined.is_empty():
        return None
    return MinedBars(", ".join(corpora), mined["month"].to_list(), mined["weight"].to_list())


# The pictures and tables that this module draws.
EXHIBITS = (
    Exhibit(
        "advertised_versus_actual",
        "Advertised cutoffs beside the effective ones that were found, with 95 % intervals (Fig 1 of Dated Data).",
        ("perplexity.effective_cutoffs", "models.declared_cutoffs", "models.models"),
        advertised_versus_actual,
    ),
    Exhibit(
        "topic_curve",
        "The perplexity of one topic's versions under one model (Fig 2).",
        ("perplexity.scores", "perplexity.topic_cutoffs", "spans.resources", "spans.revisions"),
        topic_curve,
    ),
    Exhibit("news_curves", "Models on news by month of publication (Fig 3).", CURVES, news_curves),
    Exhibit(
        "corpus_panels",
        "Models by the corpora behind them, with mined copies in grey where a corpus was mined (Fig 4).",
        (*CURVES, "corpus.version_counts"),
        corpus_panels,
    ),
    Exhibit("size_suites", "Model sizes of a family, darker is larger (Fig 5).", CURVES, size_suites),
    Exhibit("paired_models", "Models beside their twins with deduplicated training (Fig 6).", CURVES, paired_models),
    Exhibit("closed_models", "Models with closed training data, apart and unverified (Fig 9).", CURVES, closed_models),
)
# What the code location collects from this module.
ASSETS = [exhibit_asset(exhibit) for exhibit in EXHIBITS]
