"""The exhibits: curves with bands, panels by corpus, size suites, pairs, and advertised versus actual cutoffs.

Each function takes plain records and returns a matplotlib figure; matplotlib is imported only when one is drawn. A
cutoff is marked on a curve only where an estimator found it. What does NOT belong here: reading tables, saving files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEGEND_WIDTH = 34
"""Characters of a line beside a picture: about the width of a model's name."""

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6A3D9A", "#444444")
"""Okabe and Ito's colours, which colour-blind readers can tell apart, and two more that keep apart from them."""

BARS = "#D9D9D9"
INK, FAINT = "#222222", "#777777"
"""Greys for bars behind curves, for text, and for what stands back."""

MONTH_GAP_DAYS = 45
"""Half of the days between two months over which a line is drawn: a single missing month is bridged, two are a gap."""

# The note below a figure of lines by month.
NO_VERDICT = "a drop or a valley is no cutoff by itself, for the texts change too: see perplexity.effective_cutoffs"


@dataclass(frozen=True)
class CurveLine:
    """One model on one resource. Values may be None where a month has none; bands are 95 %, on the curve's scale.

    ``found`` is the month that an estimator found, if any; ``n_params`` orders size suites. ``note`` is said beside the
    label, such as that only a part of the tokens was scored.
    """

    label: str
    months: Sequence[date]
    values: Sequence[float | None]
    low95: Sequence[float | None]
    high95: Sequence[float | None]
    found: date | None = None
    n_params: int | None = None
    note: str | None = None


@dataclass(frozen=True)
class MinedBars:
    """What was found in a training corpus by month, drawn in grey behind the curves.

    ``label`` names the corpus, ``unit`` what its months count. The axis adds that a model may have been trained on more
    than it (D59).
    """

    label: str
    months: Sequence[date]
    weights: Sequence[float]
    unit: str = "copies"


@dataclass(frozen=True)
class CurvePanel:
    """One axes: a title, its curves and, where a corpus was mined, its bars."""

    title: str
    lines: Sequence[CurveLine]
    bars: MinedBars | None = None


@dataclass(frozen=True)
class AdvertisedActual:
    """What a model's maker states and what its memory of a resource shows; ``actual`` only where it was found."""

    model: str
    resource: str
    advertised: date | None
    actual: date | None
    low95: date | None
    high95: date | None
    status: str


def advertised_versus_actual(rows: Sequence[AdvertisedActual]) -> Figure:
    """Fig 1: for each model and resource the advertised cutoff beside the effective one with its 95 % interval."""
    if not rows:
        return empty("no model has an advertised cutoff and an estimate yet")
    figure, axes = _figure(1, 9.0, max(2.2, 0.42 * len(rows) + 1.5))
    axis = axes[0]
    for place, row in enumerate(reversed(rows)):
        _dumbbell(axis, place, row)
    axis.set_yticks(range(len(rows)), [f"{row.model}  ·  {row.resource}" for row in reversed(rows)], fontsize=9)
    axis.set_ylim(-0.7, len(rows) - 0.3)
    axis.plot([], [], "o", mfc="none", mec=PALETTE[1], label="advertised")
    axis.plot([], [], "o", color=PALETTE[0], label="effective, with 95 % interval")
    _dates(axis)
    axis.grid(axis="x", color="#EEEEEE")
    figure.suptitle("Advertised and effective cutoffs", x=0.02, ha="left", fontsize=12, color=INK)
    figure.legend(loc="upper right", ncols=2, frameon=False, fontsize=9)
    return figure


