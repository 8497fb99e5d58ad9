"""The installed environment as a corpus with known truth, against READMEs from the package index of the user."""

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
import yaml

from assets import corpus
from assets.partitions import key_for
from resources.configured import ComputeResource, CorpusListResource, WarehouseResource
from resources.network.http import FetchError, Http
from resources.releases.registries import configured
from resources.spans.package_readmes import ReadmeSource
from resources.spans.refresh import refresh
from strandline.spans import Span
from strandline.spans.months import month_range, reached

PACKAGES = ("attrs", "httpx", "jinja2", "packaging", "pluggy", "python-dateutil", "semantic-version", "typer")

pytestmark = pytest.mark.system


@pytest.fixture
def http(tmp_path: Path) -> Http:
    endpoints = configured()
    client = Http(tmp_path / "http", contact="tests@example.org", authorization=endpoints.authorization)
    try:
        client.get(f"{endpoints.pypi.rstrip('/')}/httpx/")
    except FetchError as error:
        pytest.skip(f"the package index cannot be reached: {error.status}")
    return client


def test_installed_readmes_are_dated_to_the_months_of_their_version(http: Http, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    months = reached(month_range(now.date().replace(year=now.year - 2, day=1), now.date()), 1, now)
    warehouse = WarehouseResource(
        path=str(tmp_path / "w.duckdb"), published=str(tmp_path / "p.duckdb"), reports=str(tmp_path / "reports")
    )
    store = warehouse.open()
    span = Span("readme", "readme", "panel", months, 512, topics=PACKAGES)
    refresh(store, span, ReadmeSource(http, tmp_path), months, now)
    settings = {"corpora": [{"corpus": "here", "reader": "environment", "resources": ["readme"], "duplicates": "none"}]}
    (tmp_path / "corpora.yaml").write_text(yaml.safe_dump(settings))
    instance = dg.DagsterInstance.ephemeral()
    instance.add_dynamic_partitions("corpora", [key_for("here")])
    resources = {
        "warehouse": warehouse,
        "compute": ComputeResource(workers=1),
        "corpus_list": CorpusListResource(path=str(tmp_path / "corpora.yaml"), cache_dir=str(tmp_path / "cache")),
    }
    assert dg.materialize(corpus.ASSETS, partition_key=key_for("here"), resources=resources, instance=instance).success
    checks = store.query("select topic, outcome, reason from corpus.truth_checks where outcome != 'unknown_topic'")
    outcomes = dict(checks.select("topic", "outcome").iter_rows())
    judged = [outcome for outcome in outcomes.values() if outcome != "outside"]
    assert len(judged) >= 4, checks.rows()
    assert judged.count("right") / len(judged) >= 0.95, checks.rows()
    assert all(checks["reason"])
    assert store.query("select right_share from corpus.known_truth").item() >= 0.95
