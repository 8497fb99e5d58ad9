"""The transition model of the `calibrated` estimator on its grid: position, widths before and after, two rates.

P(YES) for a release of day t, when the boundary is at c, is g + (k - g) F with F = 1/(1 + exp(-2 ln 19 (c - t)/W)),
W being the width before the boundary for t < c and the width after it for t > c; W = 0 is a sharp step. Because a
release lies on one side only, the log-likelihood of a cell is A[position, W before, rates] + B[position, W after,
rates], so the five by five widths never have to be stored, and their sum is a small matrix product a position.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from strandline.numeric_input import real_array, real_number, whole_number
from strandline.probe.soundness import ascending_numbers

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

WIDTHS = (0, 60, 120, 240, 480)
"""Days over which knowledge fades before or after the boundary: none, then doubling to over a year, the
longest that the simulated worlds hold."""
KNOWN_RATES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""YES rates to known releases: models that know a tenth of them up to models that miss one in a hundred."""
GUESS_RATES = (0.01, 0.03, 0.06, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8)
"""YES rates to releases that are not known, closer where guessing is rare."""
RATE_PAIRS = np.array([(k, g) for k in KNOWN_RATES for g in GUESS_RATES if k - g >= 0.1 - 1e-9])
"""All pairs (known, guess) with an excess of at least .1: less is not told from guessing by a run's answers."""
# The number of pairs of rates in the grid.
N_RATES = len(RATE_PAIRS)
SHARP_PRIOR = 0.3
"""Prior of a sharp step, chosen while looking at the simulated worlds: sharp ones keep narrow intervals and fading ones
their coverage (docs/methods/release-probe-calibrated.md)."""
SATURATION = 7
"""Widths away from the boundary at which F is 0 or 1 to double precision."""
_CHUNK = 192
"""Positions worked on at a time: 192 × 5 × 69 doubles are half a megabyte, which stays in a processor's cache."""


def width_prior() -> Floats:
    """Prior of (width before, width after), shape (5, 5): .3 for a sharp step, the rest shared evenly."""
    prior = np.full((len(WIDTHS), len(WIDTHS)), (1 - SHARP_PRIOR) / (len(WIDTHS) ** 2 - 1))
    prior[0, 0] = SHARP_PRIOR
    return prior


@lru_cache(maxsize=1)
def _tables() -> tuple[Floats, Floats, Ints, Ints]:
    """Log P(YES) and log P(not YES) by half-days from the boundary, rows for every width and both sides.

    Returns two tables of shape (rows, 69), the row at which each width starts (its right side; the left side follows
    after `reach` rows) and `reach`, the number of half-days after which a width is saturated.
    """
    k, g = RATE_PAIRS.T
    reach = np.array([1] + [2 * SATURATION * w for w in WIDTHS[1:]], dtype=np.intp)
    start = np.concatenate(([0], np.cumsum(2 * reach)[:-1])).astype(np.intp)
    shares = [np.array([1.0, 0.0])]
    for width, n in zip(WIDTHS[1:], reach[1:], strict=True):
        odds = np.exp(-np.log(19.0) * np.arange(1, n + 1) / width)
        shares.append(np.concatenate((1 / (1 + odds), odds / (1 + odds))))
    share = np.concatenate(shares)[:, None]
    return np.log(g + (k - g) * share), np.log((1 - g) - (k - g) * share), start, reach


def _rows(half_days: Ints) -> Ints:
    """Rows of the tables for distances c - t in half-days (any sign, never 0) and every width, shape (n, 5)."""
    _, _, start, reach = _tables()
    offset = np.minimum(np.abs(half_days)[:, None], reach) - 1
    return np.asarray(start + np.where((half_days > 0)[:, None], 0, reach) + offset, dtype=np.intp)