def topic_curve(
    model: str,
    topic: str,
    months: Sequence[date],
    perplexity: Sequence[float | None],
    interval: tuple[date, date] | None,
) -> Figure:
    """Fig 2: one topic's own perplexity by month under one model; its 95 % interval is shaded where it is resolved."""
    if not any(value is not None for value in perplexity):
        return empty(f"{model} has no score of {topic}")
    figure, axes = _figure(1, 8.0, 3.2)
    axis = axes[0]
    if interval:
        axis.axvspan(interval[0], interval[1], color=PALETTE[0], alpha=0.15, lw=0, label="95 % interval of its cutoff")
    for run in _runs(months, perplexity):
        axis.plot([months[i] for i in run], [perplexity[i] for i in run], "-o", color=PALETTE[0], lw=1.4, ms=3)
    axis.set_ylabel("perplexity")
    _dates(axis)
    _title(figure, axis, f"{topic}, {model}", "" if interval else "not resolved for this topic")
    if interval:
        axis.legend(frameon=False, fontsize=9)
    return figure


def news_curves(lines: Sequence[CurveLine]) -> Figure:
    """Fig 3: models on an unpaired resource, where the rise after a cutoff is what to look for."""
    return curve_panels([CurvePanel("News by month of publication", lines)], "a rise begins after the last month known")


def curve_panels(panels: Sequence[CurvePanel], subtitle: str = "") -> Figure:
    """Fig 4: one panel a training corpus, each model a curve with its band, mined copies as grey bars."""
    panels = [panel for panel in panels if panel.lines]
    if not panels:
        return empty("no scored model belongs here yet")
    figure, axes = _figure(len(panels), 9.0, 2.6 * len(panels) + 0.6)
    for axis, panel in zip(axes, panels, strict=True):
        if panel.bars:
            _bars(axis, panel.bars)
        for number, line in enumerate(panel.lines):
            _line(axis, line, PALETTE[number % len(PALETTE)], "-" if number < len(PALETTE) else "--")
        _finish(axis, panel.title)
    figure.suptitle(subtitle or "marks: effective cutoffs that were found", x=0.02, ha="left", fontsize=9, color=FAINT)
    return figure


def model_curves(model: str, lines: Mapping[str, CurveLine]) -> Figure:
    """One model: a panel for each resource that it was scored on."""
    return curve_panels([CurvePanel(f"{model} on {name}", [line]) for name, line in lines.items()], NO_VERDICT)


def size_suites(suites: Mapping[str, Sequence[CurveLine]]) -> Figure:
    """Fig 5: one panel a family, its models from light (smallest) to dark (largest)."""
    from matplotlib import colormaps

    kept = {name: sorted(lines, key=lambda line: line.n_params or 0) for name, lines in suites.items() if lines}
    if not kept:
        return empty("no family has two scored sizes yet")
    figure, axes = _figure(len(kept), 9.0, 2.6 * len(kept) + 0.6)
    for axis, (name, lines) in zip(axes, kept.items(), strict=True):
        for number, line in enumerate(lines):
            shade = 0.35 + 0.6 * number / max(len(lines) - 1, 1)
            _line(axis, line, colormaps["Blues"](shade), "-")
        _finish(axis, f"{name}: darker is larger")
    return figure


def paired_models(pairs: Mapping[str, tuple[CurveLine, CurveLine]]) -> Figure:
    """Fig 6: pairs that differ in one thing, such as deduplicated training (second of the pair, dashed)."""
    if not pairs:
        return empty("no pair of models that differ in one thing is scored yet")
    figure, axes = _figure(len(pairs), 9.0, 2.6 * len(pairs) + 0.6)
    for axis, (name, (first, second)) in zip(axes, pairs.items(), strict=True):
        _line(axis, first, PALETTE[0], "-")
        _line(axis, second, PALETTE[1], "--")
        _finish(axis, name)
    return figure


def closed_models(lines: Sequence[CurveLine]) -> Figure:
    """Fig 9: models whose training data are not public, apart from those that can be checked."""
    if not lines:
        return empty("no model with closed training data is scored yet")
    return curve_panels([CurvePanel("Training data not public: nothing here can be verified", lines)])


