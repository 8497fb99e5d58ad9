"""Calibration of corpus mining on planted worlds: attribution by class of copy, typical months, gaps and shift tests.

A scenario is a class of copies (estimator `attribution`), a mix of versions (`typical_month`), a cause (`gap_shares`)
or a relation of copies and curve (`circular_shift`). Estimates are months counted from the first. Reading and searching
corpora are tested on real pages instead.
"""

from __future__ import annotations

from datetime import date

import numpy as np
from numpy.typing import NDArray

from strandline.calibration import Recovery, Scenario
from strandline.corpus import topic_versions
from strandline.corpus.attribution import VersionMatcher
from strandline.corpus.explanation import GapShares, circular_shift_test, gap_shares, typical_month
from strandline.corpus.histograms import Copy
from strandline.corpus.planted import CLASSES, COVERED, altered
from strandline.spans.months import month_range

MONTHS = month_range(date(2018, 1, 1), date(2022, 12, 1))
"""Five years, the length of a usual span."""

REPORTED = MONTHS[54]
"""The month of the dump, half a year before the end: copies may be newer too."""

TOPICS, COPIES = 80, 3
"""Topics, and copies of each: a small resource, so that intervals are not flattered."""

MIXES = ("upsampled_dump", "minor_dump", "old_crawl", "recent", "spread")
"""Mixes of versions, from a dump that is repeated to an even spread without a typical month."""

CAUSES = {"old_crawl": 24.0, "duplicates": 18.0, "aligned": 0.0}
"""By cause, the months of the gap that are planted."""

RELATIONS = ("unrelated/phi0.0", "unrelated/phi0.7", "mirrored/phi0.7")
"""Whether the curve mirrors the copies, and how much of each month the next one keeps."""

Shares = NDArray[np.float64]


def scenarios() -> tuple[Scenario, ...]:
    """All scenarios, each with 100 runs; a class that Algorithm 1 is not to find and unrelated series have no truth."""
    return (
        *(Scenario("attribution", kind, 100, kind in COVERED) for kind in (*CLASSES, "other_page")),
        *(Scenario("typical_month", mix, 100, mix != "spread") for mix in MIXES),
        *(Scenario("gap_shares", cause, 100, True) for cause in CAUSES),
        *(Scenario("circular_shift", name, 100, name.startswith("mirrored")) for name in RELATIONS),
    )


def run_once(estimator: str, scenario: str, seed: int) -> Recovery:
    """One planted world and one estimate of it. Raises ValueError for an unknown estimator."""
    runs = {
        "attribution": _attribution,
        "typical_month": _typical_month,
        "gap_shares": _gap_shares,
        "circular_shift": _circular_shift,
    }
    if estimator not in runs:
        raise ValueError(f"no estimator named {estimator!r}; there are {', '.join(runs)}")
    return runs[estimator](scenario, np.random.default_rng([seed, sum(scenario.encode())]))


def _attribution(kind: str, rng: np.random.Generator) -> Recovery:
    """A copy of one version among thirteen of a page that is edited every month."""
    pages = _history(rng)
    truth = int(rng.integers(len(pages)))
    topic = topic_versions("page", list(zip(MONTHS, pages, strict=False)), None)
    text = _page(rng) if kind == "other_page" else altered(pages[truth], kind, rng)
    found = VersionMatcher(topic).attribute(text)
    true = float(truth) if kind in COVERED else None
    if found is None:
        return Recovery(true, None, None, None, None, None, "unmatched", False)
    places = [MONTHS.index(month) for month in found.months]
    return _recovery(true, float(np.median(places)), min(places), max(places))


def _typical_month(mix: str, rng: np.random.Generator) -> Recovery:
    """Copies drawn from a mix of versions; the truth is the typical month of the mix itself."""
    shares = _mix(mix)
    copies = _copies(shares, TOPICS * COPIES, rng)
    found = gap_shares(copies, MONTHS, REPORTED, (), {}, seed=int(rng.integers(1 << 30)))
    truth = None if mix == "spread" else float(typical_month(shares).middle)
    if found.typical is None or found.low95 is None or found.high95 is None:
        return Recovery(truth, None, None, None, None, None, found.status, False)
    places = [MONTHS.index(month) for month in (found.typical, found.low95, found.high95)]
    return _recovery(truth, *map(float, places))


