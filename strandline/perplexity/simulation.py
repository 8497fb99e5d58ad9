"""Calibration of the effective-cutoff estimators: which planted worlds they are run on, and one run of each.

A scenario is named ``world/edits/n<topics>/m<months>`` for panels, ``world/snr<s>/phi<p>/m<months>`` for series (with
``/season<s>`` or ``/walk<s>`` where they hold one) and ``edits/<variant>/<question>`` for single topics. Estimates are
0-based months. What does NOT belong here: the worlds themselves (``planted``), and summaries
(``strandline.calibration``).
"""

from __future__ import annotations

import re
from typing import Any
from zlib import crc32

import numpy as np

from strandline.calibration import Recovery, Scenario
from strandline.numeric_input import whole_number
from strandline.perplexity.curves import lowest_month
from strandline.perplexity.panel_with_reference import panel_cutoff
from strandline.perplexity.panel_without_reference import noref_cutoff
from strandline.perplexity.planted import (
    EDIT_HABITS,
    PANEL_WORLDS,
    PlantedPanel,
    planted_panel,
    planted_series,
    planted_topics,
)
from strandline.perplexity.rise import rise_cutoff
from strandline.perplexity.topic import topic_cutoffs

ONE_CUTOFF = ("sharp", "mix80", "broad")
"""The panel worlds with one true month inside the range."""

PANEL_ESTIMATORS = ("panel", "panel_noref", "trimmed95_minmax")
"""What is run on panels: ours with and without a reference, and the paper's statistic beside them."""

SIZES = ((20, 59), (100, 24), (100, 85))
"""Topics and months beside the usual 100 by 59: few topics, a short range, a long one."""

# The shapes of a rise; `SERIES` below combines them with heights and lengths.
RISES = ("step", "ramp12", "hinge", "log6")
SERIES = (
    "none/snr0/phi0.0/m54", "none/snr0/phi0.4/m54", "none/snr0/phi0.7/m54", "none/snr0/phi0.4/m24",
    "none/snr0/phi0.4/m54/season0.7", "none/snr0/phi0.0/m54/walk0.3", "curve/snr3/phi0.4/m54", "curve/snr6/phi0.4/m54",
    *(f"{world}/snr{snr}/phi{phi}/m54" for snr in (2, 4) for world in RISES for phi in (0.0, 0.4)),
    *(f"{world}/snr4/phi0.4/m{months}" for months in (24, 85) for world in RISES[:2]),
    "ramp12/snr4/phi0.7/m54", "step/snr4/phi0.4/m54/season0.7",
)  # fmt: skip
"""Shapes of a rise, and series with and without one: heights, autocorrelations and lengths around those of news."""

TOPIC_VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "deep": {"depth": 0.2},
    "many": {"n_topics": 300},
    "few": {"n_topics": 20},
    "short": {"n_months": 24},
    "none": {"without": 1.0},
    "heavy": {"heavy": True},
    "scattered": {"share": 0.0},
    "poor": {"reference_error": (1.0, 0.25)},
    "slow": {"fade": 0.4},
}
"""Worlds of single topics: strongly remembered, other sizes, without memory, heavy-tailed steps, months of their own, a
poor reference, and memory that fades at another rate than the templates."""

SCENARIOS = {
    **dict.fromkeys(PANEL_ESTIMATORS, re.compile(r"\w+/\w+/n\d+/m\d+")),
    "rise": re.compile(r"\w+/snr\d+/phi[\d.]+/m\d+(/(season|walk)[\d.]+)*"),
    "topic": re.compile(rf"\w+/({'|'.join(TOPIC_VARIANTS)})/(memory|discovery)"),
}
"""How the scenarios of each estimator are written."""


def scenarios() -> tuple[Scenario, ...]:
    """All scenarios of this family, each with at least 100 runs."""
    worlds = [f"{world}/{edits}" for world in PANEL_WORLDS for edits in EDIT_HABITS]
    sized = [f"{world}/n1000/m59" for world in worlds]
    sized += [f"{world}/wiki/n{topics}/m{months}" for world in PANEL_WORLDS for topics, months in SIZES]
    planned = [(estimator, f"{world}/n100/m59") for estimator in PANEL_ESTIMATORS for world in worlds]
    planned += [(estimator, name) for estimator in PANEL_ESTIMATORS[:2] for name in sized]
    found = [Scenario(estimator, name, 100, name.split("/")[0] in ONE_CUTOFF) for estimator, name in planned]
    found += [Scenario("rise", name, 100, name.split("/")[0] not in ("none", "curve")) for name in SERIES]
    for edits in EDIT_HABITS:
        for variant in TOPIC_VARIANTS:
            if variant != "none":
                found.append(Scenario("topic", f"{edits}/{variant}/memory", 100, True))
            found.append(Scenario("topic", f"{edits}/{variant}/discovery", 100, False))
    return tuple(found)


