"""Pictures of a probe: where the posterior lies, and what was answered when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from strandline.probe import StoredRound
from strandline.probe.boundaries import Boundary, Mass
from strandline.probe.report import STATUS_WORDS
from strandline.probe.session import answered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {"YES": "#1b7837", "NO": "#b2182b", "UNKNOWN": "#999999"}
ROWS = {"YES": 2, "UNKNOWN": 1, "NO": 0}
"""Where each answer is drawn: YES above, NO below, UNKNOWN between them."""


def probe_figure(
    model: str, boundaries: Sequence[Boundary], masses: Sequence[Sequence[Mass]], stored: Sequence[StoredRound]
) -> Figure:
    """Posterior of each estimator over time above the answers to releases and to decoys.

    A calibrated posterior is scaled by the evidence for a boundary inside the calendar, so it is low where there is
    none. Shaded: the 95 % interval of a finding.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 2.2 * len(boundaries) + 3.0), layout="constrained")
    axes: Any = figure.subplots(
        len(boundaries) + 1, 1, sharex=True, gridspec_kw={"height_ratios": [1] * len(boundaries) + [1.5]}
    )
    for axis, boundary, mass in zip(axes, boundaries, masses, strict=False):
        _posterior(axis, boundary, mass)
    _answers(axes[-1], stored)
    figure.suptitle(f"Release probe: {model}")
    return figure


def _posterior(axis: Any, boundary: Boundary, mass: Sequence[Mass]) -> None:
    for replicate in sorted({m.replicate for m in mass}):
        own = [m for m in mass if m.replicate == replicate and m.released_on is not None]
        axis.step([m.released_on for m in own], [m.probability for m in own], where="pre", linewidth=1.2)
    if boundary.low95 and boundary.high95:
        axis.axvspan(boundary.low95, boundary.high95, color="#4393c3", alpha=0.25, linewidth=0)
    axis.set_ylabel("probability")
    peak, even = max((m.probability for m in mass), default=0.0), 1 / max(len(mass), 1)
    axis.set_ylim(0, 1.05 * max(peak, even))  # mass below an even spread is no peak and must not look like one
    inside, after = _share(mass, is_inside=True), _share(mass, is_inside=False)
    if inside < 0.5:
        axis.set_yticks([])
        _note(
            axis, "its probability lies after the calendar" if after > 0.5 else "no date inside the calendar stands out"
        )
    words = STATUS_WORDS.get(boundary.status, boundary.status)
    label = boundary.label.replace(boundary.status, words)
    status = "" if boundary.status == "ok" or words in label else f" ({words})"
    axis.set_title(f"{boundary.estimator}: {label}{status}", loc="left", fontsize=9)


def _share(mass: Sequence[Mass], *, is_inside: bool) -> float:
    """The probability inside the calendar, or after it, on average over the replicates."""
    chosen = sum(m.probability for m in mass if (m.released_on is not None) == is_inside)
    return chosen / max(len({m.replicate for m in mass}), 1)


def _note(axis: Any, text: str) -> None:
    axis.text(0.5, 0.5, text, transform=axis.transAxes, ha="center", va="center", color="#777777")


def _answers(axis: Any, stored: Sequence[StoredRound]) -> None:
    for kind, marker, shift in (("real", "o", 0.14), ("decoy", "x", -0.14)):
        points = _points(stored, kind)
        axis.scatter(
            [day for day, _, _ in points],
            [ROWS[label] + shift + jitter for _, label, jitter in points],
            c=[COLOURS[label] for _, label, _ in points],
            marker=marker,
            s=14,
            linewidths=0.8,
            alpha=0.7,
        )
    axis.set_yticks(list(ROWS.values()), list(ROWS))
    axis.set_ylim(-0.5, 2.5)
    axis.set_title("answers: dots are releases, crosses are versions that never were", loc="left", fontsize=9)


def _points(stored: Sequence[StoredRound], kind: str) -> list[tuple[date, str, float]]:
    """Day, label and a small vertical offset that keeps the answers of one day apart."""
    points = []
    for r in answered(stored):
        for i, (q, a) in enumerate(zip(r.questions, r.reply.answers, strict=True)):
            if q.kind == kind and a.answer:
                points.append((q.released_on, str(a.answer), (i % 7 - 3) * 0.03))
    return points
