"""The explanation of a cutoff in one plain sentence with its numbers. Nothing is computed here."""

from __future__ import annotations

from datetime import date

from strandline.corpus.explanation import GapShares, ShiftTest


def sentence(
    corpus: str,
    resource: str,
    reported: date | None,
    shares: GapShares,
    effective: date | None = None,
    agreement: ShiftTest | None = None,
) -> str:
    """What a reader should take away, or why nothing can be said.

    Args:
        corpus: the training corpus that was mined.
        resource: the versioned resource.
        reported: the month that is advertised for it.
        shares: the gap and its parts.
        effective: the effective cutoff by perplexity, only where one was found.
        agreement: the comparison of copies and curve.
    """
    if shares.status != "ok" or reported is None or shares.typical is None:
        why = shares.reason or "no month is reported for the resource"
        return f"The copies of {resource} in {corpus} explain no cutoff: {why}."
    model = "" if effective is None else f"knowledge by perplexity reaches {effective:%Y-%m}, "
    contrast = "but" if shares.gap is not None and shares.gap > 0 else "and"
    return (
        f"{resource} is reported as of {reported:%Y-%m} in {corpus}, {model}"
        f"{contrast} half of its {shares.n_copies} mined copies date from {_span(shares.bulk_from, shares.bulk_to)} "
        f"(typical month {shares.typical:%Y-%m}, 95 % interval {_span(shares.low95, shares.high95)}): "
        f"{_parts(shares)}{_agreement(agreement)}."
    )


def _parts(shares: GapShares) -> str:
    if shares.gap is None or shares.gap <= 0:
        return "there is no gap to explain"
    return (
        f"of a gap of {_months(shares.gap)}, old pages in crawls account for {_part(shares, shares.old_crawl)}, "
        f"duplicates for {_part(shares, shares.duplicates)} and the rest of the mix for "
        f"{_part(shares, shares.remainder)}"
    )


def _part(shares: GapShares, months: float | None) -> str:
    share = shares.share(months)
    return _months(months) + ("" if share is None else f" ({share:.0%})")


def _agreement(test: ShiftTest | None) -> str:
    if test is None or test.correlation is None or test.p_value is None:
        return ""
    relation = "go with" if test.correlation < 0 and test.p_value <= 0.05 else "do not reliably go with"
    return f"; many copies {relation} low perplexity (rank correlation {test.correlation:.2f}, p = {test.p_value:.3f})"


def _months(value: float | None) -> str:
    if value is None:
        return "an unknown number of months"
    return f"{value:g} month" + ("" if abs(value) == 1 else "s")


def _span(first: date | None, last: date | None) -> str:
    if first is None or last is None:
        return "unknown months"
    return f"{first:%Y-%m}" if first == last else f"{first:%Y-%m} to {last:%Y-%m}"
