"""Worlds with a known cutoff, to measure the estimators on: panels, unpaired series and single topics.

Panels follow two edit habits seen in real resources: ``wiki`` (frequent, even) and ``factbook`` (rare, in bursts).
Text that did not change keeps its score exactly, months of mass edits move many topics together, and single cells
spike like pages turned redirect. Memory of a trained version fades with the edit distance from it. An edit of size s
moves the text's own log perplexity by a step of sd 0.5 times the root of s in panels (which gives real text's robust sd
of 0.075 nats), and half of that in worlds for single topics. The planted truth is the month of the largest *expected*
memory, over the copies that could have been drawn, given the edits of the panel's topics; for old copies, exponential
in age, it lies some months before the newest. What these worlds cannot show: template changes that only ever go one
way, dependent topics, and noise of the scoring itself. What does NOT belong here: running estimators on them
(``simulation``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strandline.numeric_input import real_number, whole_number
from strandline.perplexity.differences import Floats, Ints

FADE = 0.15
"""Edit distance (share of a text) over which memory fades to 1/e: a judgement, a version that differs in a sixth of its
words is remembered a third as well."""

PANEL_STEP, TOPIC_STEP = 0.5, 0.25
"""Nats per root of the edit size. The first gives the robust sd of steps on real text (0.075), the second is half."""

CRAWL_AGE = 9.0
"""Mean age of crawl copies in months, exponential: older mixtures as in web crawls."""

BROAD = 24
"""Months on either side over which the copies of a broad mixture spread."""

BEFORE, AFTER = 60, 30
"""Months of edit history beyond the range, so that copies may be older or newer than it."""

# The shapes of curves that planted panels take.
PANEL_WORLDS = ("sharp", "mix80", "broad", "two", "flat", "monoL", "monoR")
# Whose habits of editing the planted documents follow.
EDIT_HABITS = ("wiki", "factbook")
SERIES_WORLDS = ("none", "step", "ramp12", "hinge", "log6", "curve")
"""The worlds and habits that the functions below describe."""

LARGEST_HEIGHT = 1e6
"""Standard deviations: more would drown the noise in roundings."""

FEWEST_MONTHS = 8
"""The shortest range in which a planted month lies between its quarters."""


@dataclass(frozen=True)
class PlantedPanel:
    """Scores of a target and a reference, topics by months, and where the cutoff was planted.

    ``truth`` is the month of the largest memory: None where there is none inside the range or more than one.
    ``distances`` are cumulative edit distances, topics by months.
    """

    target: Floats
    reference: Floats
    distances: Floats
    truth: int | None


@dataclass(frozen=True)
class PlantedTopics:
    """A planted panel in which each topic has its own month of memory, or none (-1)."""

    target: Floats
    reference: Floats
    distances: Floats
    months: Ints


@dataclass(frozen=True)
class PlantedSeries:
    """A monthly series and its first risen month (None without a rise)."""

    values: Floats
    first_risen: int | None


@dataclass(frozen=True)
class Text:
    """Edit history and perplexity of the texts themselves, over a timeline that reaches beyond the range.

    ``private`` and ``shared`` are the parts of the log perplexity that move with each topic's own edits and with common
    changes; ``step`` is the sd of a private step for an edit of size one. Rows are topics, columns months from
    ``BEFORE`` months before the range on.
    """

    sizes: Floats
    distances: Floats
    private: Floats
    shared: Floats
    step: float


def planted_panel(
    world: str,
    edits: str,
    rng: np.random.Generator,
    *,
    n_topics: int = 100,
    n_months: int = 59,
    depth: float = 0.08,
    reference_error: tuple[float, float] = (0.45, 0.25),
) -> PlantedPanel:
    """A panel with a planted cutoff.

    Args:
        world: ``sharp`` (a dump three times and a few older copies), ``mix80`` (crawl copies up to the cutoff and one
            later dump), ``broad`` (copies over four years), ``two`` (two equal dumps), ``flat`` (no memory), ``monoL``
            and ``monoR`` (a dump before or after the range).
        edits: ``wiki`` or ``factbook``.
        rng: the source of randomness.
        depth: mean memory benefit of an identical copy, in nats.
        reference_error: sd of the steps that the reference does not share with the target, private and common, as
            parts of the target's.

    Raises:
        ValueError: for an unknown world or edit habit.
    """
    if world not in PANEL_WORLDS:
        raise ValueError(f"unknown world {world!r}: one of {', '.join(PANEL_WORLDS)}")
    _check_sizes(n_topics, n_months)
    text = planted_text(edits, rng, n_topics, n_months)
    middle = int(rng.integers(n_months // 4, n_months - n_months // 4))
    versions, weights = trained_versions(world, middle, rng, n_topics, n_months)
    memory = memory_benefit(text.distances, versions + BEFORE, weights, rng.gamma(1.5, depth / 1.5, n_topics), FADE)
    target, reference = _scores(text, memory, rng, reference_error)
    shown = slice(BEFORE, BEFORE + n_months)
    return PlantedPanel(
        target=target[:, shown] + _spikes(rng, (n_topics, n_months)),
        reference=reference[:, shown],
        distances=text.distances[:, shown],
        truth=_most_remembered(world, middle, text.distances, n_months),
    )


def planted_topics(
    edits: str,
    rng: np.random.Generator,
    *,
    n_topics: int = 100,
    n_months: int = 59,
    depth: float = 0.08,
    without: float = 0.5,
    share: float = 0.7,
    fade: float = FADE,
    heavy: bool = False,
    reference_error: tuple[float, float] = (0.45, 0.25),
) -> PlantedTopics:
    """A panel for single-topic estimates: some topics without memory, the others with one copy of one month each.

    Args:
        without: share of topics without memory.
        share: share of the topics with memory that hold the resource's common month; the others hold an older one.
        fade: edit distance over which memory fades.
        heavy: draw the texts' own steps from a Student t with 3 degrees of freedom.
    """
    _check_sizes(n_topics, n_months)
    text = planted_text(edits, rng, n_topics, n_months, step=TOPIC_STEP, heavy=heavy)
    common = int(rng.integers(n_months // 2, n_months - n_months // 6))
    older = rng.integers(0, common, n_topics)
    months = np.where(rng.random(n_topics) < share, common, older)
    months[rng.permutation(n_topics)[: round(without * n_topics)]] = -1
    depths = np.where(months < 0, 0.0, rng.gamma(1.5, depth / 1.5, n_topics))
    versions = np.maximum(months, 0)[:, None] + BEFORE
    memory = memory_benefit(text.distances, versions, np.ones((1, 1)), depths, fade)
    target, reference = _scores(text, memory, rng, reference_error)
    shown = slice(BEFORE, BEFORE + n_months)
    return PlantedTopics(target[:, shown], reference[:, shown], text.distances[:, shown], months)


def planted_series(
    world: str,
    rng: np.random.Generator,
    *,
    snr: float = 4.0,
    phi: float = 0.4,
    n_months: int = 54,
    season: float = 0.0,
    walk: float = 0.0,
) -> PlantedSeries:
    """A monthly series with unit-variance AR(1) noise around a straight trend and, in most worlds, a rise.

    Args:
        world: ``none``, ``step``, ``ramp12`` (12 months long), ``hinge`` (rises to the end), ``log6`` (logistic, begun
            at 5 %), or ``curve`` (smooth and convex: no rise).
        snr: final height; for a hinge the height gained in 12 months.
        season, walk: amplitude of a yearly wave and monthly sd of a random walk, both unknown to the estimator.

    Raises:
        ValueError: for an unknown world, and numbers out of range.
    """
    if world not in SERIES_WORLDS:
        raise ValueError(f"unknown world {world!r}: one of {', '.join(SERIES_WORLDS)}")
    _check_sizes(1, n_months)
    for name, value in {"snr": snr, "season": season, "walk": walk}.items():
        if abs(real_number(value, name)) > LARGEST_HEIGHT:
            raise ValueError(f"{name} is at most {LARGEST_HEIGHT:g} standard deviations, got {value}")
    if not 0 <= real_number(phi, "phi") < 1:
        raise ValueError(f"phi is from 0 up to 1, got {phi}")
    months = np.arange(n_months)
    start = int(rng.integers(n_months // 4, n_months - n_months // 4))
    noise = rng.normal(0, 1, n_months) * np.sqrt(np.where(months == 0, 1.0, 1 - phi**2))
    for month in range(1, n_months):
        noise[month] += phi * noise[month - 1]
    values = noise + rng.normal(0, 0.02) * months + season * np.sin(2 * np.pi * (months / 12 + rng.random()))
    values += rng.normal(0, walk, n_months).cumsum() if walk else 0.0
    return PlantedSeries(values + _rise(world, snr, start, months), None if world in ("none", "curve") else start)


def planted_text(
    edits: str, rng: np.random.Generator, n_topics: int, n_months: int, *, step: float = PANEL_STEP, heavy: bool = False
) -> Text:
    """Edit history of the texts and what it does to their log perplexity under a model without memory."""
    rates, mass = _edit_rates(edits, rng, BEFORE + n_months + AFTER)
    activity = np.where(mass, 1.0, rng.uniform(0.5, 1.5, (n_topics, 1)))
    edited = rng.random((n_topics, len(rates))) < np.clip(rates * activity, 0, 1)
    edited[:, 0] = True
    sizes = np.where(edited, np.minimum(np.exp(rng.normal(np.log(0.02), 1.2, edited.shape)), 0.8), 0.0)
    noise = rng.standard_t(3, sizes.shape) / np.sqrt(3) if heavy else rng.normal(size=sizes.shape)
    private = np.cumsum(step * np.sqrt(sizes) * noise, axis=1)
    common = np.cumsum(rng.normal(0, np.where(mass, 0.02, 0.001)) + 0.001)
    shared = at_last_edit(np.broadcast_to(common, sizes.shape), edited) * rng.uniform(0.5, 1.5, (n_topics, 1))
    return Text(sizes, np.cumsum(sizes, axis=1), private, shared, step)


def at_last_edit(rows: NDArray[np.float64], edited: NDArray[np.bool_]) -> Floats:
    """Each value as it stood when the topic was last edited (the first month counts as an edit)."""
    last = np.maximum.accumulate(np.where(edited, np.arange(rows.shape[1]), 0), axis=1)
    return np.take_along_axis(rows, last, axis=1)


def trained_versions(
    world: str, middle: int, rng: np.random.Generator, n_topics: int, n_months: int
) -> tuple[Ints, Floats]:
    """Months of the copies each topic was trained on (topics by copies) and their weights (one row for all)."""

    def fixed(month: int) -> Ints:
        return np.full((n_topics, 1), month)

    def crawled(copies: int, mean: float) -> Ints:
        return middle - np.floor(rng.exponential(mean, (n_topics, copies))).astype(np.int64)

    if world == "sharp":
        months, weights = [fixed(middle), crawled(3, 12.0)], [3.0, 0.5, 0.5, 0.5]
    elif world == "mix80":
        months, weights = [crawled(4, CRAWL_AGE), fixed(middle + n_months // 6)], [1.0] * 5
    elif world == "broad":
        months, weights = [rng.integers(middle - BROAD, middle + BROAD + 1, (n_topics, 6))], [1.0] * 6
    elif world == "two":
        apart = n_months // 3
        months, weights = [fixed(middle - apart // 2), fixed(middle - apart // 2 + apart)], [1.0, 1.0]
    elif world == "monoL":
        months, weights = [fixed(-12)], [1.0]
    elif world == "monoR":
        months, weights = [fixed(n_months + 7)], [1.0]
    else:
        months, weights = [fixed(0)], [0.0]
    return np.clip(np.concatenate(months, axis=1), -BEFORE, n_months + AFTER - 1), np.array([weights])


def memory_benefit(distances: Floats, versions: Ints, weights: Floats, depths: Floats, fade: float) -> Floats:
    """How much lower the log perplexity of each month's version is for having trained on ``versions`` (columns)."""
    trained = np.take_along_axis(distances, versions, axis=1)
    alike = np.exp(-np.abs(distances[:, None, :] - trained[:, :, None]) / fade)
    share = weights / max(float(weights.sum()), 1.0)
    benefit: Floats = depths[:, None] * np.sum(alike * share[:, :, None], axis=1)
    return benefit


