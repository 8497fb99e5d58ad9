"""Orderings through the engine: equal to a plain forward pass, every token once, the same on every backend."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resources.compute.tasks import LocalCompute
from resources.contamination.order_scoring import score_design, score_orders, tokens_of
from resources.contamination.scorers import ComputeScorer, scorer_of
from resources.warehouse.store import Warehouse
from strandline.contamination.order_batches import OrderJob, Tokens
from strandline.contamination.orderings import REVERSED, PermutationGroup, Shard
from strandline.contamination.sequential import THREE_LOOKS
from strandline.models import ModelSpec
from tests.fakes.order_scorer import ScriptedScorer
from tests.fakes.tiny_models import CONTEXT, WORDS, saved_tiny_model, tiny_model

TEXTS = [" ".join(WORDS[i % 20 : i % 20 + 6 + i % 3]) for i in range(24)]
SHARDS = (Shard(0, 0, 4), Shard(1, 4, 8), Shard(2, 8, 24))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def store(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "w.duckdb", tmp_path / "p.duckdb")


def spec_of(folder: Path) -> ModelSpec:
    return ModelSpec("tiny", "transformers", f"folder:{folder}")


def job_for(scorer: Any, shards: tuple[Shard, ...] = SHARDS, **more: Any) -> OrderJob:
    facts = {"weights": scorer.weights, "dtype": scorer.dtype, "group": PermutationGroup(), "run_seed": 0}
    return OrderJob("tiny", "b", "digest", shards, **(facts | more))


def plain_loglik(model: Any, tokens: Tokens, order: list[int]) -> float:
    """Window by window through transformers, the windows written out by hand: BOS, half a context of overlap."""
    import torch

    ids = [i for position in order for i in (*tokens.examples[position], *tokens.separator)]
    room, total, scored = CONTEXT - 1, 0.0, 0
    stop = min(len(ids), room)
    while scored < stop:
        start = max(0, stop - room)
        row = torch.tensor([[0, *ids[start:stop]]])
        with torch.no_grad():
            logs = torch.log_softmax(model(row).logits[0].double(), dim=-1)
        total += sum(float(logs[k - start, ids[k]]) for k in range(scored, stop))
        scored, stop = stop, min(len(ids), stop + CONTEXT // 2)
    return total


def test_every_stored_value_is_that_of_a_plain_forward_pass(folder: Path, store: Warehouse) -> None:
    scorer = scorer_of(spec_of(folder), LocalCompute(1))
    job = job_for(scorer)
    tokens = tokens_of(job, TEXTS, scorer)
    assert tokens.in_shard(SHARDS[2]) > 2 * CONTEXT
    assert tokens.tokens_per_second
    assert score_orders(job, tokens, scorer, store, [REVERSED, 0, 1, 2]) == 12
    model = tiny_model("llama")
    for row in store.query("select * from contamination.order_logliks").iter_rows(named=True):
        order = job.order(SHARDS[row["shard"]], row["permutation"])
        assert row["loglik"] == pytest.approx(plain_loglik(model, tokens, order), abs=2e-3)
        assert row["n_tokens"] == tokens.in_shard(SHARDS[row["shard"]])
        assert (row["dtype"], row["device"], row["prefix_token"], row["status"]) == ("float32", "cpu", 0, "ok")
        assert "torch" in row["library_versions"]


def scored(folder: Path, store: Warehouse, compute: Any) -> dict[tuple[int, int], float]:
    scorer = scorer_of(spec_of(folder), compute)
    job = job_for(scorer)
    score_design(job, lambda: tokens_of(job, TEXTS, scorer), scorer, store, THREE_LOOKS, "0.05")
    rows = store.query("select shard, permutation, loglik from contamination.order_logliks")
    return {(shard, permutation): loglik for shard, permutation, loglik in rows.iter_rows()}


@pytest.fixture
def ray_cluster() -> Iterator[None]:
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.slow
def test_a_cluster_gives_the_same_values_as_this_process(folder: Path, tmp_path: Path, ray_cluster: None) -> None:
    from resources.compute.ray_cluster import RayCompute

    stores = [Warehouse(tmp_path / f"{name}.duckdb", tmp_path / f"{name}-p.duckdb") for name in ("here", "there")]
    here = scored(folder, stores[0], LocalCompute(2))
    there = scored(folder, stores[1], RayCompute(None, workers=2))
    assert here.keys() == there.keys()
    assert all(here[key] == pytest.approx(there[key], abs=1e-4) for key in here)


def twelve_shards(scorer: ScriptedScorer) -> tuple[OrderJob, Tokens]:
    """A job of twelve shards of two examples."""
    job = job_for(scorer, tuple(Shard(k, 2 * k, 2 * k + 2) for k in range(12)))
    return job, tokens_of(job, TEXTS, scorer)


def test_batches_of_half_precision_all_have_one_shape_and_the_published_order_sits_anywhere(store: Warehouse) -> None:
    scorer = ScriptedScorer(dtype="bfloat16")
    job, tokens = twelve_shards(scorer)
    score_orders(job, tokens, scorer, store, [0, 1, 2])
    score_orders(job, tokens, scorer, store, range(6))
    assert {batch.size for batch in scorer.batches} == {3}
    places = {batch.orders.index(0) for batch in scorer.batches[:12]}
    assert len(places) > 1
    again = [batch for batch in scorer.batches[12:] if 0 in batch.orders]
    assert len(again) == 12


def test_fp32_batches_are_not_filled_up(store: Warehouse) -> None:
    scorer = ScriptedScorer()
    job = job_for(scorer)
    score_orders(job, tokens_of(job, TEXTS, scorer), scorer, store, [0, 1, 2])
    assert {(len(batch.orders), batch.size) for batch in scorer.batches} == {(3, 3)}


class Moving(ScriptedScorer):
    """Every value is off by ``noise`` times 0.3 nats, which a test changes between looks."""

    noise = 0

    def _score(self, request: Any, dtype: str, noise: int) -> Any:
        return super()._score(request, dtype, noise=self.noise)


@pytest.mark.parametrize("dtype", ["float32", "served"])
def test_the_largest_move_of_a_sentinel_is_the_tolerance_where_there_is_no_better_format(
    store: Warehouse, dtype: str
) -> None:
    scorer = Moving(dtype=dtype)
    job = job_for(scorer)
    tokens = tokens_of(job, TEXTS, scorer)
    sql = (
        "select shard, loglik, dtype, sentinel_difference as moved from contamination.order_logliks "
        "where permutation = 0 order by shard"
    )
    score_orders(job, tokens, scorer, store, [0, 1, 2])
    first = store.query(sql)
    for noise, last in ((3, 5), (1, 19)):
        scorer.noise = noise
        score_orders(job, tokens, scorer, store, range(last + 1))
        rows = store.query(sql)
        assert rows["loglik"].to_list() == first["loglik"].to_list()
        assert rows["moved"].to_list() == pytest.approx([0.9, 0.9, 0.9])
    assert {batch.dtype for batch in scorer.batches} == set(rows["dtype"]) == {dtype}


def test_a_shard_of_which_one_order_overflows_half_precision_is_scored_in_fp32_throughout(store: Warehouse) -> None:
    class Overflowing(ScriptedScorer):
        def _score(self, request: Any, dtype: str, noise: int) -> Any:
            overflows = request.ids == (0, *tokens.joined(job.order(SHARDS[1], 2)))
            return super()._score(request, "float32" if overflows else dtype, noise)

    scorer = Overflowing(dtype="float16")
    job = job_for(scorer)
    tokens = tokens_of(job, TEXTS, scorer)
    score_orders(job, tokens, scorer, store, [0, 1, 2])
    score_orders(job, tokens, scorer, store, range(6))
    rows = store.query("select distinct shard, dtype from contamination.order_logliks order by shard")
    assert rows.rows() == [(0, "float16"), (1, "float32"), (2, "float16")]


def test_the_published_order_sits_anywhere_also_when_a_shard_is_scored_again(store: Warehouse) -> None:
    scorer = Moving(dtype="bfloat16")
    job, tokens = twelve_shards(scorer)
    score_orders(job, tokens, scorer, store, [0, 1, 2])
    scorer.noise = 1
    score_orders(job, tokens, scorer, store, range(6))
    again = [batch.orders for batch in scorer.batches if batch.dtype == "float32"]
    assert len(again) == 12
    assert len({orders.index(0) for orders in again}) > 1


def test_the_settings_digest_names_all_that_a_value_depends_on() -> None:
    base = job_for(ScriptedScorer())
    changed = [
        job_for(ScriptedScorer(), weights="other"),
        job_for(ScriptedScorer(), dtype="bfloat16"),
        job_for(ScriptedScorer(), group=PermutationGroup(3)),
        job_for(ScriptedScorer(), run_seed=1),
        job_for(ScriptedScorer(), SHARDS[:2]),
    ]
    assert len({job.settings_digest for job in [base, *changed]}) == 6


def test_a_tokenizer_without_a_separator_is_refused() -> None:
    class Silent(ScriptedScorer):
        def tokenize(self, texts: Any) -> Any:
            made = super().tokenize(texts)
            return replace(made, ids=[*made.ids[:-1], []])

    scorer = Silent()
    with pytest.raises(ValueError, match="separator"):
        tokens_of(job_for(scorer), TEXTS, scorer)


def test_the_same_job_needs_no_model_when_it_is_done(folder: Path, store: Warehouse) -> None:
    scored(folder, store, LocalCompute(1))
    scorer = scorer_of(spec_of(folder), LocalCompute(1))

    def never() -> Tokens:
        raise AssertionError("nothing is missing")

    job = job_for(scorer)
    assert isinstance(scorer, ComputeScorer)
    assert score_design(job, never, scorer, store, THREE_LOOKS, "0.05") == 0
    assert np.isfinite(store.query("select sum(loglik) from contamination.order_logliks").item())
