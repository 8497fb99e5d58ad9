"""How an estimator did on planted truth: the records that every simulation returns, and their summary.

Scenario generators belong to the ``simulation`` module of each method; this module only counts. A summary is silent
about scenarios that were not simulated, and its coverage carries the binomial error of ``n_runs``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt


@dataclass(frozen=True)
class Scenario:
    """A planted world: which estimator is run, how often, and whether a true value exists in it."""

    estimator: str
    name: str
    n_runs: int = 100
    has_truth: bool = True


@dataclass(frozen=True)
class Recovery:
    """One run. Values are numbers on the scenario's own scale (days or months); None where there is none.

    ``found`` says that the estimator printed a finding (a date, a month, a rejection).
    """

    truth: float | None
    estimate: float | None
    low80: float | None
    high80: float | None
    low95: float | None
    high95: float | None
    status: str
    found: bool


@dataclass(frozen=True)
class RecoverySummary:
    """Coverage, root mean square error and width over the runs of one scenario.

    Coverages are shares of runs with a truth and an interval; ``false_findings`` counts findings where no truth exists.
    Every figure that has no run behind it is None.
    """

    n_runs: int
    n_found: int
    coverage80: float | None
    coverage95: float | None
    rmse: float | None
    median_width: float | None
    false_findings: int | None


def summarise(runs: Sequence[Recovery], *, has_truth: bool, found_only: bool = False) -> RecoverySummary:
    """Summarise the runs of one scenario.

    Args:
        runs: all runs. ValueError where there are none, or where a value is not finite or an interval ends before it
            begins.
        has_truth: whether the scenario has a true value; otherwise each finding is a false one.
        found_only: count coverage over findings only, as a reader of the report would.
    """
    if not runs:
        raise ValueError("no runs to summarise")
    for run in runs:
        _check(run)
    judged = [run for run in runs if run.truth is not None and (run.found or not found_only)]
    errors = [run.estimate - run.truth for run in judged if run.estimate is not None and run.truth is not None]
    widths = sorted(run.high95 - run.low95 for run in judged if run.low95 is not None and run.high95 is not None)
    return RecoverySummary(
        n_runs=len(runs),
        n_found=sum(run.found for run in runs),
        coverage80=_coverage([(run.low80, run.truth, run.high80) for run in judged]),
        coverage95=_coverage([(run.low95, run.truth, run.high95) for run in judged]),
        rmse=sqrt(sum(error * error for error in errors) / len(errors)) if errors else None,
        median_width=_median(widths),
        false_findings=None if has_truth else sum(run.found for run in runs),
    )


def _check(run: Recovery) -> None:
    """Refuse a run whose numbers cannot be counted."""
    values = (run.truth, run.estimate, run.low80, run.high80, run.low95, run.high95)
    if not all(isfinite(value) for value in values if value is not None):
        raise ValueError(f"the values of a run are finite or None, got {run}")
    for low, high in ((run.low80, run.high80), (run.low95, run.high95)):
        if low is not None and high is not None and low > high:
            raise ValueError(f"an interval begins before it ends, got {low} to {high}")


def _coverage(intervals: Sequence[tuple[float | None, float | None, float | None]]) -> float | None:
    whole = [(low, truth, high) for low, truth, high in intervals if None not in (low, truth, high)]
    if not whole:
        return None
    return sum(low <= truth <= high for low, truth, high in whole) / len(whole)  # type: ignore[operator]


def _median(values: Sequence[float]) -> float | None:
    if not values:
        return None
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2
