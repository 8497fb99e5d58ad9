"""The report of a probe: what was found, on what evidence, and what it does not mean.

Fields and text form are the seed's (M69, M70); limits are stated with every report (M3, M71-M73).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from strandline.probe import StoredRound
from strandline.probe.boundaries import Boundary, agreement
from strandline.probe.evidence import counted_flags
from strandline.probe.likelihood import LEAST_LABEL_MASS, mean_label_mass
from strandline.probe.modelclock import Probe, probes_of
from strandline.probe.session import answered

# What a report shows where there is nothing to show.
NOT_SHOWN = "none"
# The sentence of a report on estimators whose dates differ.
DISAGREE = (
    "The estimators disagree. Rely on `calibrated`, whose intervals are tested; `modelclock` is there for comparison "
    "and names a date also where the answers hold none."
)
LIMITS = (
    "This is where the model passed this probe, with the uncertainty stated. It is not proof of a training cutoff, and "
    "training may have gone on after it.",
    "The result belongs to this set of releases. Widely used projects are over-represented in it.",
    "A version number can be guessed from how a project usually numbers its releases.",
    "Some models say YES to versions that never were. Decoys show how often and lessen the harm; they do not undo it.",
    "Some models answer UNKNOWN about releases that they have seen, which moves the boundary to an earlier date.",
    "Hidden prompts, reasoning modes and routing at a provider change the answers. Another provider, prompt, decoding "
    "setting or route can give another boundary.",
    "Dates are those of uploads to a registry, which may differ from the announcement by days.",
    "A model may know a version without knowing when it came out. Nothing here depends on its knowing dates.",
    "What a model says about its own cutoff was not asked and plays no part.",
)
"""What a report does not mean, stated with each one (M3, M71 to M73)."""
STATUS_WORDS = {
    "no_boundary": "no boundary",
    "right_censored": "at or after the end of the calendar",
    "left_censored": "at or before the start of the calendar",
    "drift": "gradual drift, no localised boundary",
    "inconclusive": "inconclusive",
    "unanswered": "no usable answers",
    "low_mass": "the model would rather say something other than YES, NO or UNKNOWN",
    "wide": "wider than the target",
}
"""How a status reads in a report; `ok` has a date instead."""


@dataclass(frozen=True)
class Header:
    """Who was asked, with what: the fields of a report that no estimator computes."""

    model: str
    provider: str | None
    tool_version: str
    dataset_version: str
    policy: str


def report(
    header: Header, boundaries: Sequence[Boundary], stored: Sequence[StoredRound], *, with_rounds: bool = True
) -> str:
    """The whole report as text: for each estimator the fields and rates, then the rounds and the limits."""
    parts: list[str] = []
    for boundary in boundaries:
        parts += [fields_text(header, boundary), rates_text(boundary, stored), ""]
    if len({b.status for b in boundaries}) > 1:
        parts += [DISAGREE, ""]
    if with_rounds:
        parts += ["Rounds", *transcript(stored, boundaries[0].estimator), ""]
    return "\n".join([*parts, "What this does not show", *(f"- {limit}" for limit in LIMITS)])


def fields_text(header: Header, b: Boundary) -> str:
    """The fields of M69 but for the transcript, in the form of M70, with the status and its reason."""
    lines = {
        "Model": header.model,
        "Provider": header.provider or "not stated",
        "Strandline": header.tool_version,
        "Estimator": f"{b.estimator} (questions chosen by {header.policy})",
        "Estimated cutoff": _estimate(b),
        "80% credible range": range_text(b, b.low80, b.high80),
        "95% credible range": range_text(b, b.low95, b.high95),
        "Decoy false positives": f"{b.rates.decoy_yes}/{b.rates.decoy_total}",
        "Replicates": str(b.replicates),
        "Rounds, answers": f"{b.rounds}, {b.questions}",
        "Dataset": header.dataset_version,
        "Status": f"{b.status}: {b.reason}",
    }
    return "\n".join(f"{name:<22}{value}" for name, value in lines.items())


def _estimate(b: Boundary) -> str:
    if b.estimator == "calibrated" and b.status != "ok":
        return f"{NOT_SHOWN} ({STATUS_WORDS.get(b.status, b.status)})"
    return b.label


def range_text(b: Boundary, low: date | None, high: date | None) -> str:
    """'A to B', an end outside the calendar in words, or none."""
    if low is None and high is None and (b.estimator == "calibrated" or b.status in ("unanswered", "low_mass")):
        return NOT_SHOWN
    return f"{low or 'before the calendar'} to {high or 'after the calendar'}"


def rates_text(b: Boundary, stored: Sequence[StoredRound]) -> str:
    """YES rates, overall and by thirds of the asked days, and how stable the answers and the estimate are."""
    lines = {"YES to releases": _share(b.rates.real_yes, b.rates.real_total)}
    lines |= {f"  from {month} on": _share(yes, n) for month, yes, n in _thirds(stored)}
    lines |= {"YES to decoys": _share(b.rates.decoy_yes, b.rates.decoy_total)}
    lines |= _mean_p_yes(stored)
    mass = mean_label_mass(answered(stored))
    if mass is not None:
        lines["Mass on the labels"] = f"{mass:.2g}" + (
            "" if mass >= LEAST_LABEL_MASS else f", below {LEAST_LABEL_MASS}"
        )
    same, repeated = agreement(answered(stored))
    if repeated:
        lines["Same answer again"] = _share(same, repeated)
    lines |= _stability(b) | _last_traces(b)
    return "\n".join(f"{name:<22}{value}" for name, value in lines.items())


def _share(yes: int, total: int) -> str:
    return f"{yes}/{total}" + (f" ({yes / total:.0%})" if total else "")


def _mean_p_yes(stored: Sequence[StoredRound]) -> dict[str, str]:
    """Mean P(YES), where token probabilities were read."""
    pairs = [(q.kind, a.p_yes) for r in answered(stored) for q, a in zip(r.questions, r.reply.answers, strict=True)]
    means = []
    for kind in ("real", "decoy"):
        values = [p for k, p in pairs if k == kind and p is not None]
        if values:
            means.append(f"{kind} {sum(values) / len(values):.3f}")
    return {"Mean P(YES)": ", ".join(means)} if means else {}


def _thirds(stored: Sequence[StoredRound]) -> list[tuple[str, int, int]]:
    """Each third of the asked span: its first month, YES answers and usable answers to real releases."""
    real = sorted(
        (q.released_on, a.answer == "YES")
        for r in answered(stored)
        for q, a in zip(r.questions, r.reply.answers, strict=True)
        if q.kind == "real" and a.answer
    )
    if len(real) < 3:
        return []
    first, last = real[0][0].toordinal(), real[-1][0].toordinal()
    edges = [date.fromordinal(first + (last - first) * i // 3) for i in range(4)]
    rows = []
    for i in range(3):
        inside = [yes for day, yes in real if edges[i] <= day and (day < edges[i + 1] or i == 2)]
        rows.append((f"{edges[i]:%Y-%m}", sum(inside), len(inside)))
    return rows


def _stability(b: Boundary) -> dict[str, str]:
    if "posterior_sd" not in b.details:
        return {}
    parts = (("projects", "se_projects"), ("calls", "se_calls"), ("posterior sd", "posterior_sd"))
    figures = [f"{name} {b.details[key]:.1f} d" for name, key in parts if b.details.get(key) is not None]
    return {"Replicate stability": ", ".join(figures)}


def _last_traces(b: Boundary) -> dict[str, str]:
    if "last_traces" not in b.details:
        return {}
    low, high = b.details["last_traces95"]
    return {"Last traces (soft)": f"{b.details['last_traces']} ({low} to {high})"}


def transcript(stored: Sequence[StoredRound], estimator: str) -> list[str]:
    """A line a round: each day's status and counts, and how many answers this estimator did not count."""
    rounds = answered(stored)
    flags = counted_flags(rounds)
    return [_round_line(r, row, estimator) for r, row in zip(rounds, flags, strict=True)]


def _round_line(stored: StoredRound, counted: Sequence[bool], estimator: str) -> str:
    days = {q.position: q.released_on for q in stored.questions}
    days_asked = "; ".join(
        f"{days[p.position]} {_probe_text(p)}" for p in sorted(probes_of([stored]), key=lambda p: p.position)
    )
    usable = sum(a.answer is not None for a in stored.reply.answers)
    notes = []
    if usable < len(stored.questions):
        notes.append(f"{len(stored.questions) - usable} missing")
    if estimator == "calibrated" and sum(counted) < usable:
        notes.append(f"{usable - sum(counted)} repeats not counted")
    name = f"{stored.replicate + 1}.{stored.number + 1}"
    return f"{name:>5}  {days_asked}" + (f"  [{', '.join(notes)}]" if notes else "")


def _probe_text(p: Probe) -> str:
    return f"{p.status} {p.real_yes}/{p.real_total}, decoys {p.decoy_yes}/{p.decoy_total}"
