"""Every public function of the contamination tests, given one hostile value at a time: finite, or ValueError in our
words."""

import math
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from strandline.contamination import (
    convolution,
    exact,
    levels,
    monitoring,
    order_check,
    orderings,
    planner,
    pooling,
    schedule,
    sequential,
    simulation,
    verdict,
)
from strandline.contamination.orderings import PermutationGroup, Shard
from strandline.contamination.sequential import THREE_LOOKS, LookDesign
from strandline.contamination.settings import ContaminationSettings
from strandline.contamination.verdict import ShardScores

NAN, INF = float("nan"), float("inf")
NUMBERS: tuple[Any, ...] = (NAN, INF, -INF, -5, 0, 1e308, True, 1j, "x", None, 2.5)
ROWS: tuple[Any, ...] = (
    [],
    [NAN, 1.0],
    [INF, 1.0],
    [True, False],
    [True, 2.0],
    [1j, 2.0],
    ["1", "2"],
    [None, 1.0],
    [[1.0], [2.0]],
    5,
    None,
    [1e308, -1e308],
)
FOREIGN = ("unsupported", "could not convert", "cannot convert", "not iterable", "must be real", "arg ", "math domain")
VALUES = [-5.0, -6.0, -7.5, -8.0]
SHARDS = [[-5.0 - k, -6.0, -7.5, -8.0] for k in range(4)]
SCORES = [ShardScores(k, tuple(row), 100) for k, row in enumerate(SHARDS)]
TEXTS = [f"word{k} and more of it" for k in range(8)]
TWO = [Shard(0, 0, 4), Shard(1, 4, 8)]
ATOMS = [convolution.uniform([1, 2, 3])] * 2
BOTH = (*NUMBERS, *ROWS)


def of_scores(values: Any) -> verdict.Verdict:
    return verdict.judge("m", "b", [ShardScores(0, values), *SCORES[1:]], order_p=0.5)