def run_once(estimator: str, scenario: str, seed: int) -> Recovery:
    """One world and one estimate of it.

    For panels with two equal dumps there is no single true month: naming one counts as a false finding. For single
    topics ``memory`` judges one topic with memory, drawn at random, and ``discovery`` one accepted topic: a finding
    there is a topic without memory, so that their share is the false discovery rate.

    Raises:
        ValueError: for an unknown estimator or scenario.
    """
    if estimator not in (*PANEL_ESTIMATORS, "rise", "topic"):
        raise ValueError(f"unknown estimator {estimator!r}")
    if not SCENARIOS[estimator].fullmatch(scenario):
        raise ValueError(f"{estimator} has no scenario of the form {scenario!r}")
    whole_number(seed, "seed", 0)
    rng = np.random.default_rng([seed, crc32(scenario.encode())])
    if estimator == "rise":
        return _rise_run(scenario, rng, seed)
    if estimator == "topic":
        return _topic_run(scenario, rng, seed)
    world, edits, topics, months = scenario.split("/")
    panel = planted_panel(world, edits, rng, n_topics=int(topics[1:]), n_months=int(months[1:]))
    return _panel_run(estimator, panel, seed)


def _panel_run(estimator: str, world: PlantedPanel, seed: int) -> Recovery:
    if estimator == "trimmed95_minmax":
        described = lowest_month(world.target, seed=seed + 1)
        return _recovery(world.truth, described.month, described.interval80, described.interval95, "descriptive")
    if estimator == "panel_noref":
        alone = noref_cutoff(world.target)
        return _recovery(world.truth, alone.month, alone.interval80, alone.interval95, alone.status)
    result = panel_cutoff(world.target, world.reference, seed=seed + 1)
    return _recovery(world.truth, result.month, result.interval80, result.interval95, result.status)


def _rise_run(scenario: str, rng: np.random.Generator, seed: int) -> Recovery:
    world, snr, phi, months, *more = scenario.split("/")
    beside = {
        name: float(part.removeprefix(name)) for part in more for name in ("season", "walk") if part.startswith(name)
    }
    series = planted_series(world, rng, snr=float(snr[3:]), phi=float(phi[3:]), n_months=int(months[1:]), **beside)
    result = rise_cutoff(series.values, seed=seed + 1)
    truth = None if series.first_risen is None else series.first_risen - 1
    return _recovery(truth, result.month, result.interval80, result.interval95, result.status)


def _topic_run(scenario: str, rng: np.random.Generator, seed: int) -> Recovery:
    edits, variant, question = scenario.split("/")
    world = planted_topics(edits, rng, **TOPIC_VARIANTS[variant])
    result = topic_cutoffs(world.target - world.reference, world.distances, seed=seed + 1)
    accepted = np.array([status == "found" for status in result.status])
    asked = np.flatnonzero(accepted if question == "discovery" else (world.months >= 0) & (result.n_edits >= 6))
    if not len(asked):
        return Recovery(None, None, None, None, None, None, "none-accepted", False)
    topic = int(rng.choice(asked))
    remembered = bool(world.months[topic] >= 0)
    return _recovery(
        int(world.months[topic]) if remembered and question == "memory" else None,
        int(result.months[topic]),
        (int(result.intervals80[topic, 0]), int(result.intervals80[topic, 1])),
        (int(result.intervals95[topic, 0]), int(result.intervals95[topic, 1])),
        "found" if (accepted[topic] if question == "memory" else not remembered) else "unresolved",
    )


def _recovery(
    truth: int | None, month: int, interval80: tuple[int, int], interval95: tuple[int, int], status: str
) -> Recovery:
    return Recovery(
        truth=None if truth is None else float(truth),
        estimate=float(month),
        low80=float(interval80[0]),
        high80=float(interval80[1]),
        low95=float(interval95[0]),
        high95=float(interval95[1]),
        status=status,
        found=status == "found",
    )
