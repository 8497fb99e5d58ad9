"""The product as a person meets it: the UI in a real browser, and the real daemon dating a model that was added."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from resources.warehouse.store import PublishedCopy, WarehouseError
from tests.fakes.openai_server import FakeOpenAIServer

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CUTOFF = date(2023, 6, 15)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.xdist_group("ui")]


class Installation:
    """A copy of the project in a folder of its own, with its own Dagster home and warehouse."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=source, capture_output=True, check=True
        ).stdout.decode()
        for name in filter(None, listed.split("\0")):
            if not name.startswith("tests/") and (source / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source / name, folder / name)
        self.environment = {k: v for k, v in os.environ.items() if k != "DAGSTER_HOME"}
        self.environment["PYTHONPATH"] = str(folder)

    def launch(self, *arguments: str, timeout: float = 300) -> str:
        done = subprocess.run(
            [sys.executable, "launch.py", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def serve(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "launch.py", "ui", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=(self.folder / "ui.log").open("wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def models(self, *entries: dict[str, Any]) -> None:
        (self.folder / "data" / "models.yaml").write_text(yaml.safe_dump({"models": list(entries)}))

    def query(self, sql: str) -> pl.DataFrame:
        return PublishedCopy(self.folder / "data" / "published" / "strandline.duckdb").query(sql)


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def graphql(port: int, query: str, **variables: Any) -> Any:
    body = json.dumps({"query": query, "variables": variables}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply)


def until(what: str, ready: Any, seconds: float) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            value = ready()
        except (OSError, WarehouseError):
            value = None
        if value:
            return value
        time.sleep(1)
    pytest.fail(f"{what} did not happen within {seconds:.0f} s")


def stop(process: subprocess.Popen[bytes]) -> None:
    import signal

    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


@pytest.fixture(scope="module")
def endpoint(root: Path) -> Iterator[FakeOpenAIServer]:
    from strandline.releases.facts import facts_folder, read_projects, read_releases

    projects = read_projects(facts_folder())
    released = {(r.project, r.version): r.released_on for r in read_releases(facts_folder(), projects) if r.released_on}
    with FakeOpenAIServer(released, CUTOFF) as server:
        yield server


def entry(name: str, server: FakeOpenAIServer) -> dict[str, Any]:
    return {"name": name, "backend": "openai", "source": server.base_url, "served_name": "planted", "ask": "chat"}


@pytest.fixture(scope="module")
def installation(root: Path, tmp_path_factory: pytest.TempPathFactory, endpoint: FakeOpenAIServer) -> Installation:
    made = Installation(root, tmp_path_factory.mktemp("installation"))
    made.models(entry("first/planted", endpoint))
    made.launch("job", "describe_models")
    made.launch("job", "refresh_releases")
    return made


@pytest.fixture(scope="module")
def served(installation: Installation) -> Iterator[int]:
    port = free_port()
    process = installation.serve("--port", str(port))
    try:
        until("the UI", lambda: graphql(port, "{ version }"), 120)
        yield port
    finally:
        stop(process)


def boundary(installation: Installation, model: str) -> list[dict[str, Any]]:
    return installation.query(
        f"select * from probe.boundaries where model = '{model}' and estimator = 'calibrated'"
    ).to_dicts()


@pytest.fixture(scope="module")
def dated(installation: Installation) -> Installation:
    """The installation with its first model dated, from the command line unless the daemon has done so."""
    if not boundary(installation, "first/planted"):
        installation.launch("job", "date_models", "--partition", "first%2Fplanted")
    return installation


def test_the_daemon_dates_each_listed_model_once_with_no_hand_on_it(
    installation: Installation, served: int, endpoint: FakeOpenAIServer
) -> None:
    start = """mutation($selector: SensorSelector!) { startSensor(sensorSelector: $selector) { __typename } }"""
    selector = {"repositoryName": "__repository__", "repositoryLocationName": "strandline", "sensorName": "new_models"}
    assert graphql(served, start, selector=selector)["data"]["startSensor"]["__typename"] == "Sensor"
    (first,) = until("the first model's boundary", lambda: boundary(installation, "first/planted"), 240)
    installation.models(entry("first/planted", endpoint), entry("second: planted, again", endpoint))
    (second,) = until("the added model's boundary", lambda: boundary(installation, "second: planted, again"), 240)
    for row in (first, second):
        assert row["status"] == "ok"
        assert row["low95"] <= CUTOFF <= row["high95"]
    asked = len(endpoint.answered)
    time.sleep(40)
    assert len(endpoint.answered) == asked
    by_sensor = '{pipelineName: "date_models", tags: [{key: "dagster/sensor_name", value: "new_models"}]}'
    runs = graphql(served, "{ runsOrError(filter: " + by_sensor + ") { ... on Runs { results { status } } } }")
    assert [run["status"] for run in runs["data"]["runsOrError"]["results"]] == ["SUCCESS", "SUCCESS"]


@pytest.mark.system
def test_a_browser_shows_the_graph_the_columns_the_check_and_the_picture(
    dated: Installation, served: int, tmp_path: Path
) -> None:
    if not CHROMIUM:
        pytest.skip("Chromium is not installed (Debian package chromium)")
    from playwright.sync_api import sync_playwright

    pictures = Path(os.environ.get("STRANDLINE_SCREENSHOTS", tmp_path))
    home = f"http://127.0.0.1:{served}"
    flags = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
    ]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        page.goto(f"{home}/asset-groups")
        page.wait_for_selector("text=contamination", timeout=60_000)
        page.wait_for_timeout(3000)
        page.screenshot(path=pictures / "groups.png")
        page.goto(f"{home}/locations/__repository__@strandline/asset-groups/probe")
        page.wait_for_selector("text=boundaries", timeout=60_000)
        page.wait_for_timeout(3000)
        page.screenshot(path=pictures / "graph.png")
        page.goto(f"{home}/assets/probe/boundaries?view=overview")
        page.wait_for_selector("text=dataset_version", timeout=60_000)
        page.screenshot(path=pictures / "columns.png")
        page.goto(f"{home}/assets/probe/boundaries?view=checks")
        page.wait_for_selector("text=This is a blocking asset check", timeout=60_000)
        page.wait_for_timeout(3000)
        page.screenshot(path=pictures / "check.png")
        page.goto(f"{home}/assets/probe/boundaries?view=partitions&partition=first%252Fplanted")
        page.get_by_text("[Show Markdown]").first.click(timeout=60_000)
        page.wait_for_selector("img[src^='data:image/png']", timeout=30_000)
        page.wait_for_timeout(3000)
        page.screenshot(path=pictures / "picture.png")
        browser.close()
    assert all(
        (pictures / f"{name}.png").stat().st_size > 20_000
        for name in ("groups", "graph", "columns", "check", "picture")
    )


def test_runs_of_the_command_line_are_listed_under_their_job(installation: Installation, served: int) -> None:
    query = """{ repositoryOrError(repositorySelector: {repositoryName: "__repository__",
        repositoryLocationName: "strandline"}) { ... on Repository { jobs { name runs(limit: 1) { id } } } } }"""
    jobs = {job["name"]: job["runs"] for job in graphql(served, query)["data"]["repositoryOrError"]["jobs"]}
    assert jobs["describe_models"]
    assert jobs["refresh_releases"]


def test_history_survives_a_restart_and_a_read_only_ui_launches_nothing(dated: Installation) -> None:
    port = free_port()
    process = dated.serve("--port", str(port), "--read-only")
    try:
        until("the read-only UI", lambda: graphql(port, "{ version }"), 120)
        query = """{ assetOrError(assetKey: {path: ["probe", "boundaries"]}) {
            ... on Asset { assetMaterializations(limit: 1) { runId } } } }"""
        found = graphql(port, query)["data"]["assetOrError"]
        assert found["assetMaterializations"], found
        launch = """mutation { launchRun(executionParams: {selector: {repositoryName: "__repository__",
            repositoryLocationName: "strandline", jobName: "describe_models"}, runConfigData: {}}) { __typename } }"""
        assert graphql(port, launch)["data"]["launchRun"]["__typename"] == "UnauthorizedError"
    finally:
        stop(process)
