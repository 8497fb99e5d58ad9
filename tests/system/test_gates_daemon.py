"""The real daemon follows a new table only where its blocking check has passed."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

LOCATION = """
from pathlib import Path

import dagster as dg

from assets.tables import materialized, table_asset

HERE = Path(__file__).parent


@table_asset("spans.resources")
def upstream() -> dg.MaterializeResult:
    return materialized("spans.resources")


@table_asset("spans.texts", deps=["spans.resources"], follows=True)
def downstream() -> dg.MaterializeResult:
    return materialized("spans.texts")


@dg.asset_check(asset=upstream, name="gate", blocking=True)
def gate() -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=(HERE / "open").exists())


defs = dg.Definitions(
    [upstream, downstream],
    asset_checks=[gate],
    jobs=[dg.define_asset_job("both", "*"), dg.define_asset_job("first", dg.AssetSelection.assets(upstream))],
    sensors=[
        dg.AutomationConditionSensorDefinition(
            "follows",
            target="*",
            minimum_interval_seconds=1,
            default_status=dg.DefaultSensorStatus.RUNNING,
        )
    ],
)
"""
UPSTREAM, DOWNSTREAM = dg.AssetKey(["spans", "resources"]), dg.AssetKey(["spans", "texts"])


class House:
    """A small code location in a folder of its own, with a daemon that runs."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder
        (folder / "location.py").write_text(LOCATION)
        (folder / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
        path = os.pathsep.join([str(root), str(folder)])
        self.environment = {**os.environ, "DAGSTER_HOME": str(folder), "PYTHONPATH": path}

    def run(self, job: str) -> None:
        command = [sys.executable, "-m", "dagster", "job", "execute", "-f", "location.py", "-j", job]
        subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, timeout=200, check=False)

    def daemon(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "dagster._daemon", "run", "-f", "location.py"]
        log = (self.folder / "daemon.log").open("wb")
        return subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=log, stderr=log)

    def materialized(self, key: dg.AssetKey) -> int:
        with dg.DagsterInstance.from_config(str(self.folder)) as instance:
            return len(instance.fetch_materializations(key, limit=100).records)

    def ticks(self) -> int:
        """Evaluations of automation that the daemon has finished."""
        with dg.DagsterInstance.from_config(str(self.folder)) as instance:
            states = instance.all_instigator_state()
            return sum(len(instance.get_ticks(s.instigator_origin_id, s.selector_id)) for s in states)

    def wait_for_ticks(self, more: int) -> None:
        goal, deadline = self.ticks() + more, time.monotonic() + 240
        while self.ticks() < goal:
            assert time.monotonic() < deadline, (self.folder / "daemon.log").read_text()[-2000:]
            time.sleep(1)


@pytest.fixture
def house(tmp_path: Path, root: Path) -> Iterator[House]:
    made = House(tmp_path, root)
    (tmp_path / "open").touch()
    made.run("both")
    assert (made.materialized(UPSTREAM), made.materialized(DOWNSTREAM)) == (1, 1)
    daemon = made.daemon()
    try:
        made.wait_for_ticks(2)
        yield made
    finally:
        daemon.terminate()
        daemon.wait(60)


@pytest.mark.slow
def test_the_daemon_rebuilds_nothing_behind_a_failed_gate_and_follows_once_it_has_passed(house: House) -> None:
    (house.folder / "open").unlink()
    house.run("first")
    assert house.materialized(UPSTREAM) == 2
    house.wait_for_ticks(4)
    assert house.materialized(DOWNSTREAM) == 1
    (house.folder / "open").touch()
    house.run("first")
    deadline = time.monotonic() + 240
    while house.materialized(DOWNSTREAM) < 2:
        assert time.monotonic() < deadline, (house.folder / "daemon.log").read_text()[-2000:]
        time.sleep(1)