CALLS: list[tuple[Callable[..., Any], dict[str, Any], dict[str, Iterable[Any]]]] = [
    (levels.as_level, {"alpha": "0.05"}, {"alpha": (*BOTH, "1/0", "1e-999999999", "9" * 99)}),
    (
        levels.grid_p_at_most,
        {"exceedances": 1, "n_permutations": 19, "alpha": "0.05"},
        {"exceedances": NUMBERS, "n_permutations": NUMBERS, "alpha": NUMBERS},
    ),
    (
        exact.permutation_test,
        {"canonical": -1.0, "shuffled": VALUES, "tolerance": 0.1},
        {"canonical": BOTH, "shuffled": ROWS, "tolerance": NUMBERS},
    ),
    (exact.finite_values, {"values": VALUES, "name": "x"}, {"values": ROWS}),
    (convolution.uniform, {"scores": [1, 2]}, {"scores": ([], [NAN], [2.5], [True, 1], [10**30])}),
    (
        convolution.Atoms,
        {"scores": (1, 2), "weights": (1, 1)},
        {"scores": ((), (1,), (2.5, 1), (True, 1), (10**30, 1)), "weights": ((), (0, 1), (-1, 1), (NAN, 1), (True, 1))},
    ),
    (convolution.tail_log_p, {"shards": ATOMS, "threshold": 4}, {"shards": ([],), "threshold": NUMBERS}),
    (convolution.exact_tail, {"shards": ATOMS, "threshold": 4}, {"shards": ([],), "threshold": NUMBERS}),
    (
        convolution.tail_at_most,
        {"shards": ATOMS, "threshold": 4, "log_p": -1.0, "level": Fraction(1, 20)},
        {"log_p": NUMBERS, "threshold": NUMBERS},
    ),
    (
        pooling.z_sum,
        {"shards": SHARDS, "token_counts": [5, 5, 5, 5], "scale": 8},
        {
            "shards": ([], [[]], [row for row in ROWS if isinstance(row, list)]),
            "token_counts": (*ROWS, [0, 1, 1, 1]),
            "scale": NUMBERS,
        },
    ),
    (
        pooling.lattice_fisher,
        {"ranks": [1, 2], "n_permutations": 19, "scale": 8},
        {
            "ranks": ([], [0, 1], [21, 1], [NAN, 1], [True, 1], [1.5, 1]),
            "n_permutations": (*NUMBERS, [19], 10**12),
            "scale": NUMBERS,
        },
    ),
    (
        pooling.rank_sum,
        {"ranks": [1, 2], "n_permutations": 19},
        {"ranks": ([], [0, 1], [21, 1], [NAN, 1], [True, 1]), "n_permutations": (*NUMBERS, [19], 10**12)},
    ),
    (pooling.fisher_chi2, {"p_values": [0.5, 0.1]}, {"p_values": (*ROWS, [0.0], [1.5])}),
    (pooling.oren_t, {"shards": SHARDS}, {"shards": ([], [VALUES], [VALUES, VALUES], [[True, 1.0], VALUES])}),
    (sequential.design_for, {"n_shards": 4}, {"n_shards": NUMBERS}),
    (
        LookDesign,
        {"name": "x", "looks": (2, 5), "weights": (Fraction(1, 2), Fraction(1, 2)), "futility": (0.3,)},
        {
            "looks": ((), (5, 2), (2.5, 5), (True, 5), (NAN, 5)),
            "weights": ((), (NAN, 0.5), (0.5, 0.5), (Fraction(1),)),
            "futility": ((), (NAN,), (2.0,), (True,), ("x",)),
        },
    ),
    (
        sequential.run_looks,
        {"shards": SHARDS, "design": THREE_LOOKS, "alpha": "0.05"},
        {"shards": ([], [[]], [[True, 1.0]], [VALUES, [NAN, 1.0]]), "alpha": NUMBERS},
    ),
    (
        sequential.combine_looks,
        {"log_p_values": [-1.0], "weights": [Fraction(1)]},
        {"log_p_values": ([NAN], [1.0], [True], ["x"]), "weights": ([0], [-1], [NAN])},
    ),
    (
        sequential.besag_clifford,
        {"canonical": -1.0, "draws": VALUES, "stop": 2, "most": 4, "tolerance": 0.1},
        {
            "canonical": BOTH,
            "draws": [row for row in ROWS if isinstance(row, list)],
            "stop": NUMBERS,
            "most": NUMBERS,
            "tolerance": [value for value in NUMBERS if value is not None],
        },
    ),
    (sequential.expected_draws, {"stop": 2, "most": 4}, {"stop": NUMBERS, "most": (*NUMBERS, 10**9)}),
    (
        planner.fixed_power,
        {"effect": 0.5, "n_shards": 8, "n_permutations": 19, "alpha": "0.05"},
        {"effect": NUMBERS, "n_shards": NUMBERS, "n_permutations": NUMBERS, "alpha": NUMBERS},
    ),
    (
        planner.needed_effect,
        {"n_permutations": 19, "alpha": "0.05", "power": 0.8},
        {"n_permutations": NUMBERS, "alpha": NUMBERS, "power": NUMBERS},
    ),
    (
        planner.expected_permutations,
        {"design": THREE_LOOKS, "n_shards": 8, "alpha": "0.05", "effect": 0.5},
        {"n_shards": NUMBERS, "alpha": NUMBERS, "effect": NUMBERS},
    ),
    (
        planner.smallest_log_p,
        {"n_shards": 2, "n_permutations": 19, "weight": Fraction(1), "n_orders": [5, 5]},
        {
            "n_shards": NUMBERS,
            "n_permutations": NUMBERS,
            "weight": NUMBERS,
            "n_orders": ([0, 5], [NAN, 5], [True, 5], [5]),
        },
    ),
    (
        planner.make_plan,
        {"tokens_per_pass": 100, "n_shards": 8, "examples_per_shard": 5, "tokens_per_second": 9.0},
        {
            "tokens_per_pass": NUMBERS,
            "n_shards": NUMBERS,
            "examples_per_shard": NUMBERS,
            "tokens_per_second": [value for value in NUMBERS if value is not None],
        },
    ),
    (orderings.PermutationGroup, {"width": 3}, {"width": NUMBERS}),
    (
        PermutationGroup.parse,
        {"text": "all"},
        {"text": ("", "window:", "window:1", "window:\u00b2", "window:-3", "x:3")},
    ),
    (PermutationGroup().n_orders, {"size": 4}, {"size": NUMBERS}),
    (
        orderings.make_shards,
        {"lengths": [5] * 40, "examples_per_shard": 5},
        {
            "lengths": ([], [5], [-5] * 10, [NAN] * 10, [True] * 10, ["5"] * 10, [2.5] * 10),
            "examples_per_shard": NUMBERS,
        },
    ),
    (orderings.make_shards, {"lengths": [5] * 40, "n_shards": 5}, {"n_shards": NUMBERS}),
    (orderings.evenly_spaced, {"shards": TWO, "most": 1}, {"most": NUMBERS}),
    (
        orderings.affordable,
        {"tokens_per_shard": 5.0, "passes": 2.0, "token_budget": 100},
        {"tokens_per_shard": NUMBERS, "passes": NUMBERS, "token_budget": NUMBERS},
    ),
    (
        orderings.order_of,
        {"shard": TWO[0], "permutation": 1, "digest": "d", "run_seed": 0, "group": PermutationGroup()},
        {"permutation": NUMBERS},
    ),
    (orderings.join_ids, {"examples": [[1], [2]], "order": [0, 1], "separator": [3], "bos": None}, {"order": ([5],)}),
    (orderings.check_same_tokens, {"sequences": [[1, 2], [2, 1]]}, {"sequences": ([], [[1], [2]])}),
    (
        orderings.batch_order,
        {"n_orders": 3, "digest": "d", "shard": 0, "look": 2, "run_seed": 0},
        {"n_orders": NUMBERS},
    ),
    (
        orderings.judge_sentinel,
        {"published": -1.0, "again": -1.0, "tolerance": 0.1},
        {"published": NUMBERS, "again": NUMBERS, "tolerance": NUMBERS},
    ),
    (
        order_check.check_order,
        {"texts": TEXTS, "shards": TWO, "labels": list("abababab"), "n_permutations": 19, "seed": 0},
        {
            "texts": ([], TEXTS[:5], [None] * 8, ["\ud800"] * 8, [""] * 8),
            "shards": ([], [Shard(0, 0, 1)], [Shard(0, 4, 12)]),
            "labels": ([], [NAN] * 8, [None] * 8),
            "n_permutations": NUMBERS,
            "seed": NUMBERS,
        },
    ),
    (order_check.check_order(TEXTS, TWO, n_permutations=19).fails, {"gate": "0.01"}, {"gate": NUMBERS}),
    (
        of_scores,
        {"values": tuple(VALUES)},
        {"values": ((), (True, False, 1.0), (1j, 1.0), ("x", "y"), (None, 1.0), (NAN, 1.0, 2.0), (1e308, -1e308, 0.0))},
    ),
    (
        verdict.judge,
        {
            "model": "m",
            "benchmark": "b",
            "shards": SCORES,
            "order_p": 0.5,
            "alpha": "0.05",
            "gate": "0.01",
            "sentinel_difference": 0.0,
        },
        {"order_p": NUMBERS, "alpha": NUMBERS, "gate": NUMBERS, "sentinel_difference": NUMBERS},
    ),
    (verdict.comparisons, {"shards": SCORES, "n_permutations": 3}, {"n_permutations": (*NUMBERS, 99)}),
    (schedule.next_permutations, {"shards": TWO, "stored": {}, "design": THREE_LOOKS, "alpha": "0.05"}, {"alpha": ()}),
    (
        monitoring.log_e_value,
        {"exceedances": 1, "draws": 5, "prior": 2.0},
        {"exceedances": NUMBERS, "draws": NUMBERS, "prior": NUMBERS},
    ),
    (
        monitoring.uniform_e_value,
        {"exceedances": 1, "draws": 5, "most": 0.5},
        {"exceedances": NUMBERS, "draws": NUMBERS, "most": NUMBERS},
    ),
    (
        monitoring.log_e_process,
        {"counts": [(1, 5)], "priors": (2.0,)},
        {"counts": ([], [(9, 5)], [(NAN, 5)]), "priors": ((), (0,), (NAN,))},
    ),
    (
        simulation.run_once,
        {"estimator": "z_sum", "scenario": "null/normal/k2/m5", "seed": 0},
        {
            "estimator": ("x", ""),
            "scenario": (
                "",
                "x",
                "null/odd/k2/m5",
                "null/normal/k0/m5",
                "null/normal/k2",
                "a/b/c/d",
                "effectx/1.0/k2/m5",
                "transformer/published/-1",
            ),
        },
    ),
    (
        ContaminationSettings,
        {},
        {
            "alpha": NUMBERS,
            "gate": NUMBERS,
            "design": ("x",),
            "group": ("x",),
            "token_budget": NUMBERS,
            "examples_per_shard": NUMBERS,
            "order_permutations": NUMBERS,
            "run_seed": NUMBERS,
        },
    ),
]


