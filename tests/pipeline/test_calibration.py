"""What is known of an estimator on planted truth: coverage of all runs and of findings, and every refusal counted."""

from pathlib import Path

import dagster as dg
import pytest

from assets.calibration import summarise_recoveries
from resources.configured import WarehouseResource


@pytest.fixture
def warehouse(tmp_path: Path) -> WarehouseResource:
    return WarehouseResource(
        path=str(tmp_path / "w.duckdb"), published=str(tmp_path / "p.duckdb"), reports=str(tmp_path / "reports")
    )


def run(scenario: str, seed: int, truth: float | None, estimate: float, half: float, status: str) -> dict[str, object]:
    ends = {"low80": estimate - half, "high80": estimate + half, "low95": estimate - half, "high95": estimate + half}
    found = {"status": status, "found": status == "found", "has_truth": truth is not None}
    return {"estimator": "e", "scenario": scenario, "seed": seed, "truth": truth, "estimate": estimate, **ends, **found}


def test_a_summary_tells_coverage_of_all_runs_and_of_findings_and_counts_refusals(warehouse: WarehouseResource) -> None:
    store = warehouse.open()
    dump = [run("dump", 3, 5.0, 5.0, 1.0, "found"), run("dump", 4, 5.0, 9.0, 1.0, "found")]
    dump += [run("dump", seed, 5.0, 20.0, 20.0, "flat") for seed in (5, 6)]
    none = [run("none", 3, None, 5.0, 1.0, "flat"), run("none", 4, None, 5.0, 1.0, "found")]
    store.merge("calibration.runs", dump + none)
    assert dg.materialize([summarise_recoveries], resources={"warehouse": warehouse}).success
    with_truth, without = store.query("select * from calibration.recoveries order by scenario").rows(named=True)
    assert (with_truth["n_runs"], with_truth["n_found"], with_truth["seed"]) == (4, 2, 3)
    assert (with_truth["coverage95"], with_truth["coverage95_found"], with_truth["coverage80_found"]) == (
        0.75,
        0.5,
        0.5,
    )
    assert with_truth["statuses"] == "flat 2, found 2"
    assert (without["false_findings"], without["coverage95"], without["coverage95_found"]) == (1, None, None)
    assert without["statuses"] == "flat 1, found 1"


def test_recoveries_before_any_run_say_that_there_are_none(warehouse: WarehouseResource) -> None:
    with pytest.raises(dg.Failure, match="no runs yet"):
        dg.materialize([summarise_recoveries], resources={"warehouse": warehouse})
