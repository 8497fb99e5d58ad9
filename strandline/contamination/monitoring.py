"""Evidence that may be watched for ever: e-values of exceedance counts, offered only for open-ended monitoring.

Under a fixed budget this costs about 20 points of power against ``sequential``; its merit is that drawing may go on,
stop and resume, and shards may be picked by any rule that looks only at the past.
"""

from collections.abc import Sequence
from math import log

import numpy as np
from scipy.special import betaln
from scipy.stats import binom

from strandline.numeric_input import real_number, whole_number

PRIORS = (1.3, 2.0, 4.0, 16.0)
"""From nearly flat (weak memories) to steep (strong ones): their average loses little against the best of them."""


def log_e_value(exceedances: int, draws: int, prior: float) -> float:
    """ln of the e-value of one shard under the prior Beta(1, prior) on its exceedance rate.

    Under exchangeability exceedances follow a Polya urn, so the ratio is a martingale with mean 1; it never passes
    draws + 1.

    Raises:
        ValueError: exceedances outside 0..draws.
    """
    _check_counts(exceedances, draws)
    if real_number(prior, "a prior") <= 0:
        raise ValueError(f"a prior is positive, not {prior!r}")
    misses = draws - exceedances
    prior_mass = float(betaln(1, prior))
    return float(betaln(exceedances + 1, misses + prior) - betaln(exceedances + 1, misses + 1)) - prior_mass


def uniform_e_value(exceedances: int, draws: int, most: float) -> float:
    """The e-value of one shard under a uniform prior on (0, most): (1 - BinomialCDF(S; t + 1, most)) / most.

    Raises:
        ValueError: exceedances outside 0..draws, ``most`` outside (0, 1].
    """
    _check_counts(exceedances, draws)
    if not 0 < real_number(most, "the largest rate") <= 1:
        raise ValueError(f"the largest rate lies above 0 and is at most 1, not {most!r}")
    return float(binom.sf(exceedances, draws + 1, most)) / most


def log_e_process(counts: Sequence[tuple[int, int]], priors: Sequence[float] = PRIORS) -> float:
    """ln of the pooled e-value over shards' (exceedances, draws): product over shards, average over priors.

    Reject at any time that it reaches -ln(alpha) (Ville's inequality).
    """
    if not counts or not priors:
        raise ValueError("no shards to pool, or no priors to average over")
    logs = np.array([sum(log_e_value(s, t, prior) for s, t in counts) for prior in priors])
    return float(np.logaddexp.reduce(logs)) - log(len(priors))


def _check_counts(exceedances: int, draws: int) -> None:
    whole_number(draws, "the number of draws", 0)
    if not 0 <= whole_number(exceedances, "exceedances", 0) <= draws:
        raise ValueError(f"exceedances lie between 0 and the {draws} draws, not {exceedances}")
