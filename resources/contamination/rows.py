"""Rows of the contamination tables: benchmarks, order checks and verdicts as rows, and stored scores read back."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from resources.warehouse.store import Merge, Reader, Replace
from strandline.contamination.benchmarks import Benchmark, BenchmarkSpec
from strandline.contamination.exact import permutation_test
from strandline.contamination.order_check import OrderCheck, check_order
from strandline.contamination.orderings import CANONICAL, REVERSED, PermutationGroup, Shard, make_shards
from strandline.contamination.pooling import Pooled
from strandline.contamination.schedule import scores_of
from strandline.contamination.settings import ContaminationSettings
from strandline.contamination.statuses import COMPARISON, COUNTED, OK, ORDER_NOT_EXCHANGEABLE
from strandline.contamination.verdict import ShardScores, Verdict, comparisons
from strandline.multiple_testing import adjusted_log_p_values

WHOLE_FILE_AT_MOST = 2000
"""Examples that are compared with each other at once: their table of likenesses takes 32 MB. Longer files are checked
in blocks of at most so many."""


def benchmark_row(spec: BenchmarkSpec, benchmark: Benchmark | None, reason: str | None = None) -> dict[str, Any]:
    """The row of a benchmark; ``benchmark`` None where it could not be fetched or read, which ``reason`` explains."""
    row: dict[str, Any] = {
        "benchmark": spec.benchmark,
        "version": spec.version,
        "published_on": spec.published_on,
        "licence": spec.licence,
        "url": spec.address,
        "status": "ok",
        "reason": reason,
    }
    if benchmark is None:
        return {**row, "status": "failed"}
    row |= {
        "n_examples": len(benchmark.texts),
        "n_dropped": benchmark.n_empty,
        "n_cut": benchmark.n_cut,
        "n_duplicates": benchmark.n_duplicates,
        "n_characters": sum(benchmark.lengths()),
        "sha256": benchmark.sha256,
        "order_digest": benchmark.digest,
    }
    if len(benchmark.texts) < 2:
        row |= {"status": "failed", "reason": "a permutation test needs at least two examples"}
    return row


def benchmark_fault(store: Reader, benchmark: str) -> str | None:
    """Why a benchmark could not be read when it was read last; None where it could, or was never read."""
    rows = store.query(
        "select reason from contamination.benchmarks where benchmark = ? and status <> 'ok'", [benchmark]
    )
    return str(rows["reason"][0]) if rows.height else None


def order_check_rows(
    benchmark: Benchmark, shards: Sequence[Shard], groups: Sequence[PermutationGroup], n_permutations: int, gate: str
) -> list[dict[str, Any]]:
    """The order check within the shards for each permutation group (the gates), and over the whole file (to read)."""
    blocks = make_shards(benchmark.lengths(), n_shards=-(-len(benchmark.texts) // WHOLE_FILE_AT_MOST))
    planned = [("within shards", list(shards), group, True) for group in groups]
    planned.append(("whole file", blocks, PermutationGroup(), False))
    rows = []
    for scope, where, group, is_gate in planned:
        check = check_order(benchmark.texts, where, group=group, labels=benchmark.labels, n_permutations=n_permutations)
        rows += _check_rows(benchmark, scope, len(where), check, is_gate, gate)
    return rows


def _check_rows(
    benchmark: Benchmark, scope: str, n_shards: int, check: OrderCheck, is_gate: bool, gate: str
) -> list[dict[str, Any]]:
    base = {
        "benchmark": benchmark.spec.benchmark,
        "order_digest": benchmark.digest,
        "permutation_group": check.group,
        "n_shards": n_shards,
        "n_permutations": check.n_permutations,
    }
    failed = check.fails(gate)
    combined = {
        **base,
        "check_name": f"{scope}/{check.group}/combined",
        "statistic": check.combined,
        "p_value": check.p_value,
        "is_gate": is_gate,
        "status": ORDER_NOT_EXCHANGEABLE if failed else OK,
        "reason": check.summary() if failed else None,
    }
    single = [
        {
            **base,
            "check_name": f"{scope}/{check.group}/{item.name}",
            "statistic": item.value,
            "z_score": item.z_score,
            "p_value": item.p_value,
            "is_gate": False,
            "status": "ok",
        }
        for item in check.statistics
    ]
    return [combined, *single]


def drawn_from(stored: pl.DataFrame, group: str) -> tuple[str, str | None]:
    """The permutation group and the published order that stored orderings were drawn from.

    Where nothing is stored, ``group`` and None.
    """
    if stored.is_empty():
        return group, None
    return str(stored["permutation_group"][0]), stored["order_digest"][0]


def order_check_p(store: Reader, benchmark: str, group: str, order_digest: str | None) -> float | None:
    """The p-value of the check that gates verdicts on this published order and group; None where there is none."""
    rows = store.query(
        "select p_value from contamination.order_checks where benchmark = ? and permutation_group = ? and is_gate "
        "and (order_digest is null or coalesce(?, order_digest) = order_digest)",
        [benchmark, group, order_digest],
    )
    return float(rows["p_value"][0]) if rows.height else None


def stored_scores(store: Reader, model: str, benchmark: str) -> pl.DataFrame:
    """All stored orderings of a model and benchmark."""
    return store.query(
        "select * from contamination.order_logliks where model = ? and benchmark = ? order by shard, permutation",
        [model, benchmark],
    )


def scores_in(rows: pl.DataFrame) -> tuple[list[ShardScores], dict[int, float | None], float]:
    """Shard scores, the reversed order's value by shard, and the largest change of a sentinel."""
    shards: list[ShardScores] = []
    backwards: dict[int, float | None] = {}
    for (shard,), part in rows.group_by("shard", maintain_order=True):
        index = int(str(shard))
        logliks = dict(zip(part["permutation"], part["loglik"], strict=True))
        shards.append(scores_of(index, logliks, part["n_tokens"][-1], _n_orders(part), part["dtype"][0]))
        backwards[index] = logliks.get(REVERSED)
    moved = rows["sentinel_difference"].max() if rows.height else None
    return shards, backwards, float(str(moved or 0.0))


