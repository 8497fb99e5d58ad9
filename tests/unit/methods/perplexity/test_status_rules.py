"""Every status rule of the estimators at its edges: what is just enough, and what is just not."""

import numpy as np
import pytest

from strandline.perplexity import panel_with_reference, panel_without_reference, rise
from strandline.perplexity.panel_with_reference import widths_too_large
from strandline.perplexity.topic import topic_cutoffs

MONTHS = 60


def lowest(left: int = 0, right: int = 0, n_months: int = MONTHS, total: int = 100) -> np.ndarray:
    """Lowest months of bootstrap curves: so many in the first, so many in the last month, the rest in the middle."""
    return np.array([0] * left + [n_months - 1] * right + [n_months // 2] * (total - left - right))


@pytest.mark.parametrize(
    ("p_flat", "p_range", "where", "interval80", "interval95", "second", "status"),
    [
        # No valley by the test: flat, or an end that the bootstrap clearly prefers.
        (0.051, 0.051, lowest(), (20, 30), (15, 35), None, "flat"),
        (0.051, 0.05, lowest(), (20, 30), (15, 35), None, "inconclusive"),
        (0.051, 0.05, lowest(left=80), (0, 5), (0, 9), None, "edge-left"),
        (0.051, 0.05, lowest(left=79), (0, 5), (0, 9), None, "inconclusive"),
        (0.051, 0.05, lowest(right=80), (50, 59), (45, 59), None, "edge-right"),
        (0.051, 0.05, lowest(right=79), (50, 59), (45, 59), None, "inconclusive"),
        (0.051, 0.051, lowest(left=100), (0, 0), (0, 0), 30, "flat"),
        # A valley: at an end where the interval reaches it AND half of the bootstrap lies there.
        (0.05, 1.0, lowest(left=50), (5, 9), (0, 12), None, "edge-left"),
        (0.05, 1.0, lowest(left=49), (5, 9), (0, 12), None, "found"),
        (0.05, 1.0, lowest(left=50), (5, 9), (1, 12), None, "found"),
        (0.05, 1.0, lowest(left=100), (5, 9), (1, 12), None, "found"),
        (0.05, 1.0, lowest(right=50), (50, 55), (45, 59), None, "edge-right"),
        (0.05, 1.0, lowest(right=49), (50, 55), (45, 59), None, "found"),
        (0.05, 1.0, lowest(right=50), (50, 55), (45, 58), None, "found"),
        # Two dips come before width; an interval that touches an end names no month.
        (0.05, 1.0, lowest(), (0, 59), (0, 59), 50, "two-valley"),
        (0.05, 1.0, lowest(), (20, 39), (18, 47), None, "found"),
        (0.05, 1.0, lowest(), (20, 40), (18, 47), None, "inconclusive"),
        (0.05, 1.0, lowest(), (20, 39), (18, 48), None, "inconclusive"),
        (0.05, 1.0, lowest(), (0, 5), (0, 9), None, "inconclusive"),
        (0.05, 1.0, lowest(), (55, 59), (52, 59), None, "inconclusive"),
    ],
)
def test_the_status_of_a_panel_with_a_reference(
    p_flat: float,
    p_range: float,
    where: np.ndarray,
    interval80: tuple[int, int],
    interval95: tuple[int, int],
    second: int | None,
    status: str,
) -> None:
    found = panel_with_reference._status(MONTHS, where, interval80, interval95, p_flat, p_range, second)
    assert found == status


@pytest.mark.parametrize(
    ("n_months", "place", "is_edge"), [(60, 2, True), (60, 3, False), (12, 1, True), (12, 2, False)]
)
def test_the_end_of_a_range_is_a_twentieth_of_it_and_two_months_at_least(
    n_months: int, place: int, is_edge: bool
) -> None:
    where = np.full(100, place)
    assert (panel_with_reference._status(n_months, where, (2, 3), (0, 4), 0.01, 0.01, None) == "edge-left") == is_edge
    mirrored = n_months - 1 - where
    ends = (n_months - 4, n_months - 3), (n_months - 5, n_months - 1)
    assert (panel_with_reference._status(n_months, mirrored, *ends, 0.01, 0.01, None) == "edge-right") == is_edge


@pytest.mark.parametrize(
    ("n_months", "width80", "width95", "is_too_wide"),
    [(12, 6, 9, False), (12, 7, 9, True), (12, 6, 10, True), (60, 20, 30, False), (60, 21, 30, True),
     (60, 20, 31, True), (18, 6, 9, False), (19, 7, 9, True), (21, 7, 10, False)],
)  # fmt: skip
def test_an_interval_is_too_wide_over_a_third_or_half_of_the_range(
    n_months: int, width80: int, width95: int, is_too_wide: bool
) -> None:
    assert widths_too_large(n_months, (1, width80), (1, width95)) == is_too_wide


def mass(places: dict[int, float], n_months: int = MONTHS) -> tuple[np.ndarray, np.ndarray]:
    """Positions of valleys and a posterior with such masses, the rest in the middle."""
    positions = np.arange(-10, n_months + 10)
    posterior = np.zeros(len(positions))
    for place, share in places.items():
        posterior[positions == place] += share
    posterior[positions == n_months // 2] += 1 - posterior.sum()
    return positions, posterior


@pytest.mark.parametrize(
    ("evidence", "places", "second_evidence", "second", "interval80", "interval95", "status"),
    [
        (2.999, {}, 9.0, 40, (25, 35), (20, 40), "flat-or-unclear"),
        (3.0, {}, 0.0, 40, (25, 35), (20, 40), "found"),
        (3.0, {0: 0.501}, 0.0, 40, (25, 35), (20, 40), "edge-left"),
        (3.0, {0: 0.5}, 0.0, 40, (25, 35), (20, 40), "found"),
        (3.0, {1: 0.9}, 0.0, 40, (25, 35), (20, 40), "found"),
        (3.0, {-10: 0.501}, 0.0, 40, (25, 35), (20, 40), "edge-left"),
        (3.0, {59: 0.501}, 0.0, 40, (25, 35), (20, 40), "edge-right"),
        (3.0, {59: 0.5}, 0.0, 40, (25, 35), (20, 40), "found"),
        (3.0, {58: 0.9}, 0.0, 40, (25, 35), (20, 40), "found"),
        (3.0, {}, 1.0, 0, (25, 35), (20, 40), "two-valley"),
        (3.0, {}, 1.0, 59, (25, 35), (20, 40), "two-valley"),
        (3.0, {}, 1.0, -1, (25, 35), (20, 40), "found"),
        (3.0, {}, 1.0, 60, (25, 35), (20, 40), "found"),
        (3.0, {}, 0.999, 40, (25, 35), (20, 40), "found"),
        (3.0, {}, 0.0, 40, (25, 35), (0, 29), "inconclusive"),
        (3.0, {}, 0.0, 40, (25, 35), (1, 30), "found"),
        (3.0, {}, 0.0, 40, (30, 40), (30, 59), "inconclusive"),
        (3.0, {}, 0.0, 40, (30, 40), (30, 58), "found"),
        (3.0, {}, 0.0, 40, (20, 40), (20, 40), "inconclusive"),
    ],
)
def test_the_status_of_a_panel_without_a_reference(
    evidence: float,
    places: dict[int, float],
    second_evidence: float,
    second: int,
    interval80: tuple[int, int],
    interval95: tuple[int, int],
    status: str,
) -> None:
    positions, posterior = mass(places)
    found = panel_without_reference._status(
        MONTHS, positions, posterior, evidence, second_evidence, second, interval80, interval95
    )
    assert found == status


@pytest.mark.parametrize(
    ("p_flat", "versus_curve", "ends", "risen80", "risen95", "status"),
    [
        (0.051, 9.0, (0.0, 0.0), (30, 35), (25, 40), "no-rise"),
        (0.05, 9.0, (0.0, 0.0), (30, 35), (25, 40), "inconclusive"),
        (0.0101, 9.0, (0.0, 0.0), (30, 35), (25, 40), "inconclusive"),
        (0.01, 1.0, (0.0, 0.0), (30, 35), (25, 40), "found"),
        (0.01, 0.999, (0.0, 0.0), (30, 35), (25, 40), "inconclusive"),
        (0.01, 1.0, (0.0, 0.31), (50, 55), (50, 57), "edge-right"),
        (0.01, 1.0, (0.0, 0.3), (50, 55), (50, 57), "found"),
        (0.01, 1.0, (0.0, 0.31), (50, 55), (50, 56), "found"),
        (0.01, 1.0, (0.31, 0.0), (5, 9), (4, 12), "edge-left"),
        (0.01, 1.0, (0.3, 0.0), (5, 9), (4, 12), "found"),
        (0.01, 1.0, (0.31, 0.0), (5, 9), (5, 12), "found"),
        (0.01, 1.0, (0.0, 0.0), (21, 40), (10, 50), "found"),
        (0.01, 1.0, (0.0, 0.0), (20, 40), (10, 50), "inconclusive"),
    ],
)
def test_the_status_of_a_rise(
    p_flat: float,
    versus_curve: float,
    ends: tuple[float, float],
    risen80: tuple[int, int],
    risen95: tuple[int, int],
    status: str,
) -> None:
    positions = np.arange(rise.FIRST_RISE, MONTHS - 2)
    posterior = np.zeros(len(positions))
    posterior[1], posterior[-2] = ends
    posterior[20] += 1 - posterior.sum()
    assert rise._status(MONTHS, positions, posterior, risen80, risen95, p_flat, versus_curve) == status


@pytest.mark.parametrize(("edits", "status"), [(0, "too-few-edits"), (5, "too-few-edits"), (6, "unresolved")])
def test_a_topic_is_tested_from_six_edits_on(edits: int, status: str) -> None:
    rng = np.random.default_rng(1)
    moved = np.zeros((1, 23))
    moved[0, :edits] = 0.05
    distances = np.concatenate([[[0.0]], moved.cumsum(axis=1)], axis=1)
    steps = np.where(moved > 0, rng.normal(0, 0.01, moved.shape), 0.0)
    differences = np.concatenate([[[0.0]], steps.cumsum(axis=1)], axis=1)
    result = topic_cutoffs(differences, distances)
    assert result.status == (status,)
    assert result.n_edits.tolist() == [edits]
    assert np.isnan(result.p_values[0]) == (edits < 6)
