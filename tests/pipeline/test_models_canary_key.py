"""A planted API key is nowhere after the shipped job asked an endpoint with it: refused with 401, then answered."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from resources.configured import WarehouseResource
from resources.warehouse.schema import tables
from strandline.probe.calendar import synthetic_calendar
from tests.fakes.openai_server import FakeOpenAIServer
from tests.fakes.probe_house import item_rows

CANARY = 'sk-canary/"41d8+7b=\\c0ffee'
MODEL = "house/planted"
CALENDAR = synthetic_calendar(120, seed=8)
CHILD = """
import sys
from pathlib import Path
import dagster as dg
from assets.partitions import add, key_for, models
from definitions import build_definitions
from resources.configured import AskingResource, ModelListResource, WarehouseResource

folder = Path(sys.argv[1])
kept = {"path": "w.duckdb", "published": "published.duckdb", "reports": "reports"}
warehouse = WarehouseResource(**{name: str(folder / place) for name, place in kept.items()})
location = build_definitions(
    warehouse=warehouse,
    model_list=ModelListResource(path=str(folder / "models.yaml")),
    asking=AskingResource(first_wait=0.01),
)
with dg.DagsterInstance.get() as instance:
    add(instance, models, ["house/planted"])
    config = {"ops": {"ask_model": {"config": {"max_questions": 60}}}}
    done = location.get_job_def("date_models").execute_in_process(
        instance=instance, partition_key=key_for("house/planted"), run_config=config, raise_on_error=False
    )
    for event in done.all_events:
        print(event)
warehouse.open().publish()
sys.exit(0 if done.success else 3)
"""


@dataclass(frozen=True)
class Aftermath:
    """What two runs left behind."""

    folder: Path
    output: str
    sent: list[str | None]


@pytest.fixture(scope="module")
def aftermath(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    folder = tmp_path_factory.mktemp("canary")
    (folder / "home").mkdir()
    (folder / "home" / "dagster.yaml").write_text((root / "data" / "dagster_home" / "dagster.yaml").read_text())
    WarehouseResource(path=str(folder / "w.duckdb")).open().replace("releases.probe_items", item_rows(CALENDAR))
    released = {(i.project, i.version): i.released_on for items in CALENDAR.items for i in items}
    with FakeOpenAIServer(released, CALENDAR.days[70], key=CANARY, faults=[None, "500", "401"]) as server:
        entry = f"{{name: {MODEL}, backend: openai, source: '{server.base_url}', api_key_env: CANARY_KEY}}"
        (folder / "models.yaml").write_text(f"models:\n  - {entry}\n", encoding="utf-8")
        runs = [run(root, folder)]
        shutil.copy(folder / "w.duckdb", folder / "refused.duckdb")
        runs.append(run(root, folder))
        sent = [request.authorization for request in server.log]
    output = "".join(r.stdout + r.stderr for r in runs)
    assert [r.returncode for r in runs] == [3, 0], output[-3000:]
    return Aftermath(folder, output, sent)


def run(root: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """The shipped job in a process of its own with a Dagster home of its own; the key is in its environment alone."""
    environment = os.environ | {"PYTHONPATH": str(root), "DAGSTER_HOME": str(folder / "home"), "CANARY_KEY": CANARY}
    command = [sys.executable, "-c", CHILD, str(folder)]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


def forms() -> list[str]:
    """The key as it could be written down, and the part of it that no escaping changes."""
    return [CANARY, json.dumps(CANARY)[1:-1], repr(CANARY)[1:-1], quote(CANARY, safe=""), "sk-canary", "c0ffee"]


@pytest.mark.slow
def test_the_key_was_sent_refused_once_and_taken_once(aftermath: Aftermath) -> None:
    assert set(aftermath.sent) == {f"Bearer {CANARY}"}
    assert "refuses access to house/planted (401 Incorrect API key provided: [key]." in aftermath.output


@pytest.mark.slow
def test_no_log_line_and_no_event_shows_the_key(aftermath: Aftermath) -> None:
    assert [form for form in forms() if form in aftermath.output] == []


@pytest.mark.slow
def test_no_file_holds_the_key(aftermath: Aftermath) -> None:
    files = [path for path in aftermath.folder.rglob("*") if path.is_file()]
    assert {".duckdb", ".yaml", ".db"} <= {path.suffix for path in files}
    found = [(path.name, form) for path in files for form in forms() if form.encode() in path.read_bytes()]
    assert found == []


@pytest.mark.slow
def test_no_table_of_the_warehouse_or_of_its_published_copy_holds_the_key(aftermath: Aftermath) -> None:
    for name, shown in (("refused.duckdb", "[key]"), ("w.duckdb", "planted-1"), ("published.duckdb", "planted-1")):
        store = WarehouseResource(path=str(aftermath.folder / name)).open()
        dump = "".join(str(store.query(f"select * from {table}").rows()) for table in tables())
        assert shown in dump
        assert [form for form in forms() if form in dump] == []
