"""The release tables through Dagster: offline from the committed facts, and refreshed from registries on loopback."""

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

import assets.releases as family
from assets.asset_checks import checks
from assets.suites.releases import SUITES
from console.committed_facts import export
from resources.configured import NetworkResource, WarehouseResource
from resources.warehouse.validation import validate
from strandline.releases import Project, Release
from strandline.releases.facts import facts_folder, read_projects, read_releases, write_releases
from tests.fakes.registries import Registry, npm_document, simple_page, write_projects
from tests.fakes.web import Answer, WebServer

TABLES = ("releases.sources", "releases.releases", "releases.probe_items")
START = date(2020, 1, 6)


class NoNetwork(NetworkResource):
    """A network that must not be used."""

    def open(self, authorization: Any = None) -> Any:
        raise AssertionError("the network was opened")


def run(
    folder: Path, network: NetworkResource | None = None, config: dict[str, Any] | None = None, judged: bool = False
) -> Any:
    store = WarehouseResource(path=str(folder / "w.duckdb"), published=str(folder / "p.duckdb"))
    ops = {"merge_releases": {"config": config or {}}}
    judges = [*checks(family.ASSETS, SUITES), *family.CHECKS] if judged else family.CHECKS
    result = dg.materialize(
        [*family.ASSETS, *judges],
        resources={"warehouse": store, "network": network or NoNetwork()},
        run_config={"ops": ops},
        raise_on_error=False,
    )
    return result, store.open()


