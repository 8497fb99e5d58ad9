"""From mined results to the rows of the corpus tables, and back from rows to the records that methods take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

import polars as pl

from resources.corpus.mining import ShardOutcome
from resources.corpus.topics import ResourceTopics
from resources.warehouse.store import Warehouse
from strandline.corpus.dedup_audit import AuditRow
from strandline.corpus.duplicates import DuplicatePair, clusters, in_domains
from strandline.corpus.explanation import GapShares, ShiftTest
from strandline.corpus.histograms import Copy, monthly_weights
from strandline.corpus.ngrams import NgramCount, normalisation
from strandline.corpus.truth import TruthCheck

EDIT_RULE = "Levenshtein over NFC characters"


def shard_rows(corpus: str, outcomes: Sequence[ShardOutcome]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows of `corpus.corpora` and `corpus.broken_records`."""
    shards = [row for outcome in outcomes for row in _shard_rows(outcome)]
    broken = [
        {
            "corpus": corpus,
            "location": record.location.file,
            "unit": record.location.unit,
            "position": record.location.position,
            "byte_offset": record.location.offset,
            "kind": record.kind,
            "reason": record.reason,
        }
        for outcome in outcomes
        if outcome.report is not None
        for record in outcome.report.broken
    ]
    types = {"byte_offset": pl.Int64, "position": pl.Int64} | dict.fromkeys(
        ("corpus", "location", "unit", "kind", "reason"), pl.String
    )
    return _frame([{"corpus": corpus, **row} for row in shards], _SHARD_TYPES), _frame(broken, types)


def match_rows(corpus: str, resource: str, hits: pl.DataFrame) -> pl.DataFrame:
    """The rows of `corpus.matches`; each hit is one, whether it is a version or not."""
    return hits.select(
        pl.lit(corpus).alias("corpus"),
        pl.lit(resource).alias("resource"),
        pl.exclude("revision", "head"),
        n_months=pl.col("months").list.len().cast(pl.Int32),
        is_match=pl.col("distance").is_not_null(),
    )


def count_rows(
    corpus: str, topics: ResourceTopics, copies: Sequence[Copy], ngrams: Sequence[NgramCount], size: int
) -> pl.DataFrame:
    """The rows of `corpus.version_counts` by both methods."""
    edits = monthly_weights(copies, topics.months)
    rows = [(name, month, "edit_distance", weight, EDIT_RULE) for (name, month), weight in edits.items()]
    rows += [(each.subcorpus, each.month, "ngram", each.weight, normalisation(size)) for each in ngrams]
    frame = pl.DataFrame(
        rows,
        schema={
            "subcorpus": pl.String,
            "month": pl.Date,
            "method": pl.String,
            "weight": pl.Float64,
            "normalisation": pl.String,
        },
        orient="row",
    )
    return frame.with_columns(corpus=pl.lit(corpus), resource=pl.lit(topics.resource))


def pair_rows(corpus: str, pairs: Sequence[DuplicatePair]) -> pl.DataFrame:
    """The rows of `corpus.duplicate_pairs`."""
    rows = [
        (corpus, pair.left_id, pair.right_id, pair.kind, pair.distance, pair.left_location, pair.right_location)
        for pair in pairs
    ]
    names = ("corpus", "left_id", "right_id", "class", "distance", "left_location", "right_location")
    types = dict.fromkeys(names, pl.String) | {"distance": pl.Float64}
    return pl.DataFrame(rows, schema={name: types[name] for name in names}, orient="row")


def audit_rows(corpus: str, stated: str | None, rows: Sequence[AuditRow]) -> pl.DataFrame:
    """The rows of `corpus.dedup_audit`."""
    found = [
        {
            "corpus": corpus,
            "rule": row.rule,
            "class": row.kind,
            "is_stated": row.rule == stated,
            "n_pairs": row.n_pairs,
            "n_caught": row.n_caught,
            "n_missed": row.n_missed,
            "mean_removed": row.mean_removed,
            "escaped_left": row.escaped_left,
            "escaped_right": row.escaped_right,
        }
        for row in rows
    ]
    return _frame(found, _AUDIT_TYPES)


def truth_rows(corpus: str, resource: str, checks: Sequence[TruthCheck]) -> pl.DataFrame:
    """The rows of `corpus.truth_checks`."""
    rows = [
        {
            "corpus": corpus,
            "resource": resource,
            "topic": each.known.topic,
            "document_id": each.known.document_id,
            "revision": each.known.revision,
            "true_months": list(each.true_months),
            "found_months": list(each.found_months),
            "outcome": each.outcome,
            "reason": each.reason,
        }
        for each in checks
    ]
    names = ("corpus", "resource", "topic", "document_id", "revision", "outcome", "reason")
    months = {"true_months": pl.List(pl.Date), "found_months": pl.List(pl.Date)}
    return _frame(rows, dict.fromkeys(names, pl.String) | months)


