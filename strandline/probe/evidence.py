"""What a run's answers say under the `calibrated` estimator: the counted answers and the four evidences.

Every question counts once, however often it was asked; a missing answer counts nowhere. The four hypotheses are a
boundary inside the calendar, knowledge to its end, no difference between real releases and decoys, and a drift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit, logsumexp

from strandline.numeric_input import real_array, whole_number
from strandline.probe import StoredRound
from strandline.probe.soundness import ascending_numbers, sound_rounds
from strandline.probe.transition import RATE_PAIRS, Floats

HYPOTHESES = ("in", "right", "none", "drift")
"""The four pictures, in the order of every array of evidences."""
DECOY_SHARES_IN = np.array([0.05, 0.25, 0.5, 0.75, 1.0])
"""Share of the guess rate at which decoys are answered YES where there is a boundary: from models that
see through nearly every decoy to models that take them as they take releases that they do not know."""
DECOY_SHARES_NONE = np.array([0.25, 0.5, 0.75, 1.0])
"""The same where real releases are answered like decoys: a share near 0 would be the opposite of that."""
FLAT_RATES = np.array([0.003, 0.01, 0.03, 0.06, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.997])
"""Rates of YES of a model without a boundary: even steps, closer where a rate is near 0 or 1."""
# The grid of flat rates on the scale of log odds, for the drifts below.
_LOGITS = logit(FLAT_RATES)
DRIFTS = np.array([(a, b) for a in _LOGITS for b in _LOGITS if 1 <= a - b <= 3.5])
"""Logits at the start and the end of a slow fall. A fall of less than 1 is a flat rate within a run's noise; one of
more than 3.5 over the calendar would be a boundary, if a wide one."""
DECOY_FLOOR = 1e-4
"""A decoy is never impossible: one slip among a thousand answers must not decide between pictures."""


@dataclass(frozen=True)
class Counted:
    """The answers that count: real ones as arrays of equal length, decoys as two totals.

    `call` numbers the exchange an answer came from, in the order asked; `position` is the index of its day.
    """

    position: npt.NDArray[np.intp]
    call: npt.NDArray[np.intp]
    yes: npt.NDArray[np.bool_]
    project: tuple[str, ...]
    decoy_yes: int
    decoy_no: int

    def __post_init__(self) -> None:
        lengths = {len(self.position), len(self.call), len(self.yes), len(self.project)}
        if len(lengths) > 1:
            raise ValueError(f"answers have one position, call, project and word each, got {sorted(lengths)} of them")
        if len(self.position) and int(min(self.position)) < 0:
            raise ValueError("the position of an answer is at least 0")
        whole_number(self.decoy_yes, "the number of decoys answered YES", 0)
        whole_number(self.decoy_no, "the number of decoys not answered YES", 0)

    @property
    def real_yes(self) -> int:
        """Real releases answered YES."""
        return int(self.yes.sum())

    @property
    def real_no(self) -> int:
        """Real releases answered NO or UNKNOWN."""
        return len(self.yes) - self.real_yes


def counted_flags(rounds: Sequence[StoredRound]) -> list[list[bool]]:
    """Which answers count, a list a round: the first usable answer to each question, in the order asked.

    ValueError where a round has an answer too many or too few, or one outside YES, NO and UNKNOWN.
    """
    seen: set[tuple[str, str, str]] = set()
    flags = []
    for pairs in sound_rounds(rounds):
        row = []
        for q, a in pairs:
            key = (q.kind, q.project, q.version)
            row.append(a.answer is not None and key not in seen)
            if a.answer is not None:
                seen.add(key)
        flags.append(row)
    return flags


def count(rounds: Sequence[StoredRound]) -> Counted:
    """The counted answers of a run, whichever policy asked them."""
    real: list[tuple[int, int, bool, str]] = []
    decoys = [0, 0]
    for call, (stored, flags) in enumerate(zip(rounds, counted_flags(rounds), strict=True)):
        for q, a, counts in zip(stored.questions, stored.reply.answers, flags, strict=True):
            if counts and q.kind == "real":
                real.append((q.position, call, a.answer == "YES", q.project))
            elif counts:
                decoys[a.answer != "YES"] += 1
    return Counted(
        position=np.array([r[0] for r in real], dtype=np.intp),
        call=np.array([r[1] for r in real], dtype=np.intp),
        yes=np.array([r[2] for r in real], dtype=np.bool_),
        project=tuple(r[3] for r in real),
        decoy_yes=decoys[0],
        decoy_no=decoys[1],
    )


def log_decoys(rates: Floats, yes: int, no: int, shares: Floats) -> Floats:
    """LD: the decoys' log-likelihood where real unknown releases are answered YES at `rates`, shape of `rates`.

    Decoys are answered YES at a share of that rate; the shares are averaged over. ValueError for rates or shares
    that are not finite, no shares at all, or counts below 0.
    """
    rates, shares = real_array(rates, "rates"), real_array(shares, "shares")
    if not shares.size or not np.isfinite(rates).all() or not np.isfinite(shares).all():
        raise ValueError("rates and shares are finite numbers, at least one share")
    yes, no = whole_number(yes, "decoys answered YES", 0), whole_number(no, "decoys not answered YES", 0)
    q = np.clip(np.multiply.outer(rates, shares), DECOY_FLOOR, 1 - DECOY_FLOOR)
    return np.asarray(_log_mean(yes * np.log(q) + no * np.log1p(-q)), dtype=np.float64)


def _log_mean(values: Floats) -> Floats:
    return np.asarray(logsumexp(values, axis=-1) - np.log(values.shape[-1]), dtype=np.float64)


def log_right(counted: Counted, decoys_in: Floats) -> float:
    """Known throughout the calendar, decoys refused."""
    k = RATE_PAIRS[:, 0]
    return float(_log_mean(counted.real_yes * np.log(k) + counted.real_no * np.log1p(-k) + decoys_in))


def log_none(counted: Counted) -> float:
    """Real releases answered as decoys are, at one rate throughout."""
    r = FLAT_RATES
    decoys = log_decoys(r, counted.decoy_yes, counted.decoy_no, DECOY_SHARES_NONE)
    return float(_log_mean(counted.real_yes * np.log(r) + counted.real_no * np.log1p(-r) + decoys))


def log_drift(counted: Counted, ordinals: Floats) -> float:
    """A slow logistic fall over the whole calendar, without a place where it happens.

    ValueError where `ordinals` are not at least two ascending day numbers, or an answer lies outside them.
    """
    ordinals = ascending_numbers(ordinals)
    if len(counted.position) and int(counted.position.max()) >= len(ordinals):
        raise ValueError(f"an answer about day {counted.position.max()} of a calendar of {len(ordinals)} days")
    u = (ordinals[counted.position] - ordinals[0]) / (ordinals[-1] - ordinals[0])
    a, b = DRIFTS.T
    p = expit(a[:, None] + (b - a)[:, None] * u)
    real = np.where(counted.yes, np.log(p), np.log1p(-p)).sum(axis=1)
    decoys = log_decoys(FLAT_RATES, counted.decoy_yes, counted.decoy_no, DECOY_SHARES_NONE)
    return float(_log_mean(real) + _log_mean(decoys))