def _gap_shares(cause: str, rng: np.random.Generator) -> Recovery:
    """A gap with one cause; the truth is the months that this cause accounts for."""
    old = MONTHS[54 - int(CAUSES[cause])]
    spread = _bump(MONTHS.index(old), 1.5)
    crawled = date(REPORTED.year, REPORTED.month, 20) if cause == "old_crawl" else None
    copies = _copies(spread, TOPICS * COPIES, rng, crawled)
    groups = {copy.document_id: copy.topic for copy in copies} if cause == "duplicates" else {}
    dump = [Copy(f"dump{n}", f"topic{n}", "dump", (REPORTED,)) for n in range(int(TOPICS * 1.3))]
    found = gap_shares([*copies, *dump], MONTHS, REPORTED, ("crawl",), groups, seed=int(rng.integers(1 << 30)))
    return _part(found, "duplicates" if cause == "duplicates" else "old_crawl", CAUSES[cause])


def _part(found: GapShares, part: str, truth: float) -> Recovery:
    values = {
        "old_crawl": (found.old_crawl, found.old_crawl_low95, found.old_crawl_high95),
        "duplicates": (found.duplicates, found.duplicates_low95, found.duplicates_high95),
    }[part]
    if None in values:
        return Recovery(truth, None, None, None, None, None, found.status, False)
    estimate, low, high = (float(value) for value in values if value is not None)
    return _recovery(truth, estimate, low, high)


def _circular_shift(relation: str, rng: np.random.Generator) -> Recovery:
    """Whether copies and curve are called related at 5 %; where they are, the truth is a lag of none."""
    kind, _, phi = relation.partition("/phi")
    copies = _wandering(float(phi), rng)
    curve = -copies + 0.3 * rng.normal(size=len(copies)) if kind == "mirrored" else _wandering(float(phi), rng)
    test = circular_shift_test(copies.tolist(), curve.tolist())
    found = test.p_value is not None and test.p_value <= 0.05
    lag = None if test.lag is None else float(test.lag)
    return Recovery(0.0 if kind == "mirrored" else None, lag, None, None, None, None, test.status, found)


def _recovery(truth: float | None, estimate: float, low: float, high: float) -> Recovery:
    return Recovery(truth, estimate, None, None, float(low), float(high), "ok", True)


def _mix(name: str) -> Shares:
    """The share of copies that each month's version has."""
    dump = np.eye(len(MONTHS))[54]
    shares = {
        "upsampled_dump": 0.35 * _bump(25, 9) + 0.65 * dump,
        "minor_dump": 0.8 * _bump(25, 9) + 0.2 * dump,
        "old_crawl": _bump(20, 6),
        "recent": _bump(50, 3),
        "spread": np.full(len(MONTHS), 1 / len(MONTHS)),
    }[name]
    return np.asarray(shares / shares.sum())


def _bump(middle: float, width: float) -> Shares:
    shares = np.exp(-0.5 * ((np.arange(len(MONTHS)) - middle) / width) ** 2)
    return np.asarray(shares / shares.sum())


def _copies(shares: Shares, count: int, rng: np.random.Generator, crawled: date | None = None) -> list[Copy]:
    places = rng.choice(len(MONTHS), size=count, p=shares).tolist()
    return [Copy(f"d{n}", f"topic{n % TOPICS}", "crawl", (MONTHS[place],), crawled) for n, place in enumerate(places)]


def _history(rng: np.random.Generator, versions: int = 13) -> list[str]:
    """A page of thirty sentences of which two are rewritten every month."""
    sentences = _page(rng).split("\n")
    pages = []
    for _ in range(versions):
        for place in rng.choice(len(sentences), size=2, replace=False).tolist():
            sentences[place] = _sentence(rng)
        pages.append(" ".join(sentences))
    return pages


def _page(rng: np.random.Generator) -> str:
    return "\n".join(_sentence(rng) for _ in range(30))


def _sentence(rng: np.random.Generator) -> str:
    letters = rng.integers(97, 123, size=90).astype(np.uint8).tobytes().decode("ascii")
    cuts = np.sort(rng.choice(np.arange(3, 88), size=13, replace=False)).tolist()
    words = [letters[start:end] for start, end in zip([0, *cuts], [*cuts, 90], strict=True)]
    return " ".join(words).capitalize() + "."


def _wandering(phi: float, rng: np.random.Generator) -> Shares:
    """A series that remembers: each month is `phi` of the last one and a fresh part."""
    values = np.zeros(len(MONTHS) + 50)
    fresh = rng.normal(size=len(values))
    for place in range(1, len(values)):
        values[place] = phi * values[place - 1] + fresh[place]
    return values[50:]
