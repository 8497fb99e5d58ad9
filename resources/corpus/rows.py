"""From mined results to the rows of the corpus tables, and back from rows to the records that methods take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

import polars as pl

from resources.corpus.mining import ShardOutcome
from resources.corpus.topics import ResourceTopics
from resources.warehouse.store import Warehouse
from strandline.corpus import EMPTY, FAILED, READ
from strandline.corpus.dedup_audit import AuditRow
from strandline.corpus.duplicates import DuplicatePair, clusters, in_domains
from strandline.corpus.explanation import GapShares, ShiftTest
from strandline.corpus.histograms import BY_EDITS, BY_NGRAMS, Copy, monthly_weights
from strandline.corpus.ngrams import NgramCount, normalisation
from strandline.corpus.truth import TruthCheck

EDIT_RULE = "Levenshtein over NFC characters"
"""The rule of Algorithm 1 as stored beside each count."""

Row = dict[str, object]


def shard_rows(corpus: str, outcomes: Sequence[ShardOutcome]) -> tuple[list[Row], list[Row]]:
    """The rows of `corpus.corpora` and `corpus.broken_records`."""
    shards = [{"corpus": corpus, **row} for outcome in outcomes for row in _shard_rows(outcome)]
    broken: list[Row] = [
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
    return shards, broken


def match_rows(corpus: str, resource: str, hits: pl.DataFrame) -> pl.DataFrame:
    """The rows of `corpus.matches`; each hit is one, whether it is a version or not."""
    return hits.select(
        pl.lit(corpus).alias("corpus"),
        pl.lit(resource).alias("resource"),
        pl.exclude("revision", "head"),
        n_months=pl.col("months").list.len().cast(pl.Int32),
        is_match=pl.col("distance").is_not_null(),
    )


def topics_at_the_limit(matches: pl.DataFrame, top: int) -> int:
    """Topics of which every hit that was looked at is a copy, so that there may be more copies than were counted."""
    copies = matches.filter("is_match").group_by("resource", "topic").len()
    return copies.filter(pl.col("len") >= top).height


def count_rows(
    corpus: str, topics: ResourceTopics, copies: Sequence[Copy], ngrams: Sequence[NgramCount], size: int
) -> list[Row]:
    """The rows of `corpus.version_counts` by both methods."""
    here = {"corpus": corpus, "resource": topics.resource}
    by_edits = monthly_weights(copies, topics.months).items()
    rows: list[Row] = [
        {**here, "subcorpus": part, "month": month, "method": BY_EDITS, "weight": weight, "normalisation": EDIT_RULE}
        for (part, month), weight in by_edits
    ]
    rule = normalisation(size)
    for each in ngrams:
        counted = {"subcorpus": each.subcorpus, "month": each.month, "weight": each.weight}
        rows.append({**here, **counted, "method": BY_NGRAMS, "normalisation": rule})
    return rows


def pair_rows(corpus: str, pairs: Sequence[DuplicatePair]) -> list[Row]:
    """The rows of `corpus.duplicate_pairs`."""
    return [
        {
            "corpus": corpus,
            "left_id": pair.left_id,
            "right_id": pair.right_id,
            "class": pair.kind,
            "distance": pair.distance,
            "left_location": pair.left_location,
            "right_location": pair.right_location,
        }
        for pair in pairs
    ]


def audit_rows(corpus: str, stated: str | None, rows: Sequence[AuditRow]) -> list[Row]:
    """The rows of `corpus.dedup_audit`."""
    return [
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


def truth_rows(corpus: str, resource: str, checks: Sequence[TruthCheck]) -> list[Row]:
    """The rows of `corpus.truth_checks`."""
    return [
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


def explanation_row(
    corpus: str,
    resource: str,
    model: str,
    reported: date | None,
    effective: date | None,
    shares: GapShares,
    test: ShiftTest | None,
    sentence: str,
) -> Row:
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
        **_shift_fields(test),
        "sentence": sentence,
        "status": shares.status,
        "reason": shares.reason,
    }


def _shift_fields(test: ShiftTest | None) -> Row:
    """What the row says of the test of the shift; NULL where there was none."""
    return {
        "correlation": None if test is None else test.correlation,
        "p_value": None if test is None else test.p_value,
        "lag_months": None if test is None else test.lag,
        "n_months": None if test is None else test.n_months,
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


def _shard_rows(outcome: ShardOutcome) -> list[Row]:
    """A row for each sub-corpus of a shard, or one that says why there is none."""
    shard, report = outcome.shard, outcome.report
    about = {
        "location": shard.location,
        "dump_month": shard.dump_month,
        "is_crawl": shard.is_crawl,
        "shard_key": shard.key,
    }
    if report is None:
        return [{**about, "subcorpus": shard.subcorpus or "all", "status": FAILED, "reason": outcome.reason}]
    documents = report.documents or {shard.subcorpus or "all": 0}
    largest = max(documents, key=lambda name: (documents[name], name))
    status = READ if report.documents else EMPTY
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