def explanation_row(
    corpus: str,
    resource: str,
    model: str,
    reported: date | None,
    effective: date | None,
    shares: GapShares,
    test: ShiftTest | None,
    sentence: str,
) -> dict[str, object]:
    """A row of `corpus.explanations`."""
    return {
        "corpus": corpus,
        "resource": resource,
        "model": model,
        "reported_month": reported,
        "effective_month": effective,
        "n_copies": shares.n_copies,
        "typical_month": shares.typical,
        "bulk_from": shares.bulk_from,
        "bulk_to": shares.bulk_to,
        "typical_low95": shares.low95,
        "typical_high95": shares.high95,
        "gap_months": shares.gap,
        "old_crawl_months": shares.old_crawl,
        "old_crawl_months_low95": shares.old_crawl_low95,
        "old_crawl_months_high95": shares.old_crawl_high95,
        "duplicate_months": shares.duplicates,
        "duplicate_months_low95": shares.duplicates_low95,
        "duplicate_months_high95": shares.duplicates_high95,
        "remainder_months": shares.remainder,
        "old_crawl_share": shares.share(shares.old_crawl),
        "duplicate_share": shares.share(shares.duplicates),
        "correlation": None if test is None else test.correlation,
        "p_value": None if test is None else test.p_value,
        "lag_months": None if test is None else test.lag,
        "n_months": None if test is None else test.n_months,
        "sentence": sentence,
        "status": shares.status,
        "reason": shares.reason,
    }


def in_force(topics: ResourceTopics) -> dict[str, dict[str, list[date]]]:
    """By topic and revision, the months in which that revision was in force."""
    found: dict[str, dict[str, list[date]]] = {topic: {} for topic in topics.topics}
    for topic, revision, month in topics.revisions.select("topic", "revision", "month").iter_rows():
        found[topic].setdefault(str(revision), []).append(month)
    return found


def copies_of(matches: pl.DataFrame) -> list[Copy]:
    """The copies among rows of `corpus.matches`."""
    columns = ("document_id", "topic", "subcorpus", "months", "crawled_on", "weight")
    chosen = matches.filter(pl.col("weight") > 0).select(columns)
    return [Copy(name, topic, part, tuple(months), *rest) for name, topic, part, months, *rest in chosen.iter_rows()]


def mirror_pairs(matches: pl.DataFrame, excluded_domains: Sequence[str]) -> list[DuplicatePair]:
    """Copies of a resource's versions from outside the domains that a corpus leaves out, each of its nearest topic."""
    if not excluded_domains:
        return []
    columns = ("document_id", "location", "url", "resource", "topic", "months", "distance")
    copies = matches.filter(pl.col("weight") > 0).select(columns)
    return [
        DuplicatePair(
            name, f"{resource}:{topic}:{months[0]:%Y-%m}", "mirror", distance, place, f"{topic} {months[0]:%Y-%m}"
        )
        for name, place, url, resource, topic, months, distance in copies.iter_rows()
        if url and not in_domains(url, excluded_domains)
    ]


def mirrored_text(store: Warehouse, name: str) -> str | None:
    """The version of a resource that the right side of a mirror pair names; None where it names a document."""
    if name[16:17] == "@":
        return None
    resource, _, rest = name.partition(":")
    topic, _, month = rest.rpartition(":")
    found = store.query(
        "select text from spans.revisions join spans.texts using (text_sha256) "
        "where resource = ? and topic = ? and month = ?",
        [resource, topic, date.fromisoformat(f"{month}-01")],
    )
    return str(found.item()) if found.height else None


def groups_by_class(pairs: pl.DataFrame) -> dict[str, dict[str, str]]:
    """The duplicate groups of each class, and of all together under `all`; mirrors are pairs of other classes too."""
    kept = pairs.filter(pl.col("class") != "mirror")
    classes = {str(kind): rows for (kind,), rows in kept.group_by(["class"], maintain_order=True)}
    frames: Mapping[str, pl.DataFrame] = {**classes, "all": kept}
    return {kind: clusters(rows.select("left_id", "right_id").iter_rows()) for kind, rows in frames.items()}


def stored(store: Warehouse, table: str, corpus: str) -> pl.DataFrame:
    """The rows of a corpus table for one corpus."""
    return store.query(f"select * from {table} where corpus = ?", [corpus])


_SHARD_TYPES = {
    "corpus": pl.String,
    "subcorpus": pl.String,
    "location": pl.String,
    "dump_month": pl.Date,
    "is_crawl": pl.Boolean,
    "n_documents": pl.Int64,
    "n_broken": pl.Int64,
    "n_bytes": pl.Int64,
    "shard_key": pl.String,
    "status": pl.String,
    "reason": pl.String,
}
_AUDIT_TYPES = {
    "corpus": pl.String,
    "rule": pl.String,
    "class": pl.String,
    "is_stated": pl.Boolean,
    "n_pairs": pl.Int32,
    "n_caught": pl.Int32,
    "n_missed": pl.Int32,
    "mean_removed": pl.Float64,
    "escaped_left": pl.String,
    "escaped_right": pl.String,
}


def _shard_rows(outcome: ShardOutcome) -> list[dict[str, object]]:
    shard, report = outcome.shard, outcome.report
    about = {
        "location": shard.location,
        "dump_month": shard.dump_month,
        "is_crawl": shard.is_crawl,
        "shard_key": shard.key,
    }
    if report is None:
        return [{**about, "subcorpus": shard.subcorpus or "all", "status": "failed", "reason": outcome.reason}]
    documents = report.documents or {shard.subcorpus or "all": 0}
    largest = max(documents, key=lambda name: (documents[name], name))
    status = "ok" if report.documents else "empty"
    reason = None if report.documents else f"the file holds no document that can be read ({report.n_broken} broken)"
    return [
        {
            **about,
            "subcorpus": name,
            "n_documents": count,
            "n_broken": report.n_broken if name == largest else 0,
            "n_bytes": report.n_bytes.get(name, 0),
            "status": status,
            "reason": reason,
        }
        for name, count in documents.items()
    ]


def _frame(rows: Sequence[Mapping[str, object]], types: Mapping[str, object]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=dict(types))  # type: ignore[arg-type]
