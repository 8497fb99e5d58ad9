"""Every exhibit is a picture in the run's metadata and a file, with data and without."""

import base64
from io import BytesIO
from pathlib import Path

import dagster as dg
import numpy as np
import polars as pl
import pytest
from PIL import Image

from assets import perplexity_exhibits as exhibits
from assets.partitions import key_for
from resources.configured import WarehouseResource
from resources.warehouse.store import Warehouse
from strandline.perplexity import figures
from strandline.perplexity.rows import curve_rows, cutoff_rows
from tests.fakes.spans import remembered, store_scores, store_span, written_span

SIZES = {
    "pythia-70m": 70_000_000,
    "pythia-1b": 1_000_000_000,
    "pythia-1b-deduped": 1_000_000_000,
    "Gemma": 2_000_000_000,
}
FAMILY = {"Gemma": "Gemma"}


@pytest.fixture
def house(tmp_path: Path) -> WarehouseResource:
    return WarehouseResource(
        path=str(tmp_path / "w.duckdb"), published=str(tmp_path / "p.duckdb"), reports=str(tmp_path / "reports")
    )


def filled(store: Warehouse) -> None:
    """Four models on a panel, and two of them on news, with lineage, mined copies and one finding each."""
    span, news = written_span("handbook", topics=22), written_span("news", topics=24, months=26, seed=4)
    store_span(store, span)
    store_span(store, news, "unpaired")
    rows = []
    for number, (model, size) in enumerate(SIZES.items()):
        rows.append({"model": model, "partition_key": key_for(model), "name": model, "is_listed": True,
                     "backend": "transformers", "family": FAMILY.get(model, "Pythia"), "n_params": size})  # fmt: skip
        store_scores(store, model, remembered(span, 8 + 2 * number))
        if number < 2:
            store_scores(store, model, remembered(news, None))
        versions = store.query("select * from perplexity.versions_of(?) order by resource, month, topic", [model])
        store.replace("perplexity.monthly_curves", curve_rows(model, versions), {"model": model})
        store.replace("perplexity.effective_cutoffs", cutoff_rows(model, versions, {}), {"model": model})
    store.replace("models.models", pl.DataFrame(rows))
    mix = {"corpus_kind": "collection", "is_verified": True, "source": "test"}
    store.replace(
        "models.training_corpora",
        pl.DataFrame(
            [
                {"model": "Pythia", "family": "Pythia", "corpus": "Pile", **mix},
                {"model": "Pythia-deduped", "family": "Pythia", "corpus": "Pile-deduplicated", **mix},
                {"model": "Gemma", "family": "Gemma", "corpus": "undisclosed", **mix, "is_verified": False},
            ]
        ),
    )
    counts = [{"corpus": "Pile", "subcorpus": "web", "resource": "handbook", "month": m, "method": "edit_distance",
               "weight": 1.5} for m in span.months]  # fmt: skip
    store.replace("corpus.version_counts", pl.DataFrame(counts))
    store.replace(
        "perplexity.topic_cutoffs",
        pl.DataFrame(
            {"model": ["pythia-1b"], "resource": ["handbook"], "topic": ["topic 03"], "reference": ["r"],
             "q_value": [0.01], "p_value": [0.01],
             "month": [span.months[8]], "low95": [span.months[7]], "low80": [span.months[8]],
             "high80": [span.months[8]], "high95": [span.months[9]], "status": ["found"]}
        ),
    )  # fmt: skip


def drawn(house: WarehouseResource) -> dict[str, Image.Image]:
    result = dg.materialize(exhibits.ASSETS, resources={"warehouse": house})
    assert result.success
    images = {}
    for event in result.get_asset_materialization_events():
        metadata = event.materialization.metadata
        encoded = metadata["picture"].value.split("base64,")[1].rstrip(")")
        image = Image.open(BytesIO(base64.b64decode(encoded)))
        assert Path(metadata["picture_file"].value).stat().st_size > 500
        images[event.asset_key.path[-1]] = image.convert("RGB")
    return images


def test_all_exhibits_are_drawn_from_tables(house: WarehouseResource) -> None:
    filled(house.open())
    images = drawn(house)
    assert set(images) == {exhibit.name for exhibit in exhibits.EXHIBITS}
    for name in set(images) - {"advertised_versus_actual"}:
        assert images[name].width > 400, name
        assert np.asarray(images[name]).std() > 10, name


def test_an_exhibit_without_data_says_so_and_does_not_fail(house: WarehouseResource) -> None:
    images = drawn(house)
    assert len(images) == len(exhibits.EXHIBITS)
    assert all(image.height < 200 for image in images.values())


def test_models_are_put_into_panels_by_the_corpora_behind_them(house: WarehouseResource) -> None:
    store = house.open()
    filled(store)
    lineages = dict(store.query("select model, lineage from perplexity.model_lineages").iter_rows())
    assert lineages == {
        "pythia-70m": "Pile",
        "pythia-1b": "Pile",
        "pythia-1b-deduped": "Pile",
        "Gemma": "training data not public",
    }
    suites = dict(store.query("select model, suite from perplexity.model_lineages").iter_rows())
    assert suites["pythia-1b-deduped"] == "Pythia-deduped"
    assert suites["pythia-1b"] == "Pythia"


def test_pairs_suites_bars_and_closed_models_are_chosen_as_said(
    house: WarehouseResource, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = house.open()
    filled(store)
    seen: dict[str, object] = {}
    for name in ("paired_models", "size_suites", "curve_panels", "closed_models", "news_curves"):
        monkeypatch.setattr(figures, name, lambda given, name=name: seen.setdefault(name, given))
    for draw in (exhibits.paired_models, exhibits.size_suites, exhibits.corpus_panels, exhibits.closed_models,
                 exhibits.news_curves):  # fmt: skip
        draw(store)
    ((title, (first, second)),) = seen["paired_models"].items()  # type: ignore[attr-defined]
    assert title == "pythia-1b and its deduplicated training: handbook"
    assert (first.label, second.label) == ("pythia-1b", "pythia-1b-deduped")
    ((suite, lines),) = seen["size_suites"].items()  # type: ignore[attr-defined]
    assert suite == "Pythia on handbook"
    assert [line.n_params for line in lines] == [70_000_000, 1_000_000_000]
    (panel,) = seen["curve_panels"]  # type: ignore[misc]
    assert panel.title == "Pile: handbook"
    assert panel.bars is not None
    assert {line.label for line in panel.lines} == set(SIZES) - {"Gemma"}
    assert [line.label for line in seen["closed_models"]] == ["Gemma, handbook"]  # type: ignore[attr-defined]
    assert [line.label for line in seen["news_curves"]] == ["pythia-70m, news", "pythia-1b, news"]  # type: ignore[attr-defined]


def test_a_line_is_not_drawn_across_months_without_a_value() -> None:
    span = written_span(topics=2)
    values: list[float | None] = [1.0, 2.0, None, 3.0, *[1.0] * 20]
    figure = figures.topic_curve("m", "t", span.months, values, None)
    assert [len(line.get_xdata()) for line in figure.axes[0].get_lines()] == [2, 21]
