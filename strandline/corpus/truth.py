"""Attribution against known truth: whether a document whose version is known was dated to that version's months.

A version that is in force in no month of the resource cannot be found in it, which is told apart from missing one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

OUTCOMES = ("right", "wrong", "unmatched", "outside", "unknown_topic")
"""What can become of a known document, as stored in `corpus.truth_checks.outcome`."""


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A document of which topic and version are known without looking at its text."""

    document_id: str
    topic: str
    revision: str


@dataclass(frozen=True, slots=True)
class TruthCheck:
    """The outcome for one known document, one of `OUTCOMES`, and why."""

    known: KnownDocument
    true_months: tuple[date, ...]
    found_months: tuple[date, ...]
    outcome: str
    reason: str


def compare_with_known(
    known: Sequence[KnownDocument],
    in_force: Mapping[str, Mapping[str, Sequence[date]]],
    found: Mapping[tuple[str, str], Sequence[date]],
) -> list[TruthCheck]:
    """Compare what was attributed with what is known.

    Args:
        known: the documents.
        in_force: by topic and revision, the months in which that revision was in force.
        found: by topic and document id, the months attributed; nothing where the document was no match.
    """
    return [
        _compared(each, in_force.get(each.topic), tuple(found.get((each.topic, each.document_id), ())))
        for each in known
    ]


def _compared(
    each: KnownDocument, revisions: Mapping[str, Sequence[date]] | None, found: tuple[date, ...]
) -> TruthCheck:
    if revisions is None:
        return TruthCheck(each, (), found, "unknown_topic", f"the resource has no document named {each.topic}")
    true = tuple(sorted(revisions.get(each.revision, ())))
    if not true:
        return TruthCheck(each, true, found, "outside", _outside(each.revision, revisions))
    if not found:
        return TruthCheck(each, true, found, "unmatched", "no version is near enough to the document")
    if set(found) & set(true):
        return TruthCheck(each, true, found, "right", "the months of its version were found")
    reason = f"a version of {found[0]:%Y-%m} is nearer than that of {true[0]:%Y-%m}"
    return TruthCheck(each, true, found, "wrong", reason)


def _outside(revision: str, revisions: Mapping[str, Sequence[date]]) -> str:
    """Which version the resource ends with, so that a reader sees whether a later month would hold the document's."""
    dated = [(month, name) for name, months in revisions.items() for month in months]
    last, newest = max(dated) if dated else (None, "")
    ending = "" if last is None else f"; in {last:%Y-%m}, its last one, {newest} was"
    return f"version {revision} was in force in no month of the resource{ending}"