@pytest.fixture
def facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small facts folder: six npm projects with a release a week, and one PyPI project without facts."""
    folder = tmp_path / "facts"
    folder.mkdir()
    projects = [Project(f"P{n}", n + 1, "npm", f"p{n}", "npm", f"p{n}") for n in range(6)]
    projects.append(Project("Late", 7, "pypi", "late", "pypi", "late"))
    write_projects(folder, projects)
    rows = [
        Release("npm", p.package, p.project, f"1.{week}.0", START + timedelta(weeks=week), "endoflife")
        for p in projects[:6]
        for week in range(20)
    ]
    write_releases(folder, rows)
    monkeypatch.setenv("STRANDLINE_RELEASES", str(folder))
    return folder


@pytest.fixture
def registry() -> Registry:
    """What the registries say: the facts of every project and one version more, and a yanked one."""
    days = {f"1.{week}.0": f"{START + timedelta(weeks=week)}T00:00:00Z" for week in range(21)}
    documents: dict[str, Any] = {f"/npm/p{n}": npm_document(f"p{n}", days) for n in range(6)}
    files = [
        {"filename": f"late-2.{n}.tar.gz", "upload-time": f"2021-0{n}-01T00:00:00Z", "yanked": n == 2}
        for n in (1, 2, 3)
    ]
    documents["/simple/late/"] = simple_page("late", files)
    return Registry(documents)


@pytest.fixture
def web(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    """The registries on loopback, and the settings that point there."""
    with WebServer(registry) as server:
        monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
        monkeypatch.setenv("NPM_CONFIG_REGISTRY", f"{server.url}/npm")
        yield server


def network(tmp_path: Path) -> NetworkResource:
    return NetworkResource(cache_dir=str(tmp_path / "cache"), attempts=1, contact="ops@example.org")


@pytest.mark.slow
def test_everything_is_there_without_any_network_and_passes_its_checks(tmp_path: Path) -> None:
    result, store = run(tmp_path, judged=True)
    assert result.success
    assert all(check.passed for check in result.get_asset_check_evaluations())
    assert store.query("select count(distinct project) as n from releases.releases").item() >= 200
    item = store.query("select * from releases.probe_items where project = 'React' limit 1").row(0, named=True)
    assert item["prompt"] == f"Had React released version {item['version']} yet?"
    assert item["url"].endswith(f"/react/{item['version']}")
    assert {"released_on", "project", "version", "source", "url", "prompt"} <= item.keys()
    digests = [store.digest(table) for table in TABLES]
    again, store = run(tmp_path)
    assert again.success
    assert [store.digest(table) for table in TABLES] == digests


def test_a_refresh_merges_what_is_new_and_a_second_one_changes_nothing(
    tmp_path: Path, facts: Path, web: WebServer
) -> None:
    before, store = run(tmp_path)
    assert before.success
    first, store = run(tmp_path, network(tmp_path), {"refresh": True})
    assert first.success
    digests = [store.digest(table) for table in TABLES]
    second, store = run(tmp_path, network(tmp_path), {"refresh": True})
    assert second.success
    assert [store.digest(table) for table in TABLES] == digests
    new = store.query("select project, version, source from releases.releases where first_seen_at is not null")
    assert set(new.iter_rows()) == {
        *((f"P{n}", "1.20.0", "npm") for n in range(6)),
        *(("Late", version, "pypi") for version in ("2.1", "2.2", "2.3")),
    }
    assert store.query("select flags from releases.releases where version = '2.2'").item().to_list() == ["yanked"]
    assert len([a for a in web.asked if a.headers.get("If-None-Match")]) == 7


def test_a_disputed_day_is_no_question_until_its_registry_corrects_it(
    tmp_path: Path, facts: Path, web: WebServer, registry: Registry
) -> None:
    refreshed = {"refresh": True}
    _, store = run(tmp_path / "undisturbed", network(tmp_path / "undisturbed"), refreshed)
    said = ["project", "version", "released_on", "source", "flags", "other_days"]
    digests = [store.digest("releases.releases", said), store.digest("releases.probe_items")]
    right = registry.documents["/npm/p0"]
    registry.documents["/npm/p0"] = {**right, "time": {**right["time"], "1.3.0": "2020-03-01T00:00:00Z"}}
    where = "where project = 'P0' and version = '1.3.0'"
    row = f"select released_on, source, flags, other_days from releases.releases {where}"
    asked = f"select count(*) as n from releases.probe_items {where}"
    for config in (refreshed, {}, refreshed):
        _, store = run(tmp_path, network(tmp_path), config)
        day, source, flags, others = store.query(row).row(0)
        assert (day, source, list(flags)) == (START + timedelta(weeks=3), "endoflife", ["sources_disagree"])
        assert list(others) == ["npm 2020-03-01"]
        assert store.query(asked).item() == 0
    registry.documents["/npm/p0"] = right
    _, store = run(tmp_path, network(tmp_path), refreshed)
    assert store.query(asked).item() == 1
    assert [store.digest("releases.releases", said), store.digest("releases.probe_items")] == digests


def test_without_a_refresh_what_an_earlier_one_found_stays(tmp_path: Path, facts: Path, web: WebServer) -> None:
    _, store = run(tmp_path, network(tmp_path), {"refresh": True})
    digests = [store.digest(table) for table in TABLES]
    result, store = run(tmp_path)
    assert result.success
    assert [store.digest(table) for table in TABLES] == digests


def test_a_source_that_fails_is_named_and_leaves_the_rest(
    tmp_path: Path, facts: Path, web: WebServer, registry: Registry
) -> None:
    registry.faults["/npm/p3"] = Answer(500)
    result, store = run(tmp_path, network(tmp_path), {"refresh": True})
    assert result.success
    row = store.query("select status, error, n_releases from releases.sources where project = 'P3'").row(0)
    assert (row[0], row[2]) == ("unreachable", 20)
    assert "HTTP 500" in row[1]
    assert store.query("select count(*) as n from releases.releases where project = 'P3'").item() == 20
    metadata = result.asset_materializations_for_node("merge_releases")[0].metadata
    assert metadata["failing"].value[0].startswith("P3: ")
    assert metadata["statuses"].value == {"ok": 6, "unreachable": 1}


def test_a_fetch_far_smaller_than_what_is_known_is_refused(
    tmp_path: Path, facts: Path, web: WebServer, registry: Registry
) -> None:
    registry.documents["/npm/p0"] = npm_document("p0", {"1.0.0": "2020-01-06T00:00:00Z"})
    _, store = run(tmp_path, network(tmp_path), {"refresh": True, "packages": ["p0"]})
    assert store.query("select status from releases.sources where project = 'P0'").item() == "shrunken"
    assert store.query("select count(*) as n from releases.releases where project = 'P0'").item() == 20


def test_a_decoy_that_is_released_later_is_named_where_a_model_was_asked_it(tmp_path: Path, facts: Path) -> None:
    result, store = run(tmp_path)
    (check,) = result.get_asset_check_evaluations()
    assert check.passed
    decoy = store.query("select project, decoy_version, released_on, position from releases.probe_items limit 1").row(0)
    answer = {
        "model": "m", "run_id": "r", "replicate": 0, "round": 0, "question": 0, "position": decoy[3],
        "released_on": decoy[2], "project": decoy[0], "version": decoy[1], "kind": "decoy", "parse_status": "ok",
        "answer": "NO", "counted": True,
    }  # fmt: skip
    store.merge("probe.answers", pl.DataFrame([answer]))
    projects = read_projects(facts)
    mine = next(p for p in projects if p.project == decoy[0])
    born = Release("npm", mine.package, mine.project, f"{decoy[1]}-rc.1", date(2021, 1, 1), "endoflife")
    write_releases(facts, [*read_releases(facts, projects), born])
    result, store = run(tmp_path)
    (check,) = result.get_asset_check_evaluations()
    assert not check.passed
    assert f"{decoy[0]} {decoy[1]}" in str(check.description)
    now = store.query("select project, decoy_version from releases.probe_items")
    assert (decoy[0], decoy[1]) not in set(now.iter_rows())


def test_what_a_refresh_found_can_be_committed_and_read_again(tmp_path: Path, facts: Path, web: WebServer) -> None:
    _, store = run(tmp_path, network(tmp_path), {"refresh": True})
    assert export(store, facts) == 6 * 21 + 3
    committed = (facts / "releases.csv.gz").read_bytes()
    assert export(store, facts) == 6 * 21 + 3
    assert (facts / "releases.csv.gz").read_bytes() == committed
    found = {r.version: r for r in read_releases(facts, read_projects(facts)) if r.project == "Late"}
    assert [found["2.2"].is_yanked, found["2.1"].is_yanked] == [True, False]


def test_an_empty_warehouse_does_not_empty_the_facts(tmp_path: Path, facts: Path) -> None:
    store = WarehouseResource(path=str(tmp_path / "w.duckdb"), published=str(tmp_path / "p.duckdb")).open()
    with pytest.raises(ValueError, match="run the job first"):
        export(store, facts)


def test_each_suite_fails_on_no_rows_and_on_nothing_but_nulls(tmp_path: Path, facts: Path) -> None:
    _, store = run(tmp_path)
    for table in TABLES:
        rows = store.query(f"select * from {table}")
        assert "no rows" in validate(table, rows.clear(), SUITES[table]).sentence
        empty = rows.with_columns(pl.lit(None, dtype=dtype).alias(name) for name, dtype in rows.schema.items())
        assert "is NULL" in validate(table, empty, SUITES[table]).sentence


def test_a_broken_projects_file_names_the_line(tmp_path: Path) -> None:
    text = (facts_folder() / "projects.csv").read_text()
    (tmp_path / "projects.csv").write_text(text.replace("Node.js,2,", "Node.js,two,"))
    with pytest.raises(ValueError, match="line 3: salience_rank 'two'"):
        read_projects(tmp_path)
    (tmp_path / "projects.csv").write_text(text + "Python,900,python,python2,,\n")
    with pytest.raises(ValueError, match="'Python' stands there more than once"):
        read_projects(tmp_path)
