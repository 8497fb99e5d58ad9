"""The report of one model, put together from the published tables: what each method found, or why it says nothing."""

from assets.probe import planned, stored_report
from resources.warehouse import PublishedCopy, Warehouse
from strandline.models import ModelSpec


def plan_text(store: Warehouse, spec: ModelSpec) -> str:
    """What dating a model would take at most from here."""
    return planned(store, spec).text()


def full_report(copy: PublishedCopy, model: str) -> str:
    """All sections that have rows, one under the other."""
    sections = {
        "RELEASE PROBE": stored_report(copy, model),
        "EFFECTIVE CUTOFFS": cutoffs(copy, model),
        "CONTAMINATION": contamination(copy, model),
        "TRAINING CORPORA": corpora(copy),
    }
    return "\n\n".join(f"{title}\n{'=' * len(title)}\n{text}" for title, text in sections.items() if text)


def cutoffs(copy: PublishedCopy, model: str) -> str | None:
    """The effective cutoff of each resource by estimator and reference; a month only where one was found."""
    rows = copy.query(
        "select resource, estimator, reference, strftime(month, '%Y-%m') as month, strftime(low95, '%Y-%m') as low95, "
        "strftime(high95, '%Y-%m') as high95, status, reason, n_topics from perplexity.effective_cutoffs "
        "where model = ? order by resource, estimator, reference",
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


def corpora(copy: PublishedCopy) -> str | None:
    """How many copies of each resource each corpus holds."""
    rows = copy.query(
        "select corpus, resource, method, sum(weight) as copies, arg_max(month, weight) as busiest "
        "from corpus.version_counts group by all order by all"
    )
    return "\n".join(_corpus_line(row) for row in rows.iter_rows(named=True)) or None


def _cutoff_line(row: dict[str, object]) -> str:
    found = f"{row['month']} (95 %: {row['low95']} to {row['high95']})" if row["month"] else f"{row['status']}"
    why = f": {row['reason']}" if row["reason"] else ""
    return f"{row['resource']}, {row['estimator']} against {row['reference']}, {row['n_topics']} topics: {found}{why}"


def _corpus_line(row: dict[str, object]) -> str:
    return (
        f"{row['corpus']} holds {row['copies']:.1f} copies of versions of {row['resource']} ({row['method']}), "
        f"most of them of {row['busiest']:%Y-%m}"
    )