class Ledger:
    """Log-likelihood of every grid cell, to which answers are added and from which they can be taken away.

    Args:
        ordinals: the calendar's days as numbers, shape (N,), ascending.
        positions: positions to follow, a subset of 1…N-1 (all where None); ascending.
    """

    def __init__(self, ordinals: Floats, positions: Ints | None = None) -> None:
        self.ordinals = ascending_numbers(ordinals)
        self.positions = np.arange(1, len(ordinals)) if positions is None else _followed(positions, len(ordinals))
        shape = (len(self.positions), len(WIDTHS), N_RATES)
        self.before, self.after = np.zeros(shape), np.zeros(shape)

    def add(self, day: int, yes: float, no: float) -> None:
        """Count `yes` YES answers and `no` others to real releases of the day with index `day`.

        Negative numbers take answers away. ValueError for a day outside the calendar, or numbers that are none.
        """
        if whole_number(day, "the index of a day", 0) >= len(self.ordinals):
            raise ValueError(f"day {day} of a calendar of {len(self.ordinals)} days")
        yes, no = real_number(yes, "YES answers"), real_number(no, "other answers")
        log_yes, log_no, _, _ = _tables()
        doubled = self.ordinals[self.positions - 1] + self.ordinals[self.positions] - 2 * self.ordinals[day]
        rows = _rows(doubled.astype(np.intp))
        split = int(np.searchsorted(self.positions, day, side="right"))
        for side, lo, hi in ((self.after, 0, split), (self.before, split, len(self.positions))):
            for i in range(lo, hi, _CHUNK):
                part = slice(i, min(i + _CHUNK, hi))
                if yes:
                    side[part] += _scaled(log_yes, rows[part], yes)
                if no:
                    side[part] += _scaled(log_no, rows[part], no)

    def copy(self, keep: npt.NDArray[np.bool_] | None = None) -> Ledger:
        """The same counts, for all positions or for those kept."""
        kept = slice(None) if keep is None else keep
        other = Ledger.__new__(Ledger)
        other.ordinals, other.positions = self.ordinals, self.positions[kept]
        other.before, other.after = self.before[kept].copy(), self.after[kept].copy()
        return other

    def log_mass(self, log_decoys: Floats) -> Floats:
        """Log joint mass of (position, width before, width after) with the answers, rates summed out.

        `log_decoys` is the decoys' log-likelihood for each pair of rates, shape (69,). Returns shape (P, 5, 5). The
        largest term of every position is taken out before exponentials are formed, so nothing over- or underflows
        except cells more than 700 log units under their own position's best. ValueError for another shape or NaN.
        """
        log_decoys = real_array(log_decoys, "the decoys' log-likelihoods")
        if log_decoys.shape != (N_RATES,) or not np.isfinite(log_decoys).all():
            raise ValueError(f"the decoys' log-likelihoods are {N_RATES} finite numbers, one for each pair of rates")
        top_before, top_after = self.before.max(axis=1), self.after.max(axis=1)
        weight = top_before + top_after + log_decoys
        best = weight.max(axis=1)
        before = np.exp(self.before - top_before[:, None, :])
        before *= np.exp(weight - best[:, None])[:, None, :]
        after = np.exp(self.after - top_after[:, None, :])
        sums = before @ after.transpose(0, 2, 1)
        with np.errstate(divide="ignore"):
            mass = np.log(sums) + np.log(width_prior() / N_RATES)
        return np.asarray(mass + (best + self._log_prior())[:, None, None], dtype=np.float64)

    def _log_prior(self) -> Floats:
        gaps = self.ordinals[self.positions] - self.ordinals[self.positions - 1]
        return np.asarray(np.log(gaps / (self.ordinals[-1] - self.ordinals[0])), dtype=np.float64)


def _followed(positions: Ints, n_days: int) -> Ints:
    """Positions to follow; ValueError unless they ascend and lie between two days."""
    followed = np.asarray(positions)
    if followed.ndim != 1 or followed.dtype.kind not in "iu" or not len(followed):
        raise ValueError("positions are whole numbers, at least one")
    if followed[0] < 1 or followed[-1] >= n_days or (np.diff(followed) <= 0).any():
        raise ValueError(f"positions ascend from 1 to {n_days - 1} at most")
    return followed.astype(np.intp)


def _scaled(table: Floats, rows: Ints, times: float) -> Floats:
    taken = np.take(table, rows, axis=0)
    return taken if times == 1 else np.multiply(taken, times, out=taken)
