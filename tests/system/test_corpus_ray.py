"""A real Ray cluster of two nodes mines what one process mines, also when a node is lost in the middle."""

import json
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from resources.compute.ray_cluster import RayCompute
from resources.compute.tasks import LocalCompute, Task, WorkerSpec
from resources.corpus.mining import index_corpus, match_corpus, profile_corpus
from resources.corpus.shards import shards
from resources.corpus.topics import ResourceTopics
from resources.warehouse.store import Warehouse
from strandline.corpus.settings import CorpusPart, CorpusSpec, Mining
from strandline.spans import text_digest
from strandline.spans.months import month_range

pytestmark = [pytest.mark.slow, pytest.mark.system]
MONTHS = month_range(date(2021, 1, 1), date(2021, 12, 1))
SHARDS = 6


def version(topic: int, month: int) -> str:
    facts = [f"Fact {n} of place {topic} is {n * 31 + topic * 7 + month * (n % 4 == 0)}." for n in range(60)]
    return f"Place number {topic} as of month {month}. " + " ".join(facts)


@pytest.fixture
def world(tmp_path: Path) -> tuple[ResourceTopics, list[Any]]:
    store = Warehouse(tmp_path / "w.duckdb", tmp_path / "p.duckdb")
    pages = [(topic, number, version(topic, number)) for topic in range(8) for number in range(12)]
    store.merge(
        "spans.texts", pl.DataFrame({"text": [p[2] for p in pages], "text_sha256": [text_digest(p[2]) for p in pages]})
    )
    rows = [
        {
            "resource": "places",
            "topic": f"place {topic}",
            "month": MONTHS[n],
            "status": "ok",
            "text_sha256": text_digest(text),
        }
        for topic, n, text in pages
    ]
    store.merge("spans.revisions", pl.DataFrame(rows))
    for number in range(SHARDS):
        texts = [version(topic, (topic + number * 2) % 12) for topic in range(8)] + ["A page about nothing of this."]
        lines = "\n".join(json.dumps({"text": text}) for text in texts)
        (tmp_path / f"shard-{number}.jsonl").write_text(lines + "\n", encoding="utf-8")
    part = CorpusPart(files=(f"{tmp_path}/shard-*.jsonl",), subcorpus="crawl")
    return ResourceTopics(store, "places"), shards(CorpusSpec("c", parts=(part,), resources=("places",)))


@pytest.fixture
def cluster() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second = made.add_node(num_cpus=1)
    ray.init(address=made.address, log_to_driver=False)
    made.wait_for_nodes()
    yield made, second
    ray.shutdown()
    made.shutdown()


class LosingANode:
    """The Ray backend, with a node taken away after the first result."""

    def __init__(self, inner: RayCompute, cluster: Any, node: Any) -> None:
        self.inner, self.cluster, self.node = inner, cluster, node
        self.lost = False

    def run(self, worker: WorkerSpec, tasks: Iterable[Task]) -> Iterator[tuple[Task, Any]]:
        for result in self.inner.run(worker, tasks):
            yield result
            if not self.lost:
                self.lost = True
                self.cluster.remove_node(self.node, allow_graceful=False)


def test_a_cluster_that_loses_a_node_mines_the_same_as_one_process_and_leaves_nothing_to_do(world, cluster, tmp_path):
    topics, here = world
    local, remote = str(tmp_path / "local"), str(tmp_path / "remote")
    alone = match_corpus(here, local, topics, Mining(), LocalCompute(1))
    assert alone["weight"].sum() == SHARDS * 8
    losing = LosingANode(RayCompute(None, workers=2), *cluster)
    together = match_corpus(here, remote, topics, Mining(), losing)
    assert losing.lost
    assert together.equals(alone)
    assert profile_corpus(here, remote, LocalCompute(1)).ids == profile_corpus(here, local, LocalCompute(1)).ids
    indexed = [index_corpus(here, cache, LocalCompute(1)) for cache in (local, remote)]
    assert [o.report for o in indexed[0]] == [o.report for o in indexed[1]]

    class Nothing:
        def run(self, worker: WorkerSpec, tasks: Iterable[Task]) -> Iterator[tuple[Task, Any]]:
            assert list(tasks) == []
            return iter(())

    assert match_corpus(here, remote, topics, Mining(), Nothing()).equals(alone)
