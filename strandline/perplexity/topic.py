"""``topic``: effective cutoffs of single topics, pooled so that a topic is named only where it is resolved.

Claim: for each accepted topic the month whose version the model remembers best; over all accepted topics at most
``level`` of the findings are expected to be false (Benjamini-Hochberg over permutation p-values). Memory of a version
is taken to fade exponentially with the edit distance from it, so only months in which the topic was edited count.
Topics lend each other strength through a common distribution of months. What it cannot show: topics with fewer than six
edited months, and months between two edits (identical versions are tied, so intervals reach across them). Local false
discovery rates of the same fit are NOT honest (measured .14 to .33 at a nominal .10) and are not used.

Tested by tests/unit/methods/perplexity/test_topic.py: golden values, false discovery rate, coverage, fuzzing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, logsumexp

from strandline.multiple_testing import adjusted_p_values
from strandline.numeric_input import real_array, real_number, whole_number
from strandline.perplexity.differences import LARGEST_VALUE, NORMAL_MAD, Floats, Ints
from strandline.perplexity.random_streams import uniforms

TOPICS_VERSION = "1"
"""Raise it when the same scores would give other cutoffs of topics: tables made by it then show as stale."""

FADE_LENGTHS = (0.05, 0.15, 0.5)
"""Edit distances (shares of a text) over which memory of a version fades; the likelihood chooses."""

DEPTH_SCALES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Prior scales of the depth of memory, in standard deviations of a step; the likelihood chooses."""

MIN_EDITS, MIN_EDITS_LIKELIHOOD = 6, 4
"""Edited months of a topic that is tested, and of one that the common fit uses: five months have 120 orders, too few
for a small p-value among many topics."""

SMALLEST_EDIT = 0.001
"""Share of a text: smaller edits count as this large, so that one character is not given the weight of a rewrite."""

FEW_TOPICS = 50
"""Under this many topics the common distribution of months is too rough to weigh single topics by; months then count
alike."""

FALSE_DISCOVERIES = 0.10
"""The expected share of false findings that is allowed; in simulation .00 to .08 were false."""

STATUSES = ("found", "unresolved", "too-few-edits")
"""Every status of a topic."""


@dataclass(frozen=True)
class TopicSteps:
    """Standardised steps of all topics: topics by steps, zero where a topic was not edited.

    ``steps`` are changes of log perplexity over the root of the edit size, clipped; ``edit_sizes`` the edits.
    """

    steps: Floats
    edit_sizes: Floats
    distances: Floats

    @property
    def n_edits(self) -> Ints:
        counts: Ints = np.count_nonzero(self.edit_sizes > 0, axis=1)
        return counts


@dataclass(frozen=True)
class TopicCutoffs:
    """One entry a topic; months are 0-based and intervals include both ends.

    ``status`` is ``found``, ``unresolved`` or ``too-few-edits``. Months and intervals are filled for every topic with
    enough edits, as data: only ``found`` topics may be printed. ``p_values`` and ``q_values`` are NaN without a test.
    ``share_without`` is the fitted share of topics without memory, ``month_weights`` the fitted common distribution.
    """

    status: tuple[str, ...]
    months: Ints
    intervals80: Ints
    intervals95: Ints
    p_values: Floats
    q_values: Floats
    n_edits: Ints
    share_without: float
    month_weights: Floats
    fade_length: float
    depth_scale: float


@dataclass(frozen=True)
class MonthFit:
    """The fitted mixture: share of topics without memory, distribution of months, and its log likelihood."""

    share_without: float
    month_weights: Floats
    log_likelihood: float


def topic_cutoffs(
    differences: ArrayLike,
    distances: ArrayLike,
    *,
    seed: int = 1,
    replicates: int = 299,
    level: float = FALSE_DISCOVERIES,
) -> TopicCutoffs:
    """Date single topics.

    Args:
        differences: topics by months, log perplexity of the target minus that of the reference on the same tokens.
        distances: topics by months, normalised edit distance summed over versions from any start; it never falls.
        seed: selects the permutations.
        replicates: permutations a topic; with few of them small p-values do not exist and nothing is found.
        level: the false discovery rate allowed.

    Raises:
        ValueError: for unequal shapes, missing or infinite values, falling distances, and a level outside (0, 1).
    """
    _check_settings(level, replicates)
    data = topic_steps(differences, distances)
    usable = (data.n_edits >= MIN_EDITS_LIKELIHOOD) & np.any(data.steps != 0, axis=1)
    fade, scale, evidence, fit = _best_fit(data, usable)
    p_values = _p_values(data, fade, scale, _tested_weights(data, usable, fit), seed, replicates)
    q_values = adjusted_p_values(p_values)
    months, *ends = _posterior_quantiles(evidence + np.log(fit.month_weights), (0.5, 0.1, 0.9, 0.025, 0.975))
    return TopicCutoffs(
        status=tuple("too-few-edits" if np.isnan(q) else "found" if q <= level else "unresolved" for q in q_values),
        months=months,
        intervals80=np.stack(ends[:2], axis=1),
        intervals95=np.stack(ends[2:], axis=1),
        p_values=p_values,
        q_values=q_values,
        n_edits=data.n_edits,
        share_without=fit.share_without,
        month_weights=fit.month_weights,
        fade_length=fade,
        depth_scale=scale,
    )


