"""On a real cluster of two nodes the numbers are those of one process, and a killed worker costs its batch only."""

import os
import signal
import time
from collections import Counter
from hashlib import sha256
from typing import Never

import pytest

from resources.compute.ray_cluster import RayCompute
from resources.compute.tasks import LocalCompute, Task, WorkerSpec
from strandline.models import ModelSpec
from tests.fakes.tiny_models import WORDS, saved_tiny_model

pytestmark = pytest.mark.slow
ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False, configure_logging=False)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


def text_tasks():
    texts = [" ".join(WORDS[n:] + WORDS[: n % 7]) for n in range(24)]
    named = [(sha256(text.encode()).hexdigest(), text) for text in texts]
    groups = [dict(named[start : start + 3]) for start in range(0, 24, 3)]
    return [Task(str(n), {"texts": group, "max_tokens": 24}) for n, group in enumerate(groups)]


def test_scores_are_the_same_on_a_cluster_and_in_this_process(cluster, tmp_path) -> None:
    folder = saved_tiny_model(tmp_path / "tiny")
    spec = ModelSpec("tiny", "transformers", f"folder:{folder}")
    kwargs = {"spec": spec, "dtype": "float32", "cache": str(tmp_path)}
    worker = WorkerSpec("resources.perplexity.worker:text_worker", kwargs)
    here = dict_of(LocalCompute(2).run(worker, text_tasks()))
    there = dict_of(RayCompute(None, workers=2).run(worker, text_tasks()))
    assert there.keys() == here.keys()
    for digest, row in here.items():
        assert there[digest]["mean_nll"] == pytest.approx(row["mean_nll"], abs=1e-6)
        assert there[digest]["n_tokens"] == row["n_tokens"]


def dict_of(results):
    return {row["text_sha256"]: row for _, rows in results for row in rows}


def marking_worker(folder, pause):
    """A worker that writes who it is and what it was given, then takes its time."""

    def work(payload):
        with open(f"{folder}/log", "a") as log:
            log.write(f"{payload} {os.getpid()} {ray.get_runtime_context().get_node_id()}\n")
        time.sleep(pause)
        return payload * 10

    return work


def log_of(folder):
    path = folder / "log"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def test_a_worker_killed_in_the_middle_repeats_its_task_and_no_other(cluster, tmp_path) -> None:
    worker = WorkerSpec("tests.system.test_perplexity_ray:marking_worker", {"folder": str(tmp_path), "pause": 0.4})
    results = RayCompute(None, workers=2).run(worker, (Task(str(n), n) for n in range(12)))
    done = [next(results), next(results)]
    victim = log_of(tmp_path)[-1]
    os.kill(int(victim[1]), signal.SIGKILL)
    done += results
    assert sorted((int(task.key), value) for task, value in done) == [(n, n * 10) for n in range(12)]
    runs = Counter(line[0] for line in log_of(tmp_path))
    assert {key for key, times in runs.items() if times > 1} <= {victim[0]}
    assert runs.total() in (12, 13)
    assert len({line[2] for line in log_of(tmp_path)}) == 2


def refusing_worker() -> Never:
    """A worker that cannot be built anywhere."""
    raise ValueError("no such weights")


def test_a_worker_that_cannot_be_built_ends_the_run_with_its_reason(cluster) -> None:
    worker = WorkerSpec("tests.system.test_perplexity_ray:refusing_worker")
    with pytest.raises(ValueError, match="no such weights"):
        list(RayCompute(None, workers=1).run(worker, [Task("1", 1)]))


def failing_worker():
    """A worker whose work fails."""

    def work(payload) -> Never:
        raise KeyError(f"nothing for {payload}")

    return work


def test_an_error_of_the_work_ends_the_run_as_it_is(cluster) -> None:
    worker = WorkerSpec("tests.system.test_perplexity_ray:failing_worker")
    with pytest.raises(KeyError, match="nothing for 1"):
        list(RayCompute(None, workers=1).run(worker, [Task("1", 1)]))
