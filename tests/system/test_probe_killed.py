"""kill -9 in the middle of a probe: finished rounds are there, and a resumed run ends as an undisturbed one."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from strandline.probe.calendar import synthetic_calendar
from tests.fakes.openai_server import FakeOpenAIServer

MODEL = "house/planted"
CHILD = """
import sys
from pathlib import Path
from resources.configured import AskingResource
from strandline.probe.calendar import synthetic_calendar
from tests.fakes.probe_house import House

folder, address = Path(sys.argv[1]), sys.argv[2]
entry = "{name: house/planted, backend: openai, source: '" + address + "'}"
house = House(folder, synthetic_calendar(240, seed=5), "house/planted", entry)
sys.exit(0 if house.date(AskingResource(first_wait=0.01)).success else 1)
"""
ANSWERS = "select round, question, project, version, answer from probe.answers order by round, question"


def child(folder: Path, address: str, root: Path) -> subprocess.Popen[bytes]:
    """A process of its own that asks and dates the model."""
    environment = os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CHILD, str(folder), address]
    return subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for(condition, process: subprocess.Popen[bytes], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "the process ended before it could be killed"
        assert time.monotonic() < end, "the process asked nothing"
        time.sleep(0.01)


@pytest.mark.slow
def test_a_killed_probe_keeps_its_rounds_and_resumes_without_asking_stored_questions_again(
    tmp_path: Path, root: Path
) -> None:
    from resources.warehouse.store import Warehouse

    calendar = synthetic_calendar(240, seed=5)
    released = {(i.project, i.version): i.released_on for items in calendar.items for i in items}
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    with FakeOpenAIServer(released, calendar.days[150]) as calm:
        assert child(whole, calm.base_url, root).wait(300) == 0
    with FakeOpenAIServer(released, calendar.days[150]) as served:
        first = child(broken, served.base_url, root)
        wait_for(lambda: len(served.log) >= 6, first)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        kept = Warehouse(broken / "w.duckdb", broken / "p.duckdb").query("select project, version from probe.answers")
        answered_before = len(served.answered)
        assert child(broken, served.base_url, root).wait(300) == 0
    assert kept.height >= 4 * 20
    again = served.answered[answered_before:]
    assert not set(again) & set(kept.rows())
    assert len(again) == len(set(again))
    rows = [Warehouse(folder / "w.duckdb", folder / "p.duckdb").query(ANSWERS).rows() for folder in (whole, broken)]
    assert rows[0] == rows[1]