def topic_steps(differences: ArrayLike, distances: ArrayLike) -> TopicSteps:
    """Standardise the monthly changes by the root of the edit size and clip each topic's at four robust deviations."""
    panel, path = real_array(differences, "differences"), real_array(distances, "distances")
    if panel.ndim != 2 or panel.shape != path.shape or panel.shape[0] < 1 or panel.shape[1] < 3:
        raise ValueError(f"needs two equal matrices of topics by at least 3 months, got {panel.shape} and {path.shape}")
    if (
        not (np.all(np.isfinite(panel)) and np.all(np.isfinite(path)))
        or max(np.max(np.abs(panel)), np.max(np.abs(path))) > LARGEST_VALUE
    ):
        raise ValueError("differences and distances must be finite: leave out topics with missing months")
    edits = np.diff(path, axis=1)
    if np.any(edits < 0):
        raise ValueError("cumulative edit distances must not fall")
    edited = edits > 0
    steps = np.where(edited, np.diff(panel, axis=1), 0.0) / np.sqrt(np.maximum(edits, SMALLEST_EDIT))
    limits = np.array([NORMAL_MAD * 4 * np.median(np.abs(row[mask])) if mask.any() else 0.0 for row, mask in
                       zip(steps, edited, strict=True)])[:, None]  # fmt: skip
    return TopicSteps(np.clip(steps, -limits, limits), edits, path)


def memory_steps(distances: Floats, edit_sizes: Floats, fade: float) -> Floats:
    """Steps that memory of each month's version would make, standardised alike: topics by months by steps."""
    away = np.abs(distances[:, None, :] - distances[:, :, None])
    steps = np.diff(-np.exp(-away / fade), axis=2)
    return steps / np.sqrt(np.maximum(edit_sizes, SMALLEST_EDIT))[:, None, :] * (edit_sizes > 0)[:, None, :]


def month_evidence(zz: Floats, zy: Floats, yy: Floats, n_edits: Ints | int, scale: float) -> Floats:
    """Log Bayes factor of memory of each month (last axis) over none, with a positive depth of prior scale ``scale``.

    ``zz`` and ``zy`` are inner products of the memory steps with themselves and with the data, ``yy`` of the data.
    """
    largest = np.maximum(zz.max(axis=-1, keepdims=True), 1e-300)
    precision = np.maximum(zz + largest / scale**2, 1e-300)
    depth = zy / precision
    rss = np.maximum(yy - zy * depth, 1e-12 * yy)
    shrink = -0.5 * np.log(precision * scale**2 / largest)
    positive = log_ndtr(depth * np.sqrt(precision * n_edits / rss)) + np.log(2)
    evidence: Floats = shrink - n_edits / 2 * np.log(rss / yy) + positive
    return evidence


def fit_months(evidence: Floats, rounds: int = 60) -> MonthFit:
    """Empirical-Bayes distribution of months over topics, smoothed over 1.5 months with a floor of 5 % uniform."""
    n_months = evidence.shape[1]
    months = np.arange(n_months)
    kernel = np.exp(-0.5 * ((months[:, None] - months[None, :]) / 1.5) ** 2)
    kernel /= kernel.sum(axis=0)
    weights, without = np.full(n_months, 1 / n_months), 0.5
    if not len(evidence):
        return MonthFit(without, weights, 0.0)
    top = evidence.max(axis=1, keepdims=True)
    odds, floor = np.exp(evidence - top), np.exp(np.minimum(-top[:, 0], 700.0))
    for _ in range(rounds):
        memory = odds @ weights
        share = (1 - without) * memory / ((1 - without) * memory + without * floor)
        raw = kernel @ ((share / memory) @ odds * weights)
        weights = 0.95 * raw / raw.sum() + 0.05 / n_months
        without = float(np.clip(1 - share.mean(), 0.02, 0.98))
    marginal = np.log((1 - without) * (odds @ weights) + without * floor) + top[:, 0]
    return MonthFit(without, weights, float(marginal.sum()))


