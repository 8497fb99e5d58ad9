"""The controlled experiment of Fig 6 and 7: two small models, one corpus with and without a dump that is repeated.

Planted: three crawled copies of each topic from around the sixth month, and a dump of the eighteenth, once or three
times. Training, scoring, mining and explaining are all real; curves, histograms and sentences must agree with what was
planted.
"""

import json
from datetime import date, timedelta
from pathlib import Path

import dagster as dg
import numpy as np
import polars as pl
import pytest
import yaml

from assets import corpus, perplexity
from assets import perplexity_scores as scoring
from assets.partitions import key_for
from resources.configured import (
    ComputeResource,
    CorpusListResource,
    ModelListResource,
    ReferenceResource,
    WarehouseResource,
)
from tests.fakes.spans import WrittenSpan, store_span, written_span
from tests.fakes.tiny_llama import train

pytestmark = pytest.mark.slow
OLD, DUMP = 6, 18
TOPICS, COPIES = 16, 3
WORDS = [f"w{n}" for n in range(300)]
REPEATS = {"repeated": 3, "once": 1}


def crawled(span: WrittenSpan) -> list[tuple[str, str]]:
    """Topic and text of the crawled copies: three versions of each topic from around the sixth month."""
    rng = np.random.default_rng(4)
    months = {topic: np.clip(np.round(rng.normal(OLD, 0.7, COPIES)), 0, 23).astype(int) for topic in span.texts}
    return [(topic, versions[month]) for topic, versions in span.texts.items() for month in months[topic].tolist()]


def write_corpus(folder: Path, span: WrittenSpan, repeats: int) -> dict[str, object]:
    """The corpus as files, and its settings."""
    folder.mkdir()
    day = str(span.months[DUMP] + timedelta(days=9))
    pages = [json.dumps({"text": text, "timestamp": day}) for _, text in crawled(span)]
    dump = [json.dumps({"text": versions[DUMP]}) for versions in span.texts.values() for _ in range(repeats)]
    (folder / "crawl.jsonl").write_text("\n".join(pages) + "\n")
    (folder / "dump.jsonl").write_text("\n".join(dump) + "\n")
    return {
        "corpus": folder.name,
        "resources": [span.resource],
        "reported": {span.resource: span.months[DUMP].isoformat()},
        "models": [folder.name],
        "parts": [
            {"files": str(folder / "crawl.jsonl"), "subcorpus": "common_crawl"},
            {"files": str(folder / "dump.jsonl"), "subcorpus": "wikipedia", "is_crawl": False},
        ],
    }


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """For each corpus the row of its explanation, the curve and the histogram."""
    folder = tmp_path_factory.mktemp("controlled")
    span = written_span(topics=TOPICS, seed=5)
    models = []
    for name, repeats in REPEATS.items():
        texts = [text for _, text in crawled(span)] + [v[DUMP] for v in span.texts.values() for _ in range(repeats)]
        train(texts, WORDS, folder / f"model-{name}", steps=60)
        models.append({"name": name, "backend": "transformers", "source": f"folder:{folder / f'model-{name}'}"})
    settings = [write_corpus(folder / name, span, repeats) for name, repeats in REPEATS.items()]
    (folder / "models.yaml").write_text(yaml.safe_dump({"models": models}))
    (folder / "corpora.yaml").write_text(yaml.safe_dump({"corpora": settings}))
    warehouse = WarehouseResource(
        path=str(folder / "w.duckdb"), published=str(folder / "p.duckdb"), reports=str(folder / "reports")
    )
    store_span(warehouse.open(), span)
    resources = {
        "warehouse": warehouse,
        "model_list": ModelListResource(path=str(folder / "models.yaml")),
        "references": ReferenceResource(path=str(folder / "none.yaml")),
        "compute": ComputeResource(workers=1),
        "corpus_list": CorpusListResource(path=str(folder / "corpora.yaml"), cache_dir=str(folder / "cache")),
    }
    instance = dg.DagsterInstance.ephemeral()
    for name in REPEATS:
        key = key_for(name)
        instance.add_dynamic_partitions("models", [key])
        instance.add_dynamic_partitions("corpora", [key])
        for assets in ([*scoring.ASSETS, perplexity.average_months], corpus.ASSETS):
            assert dg.materialize(assets, partition_key=key, resources=resources, instance=instance).success
    store = warehouse.open()
    return {name: _results(store, name, span.months) for name in REPEATS}


def _results(store, name: str, months: list[date]) -> dict[str, object]:
    why = store.query("select * from corpus.explanations where corpus = ? and model = ?", [name, name])
    curve = store.query(
        "select relative_perplexity as v from perplexity.monthly_curves where model = ? order by month", [name]
    )
    counts = store.query(
        "select subcorpus, month, weight from corpus.version_counts where corpus = ? and method = 'edit_distance'",
        [name],
    )
    return {"why": why.row(0, named=True), "curve": curve["v"].to_list(), "counts": counts, "months": months}


def test_the_histograms_are_what_was_planted(experiment):
    for name, repeats in REPEATS.items():
        counts, months = experiment[name]["counts"], experiment[name]["months"]
        totals = dict(counts.group_by("subcorpus").agg(pl.col("weight").sum()).iter_rows())
        assert totals["wikipedia"] == pytest.approx(TOPICS * repeats)
        assert totals["common_crawl"] >= 0.95 * TOPICS * COPIES
        dump = counts.filter((counts["subcorpus"] == "wikipedia") & (counts["weight"] > 0))
        weighted = sum((months.index(m) - DUMP) * w for m, w in dump.select("month", "weight").iter_rows())
        assert abs(weighted) / (TOPICS * repeats) < 1


def test_the_repeated_dump_has_the_sharp_minimum_and_without_it_the_minimum_is_older(experiment):
    lowest = {name: int(np.argmin(experiment[name]["curve"])) for name in REPEATS}
    assert abs(lowest["repeated"] - DUMP) <= 1
    assert lowest["once"] < DUMP - 6


def test_the_typical_month_of_the_copies_moves_as_the_curve_does(experiment):
    months = experiment["once"]["months"]
    typical = {name: months.index(experiment[name]["why"]["typical_month"]) for name in REPEATS}
    assert typical["repeated"] == DUMP
    assert abs(typical["once"] - OLD) <= 2


def test_the_sentences_lay_the_gap_to_old_pages_in_the_crawl(experiment):
    aligned, behind = experiment["repeated"]["why"], experiment["once"]["why"]
    assert aligned["gap_months"] == 0
    assert "there is no gap to explain" in aligned["sentence"]
    assert behind["gap_months"] >= 10
    assert behind["old_crawl_share"] >= 0.9
    assert f"of a gap of {behind['gap_months']:g} months, old pages in crawls account for" in behind["sentence"]
    assert aligned["correlation"] < 0
    assert behind["correlation"] < 0
