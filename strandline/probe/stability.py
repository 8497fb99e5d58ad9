"""How far the boundary moves when some projects, or some calls, are left out: a delete-a-group jackknife.

Answers about one project, or from one exchange, are not independent; the posterior treats them as if they were. The
jackknife's standard error widens the interval where that matters. It cannot see what is common to all projects and
all calls, such as a calendar whose dates are off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from strandline.numeric_input import real_array
from strandline.probe.calendar import Calendar
from strandline.probe.evidence import DECOY_SHARES_IN, Counted, log_decoys
from strandline.probe.soundness import level as sound_level
from strandline.probe.transition import RATE_PAIRS, Floats, Ledger

MAX_FOLDS = 10
"""Groups that are left out in turn: each takes a median of the whole grid, and ten give the t distribution nine degrees
of freedom, where its 95 % point (2.26) is close to the normal one's."""
DROP_LOG_UNITS = 30.0
"""Positions e^-30 under the best one are not followed: a tenth of the answers left out does not bring them back."""


@dataclass(frozen=True)
class Jackknife:
    """Standard error in days over `n_folds` groups; None where one group leaves nothing to compare."""

    se: float | None
    n_folds: int

    def margin(self, level: float) -> float:
        """Half-width of the t interval at `level`, in days; 0 where there is no standard error."""
        upper = (1 + sound_level(level)) / 2
        return 0.0 if self.se is None else float(self.se * stdtrit(self.n_folds - 1, upper))


@dataclass(frozen=True)
class Stability:
    """The two jackknives beside the posterior's own standard deviation (days)."""

    projects: Jackknife
    calls: Jackknife
    posterior_sd: float

    def margin(self, level: float) -> float:
        """The wider of the two half-widths, in days."""
        return max(self.projects.margin(level), self.calls.margin(level))


def jackknife(calendar: Calendar, counted: Counted, ledger: Ledger, by_position: Floats, *, seed: int = 0) -> Stability:
    """Jackknives over ten folds of projects and ten of calls (as many folds as groups where there are fewer).

    Each fold's real answers are taken away, decoys stay, and the posterior median is found again. Positions more
    than 30 log units under the best one are not followed.
    """
    with np.errstate(divide="ignore"):
        keep = np.log(by_position) > np.log(by_position.max()) - DROP_LOG_UNITS
    near = ledger.copy(keep)
    decoys = log_decoys(RATE_PAIRS[:, 1], counted.decoy_yes, counted.decoy_no, DECOY_SHARES_IN)
    centres = (calendar.ordinals[near.positions - 1] + calendar.ordinals[near.positions]) / 2
    rng = np.random.default_rng([seed, 10])
    projects = folds(np.unique(np.array(counted.project), return_inverse=True)[1], rng)
    calls = folds(np.unique(counted.call, return_inverse=True)[1], rng)
    moved = [_medians(near, counted, fold, decoys, centres) for fold in (projects, calls)]
    return Stability(standard_error(moved[0]), standard_error(moved[1]), _sd(by_position[keep], centres))


def folds(codes: npt.NDArray[np.intp], rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Fold of each answer, from the group code of each answer; groups are dealt out in a shuffled order.

    ValueError where there is no answer, or a code is not a whole number from 0.
    """
    codes = np.asarray(codes)
    if codes.ndim != 1 or not len(codes) or codes.dtype.kind not in "iu" or codes.min() < 0:
        raise ValueError("the groups of answers are whole numbers from 0, one an answer")
    n_groups = int(codes.max()) + 1
    fold_of_group = np.empty(n_groups, dtype=np.intp)
    fold_of_group[rng.permutation(n_groups)] = np.arange(n_groups) % min(MAX_FOLDS, n_groups)
    return fold_of_group[codes]


def standard_error(medians: Sequence[float]) -> Jackknife:
    """sqrt((n - 1)/n sum (m - mean)^2) over the folds' medians; None for a single fold. ValueError for NaN."""
    values = real_array(medians, "medians")
    n = values.size
    if not np.isfinite(values).all() or values.ndim != 1:
        raise ValueError("the medians of folds are finite numbers in a row")
    if n < 2:
        return Jackknife(None, n)
    centred = values - values.mean()
    return Jackknife(sqrt((n - 1) / n * float(centred @ centred)), n)


def _medians(
    near: Ledger, counted: Counted, fold: npt.NDArray[np.intp], decoys: Floats, centres: Floats
) -> list[float]:
    medians = []
    for f in range(int(fold.max()) + 1):
        left = near.copy()
        out = fold == f
        for day in np.unique(counted.position[out]):
            yes = counted.yes[out & (counted.position == day)]
            left.add(int(day), -float(yes.sum()), -float((~yes).sum()))
        medians.append(_median(left, decoys, centres))
    return medians


def _median(ledger: Ledger, decoys: Floats, centres: Floats) -> float:
    log_mass = ledger.log_mass(decoys)
    cdf = np.cumsum(np.exp(log_mass - log_mass.max()).sum(axis=(1, 2)))
    return float(centres[np.searchsorted(cdf, 0.5 * cdf[-1])])


def _sd(mass: Floats, centres: Floats) -> float:
    mean = float(mass @ centres / mass.sum())
    return sqrt(float(mass @ (centres - mean) ** 2 / mass.sum()))
