"""The default model on the project's own benchmark, from file to verdict, and a kill -9 in the middle of it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from resources.models.files import ModelLoadError
from resources.models.weights import CACHE, LanguageModels
from resources.warehouse.store import Warehouse
from strandline.models.spec import read_models

CHILD = """
import json
import sys
from pathlib import Path
import resources.contamination.order_scoring
from resources.configured import ModelListResource
from resources.configured import OrderScoringResource
from tests.fakes import contamination_house as fakes

folder = Path(sys.argv[1])
resources.contamination.order_scoring.COMMIT_SECONDS = 0.0
fakes.MODEL = "SmolLM2-135M-Instruct"
texts = json.loads((folder / "texts.json").read_text())
house = fakes.House(folder, {"own": texts}, order_permutations=99)
fakes.ModelListResource = lambda path: ModelListResource()
assert house.read("own").success
sys.exit(0 if house.score("own", OrderScoringResource()).success else 1)
"""


@pytest.fixture(scope="module", autouse=True)
def model(root: Path) -> None:
    try:
        LanguageModels(CACHE).load(read_models(root / "data" / "models.yaml")[0], "float32")
    except (ModelLoadError, OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"the default model cannot be had here: {error}")


def child(folder: Path, root: Path) -> subprocess.Popen[bytes]:
    """A process of its own that reads, checks, scores and judges."""
    environment = os.environ | {"PYTHONPATH": str(root)}
    output = (folder / "log.txt").open("ab")
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder)], cwd=root, env=environment, stdout=output, stderr=output
    )


def rows(folder: Path, sql: str) -> list[tuple[object, ...]]:
    """Rows of the warehouse, read in turn with the process that writes it."""
    return Warehouse(folder / "w.duckdb", folder / "p.duckdb").query(sql).rows()


def orders(folder: Path) -> int:
    """Orderings in the warehouse."""
    return int(str(rows(folder, "select count(*) from contamination.order_logliks")[0][0]))


@pytest.mark.slow
def test_the_own_benchmark_is_judged_clean_and_a_kill_loses_nothing_finished(tmp_path: Path, root: Path) -> None:
    lines = (root / "data" / "benchmarks" / "tideline.jsonl").read_text(encoding="utf-8").splitlines()[:32]
    (tmp_path / "texts.json").write_text(json.dumps([json.loads(line)["question"] for line in lines]))
    killed = child(tmp_path, root)
    began = time.monotonic()
    while orders(tmp_path) < 6:
        assert killed.poll() is None, (tmp_path / "log.txt").read_text()[-3000:]
        assert time.monotonic() - began < 300
        time.sleep(0.5)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    kept = orders(tmp_path)
    assert 6 <= kept < 24
    resumed = child(tmp_path, root)
    assert resumed.wait(timeout=400) == 0, (tmp_path / "log.txt").read_text()[-3000:]
    [(verdict, n_orders, p, alpha)] = rows(
        tmp_path, "select verdict, n_orders, p_value, alpha from contamination.tests where is_verdict"
    )
    assert n_orders >= 24
    assert verdict == "no_evidence"
    assert p > alpha
