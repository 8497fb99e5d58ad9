"""How long the release probe computes: a posterior update, a dated run, a simulated model. One core, printed ratios.

Run it with `make bench` or `OMP_NUM_THREADS=1 python bench/probe_speed.py`.
"""

import time
from collections.abc import Callable

import numpy as np

from strandline.probe import calibrated, simulation
from strandline.probe.calendar import Calendar, synthetic_calendar
from strandline.probe.calibrated_policy import CalibratedPolicy
from strandline.probe.committed_calendar import committed_calendar
from strandline.probe.evidence import count
from strandline.probe.modelclock import posterior, probes_of

UPDATE_LIMIT_MS = 100.0


def best_of(call: Callable[[], object], times: int = 7) -> float:
    """Least wall time of several calls, in milliseconds."""
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        spent.append(time.perf_counter() - start)
    return 1000 * min(spent)


def measured(calendar: Calendar) -> dict[str, float]:
    """Milliseconds for one fading model on a calendar."""
    pool = simulation.pool_of(calendar)
    world = simulation.plant("S2b", pool, np.random.default_rng(1))
    policy = CalibratedPolicy(calendar, seed=1)
    rounds = simulation.asking(pool, world, policy)
    counted = count(rounds)
    ledger = calibrated.ledger_of(calendar, counted)

    def update() -> None:
        for question in rounds[-1].questions[:3]:
            ledger.add(question.position, 3, 2)
        calibrated.posterior(calendar, counted, ledger)

    return {
        "calibrated: one round added to the posterior": best_of(update),
        f"calibrated: posterior of {len(rounds)} rounds from nothing": best_of(
            lambda: calibrated.posterior(calendar, counted), 3
        ),
        "calibrated: dated, with both jackknives": best_of(lambda: calibrated.estimate(calendar, rounds), 3),
        "modelclock: posterior": best_of(lambda: posterior(calendar.n_days, probes_of(rounds))),
        "a simulated model, asked and dated": best_of(lambda: simulation.calibrated_recovery(pool, world, 1), 2),
    }


def main() -> int:
    """Print the table; exit status 1 where an update at 723 days takes longer than it may."""
    calibrated.posterior(synthetic_calendar(20), count([]))
    small = measured(synthetic_calendar(723))
    committed = committed_calendar()
    large = measured(committed)
    print(f"{'milliseconds':<58}{'723 days':>10}{f'{committed.n_days} days':>12}")
    for (name, first), second in zip(small.items(), large.values(), strict=True):
        print(f"{name:<58}{first:>10.1f}{second:>12.1f}")
    update = next(iter(small.values()))
    print(f"an update takes {update / UPDATE_LIMIT_MS:.0%} of the {UPDATE_LIMIT_MS:.0f} ms that it may")
    return int(update > UPDATE_LIMIT_MS)


if __name__ == "__main__":
    raise SystemExit(main())
