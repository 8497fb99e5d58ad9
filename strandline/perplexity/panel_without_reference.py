"""``panel_noref``: the effective cutoff of a panel without a reference model.

Claim: where the steps of the mean curve look like the two flanks of a valley, the month of that valley, as a posterior
over valley shapes and months with robust step noise. It seldom decides (mostly for sharp dumps, many topics and
frequent edits), and that is the honest answer: without a reference, text that changes in common moves the curve as much
as memory does. What it cannot show: one of two dips that are shallow or unequal, and any cutoff outside the range. It
is also the test that a reference must pass: a reference that is ``found`` here has a cutoff of its own.

Tested by `tests/unit/methods/perplexity/test_panel_without_reference.py`:
golden values, refusal of flat worlds, power, fuzzing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, logsumexp

from strandline.perplexity.differences import CentredCurve, Floats, Ints, centred_curve, check_panel
from strandline.perplexity.panel_with_reference import MIN_MONTHS, MIN_TOPICS, widths_too_large

CUSP_LENGTHS = (2.0, 5.0, 12.0, 30.0)
"""Months over which a flank of a valley fades: from a dump with frequent edits to copies spread over years."""

BELL_WIDTHS = (5.0, 10.0, 18.0)
"""Standard deviations, in months, of valleys without a tip: training on copies of many months."""

BEYOND = 10
"""Months beyond each end at which a valley may lie, so that one flank alone is not taken for a valley inside."""

LOG_EVIDENCE, LOG_EVIDENCE_SECOND = 3.0, 1.0
"""Log Bayes factors from which there is a valley (20 to 1), and a second one. Without the second rule three in ten
simulated worlds with two dips were dated, and the interval held the deeper one in under half of them."""

TAILS80, TAILS95 = (0.06, 0.94), (0.01, 0.99)
"""Posterior quantiles of the intervals, widened from .10 and .025: with those, old mixtures were covered too seldom."""

APART = 6
"""Months between two valleys that are told apart, as with a reference."""


@dataclass(frozen=True)
class NorefCutoff:
    """The estimate and its evidence. Months are 0-based; intervals are cut to the range and include both ends.

    ``month`` is the posterior median whatever the status. ``positions`` and ``posterior`` reach ten months beyond each
    end. ``log_evidence`` compares a valley with none, ``log_evidence_second`` a second valley at
    ``second_position`` with the first alone; ``overdispersion`` is what both were divided by.
    """

    status: str
    month: int
    second_position: int
    interval80: tuple[int, int]
    interval95: tuple[int, int]
    log_evidence: float
    log_evidence_second: float
    overdispersion: float
    positions: Ints
    posterior: Floats
    curve: Floats

    @property
    def found(self) -> bool:
        return self.status == "found"

    @property
    def second_month(self) -> int | None:
        """The other dip, for ``two-valley``."""
        return self.second_position if self.status == "two-valley" else None


def noref_cutoff(target: ArrayLike, *, min_topics: int = MIN_TOPICS, min_months: int = MIN_MONTHS) -> NorefCutoff:
    """Date a panel from its own mean curve.

    Args:
        target: topics by months, mean negative log-likelihood (nats per token).
        min_topics, min_months: fewer are refused.

    Raises:
        ValueError: for missing or infinite values and too few topics or months.
    """
    panel = centred_curve(check_panel(target, None, min_topics, min_months, least_months=6))
    positions, shapes = valley_steps(panel.n_months)
    weights = step_weights(panel)
    steps = _weight_centred(panel.steps, weights)
    shapes = _weight_centred(shapes, weights)
    prior_sd = 3 * max(float(np.std(panel.curve)), 1e-12)
    evidence, dispersion = valley_evidence(steps, shapes, weights, prior_sd, None)
    posterior = np.exp(logsumexp(evidence, axis=0) - logsumexp(evidence))
    second_evidence, second = _second_valley(steps, shapes, weights, prior_sd, dispersion, evidence, positions)
    log_evidence = _log_mean(evidence)
    interval80, interval95 = (_interval(positions, posterior, tails, panel.n_months) for tails in (TAILS80, TAILS95))
    status = _status(
        panel.n_months, positions, posterior, log_evidence, second_evidence, second, interval80, interval95
    )
    median = _quantiles(positions, posterior, (0.5, 0.5))[0]
    return NorefCutoff(
        status=status,
        month=min(max(median, 0), panel.n_months - 1),
        second_position=second,
        interval80=interval80,
        interval95=interval95,
        log_evidence=log_evidence,
        log_evidence_second=second_evidence,
        overdispersion=dispersion,
        positions=positions,
        posterior=posterior,
        curve=panel.curve,
    )


def valley_steps(n_months: int) -> tuple[Ints, Floats]:
    """Positions from 10 before to 10 after the range, and the monthly steps of each valley shape at each of them.

    Shapes by positions by steps: two-sided exponential cusps with all pairs of lengths, then Gaussian bells.
    """
    positions = np.arange(-BEYOND, n_months + BEYOND)
    away = (np.arange(n_months)[None, :] - positions[:, None]).astype(np.float64)
    cusps = [
        -np.exp(-np.abs(away) / np.where(away < 0, left, right)) for left in CUSP_LENGTHS for right in CUSP_LENGTHS
    ]
    bells = [-np.exp(-(away**2) / (2 * width**2)) for width in BELL_WIDTHS]
    return positions, np.diff(np.stack(cusps + bells), axis=2)


def step_weights(panel: CentredCurve) -> Floats:
    """Inverse step variances; a month in which everything jumps counts less (Student t with 4 degrees of freedom)."""
    variances = panel.variances + np.mean(panel.excess**2) + 1e-14
    squares = panel.residuals**2 / variances
    scale = max(float(np.median(squares)) / 0.455, 1.0)
    weights: Floats = 5 / (4 + squares / scale) / (variances * scale)
    return weights


def valley_evidence(
    steps: Floats, shapes: Floats, weights: Floats, prior_sd: float, dispersion: float | None
) -> tuple[Floats, float]:
    """Log Bayes factor of each shape and position (depth half-normal, positive) and the overdispersion used."""
    sxx = np.sum(shapes**2 * weights, axis=-1)
    sxy = np.sum(shapes * steps * weights, axis=-1)
    if dispersion is None:
        fit = np.max(np.where((sxy > 0) & (sxx > 1e-300), sxy**2 / np.maximum(sxx, 1e-300), 0.0))
        residual = float(np.sum(weights * steps**2) - fit)
        dispersion = max(1.0, residual / (len(steps) - 4))
    precision = sxx + 1 / prior_sd**2
    depth = sxy / precision
    log_factor = 0.5 * sxy * depth - 0.5 * np.log(precision * prior_sd**2)
    return (log_factor + log_ndtr(depth * np.sqrt(precision)) + np.log(2)) / dispersion, dispersion


def _weight_centred(rows: Floats, weights: Floats) -> Floats:
    centre: Floats = np.sum(rows * weights, axis=-1, keepdims=True) / weights.sum()
    return rows - centre


def _second_valley(
    steps: Floats,
    shapes: Floats,
    weights: Floats,
    prior_sd: float,
    dispersion: float,
    evidence: Floats,
    positions: Ints,
) -> tuple[float, int]:
    shape, best = np.unravel_index(int(np.argmax(evidence)), evidence.shape)
    first = shapes[shape, best]
    norm = max(float(np.sum(weights * first**2)), 1e-300)
    far = np.abs(positions - positions[best]) >= APART
    others = shapes[:, far]
    left = steps - first * (np.sum(weights * first * steps) / norm)
    others = others - first * (np.sum(weights * first * others, axis=-1, keepdims=True) / norm)
    second, _ = valley_evidence(left, others, weights, prior_sd, dispersion)
    where = np.unravel_index(int(np.argmax(second)), second.shape)[1]
    return _log_mean(second), int(positions[far][where])


def _log_mean(evidence: Floats) -> float:
    return float(logsumexp(evidence) - np.log(evidence.size))


def _interval(positions: Ints, posterior: Floats, tails: tuple[float, float], n_months: int) -> tuple[int, int]:
    """The quantiles as months of the range: one beyond it counts as its first or last month."""
    low, high = _quantiles(positions, posterior, tails)
    return min(max(low, 0), n_months - 1), min(max(high, 0), n_months - 1)


def _quantiles(positions: Ints, posterior: Floats, tails: tuple[float, float]) -> tuple[int, int]:
    cumulative = np.cumsum(posterior)
    low, high = (min(int(np.searchsorted(cumulative, tail)), len(positions) - 1) for tail in tails)
    return int(positions[low]), int(positions[high])


def _status(
    n_months: int,
    positions: Ints,
    posterior: Floats,
    log_evidence: float,
    second_evidence: float,
    second: int,
    interval80: tuple[int, int],
    interval95: tuple[int, int],
) -> str:
    """The first rule that applies; ``second`` is the position of the best second valley, inside the range or not."""
    if log_evidence < LOG_EVIDENCE:
        return "flat-or-unclear"
    if posterior[positions <= 0].sum() > 0.5:
        return "edge-left"
    if posterior[positions >= n_months - 1].sum() > 0.5:
        return "edge-right"
    if second_evidence >= LOG_EVIDENCE_SECOND and 0 <= second < n_months:
        return "two-valley"
    touches = interval95[0] == 0 or interval95[1] == n_months - 1
    return "inconclusive" if touches or widths_too_large(n_months, interval80, interval95) else "found"
