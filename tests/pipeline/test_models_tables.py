"""The model tables through Dagster: facts in, rows out, partitions for what is listed, gates that can fail."""

from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

from assets.asset_checks import checks
from assets.models import ASSETS
from assets.suites.models import SUITES
from resources.configured import ModelListResource, WarehouseResource
from resources.warehouse.store import Warehouse
from resources.warehouse.validation import validate

ONE = """
models:
  - {name: "org/model:1,2", backend: transformers, source: "folder:x", family: Pythia, n_params: 70M, ask: likelihood}
  - {name: openai/gpt-4.1, backend: openai, source: "https://models.example.org/v1", api_key_env: SOME_KEY}
"""


def run(
    folder: Path, text: str = ONE, instance: dg.DagsterInstance | None = None
) -> tuple[dg.ExecuteInProcessResult, Warehouse]:
    """Materialize the model tables and run their checks."""
    (folder / "models.yaml").write_text(text, encoding="utf-8")
    store = WarehouseResource(
        path=str(folder / "w.duckdb"), published=str(folder / "p.duckdb"), reports=str(folder / "reports")
    )
    resources: dict[str, Any] = {"warehouse": store, "model_list": ModelListResource(path=str(folder / "models.yaml"))}
    result = dg.materialize(
        [*ASSETS, *checks(ASSETS, SUITES)], resources=resources, instance=instance, raise_on_error=False
    )
    return result, store.open()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    instance = dg.DagsterInstance.ephemeral()
    result, warehouse = run(tmp_path_factory.mktemp("models"), instance=instance)
    assert result.success
    assert instance.get_dynamic_partitions("models") == ["org%2Fmodel%3A1%2C2", "openai%2Fgpt-4.1"]
    evaluations = result.get_asset_check_evaluations()
    assert len(evaluations) == 3
    assert [e.check_name for e in evaluations if not e.passed] == []
    return warehouse


def test_listed_models_stand_first_with_facts_filled_in(store: Warehouse) -> None:
    rows = {r["model"]: r for r in store.query("select * from models.models").to_dicts()}
    listed = rows["openai/gpt-4.1"]
    assert (listed["is_listed"], listed["backend"], listed["context_length"]) == (True, "openai", 1047576)
    assert (str(listed["released_on"]), listed["released_precision"]) == ("2025-04-14", "day")
    assert (rows["org/model:1,2"]["n_params"], rows["org/model:1,2"]["family"]) == (70_000_000, "Pythia")
    assert sum(r["is_listed"] for r in rows.values()) == 2
    assert str(rows["alibaba/qwen3-32b"]["released_on"]) == "2025-04-01"
    assert rows["alibaba/qwen3-32b"]["released_precision"] == "month"


def test_every_claim_is_kept_and_joins_its_model(store: Warehouse) -> None:
    found = store.query(
        "select count(*) filter (where m.model is null) as orphans, count(distinct c.model) as models, "
        "count(*) filter (where not is_valid and value is not null) as impossible, "
        "count(*) filter (where is_conflicting) as conflicting "
        "from models.declared_cutoffs c left join models.models m using (model)"
    ).to_dicts()[0]
    assert found["orphans"] == 0
    assert found["models"] >= 200
    assert found["impossible"] >= 8
    assert found["conflicting"] >= 40


def test_what_is_declared_shows_both_sides_of_a_conflict(store: Warehouse) -> None:
    row = store.query(
        "select * from models.declared where model = 'google/gemini-2.0-flash' and kind = 'reported'"
    ).to_dicts()[0]
    assert (str(row["declared_from"]), str(row["declared_to"])) == ("2024-06-01", "2024-08-31")
    assert row["is_conflicting"]
    assert row["n_claims"] == 2
    impossible = store.query("select * from models.declared where model = 'perplexity/sonar'").to_dicts()[0]
    assert impossible["declared_from"] is None
    assert impossible["n_impossible"] == 1


def test_training_mixes_join_listed_models_by_family(store: Warehouse) -> None:
    rows = store.query(
        "select corpus from models.models m join models.training_corpora c using (family) "
        "where m.model = 'org/model:1,2' and c.model = 'Pythia' order by corpus"
    )
    assert rows["corpus"].to_list() == ["Pile", "Pile-CC", "Pile-Wikipedia"]
    dumps = store.query("select * from models.newest_dumps where model = 'LLaMA'").to_dicts()[0]
    assert (str(dumps["wikipedia_dump"]), str(dumps["crawl_dump"])) == ("2022-08-31", "2020-12-31")


def test_a_second_run_changes_nothing_and_adds_no_partition(tmp_path: Path) -> None:
    instance = dg.DagsterInstance.ephemeral()
    _, first = run(tmp_path, instance=instance)
    before = [
        first.query(f"select * from models.{t} order by all")
        for t in ("models", "declared_cutoffs", "training_corpora")
    ]
    result, again = run(tmp_path, instance=instance)
    after = [
        again.query(f"select * from models.{t} order by all")
        for t in ("models", "declared_cutoffs", "training_corpora")
    ]
    assert all(a.equals(b) for a, b in zip(before, after, strict=True))
    assert len(instance.get_dynamic_partitions("models")) == 2
    assert result.success


def test_a_faulty_models_file_fails_with_every_fault_named(tmp_path: Path) -> None:
    result, _ = run(tmp_path, "models:\n  - {name: a, backend: ollama, source: x}\n")
    failures = [e for e in result.all_events if e.is_step_failure]
    assert len(failures) == 1
    assert "backend must be one of transformers, openai" in str(failures[0].step_failure_data.error)


@pytest.mark.parametrize("table", sorted(SUITES))
def test_every_suite_fails_on_no_rows_and_on_nothing_but_null(table: str, store: Warehouse) -> None:
    rows = store.query(f"select * from {table}")
    assert validate(table, rows, SUITES[table]).passed
    assert not validate(table, rows.clear(), SUITES[table]).passed
    nulls = rows.with_columns(pl.lit(None, dtype=t).alias(c) for c, t in rows.schema.items())
    assert not validate(table, nulls, SUITES[table]).passed
    assert not validate(table, rows.head(5), SUITES[table]).passed
