"""A scoring run that is killed in the middle has kept what was finished, and ends with the undisturbed run's scores."""

import os
import signal
import subprocess
import sys
import time
from datetime import date
from hashlib import sha256
from pathlib import Path

import pytest

from resources.compute.tasks import LocalCompute
from resources.perplexity.path_store import PathStore
from resources.perplexity.scoring import TEXTS_A_TASK, Scoring, local_scoring, pending, score_pending
from resources.warehouse.store import Warehouse
from strandline.models import ModelSpec
from tests.fakes.tiny_models import WORDS, saved_tiny_model

pytestmark = pytest.mark.slow

SCRIPT = """
import sys, time
from pathlib import Path
from resources.compute.tasks import LocalCompute
from resources.perplexity import scoring as text_scoring
from tests.system.test_perplexity_killed import scoring_in, store_in
folder = Path(sys.argv[1])
text_scoring.COMMIT_SECONDS = float(sys.argv[2])

def tell(progress):
    print(progress.done, flush=True)
    time.sleep(0.15)

text_scoring.score_pending(store_in(folder), scoring_in(folder), LocalCompute(1), tell)
"""


def store_in(folder: Path) -> Warehouse:
    return Warehouse(folder / "w.duckdb", folder / "p.duckdb")


def scoring_in(folder: Path) -> Scoring:
    spec = ModelSpec("tiny", "transformers", f"folder:{folder.parent / 'tiny'}")
    return local_scoring(spec, cache=folder, kept=PathStore(folder / "paths", 10**9))


def filled(folder: Path) -> tuple[Warehouse, int]:
    """A warehouse with 40 topics in four versions, and the number of their texts."""
    folder.mkdir()
    store, texts, revisions = store_in(folder), {}, []
    for topic in range(40):
        for month in range(4):
            text = " ".join([*WORDS[topic % 30 :], str(topic), *WORDS[:month]])
            digest = sha256(text.encode()).hexdigest()
            texts[digest] = text
            revisions.append(
                {"resource": "docs", "topic": f"topic {topic}", "month": date(2021, month + 1, 1), "status": "ok",
                 "text_sha256": digest}
            )  # fmt: skip
    store.merge("spans.resources", [{"resource": "docs", "kind": "panel", "max_tokens": 32}])
    store.merge("spans.texts", [{"text_sha256": digest, "text": text} for digest, text in texts.items()])
    store.merge("spans.revisions", revisions)
    return store, len(texts)


@pytest.mark.parametrize("commit_seconds", [0.0, 0.5])
def test_a_killed_run_loses_at_most_what_was_not_committed_and_ends_with_the_scores_of_an_undisturbed_one(
    tmp_path: Path, root: Path, commit_seconds: float
) -> None:
    saved_tiny_model(tmp_path / "tiny")
    calm, total = filled(tmp_path / "calm")
    assert score_pending(calm, scoring_in(tmp_path / "calm"), LocalCompute(1)).done == total
    folder = tmp_path / "killed"
    store, _ = filled(folder)
    environment = os.environ | {"PYTHONPATH": str(root)}
    command = [sys.executable, "-c", SCRIPT, str(folder), str(commit_seconds)]
    run = subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    finished = 0
    while finished < 4 * TEXTS_A_TASK:
        finished = int(run.stdout.readline())
    time.sleep(0.2)
    os.kill(run.pid, signal.SIGKILL)
    finished = max([finished, *map(int, run.stdout.read().split())])
    run.wait()
    kept = store.query("select count(*) from perplexity.scores").item()
    lost = TEXTS_A_TASK if commit_seconds == 0 else 5 * TEXTS_A_TASK
    assert finished - lost <= kept < total
    scoring = scoring_in(folder)
    assert pending(store, scoring).height == total - kept
    assert score_pending(store, scoring, LocalCompute(2)).done == total - kept
    every = "select * from perplexity.scores order by text_sha256"
    assert store.query(every).rows() == calm.query(every).rows()
