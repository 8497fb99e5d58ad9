"""No table is rebuilt by itself from one whose blocking check failed, was interrupted or never ran."""

from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

from assets.asset_checks import table_check
from assets.gates import held_back
from assets.partitions import add, benchmarks, key_for, model_by_benchmark, models
from assets.tables import key_of, materialized, table_asset
from resources.configured import WarehouseResource
from resources.warehouse.validation import Expect

ONLY_PANELS = (Expect("ExpectColumnValuesToBeInSet", column="kind", value_set=["panel"]),)
PASSED, FAILED, NEVER = "passed", "failed", "never ran"


class House:
    """Two tables, the second made from the first and following it, with a gate on each."""

    def __init__(self, folder: Path) -> None:
        self.kind = "panel"
        house = self

        @table_asset("spans.resources")
        def upstream(warehouse: WarehouseResource) -> dg.MaterializeResult:
            row = {"resource": "r", "kind": house.kind, "max_tokens": 512}
            warehouse.open().replace("spans.resources", [row])
            return materialized("spans.resources")

        @table_asset("spans.texts", deps=["spans.resources"], follows=True)
        def downstream(warehouse: WarehouseResource) -> dg.MaterializeResult:
            warehouse.open().replace("spans.texts", [{"text_sha256": "x", "text": "a text"}])
            return materialized("spans.texts")

        first, second = dg.AssetSelection.assets(upstream), dg.AssetSelection.assets(downstream)
        self.definitions = dg.Definitions(
            [upstream, downstream],
            asset_checks=[
                table_check("spans.resources", ONLY_PANELS),
                table_check("spans.texts", (Expect("ExpectColumnValuesToNotBeNull", column="text"),)),
            ],
            jobs=[
                dg.define_asset_job("first", first),
                dg.define_asset_job("first_unchecked", first - dg.AssetSelection.all_asset_checks()),
                dg.define_asset_job("second", second),
            ],
            resources={
                "warehouse": WarehouseResource(
                    path=str(folder / "w.duckdb"), published=str(folder / "p.duckdb"), reports=str(folder / "reports")
                )
            },
        )
        self.instance = dg.DagsterInstance.ephemeral()
        self.cursor: dg.AssetDaemonCursor | None = None

    def run(self, job: str) -> bool:
        launched = self.definitions.resolve_job_def(job)
        return launched.execute_in_process(instance=self.instance, raise_on_error=False).success

    def requested(self) -> int:
        tick = dg.evaluate_automation_conditions(self.definitions, self.instance, cursor=self.cursor)
        self.cursor = tick.cursor
        return tick.total_requested

    def write_upstream(self, outcome: str) -> None:
        """New rows upstream whose gate has passed, has failed, or never ran."""
        self.kind = "unpaired" if outcome == FAILED else "panel"
        assert self.run("first_unchecked" if outcome == NEVER else "first") is (outcome != FAILED)


@pytest.fixture
def house(tmp_path: Path) -> House:
    made = House(tmp_path)
    made.write_upstream(PASSED)
    assert made.run("second")
    made.requested()
    return made


@pytest.mark.parametrize(("outcome", "runs"), [(PASSED, 1), (FAILED, 0), (NEVER, 0)])
def test_automation_follows_a_new_table_only_where_its_gate_has_passed(house: House, outcome: str, runs: int) -> None:
    house.write_upstream(outcome)
    assert house.requested() == runs


@pytest.mark.parametrize("outcome", [FAILED, NEVER])
def test_what_was_held_back_follows_as_soon_as_the_gate_passes(house: House, outcome: str) -> None:
    house.write_upstream(outcome)
    assert house.requested() == 0
    house.write_upstream(PASSED)
    assert house.requested() == 1


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (PASSED, []),
        (FAILED, ["spans.resources has not passed its check meets_expectations"]),
        (NEVER, ["spans.resources was not checked by meets_expectations since it was last written"]),
    ],
)
def test_a_job_is_held_back_in_words_by_the_gates_of_what_it_reads(
    house: House, outcome: str, words: list[str]
) -> None:
    house.write_upstream(outcome)
    assert held_back(house.instance, house.definitions.get_repository_def(), "second") == words
    assert held_back(house.instance, house.definitions.get_repository_def(), "first") == []


def test_a_table_that_was_never_materialized_holds_nothing_back(tmp_path: Path) -> None:
    made = House(tmp_path)
    assert held_back(made.instance, made.definitions.get_repository_def(), "second") == []


@pytest.fixture
def by_partition(tmp_path: Path) -> tuple[dg.DagsterInstance, Callable[[str, str], bool], dg.Definitions]:
    """A table by benchmark that fails its gate for the benchmark `bad`, and one by model and benchmark made from it."""

    @table_asset("contamination.benchmarks", partitions_def=benchmarks)
    def upstream() -> dg.MaterializeResult:
        return materialized("contamination.benchmarks")

    @table_asset("contamination.order_checks", deps=["contamination.benchmarks"], partitions_def=model_by_benchmark)
    def downstream() -> dg.MaterializeResult:
        return materialized("contamination.order_checks")

    @dg.asset_check(asset=upstream, name="gate", blocking=True, partitions_def=benchmarks)
    def gate(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=context.partition_key != "bad")

    selected = dg.AssetSelection.assets(upstream), dg.AssetSelection.assets(downstream)
    definitions = dg.Definitions(
        [upstream, downstream],
        asset_checks=[gate],
        jobs=[dg.define_asset_job("first", selected[0]), dg.define_asset_job("second", selected[1])],
    )
    instance = dg.DagsterInstance.ephemeral()
    add(instance, benchmarks, ["good", "bad"])
    add(instance, models, ["org/m"])

    def run(job: str, key: str) -> bool:
        launched = definitions.resolve_job_def(job)
        return launched.execute_in_process(instance=instance, partition_key=key, raise_on_error=False).success

    return instance, run, definitions


def test_a_failed_gate_of_one_partition_holds_back_what_reads_that_partition_only(
    by_partition: tuple[dg.DagsterInstance, Callable[[str, str], bool], dg.Definitions],
) -> None:
    instance, run, definitions = by_partition
    assert (run("first", "good"), run("first", "bad")) == (True, False)

    def held(benchmark: str) -> list[str]:
        key = dg.MultiPartitionKey({"model": key_for("org/m"), "benchmark": benchmark})
        return held_back(instance, definitions.get_repository_def(), "second", str(key))

    assert held("good") == []
    assert held("bad") == ["contamination.benchmarks (bad) has not passed its check gate"]
    assert key_of("contamination.benchmarks") in definitions.resolve_all_asset_keys()