def permutation_p_value(
    data: TopicSteps, topic: int, fade: float, scale: float, weights: Floats, seed: int, replicates: int
) -> float:
    """p-value of one topic: its steps against themselves in random orders of its edited months."""
    edited = data.edit_sizes[topic] > 0
    y = data.steps[topic][edited]
    yy = float(y @ y)
    if yy <= 0:
        return 1.0
    z = memory_steps(data.distances[topic][None], data.edit_sizes[topic][None], fade)[0][:, edited]
    draws = uniforms(seed * 100_003 + topic, 21, (replicates, len(y)))
    orders = np.argsort(draws, axis=1, kind="stable")
    zy = np.concatenate([y[None], y[orders]]) @ z.T
    evidence = month_evidence(np.sum(z**2, axis=1)[None], zy, np.array([[yy]]), len(y), scale)
    statistic = logsumexp(evidence + np.log(weights), axis=1)
    return float((1 + np.count_nonzero(statistic[1:] >= statistic[0] - 1e-12)) / (replicates + 1))


def topic_evidence(data: TopicSteps, fade: float) -> tuple[Floats, Floats, Floats]:
    """Inner products (zz, zy, yy) of all topics for one fade length, in blocks that keep memory small."""
    zz, zy = (np.empty(data.distances.shape) for _ in range(2))
    block = max(1, 4_000_000 // data.distances.shape[1] ** 2)
    for first in range(0, len(zz), block):
        rows = slice(first, first + block)
        z = memory_steps(data.distances[rows], data.edit_sizes[rows], fade)
        zz[rows] = np.einsum("ntm,ntm->nt", z, z)
        zy[rows] = np.einsum("ntm,nm->nt", z, data.steps[rows])
    return zz, zy, np.sum(data.steps**2, axis=1, keepdims=True)


def _best_fit(data: TopicSteps, usable: NDArray[np.bool_]) -> tuple[float, float, Floats, MonthFit]:
    best: tuple[float, float, Floats, MonthFit] | None = None
    for fade in FADE_LENGTHS:
        zz, zy, yy = topic_evidence(data, fade)
        for scale in DEPTH_SCALES:
            evidence = np.zeros(zz.shape)
            edits = data.n_edits[usable, None]
            evidence[usable] = month_evidence(zz[usable], zy[usable], yy[usable], edits, scale)
            fit = fit_months(evidence[usable])
            if best is None or fit.log_likelihood > best[3].log_likelihood:
                best = fade, scale, evidence, fit
    assert best is not None
    return best


def _tested_weights(data: TopicSteps, usable: NDArray[np.bool_], fit: MonthFit) -> Floats:
    """The weights of months that topics are tested under: all equal where few topics stand behind the fitted ones."""
    n_months = data.distances.shape[1]
    few = np.count_nonzero(usable) < FEW_TOPICS
    return np.full(n_months, 1 / n_months) if few else fit.month_weights


def _p_values(data: TopicSteps, fade: float, scale: float, weights: Floats, seed: int, replicates: int) -> Floats:
    """The p-value of every topic with enough edits to be tested; NaN for the others."""
    tested = data.n_edits >= MIN_EDITS
    p_values = np.full(len(tested), np.nan)
    for topic in np.flatnonzero(tested):
        p_values[topic] = permutation_p_value(data, int(topic), fade, scale, weights, seed, replicates)
    return p_values


def _check_settings(level: float, replicates: int) -> None:
    """Refuse a level outside (0, 1), and so few permutations that the smallest p-value is over .05."""
    if not 0 < real_number(level, "level") < 1:
        raise ValueError(f"level lies between 0 and 1, got {level}")
    whole_number(replicates, "replicates", 19)


def _posterior_quantiles(log_posterior: Floats, tails: Sequence[float]) -> list[Ints]:
    """Each topic's month at each tail of its posterior."""
    cumulative = np.cumsum(np.exp(log_posterior - logsumexp(log_posterior, axis=1, keepdims=True)), axis=1)
    return [_quantile(cumulative, tail) for tail in tails]


def _quantile(cumulative: Floats, tail: float) -> Ints:
    below: Ints = np.sum(cumulative < tail - 1e-12, axis=1)
    return np.asarray(np.minimum(below, cumulative.shape[1] - 1))
