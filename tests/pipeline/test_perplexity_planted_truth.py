"""Planted truth, end to end: a small Llama trained on versions up to a month is dated by the product.

Training, loading, scoring, fitting the n-gram reference on the model's own tokens, and estimating are all real.
"""

from pathlib import Path

import dagster as dg
import numpy as np
import pytest

from assets import perplexity
from assets import perplexity_scores as scoring
from assets.partitions import key_for
from resources.configured import ComputeResource, ModelListResource, ReferenceResource, WarehouseResource
from tests.fakes.spans import MAX_TOKENS, WrittenSpan, store_span, written_span
from tests.fakes.tiny_llama import train

TRUTH, TOPICS = 14, 24
WORDS = [f"w{n}" for n in range(300)]


def training_texts(kind: str, span: WrittenSpan) -> list[str]:
    """Versions to train on: a dump with few older copies, 80 % old copies and a late dump, a broad mix, or none."""
    rng = np.random.default_rng(2)
    texts: list[str] = []
    for versions in (written_span(topics=TOPICS, seed=99) if kind == "none" else span).texts.values():
        if kind == "sharp":
            months = [TRUTH] * 6 + [int(rng.integers(0, TRUTH))]
        elif kind == "mix80":
            months = [max(0, TRUTH - int(rng.exponential(3))) for _ in range(4)] + [TRUTH + 4]
        elif kind == "broad":
            months = [int(month) for month in rng.integers(TRUTH - 5, TRUTH + 6, 6)]
        else:
            months = [int(month) for month in rng.integers(0, 24, 3)]
        texts += [versions[month] for month in months]
    return texts


def dated(kind: str, folder: Path) -> dict[str, object]:
    """Train, score and date; the reported row."""
    span = written_span(topics=TOPICS, seed=5)
    train(training_texts(kind, span), WORDS, folder / "model", steps=70)
    listed = folder / "models.yaml"
    listed.write_text(f"models:\n  - name: tiny\n    backend: transformers\n    source: folder:{folder / 'model'}\n")
    warehouse = WarehouseResource(
        path=str(folder / "w.duckdb"), published=str(folder / "p.duckdb"), reports=str(folder / "reports")
    )
    store = warehouse.open()
    store_span(store, span)
    instance = dg.DagsterInstance.ephemeral()
    instance.add_dynamic_partitions("models", [key_for("tiny")])
    resources = {
        "warehouse": warehouse,
        "model_list": ModelListResource(path=str(listed)),
        "references": ReferenceResource(path=str(folder / "none.yaml")),
        "compute": ComputeResource(workers=1),
    }
    assets = [*scoring.ASSETS, *perplexity.ASSETS]
    assert dg.materialize(assets, resources=resources, instance=instance, partition_key="tiny").success
    test = store.query("select * from perplexity.reference_tests").row(0, named=True)
    assert test["is_usable"]
    assert test["tokenization"] != "words"
    held = store.query("select n_tokens, prefix_token from perplexity.scores where model like 'ngram%'").unique()
    assert held.rows() == [(MAX_TOKENS, 1)]
    row = store.query("select * from perplexity.effective_cutoffs where is_default").row(0, named=True)
    return row | {"truth": span.months[TRUTH], "range": span.months}


@pytest.mark.slow
def test_a_dump_is_dated_to_its_month(tmp_path: Path) -> None:
    row = dated("sharp", tmp_path)
    assert (row["estimator"], row["status"], row["month"]) == ("panel", "found", row["truth"])
    assert row["low95"] <= row["truth"] <= row["high95"]  # type: ignore[operator]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mix80", "broad"])
def test_mixtures_are_dated_near_their_mode_and_not_at_their_last_copy(kind: str, tmp_path: Path) -> None:
    row = dated(kind, tmp_path)
    assert row["status"] in {"found", "inconclusive", "two-valley"}
    months = row["range"]
    lowest = months.index(row["lowest_month"])  # type: ignore[attr-defined]
    assert abs(lowest - TRUTH) <= 3
    assert months.index(row["low95"]) - 1 <= TRUTH <= months.index(row["high95"]) + 1  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_model_that_never_saw_the_resource_is_not_dated(tmp_path: Path) -> None:
    row = dated("none", tmp_path)
    assert row["status"] != "found"
    assert row["month"] is None
