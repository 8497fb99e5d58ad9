"""A scoring run that is killed in the middle has kept what was finished, and goes on with the rest."""

import os
import signal
import subprocess
import sys
import time
from hashlib import sha256

import polars as pl
import pytest

from resources.compute.tasks import LocalCompute
from resources.perplexity.scoring import TEXTS_A_TASK, local_scoring, pending, score_pending
from resources.warehouse.store import Warehouse
from strandline.models import ModelSpec
from tests.fakes.tiny_models import WORDS, saved_tiny_model

pytestmark = pytest.mark.slow

SCRIPT = """
import sys, time
from pathlib import Path
from resources import text_scoring
from resources.compute.tasks import LocalCompute
from resources.perplexity.scoring import local_scoring, score_pending
from resources.warehouse.store import Warehouse
from strandline.models import ModelSpec
folder = Path(sys.argv[1])
text_scoring.COMMIT_SECONDS = 0.0
store = Warehouse(folder / "w.duckdb", folder / "p.duckdb")
scoring = local_scoring(ModelSpec("tiny", "transformers", f"folder:{folder / 'tiny'}"), cache=folder)

def told(progress):
    print(progress.done, flush=True)
    time.sleep(0.15)

score_pending(store, scoring, LocalCompute(1), told)
"""


def test_a_killed_run_loses_at_most_the_batch_in_hand(tmp_path, root):
    saved_tiny_model(tmp_path / "tiny")
    store = Warehouse(tmp_path / "w.duckdb", tmp_path / "p.duckdb")
    texts = {
        sha256(text.encode()).hexdigest(): text for text in (" ".join([*WORDS[n % 30 :], str(n)]) for n in range(160))
    }
    rows = [("docs", f"topic {n}", pl.Series(["2021-01-01"]).str.to_date()[0], "ok", d) for n, d in enumerate(texts)]
    store.merge("spans.resources", pl.DataFrame([{"resource": "docs", "kind": "unpaired", "max_tokens": 32}]))
    store.merge("spans.texts", pl.DataFrame({"text_sha256": list(texts), "text": list(texts.values())}))
    names = ["resource", "topic", "month", "status", "text_sha256"]
    store.merge("spans.revisions", pl.DataFrame(rows, schema=names, orient="row"))
    run = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path)], cwd=root, stdout=subprocess.PIPE, text=True)
    finished = 0
    while finished < 4 * TEXTS_A_TASK:
        finished = int(run.stdout.readline())
    time.sleep(0.2)
    os.kill(run.pid, signal.SIGKILL)
    finished = max([finished, *map(int, run.stdout.read().split())])
    run.wait()
    kept = store.query("select count(*) from perplexity.scores").item()
    assert finished - TEXTS_A_TASK <= kept < len(texts)
    scoring = local_scoring(ModelSpec("tiny", "transformers", f"folder:{tmp_path / 'tiny'}"), cache=tmp_path)
    assert pending(store, scoring).height == len(texts) - kept
    assert score_pending(store, scoring, LocalCompute(2)).done == len(texts) - kept
    assert store.query("select count(*) from perplexity.scores where status = 'ok'").item() == len(texts)
