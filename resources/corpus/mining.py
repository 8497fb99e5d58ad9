"""Mining a corpus shard by shard: indexing, matching and profiling as tasks whose results are files named by content.

A task depends on nothing but its arguments, so any worker can run it, a lost worker repeats only its own task, and a
second run finds every result and computes nothing. Adding a shard adds the tasks of that shard. What is kept lies under
one folder; on a cluster without a shared one, a worker that lacks an index builds it from the shard again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl

from resources.compute.tasks import Compute, LocalCompute, Task, WorkerSpec
from resources.corpus.search_index import IndexReport, SearchIndex, build
from resources.corpus.shards import Shard, read_shard
from resources.corpus.topics import ResourceTopics
from strandline.corpus import Document, TopicVersions
from strandline.corpus.attribution import VersionMatcher
from strandline.corpus.duplicates import Profile, joined, profile
from strandline.corpus.settings import Mining
from strandline.corpus.texts import words

MATCHING_VERSION = "1"
"""Raise it when the same shard and topics would give other matches."""

HIT_SCHEMA = {
    "subcorpus": pl.String,
    "topic": pl.String,
    "document_id": pl.String,
    "location": pl.String,
    "url": pl.String,
    "source_id": pl.String,
    "revision": pl.String,
    "crawled_on": pl.Date,
    "n_chars": pl.Int32,
    "bm25_score": pl.Float64,
    "edits": pl.Int32,
    "distance": pl.Float64,
    "months": pl.List(pl.Date),
    "replaced_share": pl.Float64,
    "head": pl.String,
}


@dataclass(frozen=True, slots=True)
class ShardOutcome:
    """What became of a shard: its report, or why it could not be read."""

    shard: Shard
    report: IndexReport | None
    reason: str | None = None


def index_shard(shard: Shard, cache: str) -> ShardOutcome:
    """Read a shard and index it, unless that is done.

    A file that cannot be reached is an outcome, not an exception, whatever its file system raises: the others go on,
    and the next run tries again.
    """
    try:
        return ShardOutcome(shard, build(_folder(shard, cache) / "index", read_shard(shard)))
    except Exception as error:
        said = str(error).strip().splitlines() or ["it said nothing more"]
        return ShardOutcome(shard, None, f"{type(error).__name__}: {said[0]}")


def match_shard(shard: Shard, cache: str, topics: Sequence[TopicVersions], digest: str, mining: Mining) -> pl.DataFrame:
    """The hits of each topic's query in a shard, and the version that each hit is.

    Args:
        shard: what is searched; it is indexed first where the cache lacks its index.
        cache: the folder where results are kept.
        topics: some topics of a resource.
        digest: of everything that these topics' matches depend on.
        mining: the parameters.
    """
    file = match_file(shard, cache, digest, mining)
    if file.exists():
        return pl.read_parquet(file)
    folder = _folder(shard, cache) / "index"
    build(folder, read_shard(shard))
    index = SearchIndex(folder)
    rows = [row for topic in topics for row in _topic_rows(index, shard, topic, mining)]
    frame = pl.DataFrame(rows, schema=HIT_SCHEMA, orient="row")
    _written(file, frame.write_parquet)
    return frame


def match_file(shard: Shard, cache: str, digest: str, mining: Mining) -> Path:
    """Where the matches of a shard and a batch of topics are kept."""
    name = sha256(f"{MATCHING_VERSION}\x1f{digest}\x1f{json.dumps(asdict(mining))}".encode()).hexdigest()[:24]
    return _folder(shard, cache) / "matches" / f"{name}.parquet"


def profile_shard(shard: Shard, cache: str) -> pl.DataFrame:
    """What is needed of a shard's documents to find duplicates among them and with other shards."""
    file = profile_file(shard, cache)
    if file.exists():
        return pl.read_parquet(file)
    folder = _folder(shard, cache) / "index"
    build(folder, read_shard(shard))
    frame = _profile_frame(profile(SearchIndex(folder).documents()))
    _written(file, frame.write_parquet)
    return frame


def profile_file(shard: Shard, cache: str) -> Path:
    """Where the profile of a shard is kept."""
    return _folder(shard, cache) / "profile.parquet"