def empty(message: str) -> Figure:
    """A picture that says why there is nothing to show."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 1.6))
    figure.text(0.5, 0.5, message, ha="center", va="center", color=FAINT, fontsize=11, wrap=True)
    return figure


def _figure(rows: int, width: float, height: float) -> tuple[Figure, list[Any]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    grid: Any = figure.subplots(rows, 1, squeeze=False)
    axes = [grid[row][0] for row in range(rows)]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(colors=INK, labelsize=9)
    return figure, axes


def _line(axis: Any, line: CurveLine, color: Any, style: str) -> None:
    for number, run in enumerate(_runs(line.months, line.values)):
        months = [line.months[i] for i in run]
        label = _labelled(line) if number == 0 else None
        axis.plot(months, [line.values[i] for i in run], style, color=color, lw=1.5, label=label, zorder=3)
        band = [i for i in run if line.low95[i] is not None and line.high95[i] is not None]
        if len(band) > 1:
            low, high = ([ends[i] for i in band] for ends in (line.low95, line.high95))
            axis.fill_between([line.months[i] for i in band], low, high, color=color, alpha=0.13, lw=0, zorder=2)
    if line.found is not None and line.found in line.months:
        value = line.values[list(line.months).index(line.found)]
        if value is not None:
            axis.plot([line.found], [value], "v", color=color, ms=9, mec="white", zorder=4)


def _labelled(line: CurveLine) -> str:
    """The label with its note below, in lines that a legend holds."""
    from textwrap import fill

    return line.label if line.note is None else f"{line.label}\n{fill(line.note, LEGEND_WIDTH)}"


def _runs(months: Sequence[date], values: Sequence[float | None]) -> list[list[int]]:
    """Stretches of neighbouring months that have a value: a line is not drawn across a gap."""
    runs: list[list[int]] = []
    for index, (month, value) in enumerate(zip(months, values, strict=True)):
        if value is None or value != value:
            continue
        near = bool(runs) and runs[-1][-1] == index - 1 and (month - months[index - 1]).days <= 2 * MONTH_GAP_DAYS
        if near:
            runs[-1].append(index)
        else:
            runs.append([index])
    return runs


def _bars(axis: Any, bars: MinedBars) -> None:
    behind = axis.twinx()
    behind.bar(bars.months, bars.weights, width=25, color=BARS, zorder=0)
    behind.set_ylabel(f"{bars.unit} in {bars.label},\nmaybe a part of the training data", color=FAINT, fontsize=8)
    behind.tick_params(colors=FAINT, labelsize=8)
    behind.spines[["top", "left"]].set_visible(False)
    axis.set_zorder(behind.get_zorder() + 1)
    axis.patch.set_visible(False)


def _dumbbell(axis: Any, place: int, row: AdvertisedActual) -> None:
    if row.advertised and row.actual:
        axis.plot([row.advertised, row.actual], [place, place], color="#BBBBBB", lw=1.5, zorder=1)
    if row.actual and row.low95 and row.high95:
        axis.plot([row.low95, row.high95], [place, place], color=PALETTE[0], lw=5, alpha=0.3, zorder=2)
    if row.actual:
        axis.plot([row.actual], [place], "o", color=PALETTE[0], ms=8, zorder=3)
    if row.advertised:
        axis.plot([row.advertised], [place], "o", mfc="none", mec=PALETTE[1], mew=1.8, ms=11, zorder=3)
        if not row.actual:
            axis.annotate(
                f"effective: {row.status}", (row.advertised, place), xytext=(9, 0), textcoords="offset points",
                va="center", fontsize=8, color=FAINT,
            )  # fmt: skip


def _dates(axis: Any) -> None:
    from matplotlib import dates

    locator: Any = dates.AutoDateLocator(minticks=4, maxticks=10)  # type: ignore[no-untyped-call]
    axis.xaxis_date()
    axis.xaxis.set_major_locator(locator)
    axis.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _finish(axis: Any, title: str) -> None:
    axis.set_ylabel("relative perplexity\n(0 lowest, 1 highest month)", fontsize=9)
    axis.set_title(title, loc="left", fontsize=10, color=INK)
    _dates(axis)
    axis.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.13, 1.0))


def _title(figure: Figure, axis: Any, title: str, note: str) -> None:
    axis.set_title(title, loc="left", fontsize=11, color=INK)
    if note:
        axis.set_title(note, loc="right", fontsize=9, color=FAINT)
