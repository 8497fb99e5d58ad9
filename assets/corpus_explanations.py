"""Why a resource's cutoff is where it is in a corpus: copies against curves, and the parts of the gap."""

from collections.abc import Iterator, Sequence
from datetime import date

import dagster as dg
import polars as pl

from assets.partitions import corpora, name_of
from assets.tables import materialized, table_multi_asset, version_of
from resources.configured import CorpusListResource, WarehouseResource
from resources.corpus import rows
from resources.corpus.topics import ResourceTopics
from resources.warehouse.store import Replace, Warehouse
from strandline.corpus.attribution_sentence import sentence
from strandline.corpus.explanation import EXPLANATION_VERSION, calendar, circular_shift_test, gap_shares, reweighted
from strandline.corpus.histograms import Copy, monthly_weights, summed
from strandline.corpus.settings import CorpusSpec

# The tables that the explanation writes.
EXPLAINED = ["corpus.explanations", "corpus.reweightings"]
# The tables of mined corpora that the explanation reads.
MINED = ["corpus.corpora", "corpus.matches", "corpus.duplicate_pairs"]
NO_MODEL = "none"
"""Stands for the model in the row that needs none."""


@table_multi_asset(
    EXPLAINED,
    deps=[*MINED, "spans.revisions", "perplexity.monthly_curves", "perplexity.effective_cutoffs"],
    reads=["corpora_yaml"],
    partitions_def=corpora,
    code_version=version_of("1", explanation=EXPLANATION_VERSION),
    kinds={"scipy"},
)
def explain_cutoffs(
    context: dg.AssetExecutionContext, warehouse: WarehouseResource, corpus_list: CorpusListResource
) -> Iterator[dg.MaterializeResult[None]]:
    """Split each resource's gap, compare its copies with every model's curve, and say so in a sentence."""
    store, spec = warehouse.open(), corpus_list.find(name_of(context.partition_key))
    groups = rows.groups_by_class(rows.stored(store, "corpus.duplicate_pairs", spec.corpus))
    explained: list[dict[str, object]] = []
    weighted: list[dict[str, object]] = []
    for resource in spec.resources:
        topics = ResourceTopics(store, resource, spec.reported.get(resource))
        copies = _copies(store, spec, resource)
        explained += _explanations(store, spec, topics, copies, groups.get("all", {}))
        weighted += _reweightings(spec, topics, copies, groups)
    here = {"corpus": spec.corpus}
    store.write(
        Replace(EXPLAINED[0], explained, here),
        Replace(EXPLAINED[1], weighted, here),
    )
    text = "\n\n".join(str(row["sentence"]) for row in explained)
    yield materialized(EXPLAINED[0], explanation=dg.MetadataValue.md(text), rows=len(explained))
    yield materialized(EXPLAINED[1], rows=len(weighted))


def _explanations(
    store: Warehouse, spec: CorpusSpec, topics: ResourceTopics, copies: Sequence[Copy], groups: dict[str, str]
) -> list[dict[str, object]]:
    """One explanation without a model, and one for each model that was trained on the corpus and scored."""
    crawls = rows.stored(store, "corpus.corpora", spec.corpus).filter(pl.col("is_crawl"))["subcorpus"].unique()
    reported = topics.reported or date.min
    shares = gap_shares(copies, topics.months, reported, crawls.to_list(), groups)
    histogram = summed(monthly_weights(copies, topics.months), topics.months)
    found = []
    for model in (NO_MODEL, *spec.models):
        curve = _curve(store, model, topics)
        test = circular_shift_test(histogram, curve) if any(value is not None for value in curve) else None
        effective = _effective(store, model, topics.resource)
        said = sentence(spec.corpus, topics.resource, topics.reported, shares, effective, test)
        found.append(
            rows.explanation_row(spec.corpus, topics.resource, model, topics.reported, effective, shares, test, said)
        )
    return found


def _reweightings(
    spec: CorpusSpec, topics: ResourceTopics, copies: Sequence[Copy], groups: dict[str, dict[str, str]]
) -> list[dict[str, object]]:
    typical = reweighted(copies, topics.months, groups) if copies else {}
    axis = calendar(topics.months) if copies else []
    return [
        {
            "corpus": spec.corpus,
            "resource": topics.resource,
            "removed": kind,
            "n_groups": len(set(groups.get(kind, {}).values())),
            "typical_month": axis[found.middle],
            "bulk_from": axis[found.first],
            "bulk_to": axis[found.last],
        }
        for kind, found in typical.items()
    ] or [{"corpus": spec.corpus, "resource": topics.resource, "removed": "none", "n_groups": 0}]


def _copies(store: Warehouse, spec: CorpusSpec, resource: str) -> list[Copy]:
    matches = rows.stored(store, "corpus.matches", spec.corpus)
    return rows.copies_of(matches.filter(pl.col("resource") == resource))


def _curve(store: Warehouse, model: str, topics: ResourceTopics) -> list[float | None]:
    """A model's relative perplexity for each month of the resource, None where it has none."""
    curve = store.query(
        "select month, relative_perplexity from perplexity.monthly_curves where model = ? and resource = ?",
        [model, topics.resource],
    )
    by_month = dict(curve.iter_rows())
    return [by_month.get(month) for month in topics.months]


def _effective(store: Warehouse, model: str, resource: str) -> date | None:
    """The effective cutoff by the default estimator, else by another one, where one was found."""
    cutoffs = store.query(
        "select month from perplexity.effective_cutoffs where model = ? and resource = ? and status = 'found' "
        "and month is not null order by is_default desc nulls last, estimator, reference limit 1",
        [model, resource],
    )
    return cutoffs["month"][0] if cutoffs.height else None


# What the code location collects from this module.
ASSETS = [explain_cutoffs]
