"""Public functions of the cutoff methods given hostile values: a finite answer or a ValueError in words of ours."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

from strandline.calibration import Recovery, summarise
from strandline.perplexity.curves import (
    bucket_curve,
    is_constant,
    lowest_month,
    panel_curve,
    relative_curve,
    trimmed_mean,
)
from strandline.perplexity.differences import check_panel, running_median
from strandline.perplexity.estimates import bucket_series
from strandline.perplexity.panel_with_reference import panel_cutoff
from strandline.perplexity.panel_without_reference import noref_cutoff
from strandline.perplexity.planted import planted_panel, planted_series, planted_topics
from strandline.perplexity.random_streams import uniforms
from strandline.perplexity.reference import Document, blocks_of, crossfit_scores, fold_of
from strandline.perplexity.rise import rise_cutoff
from strandline.perplexity.rows import edit_path
from strandline.perplexity.simulation import run_once
from strandline.perplexity.topic import topic_cutoffs

PANEL = np.random.default_rng(1).normal(3, 0.1, (24, 30))
SERIES = np.random.default_rng(2).normal(3, 0.1, 30)
PATHS = np.cumsum(np.full((24, 30), 0.05), axis=1)
NAN, INF = float("nan"), float("inf")


def spoilt(matrix: np.ndarray, value: float) -> np.ndarray:
    copy = matrix.copy()
    copy.flat[3] = value
    return copy


MATRICES: list[Any] = [
    None, 1.0, [], [[]], [1.0], "text", b"12", {"a": 1}, PANEL.astype(complex), PANEL > 3, PANEL.astype(str),
    PANEL.astype(object), [[1.0], [1.0, 2.0]], [[True] * 30] * 24, PANEL[0], PANEL[None], PANEL[:1], PANEL[:, :1],
    spoilt(PANEL, NAN), spoilt(PANEL, INF), spoilt(PANEL, -INF), spoilt(PANEL, 1e308), spoilt(PANEL, -1e200),
    PANEL * 1e150, PANEL * 0, np.full((24, 30), 1e-320), np.zeros((0, 30)), np.zeros((24, 0)),
]  # fmt: skip
NUMBERS: list[Any] = [None, True, False, -1, 0, 1.5, NAN, INF, -INF, "1", 2j, [1], 10**400]

DEFINED: dict[str, Callable[[Any], Any]] = {
    "panel_cutoff": lambda x: panel_cutoff(x, replicates=20),
    "panel_cutoff, reference": lambda x: panel_cutoff(PANEL, x, replicates=20) if x is not None else None,
    "noref_cutoff": noref_cutoff,
    "rise_cutoff": lambda x: rise_cutoff(x, replicates=20),
    "topic_cutoffs, differences": lambda x: topic_cutoffs(x, PATHS, replicates=19),
    "topic_cutoffs, distances": lambda x: topic_cutoffs(PANEL, x, replicates=19),
    "check_panel": lambda x: check_panel(x, None, 2, 3),
    "lowest_month": lambda x: lowest_month(x, replicates=5),
}
"""Functions whose answer is wholly finite (a p-value that was not tested apart)."""

OPEN: dict[str, Callable[[Any], Any]] = {
    "panel_curve": lambda x: panel_curve(x, replicates=5),
    "panel_curve, available": lambda x: panel_curve(x, complete_cases=False, replicates=5),
    "bucket_curve": lambda x: bucket_curve([x], replicates=5),
    "relative_curve": relative_curve,
    "trimmed_mean": trimmed_mean,
    "is_constant": is_constant,
}
"""Functions that say NaN where a month has no value."""


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", MATRICES, ids=lambda value: f"{type(value).__name__}")
@pytest.mark.parametrize("name", DEFINED)
def test_hostile_matrices_are_refused_in_words_or_give_finite_answers(name: str, value: Any) -> None:
    answer = refused_or_given(DEFINED[name], value)
    assert answer is None or all_finite(answer)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", MATRICES, ids=lambda value: f"{type(value).__name__}")
@pytest.mark.parametrize("name", OPEN)
def test_hostile_matrices_are_refused_in_words_or_leave_months_without_a_value(name: str, value: Any) -> None:
    refused_or_given(OPEN[name], value)


SETTINGS: dict[str, Callable[[Any], Any]] = {
    "panel_cutoff, seed": lambda x: panel_cutoff(PANEL, seed=x, replicates=20),
    "panel_cutoff, replicates": lambda x: panel_cutoff(PANEL, replicates=x),
    "panel_cutoff, min_topics": lambda x: panel_cutoff(PANEL, replicates=20, min_topics=x),
    "noref_cutoff, min_months": lambda x: noref_cutoff(PANEL, min_months=x),
    "rise_cutoff, seed": lambda x: rise_cutoff(SERIES, seed=x, replicates=20),
    "rise_cutoff, replicates": lambda x: rise_cutoff(SERIES, replicates=x),
    "topic_cutoffs, level": lambda x: topic_cutoffs(PANEL, PATHS, replicates=19, level=x),
    "topic_cutoffs, replicates": lambda x: topic_cutoffs(PANEL[:2], PATHS[:2], replicates=x),
    "lowest_month, replicates": lambda x: lowest_month(PANEL, replicates=x),
    "panel_curve, replicates": lambda x: panel_curve(PANEL, replicates=x),
    "bucket_curve, replicates": lambda x: bucket_curve([SERIES], replicates=x),
    "trimmed_mean, trim": lambda x: trimmed_mean(PANEL, x),
    "running_median, window": lambda x: running_median(SERIES, x),
    "uniforms, seed": lambda x: uniforms(x, 1, (2,)),
    "uniforms, shape": lambda x: uniforms(1, 1, (x,)) if x != 10**400 else None,
    "fold_of, folds": lambda x: fold_of(["a", "b"], x),
    "crossfit_scores, discount": lambda x: crossfit_scores(DOCUMENTS, discount=x),
    "crossfit_scores, order": lambda x: crossfit_scores(DOCUMENTS, order=x) if x != 10**400 else None,
    "crossfit_scores, folds": lambda x: crossfit_scores(DOCUMENTS, folds=x),
    "crossfit_scores, vocabulary": lambda x: crossfit_scores(DOCUMENTS, vocabulary=x),
    "edit_path, max_words": lambda x: edit_path(["a b", "a c"], x) if x != 10**400 else None,
    "planted_series, snr": lambda x: planted_series("step", np.random.default_rng(1), snr=x, phi=0.0),
    "planted_series, phi": lambda x: planted_series("step", np.random.default_rng(1), snr=2.0, phi=x),
    "planted_panel, n_topics": lambda x: planted_panel("sharp", "wiki", np.random.default_rng(1), n_topics=x),
    "planted_panel, n_months": lambda x: planted_panel("sharp", "wiki", np.random.default_rng(1), n_months=x),
}
DOCUMENTS = [Document("a", "1", [1, 2, 3]), Document("b", "2", [1, 2, 4])]


@pytest.mark.parametrize("value", NUMBERS, ids=repr)
@pytest.mark.parametrize("name", SETTINGS)
def test_hostile_settings_are_refused_in_words_or_give_finite_answers(name: str, value: Any) -> None:
    answer = refused_or_given(SETTINGS[name], value)
    assert answer is None or all_finite(answer)


@pytest.mark.parametrize(
    "call",
    [
        lambda: crossfit_scores([Document("a", "1", [1.5, 2.0]), Document("b", "2", [1, 2])]),  # type: ignore[list-item]
        lambda: crossfit_scores([Document("a", "1", [True, False]), Document("b", "2", [1, 2])]),
        lambda: crossfit_scores([Document("a", "1", [-1, 2]), Document("b", "2", [1, 2])]),
        lambda: crossfit_scores([]),
        lambda: crossfit_scores([Document("a", "1", [1, 2])]),
        lambda: planted_panel("nowhere", "wiki", np.random.default_rng(1)),
        lambda: planted_panel("sharp", "nobody", np.random.default_rng(1)),
        lambda: planted_series("nowhere", np.random.default_rng(1), snr=1.0, phi=0.0),
        lambda: planted_topics("nobody", np.random.default_rng(1)),
        lambda: run_once("nothing", "sharp/wiki/n20/m24", 1),
        lambda: run_once("panel", "sharp", 1),
        lambda: run_once("panel", "sharp/wiki/nx/m24", 1),
        lambda: run_once("rise", "step/snr2", 1),
        lambda: run_once("topic", "wiki/nothing/memory", 1),
        lambda: run_once("panel", "sharp/wiki/n20/m24", -1),
        lambda: summarise([], has_truth=True),
        lambda: summarise([Recovery(NAN, 1.0, 0.0, 2.0, 0.0, 2.0, "found", True)], has_truth=True),
        lambda: summarise([Recovery(1.0, 1.0, 2.0, 0.0, 0.0, 2.0, "found", True)], has_truth=True),
        lambda: uniforms(1, -1, (2,)),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"[a-z]{3,}"):
        call()


def test_nothing_gives_nothing() -> None:
    assert blocks_of([]) == []
    assert fold_of([], 8) == {}
    assert bucket_series([]).tolist() == []
    assert edit_path([], 10) is None


def refused_or_given(call: Callable[[Any], Any], value: Any) -> Any:
    """The answer; None where the value is refused with a sentence of ours."""
    try:
        return call(value)
    except ValueError as error:
        said = str(error)
        assert len(said.split()) >= 4, said
        for theirs in ("broadcast", "could not convert", "ufunc", "operands", "inhomogeneous", "zero-size", "axis"):
            assert theirs not in said, said
        return None


def all_finite(answer: Any) -> bool:
    if is_dataclass(answer):
        untested = ("p_values", "q_values", "log_evidence_second", "versus_curve")
        parts = {field.name: getattr(answer, field.name) for field in fields(answer)}
        return all(all_finite(part) for name, part in parts.items() if name not in untested)
    if isinstance(answer, (list, tuple)):
        return all(all_finite(part) for part in answer)
    if isinstance(answer, np.ndarray) and answer.dtype.kind in "fc":
        return bool(np.all(np.isfinite(answer)))
    return not isinstance(answer, float) or bool(np.isfinite(answer))