def index_corpus(shards: Sequence[Shard], cache: str, compute: Compute | None = None) -> list[ShardOutcome]:
    """Index every shard that is not indexed yet; outcomes by location."""
    worker = WorkerSpec("resources.corpus.mining:worker", {"function": "index_shard", "cache": cache})
    tasks = (Task(shard.key, (shard,)) for shard in shards)
    outcomes = [outcome for _, outcome in (compute or LocalCompute()).run(worker, tasks)]
    return sorted(outcomes, key=lambda outcome: outcome.shard.location)


def match_corpus(
    shards: Sequence[Shard], cache: str, topics: ResourceTopics, mining: Mining, compute: Compute | None = None
) -> pl.DataFrame:
    """The best hits of every topic over all shards with their versions. Only what is missing is computed.

    A batch of topics is loaded only where a shard lacks its matches, and merged as soon as all shards are done, so that
    memory holds the best hits alone.
    """
    worker = WorkerSpec("resources.corpus.mining:worker", {"function": "match_shard", "cache": cache})
    open_batches = _OpenBatches(shards, cache, topics, mining)
    for task, frame in (compute or LocalCompute()).run(worker, open_batches.tasks()):
        open_batches.finish(task, frame)
    return weighted(open_batches.merged(), mining.every_topic)


def profile_corpus(shards: Sequence[Shard], cache: str, compute: Compute | None = None) -> Profile:
    """The profile of all shards. Only what is missing is computed, and kept here where another machine computed it."""
    worker = WorkerSpec("resources.corpus.mining:worker", {"function": "profile_shard", "cache": cache})
    tasks = (Task(shard.key, (shard,)) for shard in shards if not profile_file(shard, cache).exists())
    for task, frame in (compute or LocalCompute()).run(worker, tasks):
        file = profile_file(task.payload[0], cache)
        if not file.exists():
            _written(file, frame.write_parquet)
    return joined([_profile_of(pl.read_parquet(profile_file(shard, cache))) for shard in shards])


def worker(function: str, cache: str) -> Callable[[Any], Any]:
    """What a worker of a compute backend does with a payload: one of the shard functions above with this cache."""
    work = {"index_shard": index_shard, "match_shard": match_shard, "profile_shard": profile_shard}[function]
    return lambda payload: work(payload[0], cache, *payload[1:])


class _OpenBatches:
    """Batches of topics on their way: tasks for what is missing, and the best hits of those that are done."""

    def __init__(self, shards: Sequence[Shard], cache: str, topics: ResourceTopics, mining: Mining) -> None:
        self._shards, self._cache, self._topics, self._mining = shards, cache, topics, mining
        self._frames: dict[str, list[pl.DataFrame]] = {}
        self._done: dict[str, pl.DataFrame] = {}

    def tasks(self) -> Iterator[Task]:
        """One task for each batch and shard without matches; batches that lack nothing are merged at once."""
        for batch in self._topics.batches():
            files = {shard.key: self._file(shard, batch.digest) for shard in self._shards}
            self._frames[batch.digest] = [pl.read_parquet(file) for file in files.values() if file.exists()]
            lacking = [shard for shard in self._shards if not files[shard.key].exists()]
            versions = self._topics.load(batch) if lacking else []
            self._merge_if_whole(batch.digest)
            for shard in lacking:
                yield Task(f"{shard.key} {batch.digest}", (shard, versions, batch.digest, self._mining))

    def finish(self, task: Task, frame: pl.DataFrame) -> None:
        """Take in the matches of one shard and batch, and keep them where another machine computed them."""
        shard, _, digest, _ = task.payload
        file = self._file(shard, digest)
        if not file.exists():
            _written(file, frame.write_parquet)
        self._frames[digest].append(frame)
        self._merge_if_whole(digest)

    def merged(self) -> pl.DataFrame:
        """The best hits of all batches in order of topic."""
        return pl.concat([merged_hits([], self._mining.top), *self._done.values()]).sort("topic", "bm25_rank")

    def _merge_if_whole(self, digest: str) -> None:
        if len(self._frames[digest]) == len(self._shards):
            self._done[digest] = merged_hits(self._frames.pop(digest), self._mining.top)

    def _file(self, shard: Shard, digest: str) -> Path:
        return match_file(shard, self._cache, digest, self._mining)


