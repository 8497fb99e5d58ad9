"""Pictures of what a corpus holds: mined versions stacked by sub-corpus, with the curve of a model trained on it.

Figures are made from records, without pyplot; reading tables and saving files belongs to assets. Curves with grey bars
(Fig 4 and 8) are drawn by `perplexity.figures`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GREEN, ORANGE, BLUE = "#3a9d5d", "#e8912d", "#3b78b5"
"""The paper's colours of crawls, Wikipedia and C4."""

OTHERS = ("#9a6fb0", "#8c6d4f", "#c95d63", "#7f8c8d", "#b8a13c", "#4fb0ae")
"""Colours of other sub-corpora, in order of name."""

INK, FAINT = "#222222", "#777777"
"""Text, and text that says that nothing is there."""


@dataclass(frozen=True)
class BlackCurve:
    """The relative perplexity of a model, drawn in black over the copies; None where a month has no value."""

    model: str
    months: Sequence[date]
    values: Sequence[float | None]


def stacked_versions(
    title: str,
    months: Sequence[date],
    weights: Mapping[str, Sequence[float]],
    curve: BlackCurve | None = None,
    reported: date | None = None,
    bulk: tuple[date, date] | None = None,
    unit: str = "copies",
) -> Figure:
    """Fig 7: copies of each month's version, stacked by sub-corpus, with a model's curve.

    Args:
        title: of the picture.
        months: of the resource.
        weights: by sub-corpus, one value a month; crawls are green, Wikipedia orange, C4 blue.
        curve: of a model trained on the corpus.
        reported: the month that is advertised, a dashed line.
        bulk: the shortest run of months that holds half of the copies, shaded.
        unit: what the bars count.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    axis: Any = figure.subplots()
    axis.spines[["top", "right"]].set_visible(False)
    if not months or not any(sum(values) for values in weights.values()):
        axis.set_axis_off()
        axis.text(0.5, 0.5, "no copies were found", ha="center", va="center", color=FAINT, transform=axis.transAxes)
    else:
        _bars(axis, months, weights)
        _marks(axis, reported, bulk)
        axis.set_ylabel(f"{unit} of the month's version", fontsize=9)
        axis.tick_params(colors=INK, labelsize=9)
        _curve(axis, curve)
        figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    figure.suptitle(title, x=0.02, ha="left", fontsize=11, color=INK)
    return figure


def colours(subcorpora: Sequence[str]) -> dict[str, str]:
    """A colour for each sub-corpus: green for crawls, orange for Wikipedia, blue for C4, others in order of name."""
    found: dict[str, str] = {}
    others = iter(OTHERS * (len(subcorpora) // len(OTHERS) + 1))
    taken: set[str] = set()
    for name in sorted(subcorpora):
        colour = _named(name.lower())
        if colour is None or colour in taken:
            colour = next(others)
        taken.add(colour)
        found[name] = colour
    return found


def _named(name: str) -> str | None:
    if "c4" in name:
        return BLUE
    if "wiki" in name:
        return ORANGE
    return GREEN if any(part in name for part in ("crawl", "cc", "web")) else None


def _bars(axis: Any, months: Sequence[date], weights: Mapping[str, Sequence[float]]) -> None:
    shades = colours(list(weights))
    bottom = [0.0] * len(months)
    for name in sorted(weights, key=lambda name: -sum(weights[name])):
        values = list(weights[name])
        label = f"{name} ({sum(values):,.0f})"
        axis.bar(list(months), values, width=26, bottom=bottom, color=shades[name], label=label, zorder=2)
        bottom = [low + value for low, value in zip(bottom, values, strict=True)]


def _marks(axis: Any, reported: date | None, bulk: tuple[date, date] | None) -> None:
    if bulk is not None:
        half = timedelta(days=15)
        axis.axvspan(
            bulk[0] - half, bulk[1] + half, color="#000000", alpha=0.07, lw=0, zorder=1, label="half of the copies"
        )
    if reported is not None:
        axis.axvline(reported, color=INK, ls="--", lw=1.2, label="reported month")


def _curve(axis: Any, curve: BlackCurve | None) -> None:
    if curve is None:
        return
    over = axis.twinx()
    values = [float("nan") if value is None else value for value in curve.values]
    over.plot(list(curve.months), values, color="black", lw=1.6, label=curve.model, zorder=3)
    over.set_ylabel("relative perplexity", fontsize=9)
    over.spines["top"].set_visible(False)
    over.tick_params(colors=INK, labelsize=9)
