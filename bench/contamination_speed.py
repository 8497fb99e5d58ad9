"""What a contamination verdict costs: orderings needed, and tokens a second, against the published script's loop.

The loop does what the script of Oren et al. does: one ordering at a time, a fixed number of permutations, the whole
forward pass, log-softmax over the whole vocabulary, a sum. It runs in fp32, as the script loads its models. The engine
scores the same orderings in batches, in fp32 and in bf16, on as many threads as there are cores (the loop leaves torch
its threads, as the script does). Wall and processor time are both printed: the second is steadier where other programs
run. Orderings under the null are counted by running the designs on random values without any effect.

    python bench/contamination_speed.py
    python bench/contamination_speed.py --shards 2 --orders 2      # quicker, the same ratios within a tenth or so
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from resources.compute.tasks import LocalCompute
from resources.contamination.order_scoring import tokens_of
from resources.contamination.scorers import scorer_of
from resources.models.weights import LanguageModels
from strandline.contamination.benchmarks import BenchmarkSpec, read_benchmark
from strandline.contamination.order_batches import HALF_PRECISION_BATCH, OrderBatch, OrderJob, Tokens, order_batches
from strandline.contamination.orderings import PermutationGroup, evenly_spaced, make_shards
from strandline.contamination.sequential import FIXED_19, THREE_LOOKS, run_looks
from strandline.models import ModelSpec
from strandline.models.spec import read_models
from strandline.scoring.scores import FP32

ROOT = Path(__file__).resolve().parent.parent
SCRIPT_PERMUTATIONS = FIXED_19.looks[-1]


def main() -> None:
    """Measure and print."""
    options = parser().parse_args()
    spec = read_models(ROOT / "data" / "models.yaml")[0]
    job, tokens = prepared(spec, options)
    per_pass = sum(tokens.in_shard(shard) for shard in job.shards)
    print(f"{spec.name}: {len(job.shards)} shards, {per_pass:,} tokens an ordering, {options.orders} orderings timed")
    slow, slow_values = timed("the script's loop, fp32", lambda: script_loop(spec, job, tokens, options.orders))
    for dtype, needed in ((FP32, 1.0), ("bfloat16", 2.0)):
        fast, values = timed(f"engine, {dtype}", lambda dtype=dtype: engine(spec, job, tokens, options, dtype))
        apart = max(abs(values[key] - slow_values[key]) for key in slow_values)
        ratio = [a / b for a, b in zip(slow, fast, strict=True)]
        print(
            f"  {ratio[0]:.2f} times the loop's speed in wall time, {ratio[1]:.2f} in processor time "
            f"(at least {needed:g} wanted); values differ by at most {apart:.2g} nats"
        )
        verdict_cost(dtype, ratio[0], options.replications)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--data", type=Path, default=ROOT / "data" / "benchmarks" / "tideline.jsonl")
    made.add_argument("--text", default=r"{question}\n{answer}", help="column or template of the examples")
    made.add_argument("--shards", type=int, default=4)
    made.add_argument("--orders", type=int, default=3, help="orderings of each shard that are timed")
    made.add_argument("--threads", type=int, default=None, help="threads of the engine; default: one a core")
    made.add_argument("--replications", type=int, default=400, help="null data sets on which orderings are counted")
    return made


def prepared(spec: ModelSpec, options: argparse.Namespace) -> tuple[OrderJob, Tokens]:
    """Shards of the benchmark, tokenized; the model is in memory after this, and warm."""
    listed = BenchmarkSpec(options.data.stem, "1", str(options.data), "jsonl", options.text)
    benchmark = read_benchmark(listed, options.data.read_bytes())
    shards = evenly_spaced(make_shards(benchmark.lengths()), options.shards)
    scorer = scorer_of(spec, LocalCompute(1), FP32)
    facts = (benchmark.spec.benchmark, benchmark.digest, tuple(shards), scorer.weights, scorer.dtype)
    job = OrderJob(spec.name, *facts, PermutationGroup(), 0)
    return job, tokens_of(job, benchmark.texts, scorer)


def timed(
    name: str, work: Callable[[], tuple[int, dict[tuple[int, int], float]]]
) -> tuple[tuple[float, float], dict[tuple[int, int], float]]:
    """Wall and processor seconds a token, and the values."""
    wall, cpu = time.perf_counter(), time.process_time()
    n_tokens, values = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{name}: {n_tokens / wall:,.0f} tokens/s of wall time, {n_tokens / cpu:,.0f} of processor time")
    return (wall / n_tokens, cpu / n_tokens), values


def script_loop(
    spec: ModelSpec, job: OrderJob, tokens: Tokens, n_orders: int
) -> tuple[int, dict[tuple[int, int], float]]:
    """One ordering after the other, as the published script has it."""
    import torch

    lm = LanguageModels().load(spec, FP32)
    torch.set_num_threads(os.cpu_count() or 1)
    values: dict[tuple[int, int], float] = {}
    n_tokens = 0
    for shard in job.shards:
        for permutation in range(n_orders):
            (request,) = tokens.requests(job.order(shard, permutation))
            ids = torch.tensor([request.ids])
            with torch.no_grad():
                logs = torch.log_softmax(lm.model(ids).logits[0, :-1], dim=-1)
            picked = logs[torch.arange(len(request.ids) - 1), ids[0, 1:]]
            values[shard.index, permutation] = float(picked[request.score_from - 1 :].double().sum())
            n_tokens += len(request.ids)
    return n_tokens, values


def engine(
    spec: ModelSpec, job: OrderJob, tokens: Tokens, options: argparse.Namespace, dtype: str
) -> tuple[int, dict[tuple[int, int], float]]:
    """The same orderings through the product's batches. Loading the model is not counted."""
    LanguageModels().load(spec, dtype)
    scorer = scorer_of(spec, LocalCompute(options.threads), dtype)
    batches: list[OrderBatch] = [
        batch for shard in job.shards for batch in order_batches(job, tokens, shard, range(options.orders), dtype)
    ]
    values: dict[tuple[int, int], float] = {}
    for batch, (window,) in scorer.run(batches):
        for permutation, score in zip(batch.orders, window, strict=True):
            values[batch.shard.index, permutation] = -(score.sum_nll or float("nan"))
    return sum(len(request.ids) for batch in batches for request in batch.windows[0]), values


