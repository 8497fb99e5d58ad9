"""What training corpora hold: shards, versions of resources, duplicates, and why cutoffs are where they are.

A partition is a corpus of `data/corpora.yaml`. Indexes, matches and profiles are kept by content, so that a new shard
costs only itself and a second run nothing.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import dagster as dg
import polars as pl

from assets import corpus_explanations as corpus_why
from assets.partitions import corpora, name_of
from assets.tables import materialized, table_multi_asset, version_of
from resources.compute.tasks import Compute
from resources.configured import ComputeResource, CorpusListResource, WarehouseResource
from resources.corpus import rows
from resources.corpus.mining import MATCHING_VERSION, CorpusTexts, index_corpus, match_corpus, profile_corpus
from resources.corpus.shards import READER_VERSION, Shard, read_shard, shards
from resources.corpus.topics import ResourceTopics
from resources.warehouse.frames import Rows
from resources.warehouse.store import Replace, Warehouse
from strandline.corpus import Document
from strandline.corpus.dedup_audit import Side, audit
from strandline.corpus.duplicates import DUPLICATES_VERSION, duplicate_pairs
from strandline.corpus.ngrams import count_ngrams
from strandline.corpus.settings import CorpusSpec
from strandline.corpus.truth import KnownDocument, compare_with_known

# The tables that reading the shards writes, in the order of their rows.
READ = ["corpus.corpora", "corpus.broken_records"]
# The tables that matching the versions writes, in the order of their rows.
MATCHED = ["corpus.matches", "corpus.version_counts", "corpus.truth_checks"]
DOUBLED = ["corpus.duplicate_pairs", "corpus.dedup_audit"]
"""The tables of each step."""


@table_multi_asset(
    READ,
    reads=["corpora_yaml", "corpus_files"],
    partitions_def=corpora,
    code_version=version_of("1", reader=READER_VERSION),
    kinds={"tantivy"},
)
def index_shards(
    context: dg.AssetExecutionContext,
    warehouse: WarehouseResource,
    corpus_list: CorpusListResource,
    compute: ComputeResource,
) -> Iterator[dg.MaterializeResult[None]]:
    """Read and index the shards that are not indexed yet; what cannot be read is a row with its place."""
    spec = corpus_list.find(name_of(context.partition_key))
    outcomes = index_corpus(shards(spec), str(corpus_list.cache()), compute.open())
    shard_rows, broken = rows.shard_rows(spec.corpus, outcomes)
    _replace(warehouse.open(), READ, spec, (shard_rows, broken))
    failed = [f"{outcome.shard.location}: {outcome.reason}" for outcome in outcomes if outcome.report is None]
    n_broken = sum(outcome.report.n_broken for outcome in outcomes if outcome.report)
    n_documents = sum(sum(outcome.report.documents.values()) for outcome in outcomes if outcome.report)
    yield materialized(READ[0], shards=len(outcomes), documents=n_documents, failed=failed)
    yield materialized(READ[1], broken=n_broken, listed=len(broken))


@table_multi_asset(
    MATCHED,
    deps=["corpus.corpora", "spans.resources", "spans.revisions", "spans.texts"],
    reads=["corpora_yaml", "corpus_files"],
    partitions_def=corpora,
    code_version=version_of("1", matching=MATCHING_VERSION),
    kinds={"rapidfuzz"},
)
def match_versions(
    context: dg.AssetExecutionContext,
    warehouse: WarehouseResource,
    corpus_list: CorpusListResource,
    compute: ComputeResource,
) -> Iterator[dg.MaterializeResult[None]]:
    """Search each topic's reported version, attribute the hits to months, and count them by both algorithms."""
    store, spec = warehouse.open(), corpus_list.find(name_of(context.partition_key))
    _require_documents(store, spec)
    cache, backend = str(corpus_list.cache()), compute.open()
    mined = [_versions(store, spec, cache, resource, backend) for resource in spec.resources]
    matches = pl.concat([each.matches for each in mined])
    counts = [row for each in mined for row in each.counts]
    truths = [row for each in mined for row in each.truths]
    _replace(store, MATCHED, spec, (matches, counts, truths))
    full = rows.topics_at_the_limit(matches, spec.mining.top)
    yield materialized(MATCHED[0], hits=matches.height, copies=matches["weight"].sum(), topics_that_may_have_more=full)
    yield materialized(MATCHED[1], rows=len(counts))
    yield materialized(MATCHED[2], outcomes=dict(Counter(str(row["outcome"]) for row in truths).most_common()))


