"""``rise``: the effective cutoff of an unpaired resource, such as news, from where its perplexity starts to rise.

Buckets hold different documents each month, so there is no valley to find: articles after the cutoff are unknown, and
the monthly mean rises. Claim: the last month before that rise, with a posterior over months and over lengths from a
step to four years, against a linear trend with autocorrelated noise. What it cannot show: a random walk in the mix of
topics and a smooth convex curve are called a rise in up to 40 % of cases (``found`` in up to 9 %, and then wrong);
nothing can be found in the last two months. Subtract a reference model's scores of the same articles where there are
any. What does NOT belong here: panels of versions of the same documents (``panel_with_reference``).

Tested by tests/unit/methods/perplexity/test_rise.py: golden values, level on autocorrelated trends, power, fuzzing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, stdtr

from strandline.numeric_input import real_array, whole_number
from strandline.perplexity.differences import LARGEST_VALUE, Floats, Ints
from strandline.perplexity.random_streams import uniforms

MIN_MONTHS = 24
"""The shortest series that was simulated: two years."""

FIRST_RISE = 4
"""The first month that may be the first risen one: fewer before it do not show a trend."""

LENGTHS = (1, 3, 6, 12, 24, 48)
"""Months that a rise takes, from a step to four years; about a factor of two apart."""

ALPHA, ALPHA_FOUND = 0.05, 0.01
"""Levels at which there is a rise, and a dated one. At the second, .09 of random walks and .05 of smooth convex curves
were dated in simulation; at the first, .26 and .33."""

MOST_AT_END = 0.3
"""Posterior share of the two months at an end from which a rise lies there; tuned in simulation."""

WIDEST = (8, 3)
"""The widest 80 % interval that names a month: so many months, or the range over so much, whichever is more."""


@dataclass(frozen=True)
class RiseCutoff:
    """The estimate and its evidence; months are 0-based.

    ``first_risen`` is the posterior median of the first risen month and its intervals include both ends; the effective
    cutoff is the month before (``month``, ``interval80``, ``interval95``). ``positions`` are the candidate months of
    ``posterior``. ``p_flat`` tests a linear trend with autocorrelated noise; ``versus_curve`` is the log likelihood
    ratio of the rise over a smooth convex curve; ``height`` the posterior mean of the rise in nats.
    """

    status: str
    first_risen: int
    risen80: tuple[int, int]
    risen95: tuple[int, int]
    p_flat: float
    statistic: float
    autocorrelation_trend: float
    autocorrelation_rise: float
    autocorrelation: float
    versus_curve: float
    height: float
    positions: Ints
    posterior: Floats

    @property
    def found(self) -> bool:
        return self.status == "found"

    @property
    def month(self) -> int:
        return self.first_risen - 1

    @property
    def interval80(self) -> tuple[int, int]:
        return self.risen80[0] - 1, self.risen80[1] - 1

    @property
    def interval95(self) -> tuple[int, int]:
        return self.risen95[0] - 1, self.risen95[1] - 1


def rise_cutoff(series: ArrayLike, *, seed: int = 1, replicates: int = 999) -> RiseCutoff:
    """Date the start of the rise of a monthly series.

    Args:
        series: one value a month: the winsorised mean of article log perplexities (nats), minus the reference's.
        seed: selects the random streams of the parametric bootstrap.
        replicates: bootstrap series.

    Raises:
        ValueError: for fewer than 24 months, missing or infinite values, a series without any variation around a
            straight line, and fewer than 20 replicates.
    """
    y = _checked(series, replicates)
    months = len(y)
    positions = np.arange(FIRST_RISE, months - 2)
    rises = candidate_rises(months, positions)
    trend, residual = _detrended(y)
    directions = _directions(rises, trend)
    statistic, best = _best_rise(residual[None], directions)
    phi0, phi1, phi = _autocorrelations(residual, directions[best[0]])
    p_flat = _p_flat(float(statistic[0]), trend, directions, autoregressive_series(seed, replicates, months, phi0))
    weights, heights, versus_curve = rise_weights(y, rises, phi)
    chances = np.exp(weights - logsumexp(weights))
    posterior = chances.reshape(len(positions), len(LENGTHS)).sum(axis=1)
    risen80, risen95 = (_quantiles(positions, posterior, tails) for tails in ((0.06, 0.94), (0.01, 0.99)))
    return RiseCutoff(
        status=_status(months, positions, posterior, risen80, risen95, p_flat, versus_curve),
        first_risen=_quantiles(positions, posterior, (0.5, 0.5))[0],
        risen80=risen80,
        risen95=risen95,
        p_flat=p_flat,
        statistic=float(statistic[0]),
        autocorrelation_trend=phi0,
        autocorrelation_rise=phi1,
        autocorrelation=phi,
        versus_curve=versus_curve,
        height=float(chances @ heights),
        positions=positions,
        posterior=posterior,
    )


def candidate_rises(months: int, positions: Ints) -> Floats:
    """Ramps from 0 to 1 over each length, first risen at each position; (positions x lengths) by months."""
    since = np.arange(months)[None, None, :] - positions[:, None, None] + 1
    lengths = np.array(LENGTHS)[None, :, None]
    rises: Floats = np.clip(since / lengths, 0.0, 1.0)
    return rises.reshape(-1, months)


def autoregressive_series(seed: int, replicates: int, months: int, phi: float) -> Floats:
    """Stationary AR(1) series of Gaussian noise (Box-Muller cosines of streams 11 and 12); replicates by months."""
    radius = np.sqrt(-2 * np.log1p(-uniforms(seed, 11, (replicates, months))))
    noise: Floats = radius * np.cos(2 * np.pi * uniforms(seed, 12, (replicates, months)))
    series: Floats = np.empty_like(noise)
    series[:, 0] = noise[:, 0] / np.sqrt(1 - phi**2)
    for month in range(1, months):
        series[:, month] = phi * series[:, month - 1] + noise[:, month]
    return series


def rise_weights(y: Floats, rises: Floats, phi: float) -> tuple[Floats, Floats, float]:
    """Log posterior weight and height of every rise, and the log likelihood ratio of the best over a convex curve.

    Least squares after the Prais-Winsten transform; the weight of a rise counts only as far as it goes up.
    """
    months = len(y)
    time = np.arange(months) - (months - 1) / 2
    whitened = _prais_winsten(np.stack([y, np.ones(months), time, time**2]), phi)
    base = np.linalg.qr(whitened[1:3].T)[0]
    left = whitened[0] - base @ (base.T @ whitened[0])
    added = _prais_winsten(rises, phi)
    added = added - added @ base @ base.T
    squares = np.sum(added**2, axis=1)
    heights = added @ left / squares
    trend_rss = float(left @ left)
    rss = np.maximum(trend_rss - heights**2 * squares, 1e-15 * trend_rss)
    freedom = months - 3
    t_values = heights / np.sqrt(rss / freedom / squares)
    rise_odds = np.log(np.maximum(stdtr(freedom, t_values), 1e-300))
    weights = -freedom / 2 * np.log(rss / trend_rss) + rise_odds
    curve = whitened[3] - base @ (base.T @ whitened[3])
    bend = float(curve @ left)
    curve_rss = trend_rss - bend**2 / float(curve @ curve) if bend > 0 else trend_rss
    upward = np.where(heights > 0, rss, np.inf)
    if not np.any(heights > 0):
        return weights, heights, float("-inf")
    ratio = max(curve_rss, 1e-15 * trend_rss) / float(upward.min())
    return weights, heights, float(months / 2 * np.log(ratio))


def _checked(series: ArrayLike, replicates: int) -> Floats:
    y = real_array(series, "series")
    if y.ndim != 1 or len(y) < MIN_MONTHS:
        raise ValueError(f"needs one value a month for at least {MIN_MONTHS} months, got shape {y.shape}")
    if not np.all(np.isfinite(y)) or np.max(np.abs(y)) > LARGEST_VALUE:
        raise ValueError("a series must be finite: months without documents are for the caller to refuse")
    whole_number(replicates, "replicates", 20)
    return np.asarray(y - y.mean())


def _best_rise(residuals: Floats, directions: Floats) -> tuple[Floats, Ints]:
    fits = np.maximum(residuals @ directions.T, 0.0)
    best = np.argmax(fits, axis=1)
    return fits[np.arange(len(fits)), best] ** 2 / np.sum(residuals**2, axis=1), best


def _p_flat(statistic: float, trend: Floats, directions: Floats, null: Floats) -> float:
    """The share of null series whose best rise explains as much, the observed one among them."""
    statistics, _ = _best_rise(null - null @ trend @ trend.T, directions)
    return float((1 + np.count_nonzero(statistics >= statistic - 1e-12)) / (len(null) + 1))


def _detrended(y: Floats) -> tuple[Floats, Floats]:
    """An orthonormal basis of straight lines, and what a line leaves of the series. ValueError if nothing."""
    months = len(y)
    trend = np.linalg.qr(np.stack([np.ones(months), np.arange(months) - (months - 1) / 2], axis=1))[0]
    residual = y - trend @ (trend.T @ y)
    if residual @ residual <= 1e-24 * max(float(y @ y), 1e-12):
        raise ValueError("the series is a straight line: there is no noise to judge a rise against")
    return trend, residual


def _directions(rises: Floats, trend: Floats) -> Floats:
    """What a straight line cannot explain of each rise, at length one."""
    directions = rises - rises @ trend @ trend.T
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions


def _autocorrelations(residual: Floats, rise: Floats) -> tuple[float, float, float]:
    """Around the trend, around trend and rise, and the one used: the second, or the mean of both where it is more."""
    without = residual - rise * (rise @ residual)
    phi0, phi1 = _autocorrelation(residual, 2), _autocorrelation(without, 4)
    return phi0, phi1, max(phi1, (phi0 + phi1) / 2)


def _autocorrelation(residual: Floats, parameters: int) -> float:
    square = float(residual @ residual)
    raw = float(residual[:-1] @ residual[1:]) / square if square > 0 else 0.0
    return float(np.clip(raw + (1 + (parameters + 1) * max(raw, 0.0)) / len(residual), 0.0, 0.8))


def _prais_winsten(rows: Floats, phi: float) -> Floats:
    whitened = np.empty_like(rows)
    whitened[:, 0] = rows[:, 0] * np.sqrt(1 - phi**2)
    whitened[:, 1:] = rows[:, 1:] - phi * rows[:, :-1]
    return whitened


def _quantiles(positions: Ints, posterior: Floats, tails: tuple[float, float]) -> tuple[int, int]:
    cumulative = np.cumsum(posterior)
    low, high = (min(int(np.searchsorted(cumulative, tail)), len(positions) - 1) for tail in tails)
    return int(positions[low]), int(positions[high])


def _status(
    months: int,
    positions: Ints,
    posterior: Floats,
    risen80: tuple[int, int],
    risen95: tuple[int, int],
    p_flat: float,
    versus_curve: float,
) -> str:
    """The first rule that applies; ``posterior`` is over ``positions``, the months that may be the first risen."""
    if p_flat > ALPHA:
        return "no-rise"
    if risen95[1] >= months - 3 and posterior[-2:].sum() > MOST_AT_END:
        return "edge-right"
    if risen95[0] <= positions[0] and posterior[:2].sum() > MOST_AT_END:
        return "edge-left"
    too_wide = risen80[1] - risen80[0] + 1 > max(WIDEST[0], months / WIDEST[1])
    return "inconclusive" if p_flat > ALPHA_FOUND or versus_curve < 1 or too_wide else "found"