def verdict_cost(dtype: str, speed: float, replications: int) -> None:
    """What a verdict takes under the null, sentinels and filled-up places included, as a share of the script's time."""
    passes = float(np.mean([null_passes(seed, dtype) for seed in range(replications)]))
    permutations = float(np.mean([null_permutations(seed) for seed in range(replications)]))
    fixed = 1 + SCRIPT_PERMUTATIONS
    share = permutations / SCRIPT_PERMUTATIONS
    print(
        f"  under the null: {permutations:.2f} permutations on average, {share:.0%} of the fixed {SCRIPT_PERMUTATIONS} "
        f"(at most 25 % wanted); {passes:.2f} passes computed instead of {fixed}: a verdict takes "
        f"1/{fixed / passes * speed:.1f} of the script's time"
    )


def null_permutations(seed: int) -> int:
    """Permutations a shard on one null data set of 16 shards."""
    values = np.random.default_rng(seed).normal(size=(16, 20))
    return run_looks(list(values), THREE_LOOKS, alpha="0.01").n_permutations


def null_passes(seed: int, dtype: str) -> int:
    """Passes computed for it: the published order again beside later looks, batches filled up in half precision."""
    done, passes = 0, 0
    for look in (look for look in THREE_LOOKS.looks if look <= null_permutations(seed)):
        wanted = look + 1 if done == 0 else look - done + 1
        passes += wanted if dtype == FP32 else -(-wanted // HALF_PRECISION_BATCH) * HALF_PRECISION_BATCH
        done = look
    return passes


if __name__ == "__main__":
    main()