def not_finite(result: Any) -> list[float]:
    """Numbers in a result that are not finite."""
    if isinstance(result, bool | str | bytes) or result is None:
        return []
    if isinstance(result, float | int | np.floating):
        return [] if math.isfinite(result) else [float(result)]
    if is_dataclass(result) and not isinstance(result, type):
        return [bad for field in fields(result) for bad in not_finite(getattr(result, field.name))]
    if isinstance(result, list | tuple | np.ndarray):
        return [bad for item in result for bad in not_finite(item)]
    return []


def answer(call: Callable[..., Any], arguments: dict[str, Any]) -> tuple[Any, str]:
    """The result, or the words of the ValueError."""
    try:
        return call(**arguments), ""
    except ValueError as error:
        return None, str(error)


CASES = [
    pytest.param(call, usual | {name: value}, id=f"{getattr(call, '__name__', call)}-{name}-{str(value)[:20]}-{k}")
    for call, usual, hostile in CALLS
    for name, values in hostile.items()
    for k, value in enumerate(values)
]


@pytest.mark.parametrize(("call", "usual"), [(call, usual) for call, usual, _ in CALLS])
def test_sound_values_are_answered(call: Callable[..., Any], usual: dict[str, Any]) -> None:
    assert not_finite(call(**usual)) == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("call", "arguments"), CASES)
def test_hostile_values_give_finite_numbers_or_a_refusal_in_our_words(
    call: Callable[..., Any], arguments: dict[str, Any]
) -> None:
    result, refusal = answer(call, arguments)
    assert not_finite(result) == []
    assert not any(words in refusal for words in FOREIGN)