@table_multi_asset(
    DOUBLED,
    deps=["corpus.corpora", "corpus.matches"],
    partitions_def=corpora,
    code_version=version_of("1", duplicates=DUPLICATES_VERSION),
    kinds={"numpy"},
)
def find_duplicate_pairs(
    context: dg.AssetExecutionContext,
    warehouse: WarehouseResource,
    corpus_list: CorpusListResource,
    compute: ComputeResource,
) -> Iterator[dg.MaterializeResult[None]]:
    """Find the duplicates of every class among all documents, and what each deduplication rule would do to them."""
    store, spec = warehouse.open(), corpus_list.find(name_of(context.partition_key))
    here, cache = readable(store, spec), str(corpus_list.cache())
    texts = CorpusTexts(here, cache)
    pairs = []
    if spec.duplicates == "corpus":
        known = profile_corpus(here, cache, compute.open())
        pairs = duplicate_pairs(known, texts, spec.mining.near, spec.excluded_domains)
    mirrors = rows.mirror_pairs(rows.stored(store, "corpus.matches", spec.corpus), spec.excluded_domains)
    judged = audit(pairs, lambda name: _side(texts.document(name)), spec.excluded_domains, mirrors)
    found = [*pairs, *mirrors]
    audited = rows.audit_rows(spec.corpus, spec.dedup_rule, judged)
    _replace(store, DOUBLED, spec, (rows.pair_rows(spec.corpus, found), audited))
    yield materialized(DOUBLED[0], classes=dict(Counter(pair.kind for pair in found).most_common()))
    yield materialized(DOUBLED[1], rows=len(judged), stated_rule=spec.dedup_rule)


def readable(store: Warehouse, spec: CorpusSpec) -> list[Shard]:
    """The shards as they are now of which documents were read."""
    known = set(rows.stored(store, "corpus.corpora", spec.corpus).filter(pl.col("n_documents") > 0)["shard_key"])
    return [shard for shard in shards(spec) if shard.key in known]


@dataclass(frozen=True)
class Mined:
    """The rows of matches, counts and truth checks for one resource."""

    matches: pl.DataFrame
    counts: list[rows.Row]
    truths: list[rows.Row]


def _versions(store: Warehouse, spec: CorpusSpec, cache: str, resource: str, backend: Compute) -> Mined:
    """Mine a corpus for one resource."""
    here = readable(store, spec)
    topics = ResourceTopics(store, resource, spec.reported.get(resource))
    hits = match_corpus(here, cache, topics, spec.mining, backend)
    copies = rows.copies_of(hits)
    heads = list(hits.select("subcorpus", "head").iter_rows())
    ngrams = count_ngrams(topics, heads, spec.mining.ngram, spec.mining.hit_words)
    found = {(copy.topic, copy.document_id): copy.months for copy in copies}
    truths = compare_with_known(_known(spec, here), rows.in_force(topics), found)
    return Mined(
        matches=rows.match_rows(spec.corpus, resource, hits),
        counts=rows.count_rows(spec.corpus, topics, copies, ngrams, spec.mining.ngram),
        truths=rows.truth_rows(spec.corpus, resource, truths),
    )


def _require_documents(store: Warehouse, spec: CorpusSpec) -> None:
    """Failure where the corpus names a resource that was never read: a slip would look like a corpus without copies."""
    known = store.query("select resource from spans.resources union select resource from spans.revisions order by 1")
    if unknown := [name for name in spec.resources if name not in known["resource"]]:
        held = ", ".join(known["resource"]) or "none"
        raise dg.Failure(
            f"corpus {spec.corpus}: the resource {unknown[0]} has not been read; those that were are {held} "
            "(data/spans.yaml lists resources, the job read_spans reads them)",
            allow_retries=False,
        )


def _known(spec: CorpusSpec, here: Sequence[Shard]) -> list[KnownDocument]:
    """The documents of which the version is known: those of the installed environment."""
    if spec.reader != "environment":
        return []
    documents = [each for shard in here for each in read_shard(shard) if isinstance(each, Document)]
    return [KnownDocument(d.document_id, d.source_id, d.revision) for d in documents if d.source_id and d.revision]


def _side(document: Document) -> Side:
    return Side(document.text, document.url)


def _replace(store: Warehouse, tables: Sequence[str], spec: CorpusSpec, stored: Sequence[Rows]) -> None:
    here = {"corpus": spec.corpus}
    store.write(*(Replace(table, frame, here) for table, frame in zip(tables, stored, strict=True)))


# What the code location collects from this module.
ASSETS = [index_shards, match_versions, find_duplicate_pairs, *corpus_why.ASSETS]
