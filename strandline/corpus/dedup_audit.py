"""What a deduplication rule removes, and what it leaves behind.

Each rule is applied to a pair of documents of which the left is kept, and tells the share of the right one's characters
that it would remove. A pair is caught where more than half goes. The rules are those of published corpora: whole
documents (the Pile), paragraphs (CCNet and RedPajama), spans of three sentences (C4), fuzzy matching by MinHash
(RefinedWeb), exact text, and domain exclusion (RefinedWeb without wikipedia.org). Domain exclusion is to keep a text
out altogether, so it catches a pair only where both documents lie in the domains: a copy elsewhere stays. An audit
shows what a rule as stated would do to copies that were found; it does not show copies that the search itself missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from strandline.corpus.duplicates import SPAN, THRESHOLD, DuplicatePair, classify, in_domains
from strandline.corpus.signatures import jaccard, shingle_hashes
from strandline.corpus.texts import nfc, paragraphs, sentences

CAUGHT = 0.5
"""Share of a copy above which it counts as removed: what is left is then the smaller part of it."""


@dataclass(frozen=True, slots=True)
class Side:
    """One document of a pair: its text and its address, where it has one."""

    text: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class AuditRow:
    """How a rule does on the pairs of one class: caught, missed, the mean share removed, and a pair that escapes."""

    rule: str
    kind: str
    n_pairs: int
    n_caught: int
    mean_removed: float
    escaped_left: str | None
    escaped_right: str | None

    @property
    def n_missed(self) -> int:
        """Pairs of which both documents stay."""
        return self.n_pairs - self.n_caught


Rule = Callable[[Side, Side], float]


def rules(excluded_domains: Sequence[str] = ()) -> dict[str, Rule]:
    """The rules by name; `domain` removes documents of the excluded domains and nothing else, whatever their text."""
    return {
        "document": _document,
        "exact": _exact,
        "paragraph": _paragraph,
        "three_sentence_span": _span,
        "fuzzy": _fuzzy,
        "domain": lambda left, right: float(all(in_domains(side.url, excluded_domains) for side in (left, right))),
    }


def audit(
    pairs: Iterable[DuplicatePair],
    sides: Callable[[str], Side],
    excluded_domains: Sequence[str] = (),
    mirrors: Iterable[DuplicatePair] = (),
) -> list[AuditRow]:
    """Apply every rule to every pair.

    Args:
        pairs: the duplicates that were found.
        sides: the text and address of a document by its id.
        excluded_domains: the domains that the domain rule removes.
        mirrors: copies, outside of those domains, of texts that are not in the corpus itself. No rule but the domain's
            is to keep them out, and it does not.

    Returns:
        a row for each rule and each class that occurs, in that order.
    """
    outcomes: dict[tuple[str, str], list[tuple[float, DuplicatePair]]] = {}
    for pair in pairs:
        left, right = sides(pair.left_id), sides(pair.right_id)
        for name, rule in rules(excluded_domains).items():
            outcomes.setdefault((name, pair.kind), []).append((rule(left, right), pair))
    for pair in mirrors:
        outcomes.setdefault(("domain", pair.kind), []).append((0.0, pair))
    return [_row(name, kind, outcomes[name, kind]) for name, kind in sorted(outcomes)]


def _row(name: str, kind: str, outcomes: Sequence[tuple[float, DuplicatePair]]) -> AuditRow:
    escaped = [pair for removed, pair in outcomes if removed <= CAUGHT]
    return AuditRow(
        rule=name,
        kind=kind,
        n_pairs=len(outcomes),
        n_caught=len(outcomes) - len(escaped),
        mean_removed=sum(removed for removed, _ in outcomes) / len(outcomes),
        escaped_left=escaped[0].left_location if escaped else None,
        escaped_right=escaped[0].right_location if escaped else None,
    )


def _exact(left: Side, right: Side) -> float:
    return float(left.text == right.text)


def _document(left: Side, right: Side) -> float:
    """Whole documents after Unicode and white space are normalised, as document-level pipelines hash them."""
    return float(classify(left.text, right.text) in ("exact", "whitespace"))


def _fuzzy(left: Side, right: Side) -> float:
    return float(jaccard(shingle_hashes(left.text), shingle_hashes(right.text)) >= THRESHOLD)


def _paragraph(left: Side, right: Side) -> float:
    kept = {line.lower() for line in paragraphs(nfc(left.text))}
    return _share(paragraphs(nfc(right.text)), lambda line, _: line.lower() in kept)


def _span(left: Side, right: Side) -> float:
    """Every sentence of the right document that lies in a run of three that the left one has."""
    ours, theirs = sentences(nfc(left.text)), sentences(nfc(right.text))
    kept = {tuple(ours[place : place + SPAN]) for place in range(len(ours) - SPAN + 1)}
    repeated = [tuple(theirs[place : place + SPAN]) in kept for place in range(len(theirs) - SPAN + 1)]
    return _share(theirs, lambda _, place: any(repeated[max(0, place - SPAN + 1) : place + 1]))


def _share(parts: Sequence[str], removed: Callable[[str, int], bool]) -> float:
    total = sum(len(part) for part in parts)
    gone = sum(len(part) for place, part in enumerate(parts) if removed(part, place))
    return gone / total if total else 0.0
