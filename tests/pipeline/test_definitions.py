"""The code location loads fast and free of side effects, and every declared table has an asset, a check and a suite."""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from definitions import build_definitions
from resources.configured import WarehouseResource
from resources.warehouse.schema import tables

HEAVY = ("torch", "transformers", "tantivy", "ray", "great_expectations", "matplotlib", "trafilatura", "datasketch")


@pytest.fixture(scope="module")
def repository() -> dg.RepositoryDefinition:
    return build_definitions().get_repository_def()


def test_importing_the_code_location_is_quick_and_loads_nothing_heavy(root: Path, tmp_path: Path) -> None:
    script = (
        "import sys, time; started = time.process_time(); import definitions; "
        "print(time.process_time() - started); print(*sys.modules)"
    )
    home = tmp_path / "home"
    out = subprocess.run(
        [sys.executable, "-c", script],
        cwd=root,
        env={**os.environ, "DAGSTER_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert float(out[0]) < 5
    assert [name for name in HEAVY if name in out[1].split()] == []
    assert not home.exists()


def test_every_declared_table_is_an_asset_with_a_blocking_check(repository: dg.RepositoryDefinition) -> None:
    graph = repository.asset_graph
    keys = {".".join(key.path) for key in graph.get_all_asset_keys()}
    assert set(tables()) <= keys
    gates = [key for key in graph.asset_check_keys if key.name == "meets_expectations"]
    assert set(tables()) == {".".join(key.asset_key.path) for key in gates}
    assert all(graph.get(key).blocking for key in gates)


def test_every_asset_has_a_group_a_description_and_a_code_version(repository: dg.RepositoryDefinition) -> None:
    specs = [spec for asset in repository.assets_defs_by_key.values() for spec in asset.specs]
    assert [spec.key for spec in specs if not (spec.group_name and spec.description)] == []
    described = [spec for spec in specs if "dagster/table_name" in spec.metadata]
    assert [spec.key for spec in described if not spec.code_version] == []


def test_every_asset_that_is_not_a_source_says_what_it_is_made_from(repository: dg.RepositoryDefinition) -> None:
    graph = repository.asset_graph
    missing = {
        str(key.to_user_string()): [str(parent) for parent in graph.get(key).parent_keys if not graph.has(parent)]
        for key in graph.get_all_asset_keys()
    }
    assert {key: parents for key, parents in missing.items() if parents} == {}


def test_resources_can_be_replaced(tmp_path: Path) -> None:
    other = WarehouseResource(path=str(tmp_path / "w.duckdb"))
    definitions = build_definitions(warehouse=other)
    assert definitions.resources is not None
    assert definitions.resources["warehouse"] is other


def test_schedules_and_sensors_are_off_until_switched_on_and_run_in_utc(repository: dg.RepositoryDefinition) -> None:
    for schedule in repository.schedule_defs:
        assert schedule.default_status == dg.DefaultScheduleStatus.STOPPED
        assert schedule.execution_timezone == "UTC"
    running = [s.name for s in repository.sensor_defs if s.default_status == dg.DefaultSensorStatus.RUNNING]
    assert sorted(running) == ["listed_names", "publish_after_run"]