class CorpusTexts:
    """The texts of documents by id, from the indexes of the shards that they are in; one that is lacking is built."""

    def __init__(self, shards: Sequence[Shard], cache: str) -> None:
        self._cache, self._shards = cache, {shard.location: shard for shard in shards}
        self._indexes: dict[str, SearchIndex] = {}

    def __call__(self, document_id: str) -> str:
        """The text. KeyError where no shard holds the document."""
        return self.document(document_id).text

    def document(self, document_id: str) -> Document:
        """The document. KeyError where no shard holds it."""
        place = document_id.split("@", 1)[1].rsplit(":", 1)[0]
        for location in [place] if place in self._shards else list(self._shards):
            found = self._index(location).document(document_id)
            if found is not None:
                return found
        raise KeyError(document_id)

    def _index(self, location: str) -> SearchIndex:
        if location not in self._indexes:
            shard = self._shards[location]
            folder = _folder(shard, self._cache) / "index"
            build(folder, read_shard(shard))
            self._indexes[location] = SearchIndex(folder)
        return self._indexes[location]


def _topic_rows(index: SearchIndex, shard: Shard, topic: TopicVersions, mining: Mining) -> list[tuple[object, ...]]:
    matcher = None
    rows: list[tuple[object, ...]] = []
    for score, document in index.search(topic.query, mining.top, mining.query_words):
        matcher = matcher or VersionMatcher(topic, mining.limit)
        found = matcher.attribute(document.text)
        rows.append(
            (
                document.subcorpus,
                topic.topic,
                document.document_id,
                str(document.location),
                document.url,
                document.source_id,
                document.revision,
                document.crawled_on or shard.dump_month,
                len(document.text),
                score,
                found.edits if found else None,
                found.distance if found else None,
                list(found.months) if found else None,
                document.replaced,
                " ".join(words(document.text)[: mining.hit_words]),
            )
        )
    return rows


def merged_hits(frames: Sequence[pl.DataFrame], top: int) -> pl.DataFrame:
    """The best hits of each topic over all shards with their rank; ties stand in order of document id."""
    if not frames:
        return pl.DataFrame(schema={**HIT_SCHEMA, "bm25_rank": pl.Int32})
    ordered = pl.concat(frames).sort(["topic", "bm25_score", "document_id"], descending=[False, True, False])
    ranked = ordered.with_columns(bm25_rank=pl.int_range(1, pl.len() + 1).over("topic").cast(pl.Int32))
    return ranked.filter(pl.col("bm25_rank") <= top)


def weighted(hits: pl.DataFrame, every_topic: bool = False) -> pl.DataFrame:
    """Hits with what each counts: a copy counts once, for the topic that it is nearest to; topics that tie share it.

    With `every_topic` a document counts fully for each topic that it is near to, as Algorithm 1 is printed.
    """
    if every_topic:
        return hits.with_columns(weight=pl.col("distance").is_not_null().cast(pl.Float64))
    nearest = (pl.col("edits") == pl.col("edits").min().over("document_id")).fill_null(False)
    ranked = hits.with_columns(nearest=nearest)
    share = pl.col("nearest").cast(pl.Float64) / pl.col("nearest").sum().over("document_id").clip(1)
    return ranked.with_columns(weight=share).drop("nearest")


def _folder(shard: Shard, cache: str) -> Path:
    return Path(cache) / shard.key


def _written(file: Path, write: Callable[[Path], Any]) -> None:
    """Write a file so that it is there only when it is whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    making = file.with_name(f".{file.name}.{uuid4().hex}")
    write(making)
    making.replace(file)


def _profile_frame(found: Profile) -> pl.DataFrame:
    ends = found.span_counts.cumsum()
    return pl.DataFrame(
        {
            "id": found.ids,
            "location": found.locations,
            "url": pl.Series(found.urls, dtype=pl.String),
            "forms": pl.Series(found.forms, dtype=pl.Array(pl.UInt64, found.forms.shape[1])),
            "keys": pl.Series(found.keys, dtype=pl.Array(pl.UInt64, found.keys.shape[1])),
            "spans": pl.Series(
                [found.spans[end - n : end].tolist() for end, n in zip(ends, found.span_counts, strict=True)],
                dtype=pl.List(pl.UInt64),
            ),
        }
    )


def _profile_of(frame: pl.DataFrame) -> Profile:
    return Profile(
        ids=frame["id"].to_list(),
        locations=frame["location"].to_list(),
        urls=frame["url"].to_list(),
        forms=frame["forms"].to_numpy(),
        keys=frame["keys"].to_numpy(),
        spans=frame["spans"].explode().drop_nulls().to_numpy(),
        span_counts=frame["spans"].list.len().cast(pl.Int64).to_numpy(),
    )
