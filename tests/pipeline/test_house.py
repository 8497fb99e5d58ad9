"""The house around the methods: assets derive from the DDL, gates stop what is downstream, metadata always stores."""

from datetime import UTC, date, datetime
from pathlib import Path

import dagster as dg
import numpy as np
import polars as pl

from assets import pictures
from assets.asset_checks import table_check
from assets.partitions import add, key_for, model_by_benchmark, models, name_of, rows_of
from assets.tables import key_of, materialized, storable, table_asset, table_spec
from resources.configured import WarehouseResource
from resources.warehouse.schema import tables
from resources.warehouse.validation import Expect


def store(folder: Path) -> WarehouseResource:
    return WarehouseResource(
        path=str(folder / "w.duckdb"), published=str(folder / "p.duckdb"), reports=str(folder / "reports")
    )


RESOURCE = {"resource": "r", "kind": "panel", "max_tokens": 512}


def test_the_specification_of_a_table_comes_from_its_ddl() -> None:
    spec = table_spec("spans.resources")
    declared = tables()["spans.resources"]
    schema = spec.metadata["dagster/column_schema"]
    assert spec.key == dg.AssetKey(["spans", "resources"])
    assert spec.group_name == "spans"
    assert [(c.name, c.type, c.description) for c in schema.columns] == [
        (c.name, c.type, c.comment) for c in declared.columns
    ]
    assert declared.comment in (spec.description or "")


def test_an_asset_says_how_it_is_made_in_the_words_of_its_function() -> None:
    @table_asset("spans.resources")
    def resources_table() -> None:
        """Read the resources that are
        enabled."""

    (spec,) = resources_table.specs
    assert (spec.description or "").endswith("Key: resource.\n\nRead the resources that are enabled.")


def test_a_report_is_shown_in_lines_that_fit_and_saved_as_it_is(tmp_path: Path) -> None:
    text = f"Status   {'word ' * 60}".rstrip() + "\n\n  kept   apart"
    shown = pictures.report_text(text, "r", folder=tmp_path)["report"].value
    lines = str(shown).splitlines()
    assert max(map(len, lines)) <= pictures.SHOWN_WIDTH
    assert lines[2].startswith("  word")
    assert lines[-2] == "  kept   apart"
    assert (tmp_path / "r.txt").read_text() == text


def test_numpy_and_polars_scalars_dates_and_lists_become_metadata(tmp_path: Path) -> None:
    @table_asset("spans.resources")
    def resources_table(warehouse: WarehouseResource) -> dg.MaterializeResult:
        warehouse.open().replace("spans.resources", pl.DataFrame([RESOURCE]))
        return materialized(
            "spans.resources",
            {
                "f32": np.float32(1.5),
                "i64": np.int64(3),
                "flag": np.bool_(True),
                "polars": pl.Series([1, 2]).sum(),
                "day": date(2024, 1, 1),
                "instant": datetime(2024, 1, 1, tzinfo=UTC),
                "path": tmp_path,
                "many": [np.float64(1), date(2024, 1, 1), None],
                "nested": {"a": np.int32(1)},
                "nothing": None,
            },
        )

    result = dg.materialize([resources_table], resources={"warehouse": store(tmp_path)})
    assert result.success
    metadata = result.asset_materializations_for_node("resources_table")[0].metadata
    assert metadata["i64"].value == 3
    assert metadata["many"].value == [1.0, "2024-01-01", None]
    assert "nothing" not in metadata


def test_storable_keeps_plain_values_as_they_are() -> None:
    assert storable({"a": 1, "b": "x", "c": True, "d": 1.5}) == {"a": 1, "b": "x", "c": True, "d": 1.5}


def test_a_failing_gate_stops_what_is_downstream_and_the_run_is_not_a_success(tmp_path: Path) -> None:
    rows = {"kind": "panel"}

    @table_asset("spans.resources")
    def upstream(warehouse: WarehouseResource) -> dg.MaterializeResult:
        warehouse.open().replace("spans.resources", pl.DataFrame([{**RESOURCE, **rows}]))
        return materialized("spans.resources")

    @table_asset("spans.texts", deps=["spans.resources"])
    def downstream(warehouse: WarehouseResource) -> dg.MaterializeResult:
        warehouse.open().replace("spans.texts", pl.DataFrame({"text_sha256": ["x"], "text": [rows["kind"]]}))
        return materialized("spans.texts")

    gate = table_check("spans.resources", (Expect("ExpectColumnValuesToBeInSet", column="kind", value_set=["panel"]),))
    definitions = dg.Definitions([upstream, downstream], asset_checks=[gate], resources={"warehouse": store(tmp_path)})
    job = definitions.resolve_implicit_global_asset_job_def()
    assert job.execute_in_process().success
    before = store(tmp_path).open().digest("spans.texts")
    rows["kind"] = "unpaired"
    failed = job.execute_in_process(raise_on_error=False)
    assert not failed.success
    (evaluation,) = failed.get_asset_check_evaluations()
    assert not evaluation.passed
    assert evaluation.severity == dg.AssetCheckSeverity.ERROR
    finding = evaluation.metadata["findings"].value[0]
    assert (finding["column"], finding["unexpected_count"], finding["samples"]) == ("kind", 1, ["unpaired"])
    assert [event.asset_key for event in failed.get_asset_materialization_events()] == [key_of("spans.resources")]
    assert store(tmp_path).open().digest("spans.texts") == before


def test_a_check_judges_the_rows_of_its_own_partition_only(tmp_path: Path) -> None:
    @table_asset("models.models", partitions_def=models)
    def one_model(context: dg.AssetExecutionContext, warehouse: WarehouseResource) -> dg.MaterializeResult:
        name = name_of(context.partition_key)
        row = {"model": name, "partition_key": context.partition_key, "is_listed": True, "backend": "openai"}
        rows = pl.DataFrame([{**row, "family": name}])
        warehouse.open().replace("models.models", rows, where={"model": name})
        return materialized("models.models")

    gate = table_check(
        "models.models", (Expect("ExpectColumnValuesToBeInSet", column="family", value_set=["good"]),), models
    )
    instance = dg.DagsterInstance.ephemeral()
    add(instance, models, ["good", "bad/model:x"])
    job = dg.Definitions(
        [one_model], asset_checks=[gate], resources={"warehouse": store(tmp_path)}
    ).resolve_implicit_global_asset_job_def()
    outcomes = {
        name: job.execute_in_process(instance=instance, partition_key=key_for(name), raise_on_error=False)
        .get_asset_check_evaluations()[0]
        .passed
        for name in ("bad/model:x", "good")
    }
    assert outcomes == {"bad/model:x": False, "good": True}


def test_a_partition_of_model_and_benchmark_selects_both_columns() -> None:
    key = dg.MultiPartitionKey({"model": key_for("org/name"), "benchmark": key_for("b,c")})
    assert rows_of(model_by_benchmark, str(key)) == {"model": "org/name", "benchmark": "b,c"}
    assert rows_of(None, None) == {}


def test_five_thousand_models_are_registered_in_one_call() -> None:
    instance = dg.DagsterInstance.ephemeral()
    assert len(add(instance, models, [f"org/model-{i}" for i in range(5000)])) == 5000
    assert add(instance, models, ["org/model-7"]) == []
