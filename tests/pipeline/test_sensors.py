"""Sensors: a listed model is dated once whoever dated it, waits for gates, and has its partition."""

from pathlib import Path

import dagster as dg
import pytest

from assets.jobs import date_models
from assets.partitions import key_for, missing, models
from assets.sensors import entry_tags, listed_names, new_models
from definitions import build_definitions
from resources.configured import BenchmarkListResource, CorpusListResource, ModelListResource
from strandline.models.spec import read_models

NAME = "org/tiny:1"


@pytest.fixture
def listed(tmp_path: Path) -> ModelListResource:
    entry = f'{{name: "{NAME}", backend: transformers, source: "folder:x", ask: likelihood}}'
    (tmp_path / "models.yaml").write_text(f"models:\n  - {entry}\n", encoding="utf-8")
    return ModelListResource(path=str(tmp_path / "models.yaml"))


@pytest.fixture(scope="module")
def repository() -> dg.RepositoryDefinition:
    return build_definitions().get_repository_def()


def tick(
    listed: ModelListResource, instance: dg.DagsterInstance, repository: dg.RepositoryDefinition | None = None
) -> dg.SensorResult:
    context = dg.build_sensor_context(instance=instance, repository_def=repository)
    result = new_models(context, model_list=listed)
    assert isinstance(result, dg.SensorResult)
    return result


def report(instance: dg.DagsterInstance, asset: list[str]) -> None:
    instance.report_runless_asset_event(dg.AssetMaterialization(asset))


def judged(instance: dg.DagsterInstance, asset: list[str], *, passed: bool) -> None:
    instance.report_runless_asset_event(
        dg.AssetCheckEvaluation(
            asset_key=dg.AssetKey(asset), check_name="meets_expectations", passed=passed, metadata={}, blocking=True
        )
    )


def test_a_new_model_gets_its_partition_and_one_run(
    listed: ModelListResource, repository: dg.RepositoryDefinition
) -> None:
    result = tick(listed, dg.DagsterInstance.ephemeral(), repository)
    assert [request.partition_key for request in result.run_requests or []] == [key_for(NAME)]
    assert [list(request.partition_keys) for request in result.dynamic_partitions_requests or []] == [[key_for(NAME)]]


@pytest.mark.parametrize(
    ("status", "asked"), [("SUCCESS", 0), ("STARTED", 0), ("FAILURE", 1)], ids=["went well", "is going", "failed"]
)
def test_a_model_that_the_command_line_dated_is_not_dated_again(
    listed: ModelListResource, repository: dg.RepositoryDefinition, status: str, asked: int, tmp_path: Path
) -> None:
    instance = dg.DagsterInstance.ephemeral()
    (spec,) = read_models(tmp_path / "models.yaml")
    run = instance.create_run_for_job(
        repository.get_job(date_models.name), tags=entry_tags(spec), status=dg.DagsterRunStatus(status)
    )
    assert run.tags.keys() >= entry_tags(spec).keys()
    assert len(tick(listed, instance, repository).run_requests or []) == asked


def test_a_model_waits_while_the_questions_have_not_passed_their_check_and_the_tick_says_so(
    listed: ModelListResource, repository: dg.RepositoryDefinition
) -> None:
    instance = dg.DagsterInstance.ephemeral()
    items = ["releases", "probe_items"]
    report(instance, items)
    waiting = tick(listed, instance, repository)
    assert not waiting.run_requests
    assert "releases.probe_items was not checked" in str(waiting.skip_reason)
    assert waiting.dynamic_partitions_requests
    judged(instance, items, passed=False)
    assert "has not passed its check" in str(tick(listed, instance, repository).skip_reason)


def test_listed_names_asks_for_every_missing_partition_and_then_for_none(
    listed: ModelListResource, tmp_path: Path
) -> None:
    instance = dg.DagsterInstance.ephemeral()
    header = Path("data/benchmarks.csv").read_text(encoding="utf-8").splitlines()[0]
    (tmp_path / "benchmarks.csv").write_text(header + "\n")
    (tmp_path / "corpora.yaml").write_text("corpora: []\n")
    lists = {
        "model_list": listed,
        "benchmark_list": BenchmarkListResource(path=str(tmp_path / "benchmarks.csv")),
        "corpus_list": CorpusListResource(path=str(tmp_path / "corpora.yaml")),
    }
    first = listed_names(dg.build_sensor_context(instance=instance), **lists)
    assert [list(request.partition_keys) for request in first.dynamic_partitions_requests] == [[key_for(NAME)]]
    instance.add_dynamic_partitions("models", [key_for(NAME)])
    second = listed_names(dg.build_sensor_context(instance=instance), **lists)
    assert not second.dynamic_partitions_requests
    assert second.skip_reason.skip_message == "every listed name has its partition"
    assert missing(instance, models, [NAME]) == []
