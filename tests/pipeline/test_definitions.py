"""The code location loads fast and free of side effects, and every declared table has an asset, a check and a suite."""

import os
import re
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from assets.tables import table_spec, version_of
from definitions import build_definitions
from resources.configured import WarehouseResource, defaults
from resources.corpus.mining import MATCHING_VERSION
from resources.corpus.shards import READER_VERSION
from resources.warehouse.schema import tables
from strandline.contamination.verdict import VERDICT_VERSION
from strandline.perplexity.estimates import ESTIMATES_VERSION
from strandline.perplexity.reference import NGRAM_VERSION
from strandline.probe.boundaries import DATING_VERSION
from strandline.scoring.engine import SCORER_VERSION
from strandline.spans import article, git, readme, wikitext

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


def test_the_code_version_of_a_table_holds_the_versions_of_the_methods_that_make_it(
    repository: dg.RepositoryDefinition,
) -> None:
    expected = {
        "spans.texts": (article.CLEANER, git.CLEANER, readme.CLEANER, wikitext.CLEANER),
        "perplexity.scores": (SCORER_VERSION,),
        "perplexity.reference_tests": (NGRAM_VERSION,),
        "perplexity.effective_cutoffs": (ESTIMATES_VERSION,),
        "contamination.order_logliks": (SCORER_VERSION,),
        "contamination.tests": (VERDICT_VERSION,),
        "corpus.corpora": (READER_VERSION,),
        "corpus.matches": (MATCHING_VERSION,),
        "probe.boundaries": (DATING_VERSION,),
    }
    for table, versions in expected.items():
        said = repository.asset_graph.get(dg.AssetKey(table.split("."))).code_version
        assert all(f"={version}" in said for version in versions), (table, said)


def test_a_table_whose_method_has_a_new_version_is_seen_to_be_stale() -> None:
    def location(scorer: str) -> dg.Definitions:
        return dg.Definitions(
            [table_spec("perplexity.scores", code_version=version_of("1", scorer=scorer)).replace_attributes(
                automation_condition=dg.AutomationCondition.code_version_changed()
            )]
        )  # fmt: skip

    instance = dg.DagsterInstance.ephemeral()
    first = dg.evaluate_automation_conditions(location("1"), instance)
    same = dg.evaluate_automation_conditions(location("1"), instance, cursor=first.cursor)
    changed = dg.evaluate_automation_conditions(location("2"), instance, cursor=same.cursor)
    assert (same.total_requested, changed.total_requested) == (0, 1)


def test_only_public_names_of_dagster_are_imported(root: Path) -> None:
    private = re.compile(r"^\s*(from|import) dagster\._")
    files = [file for folder in ("assets", "console", "resources") for file in (root / folder).rglob("*.py")]
    lines = [(file.name, line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    assert [place for place in lines if private.match(place[1])] == []


def test_every_field_of_every_configuration_has_help(repository: dg.RepositoryDefinition) -> None:
    steps = {op.name: op for job in repository.get_all_jobs() for op in job.graph.node_defs}
    unexplained = [
        f"{name}.{key}"
        for name, op in steps.items()
        for key, field in getattr(op.config_schema.config_type, "fields", {}).items()
        if not field.description
    ]
    resources = {name: type(resource) for name, resource in defaults().items()}
    unexplained += [
        f"{name}.{key}"
        for name, kind in resources.items()
        for key, field in kind.model_fields.items()
        if not field.description
    ]
    assert unexplained == []
