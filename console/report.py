"""The report of one model, put together from the published tables: what each method found, or why it says nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from console.summary import in_short
from resources.probe.rows import current_run, stored_boundaries, stored_rounds
from resources.warehouse.store import PublishedCopy, Reader
from strandline.perplexity.score_matrices import tokens_note
from strandline.probe.report import report


@dataclass(frozen=True)
class Section:
    """A part of the report: its heading, and what it says of a model; None where the method has no results of it."""

    title: str
    text: Callable[[PublishedCopy, str], str | None]


def full_report(copy: PublishedCopy, model: str, sections: Sequence[Section] | None = None) -> str:
    """All sections that have rows, one under the other; empty where nothing has been found out about the model."""
    parts = [(section.title, section.text(copy, model)) for section in sections or SECTIONS]
    if parts[0][1] is None:
        return ""
    return "\n\n".join(f"{title}\n{'=' * len(title)}\n{text}" for title, text in parts if text)


def stored_report(reader: Reader, model: str, *, with_rounds: bool = False) -> str | None:
    """The release probe's report of a model's current run from stored rows; None where it has not been dated."""
    run = current_run(reader, model)
    rows = reader.query(
        "select * from probe.boundaries where model = ? and run_id = ? order by estimator",
        [model, run.run_id if run else ""],
    )
    if run is None or rows.is_empty():
        return None
    return report(run.header, stored_boundaries(rows), stored_rounds(reader, run), with_rounds=with_rounds)


def cutoffs(copy: PublishedCopy, model: str) -> str | None:
    """The effective cutoff of each resource by estimator and reference; a month only where one was found."""
    rows = copy.query(
        "select * from perplexity.effective_cutoffs "
        "where model = ? order by resource, is_default desc, estimator, reference",
        [model],
    )
    if rows.is_empty():
        return None
    return "\n".join(_cutoff_line(row) for row in rows.iter_rows(named=True))


def contamination(copy: PublishedCopy, model: str) -> str | None:
    """The stored summary of each verdict."""
    rows = copy.query(
        "select summary from contamination.tests where model = ? and summary is not null order by benchmark, method",
        [model],
    )
    return "\n\n".join(rows["summary"]) or None


def corpora(copy: PublishedCopy, model: str) -> str | None:
    """What each corpus holds of each resource, how far known truth agrees, and why the cutoff is where it is.

    A corpus that is not listed as this model's training data says so: it then tells nothing about the model.
    """
    trained = copy.query("select distinct corpus from corpus.explanations where model = ?", [model])["corpus"].to_list()
    mined = copy.query("select distinct corpus from corpus.corpora order by corpus")["corpus"].to_list()
    others = [corpus for corpus in mined if corpus not in trained]
    lines = [f"Not listed as training data of {model}: {', '.join(others)}"] if others else []
    lines += [_copies_line(row) for row in copy.query("from corpus.copies_of_my_resource").iter_rows(named=True)]
    lines += [_truth_line(row) for row in copy.query("from corpus.known_truth").iter_rows(named=True)]
    explained = copy.query(
        "select sentence from corpus.explanations where sentence is not null and model in ('none', ?) order by all",
        [model],
    )
    lines += explained["sentence"].to_list()
    return "\n".join(lines) or None


def _cutoff_line(row: dict[str, Any]) -> str:
    month = row["month"] and f"{row['month']:%Y-%m} (95 %: {row['low95']:%Y-%m} to {row['high95']:%Y-%m})"
    why = f": {row['reason']}" if row["reason"] else ""
    start = "" if row["is_default"] else "  beside it, for comparison: "
    how = f"{row['estimator']} against {row['reference']}, {row['n_topics']} topics"
    note = tokens_note(row.get("max_tokens"), row.get("context_tokens"))
    return f"{start}{row['resource']}, {how}: {month or row['status']}{why}{f' ({note})' if note else ''}"


def _copies_line(row: dict[str, Any]) -> str:
    copies = f"{_count(row['n_copies'])} copies of {row['resource']} ({_count(row['n_exact_copies'])} exact)"
    return f"{row['corpus']} holds {copies} for {row['n_topics_with_copies']} of {row['n_topics_searched']} topics"


def _truth_line(row: dict[str, Any]) -> str:
    judged = f"{row['n_right']} of {row['n_judged']} in the span of {row['resource']} were given the right month"
    return f"{row['corpus']}: of the documents whose version is known, {judged}; {row['n_outside']} lie outside it"


def _count(value: float) -> str:
    """A number of copies; a share of one where ties are shared."""
    return f"{value:,.1f}".removesuffix(".0")


SECTIONS = (
    Section("IN SHORT", in_short),
    Section("RELEASE PROBE", stored_report),
    Section("EFFECTIVE CUTOFFS", cutoffs),
    Section("CONTAMINATION", contamination),
    Section("CORPORA THAT WERE MINED", corpora),
)
"""The report from top to bottom; the first section says whether there is anything to report. One line adds one."""