def _most_remembered(world: str, middle: int, distances: Floats, n_months: int) -> int | None:
    """The month of the largest expected memory; None where no month of the range is the one."""
    months = np.arange(distances.shape[1]) - BEFORE
    if world == "sharp":
        return middle
    if world == "mix80":
        ages = np.maximum(middle - months, 0)
        weights = np.where(months <= middle, np.exp(-ages / CRAWL_AGE) - np.exp(-(ages + 1) / CRAWL_AGE), 0.0)
        weights = 4 * weights / weights.sum() + (months == middle + n_months // 6)
    elif world == "broad":
        weights = (np.abs(months - middle) <= BROAD).astype(np.float64)
    else:
        return None
    copies = np.flatnonzero(weights)
    benefit = np.zeros(n_months)
    for path in distances:
        alike = np.exp(-np.abs(path[BEFORE : BEFORE + n_months, None] - path[None, copies]) / FADE)
        benefit += alike @ weights[copies]
    return int(np.argmax(benefit))


def _check_sizes(n_topics: int, n_months: int) -> None:
    whole_number(n_topics, "n_topics", 1)
    whole_number(n_months, "n_months", FEWEST_MONTHS)


def _edit_rates(edits: str, rng: np.random.Generator, length: int) -> tuple[Floats, NDArray[np.bool_]]:
    if edits == "wiki":
        rates = rng.normal(0.6, 0.1, length)
    elif edits == "factbook":
        rates = 0.1 * np.exp(rng.normal(0, 1.0, length))
    else:
        raise ValueError(f"unknown edit habit {edits!r}: one of {', '.join(EDIT_HABITS)}")
    mass = rng.random(length) < rng.uniform(0.04, 0.06)
    return np.clip(np.where(mass, rng.uniform(0.5, 0.99, length), rates), 0, 1), mass


def _scores(
    text: Text, memory: Floats, rng: np.random.Generator, reference_error: tuple[float, float]
) -> tuple[Floats, Floats]:
    level = rng.normal(2.6, 0.35, (len(memory), 1))
    own, common = (np.sqrt(max(error**2 - 0.01, 0.0)) for error in reference_error)
    edited = text.sizes > 0
    apart = np.cumsum(own * text.step * np.sqrt(text.sizes) * rng.normal(size=text.sizes.shape), axis=1)
    steps = np.diff(text.shared, axis=1, prepend=text.shared[:, :1])
    step_sd = np.sqrt(np.mean(steps**2, axis=0))
    drift = at_last_edit(
        np.broadcast_to(np.cumsum(common * step_sd * rng.normal(size=step_sd.shape)), steps.shape), edited
    )
    target = level + text.private + text.shared - memory
    reference = level + 0.2 + 0.9 * (text.private + text.shared) + apart + drift
    return target, reference


def _spikes(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    spikes: Floats = np.where(rng.random(shape) < 0.003, rng.normal(1.0, 0.4, shape), 0.0)
    return spikes


def _rise(world: str, snr: float, start: int, months: Ints) -> Floats:
    since = (months - start + 1).astype(np.float64)
    shapes: dict[str, Floats] = {
        "none": np.zeros(len(months)),
        "step": (since > 0).astype(np.float64),
        "ramp12": np.clip(since / 12, 0, 1),
        "hinge": np.maximum(since, 0) / 12,
        "log6": 1 / (1 + np.exp(-(since - 1 - 3 * np.log(19)) / 3)),
        "curve": (months / (len(months) - 1)) ** 2,
    }
    return snr * shapes[world]