def plan_of(rows: pl.DataFrame, settings: ContaminationSettings) -> str | None:
    """The plan as it stood before scoring, from what one published order of every shard holds."""
    published = rows.filter(pl.col("permutation") == CANONICAL)
    if published.is_empty():
        return None
    n_orders = [_n_orders(part) for _, part in published.group_by("shard", maintain_order=True)]
    return settings.plan(int(published["n_tokens"].sum()), published["n_examples"].to_list(), n_orders).text()


def _n_orders(part: pl.DataFrame) -> int:
    """Orders of a shard that can be told apart; rows of an older version do not count equal examples."""
    counted = part["n_distinct_orders"].drop_nulls()
    if counted.len():
        return int(counted[0])
    return PermutationGroup.parse(part["permutation_group"][0]).n_orders(part["n_examples"][0])


def shard_rows(
    verdict: Verdict, shards: Sequence[ShardScores], backwards: Mapping[int, float | None]
) -> list[dict[str, Any]]:
    """One row a shard, those left out included."""
    tests = dict(verdict.shard_tests)
    base = {"model": verdict.model, "benchmark": verdict.benchmark}
    rows: list[dict[str, Any]] = []
    for scores in shards:
        row: dict[str, Any] = {**base, "shard": scores.shard, "n_tokens": scores.n_tokens}
        test = tests.get(scores.shard)
        if test is None:
            reason = "a log-likelihood is not finite" if scores.shard in verdict.excluded else "too few orders scored"
            status = "nonfinite" if scores.shard in verdict.excluded else "inconclusive"
            rows.append({**row, "status": status, "reason": reason})
            continue
        back = backwards.get(scores.shard)
        turned = None if back is None else permutation_test(back, scores.values[1 : test.n_permutations + 1])
        rows.append(
            row
            | {
                "n_permutations": test.n_permutations,
                "exceedances": test.exceedances,
                "greater": test.greater,
                "p_value": test.p_value,
                "resolution": test.resolution,
                "z_score": test.z_score,
                "reversed_z": None if turned is None else turned.z_score,
                "published_loglik": test.canonical,
                "shuffled_mean": test.shuffled_mean,
                "shuffled_sd": test.shuffled_sd,
                "stopped_early": verdict.stopped_early,
                "status": "ok",
            }
        )
    return rows


def verdict_rows(
    verdict: Verdict, shards: Sequence[ShardScores], stored: pl.DataFrame, plan: str | None
) -> list[dict[str, Any]]:
    """The verdict's row, and a row for each named statistic on the same orders."""
    base = {
        "model": verdict.model,
        "benchmark": verdict.benchmark,
        "alpha": float(verdict.alpha),
        "permutation_group": verdict.group,
        "order_check_p": verdict.order_p,
        "n_permutations": verdict.n_permutations,
        "n_shards": verdict.n_shards,
    }
    main = {
        **base,
        "method": verdict.method,
        "is_verdict": True,
        "statistic": verdict.statistic,
        "p_value": verdict.p_value or None,
        "ln_p": verdict.log_p,
        "resolution": verdict.resolution or None,
        "at_floor": verdict.at_floor,
        "stopped_early": verdict.stopped_early,
        "n_orders": stored.height,
        "n_tokens": int(stored["n_tokens"].sum()) if stored.height else 0,
        "plan": plan,
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "summary": verdict.summary(),
        "needed_effect": verdict.needed_effect,
    }
    named = comparisons(shards, verdict.n_permutations) if verdict.n_permutations else []
    return [main, *(_comparison(base, pooled) for pooled in named)]


def verdict_writes(
    store: Reader, verdict: Verdict, tests: Sequence[dict[str, Any]], shards: Sequence[dict[str, Any]]
) -> list[Replace | Merge]:
    """The writes that replace one model and benchmark in both tables, and every verdict's q-value, in one transaction.

    Benjamini and Hochberg's q-values are over all verdicts behind a passed order check.
    """
    where = {"model": verdict.model, "benchmark": verdict.benchmark}
    writes: list[Replace | Merge] = [
        Replace("contamination.shard_tests", shards, where),
        Replace("contamination.tests", tests, where),
    ]
    others = store.query(
        "select model, benchmark, method, ln_p, verdict from contamination.tests "
        "where is_verdict and not (model = ? and benchmark = ?) order by all",
        list(where.values()),
    ).to_dicts()
    judged = [row for row in [*others, tests[0]] if row["verdict"] in COUNTED and row["ln_p"] is not None]
    q_values = adjusted_log_p_values([row["ln_p"] for row in judged])
    keys = ("model", "benchmark", "method")
    merged = [{key: row[key] for key in keys} | {"q_value": q} for row, q in zip(judged, q_values, strict=True)]
    return [*writes, Merge("contamination.tests", merged)] if merged else writes


def _comparison(base: Mapping[str, Any], pooled: Pooled) -> dict[str, Any]:
    return {
        **base,
        "method": pooled.method,
        "is_verdict": False,
        "statistic": pooled.statistic,
        "p_value": pooled.p_value or None,
        "ln_p": pooled.log_p,
        "resolution": pooled.resolution or None,
        "verdict": COMPARISON,
        "reason": "for comparison only; not valid after an early stop",
    }
