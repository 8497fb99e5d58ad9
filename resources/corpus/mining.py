"""Mining a corpus shard by shard: indexing, matching and profiling as tasks whose results are files named by content.

A task depends on nothing but its arguments, so any worker can run it, a lost worker repeats only its own task, and a
second run finds every result and computes nothing. Scores depend on the whole corpus, so every shard first tells what
it holds of the queries' words; a new shard is read, counted and compared, and the others are only searched again. What
is kept lies under one folder; on a cluster without a shared one, a worker that lacks an index builds it from the shard
again. A result whose bytes have changed is computed again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl

from resources.compute.tasks import Compute, LocalCompute, Task, WorkerSpec
from resources.corpus.kept_frames import keep, kept
from resources.corpus.search_index import IndexReport, SearchIndex, build
from resources.corpus.shards import Shard, read_shard
from resources.corpus.streams import one_line
from resources.corpus.topics import Batch, ResourceTopics
from strandline.corpus import Document, TopicVersions
from strandline.corpus.attribution import VersionMatcher
from strandline.corpus.bm25 import CorpusStatistics, joined_statistics, query_words
from strandline.corpus.duplicates import Profile, joined, profile
from strandline.corpus.hits import HIT_SCHEMA, merged_hits, weighted
from strandline.corpus.settings import Mining
from strandline.corpus.texts import words

MATCHING_VERSION = "2"
"""Raise it when the same shard and topics would give other matches."""


LONGEST_ERROR = 250
"""Characters of an error that a reason keeps."""


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
        return ShardOutcome(shard, build(_index_folder(shard, cache), read_shard(shard)))
    except Exception as error:
        said = one_line(error)[:LONGEST_ERROR]
        return ShardOutcome(shard, None, f"{type(error).__name__}: {said}")


def count_shard(shard: Shard, cache: str, words: Sequence[str], digest: str) -> pl.DataFrame:
    """In how many documents of a shard each of these words occurs, and how many documents and words it holds.

    Args:
        shard: what is counted; it is indexed first where the cache lacks its index.
        cache: the folder where results are kept.
        words: of some topics' queries.
        digest: of everything that these words depend on.
    """
    file = count_file(shard, cache, digest)
    if (known := kept(file)) is not None:
        return known
    return keep(file, _statistics_frame(_opened(shard, cache).statistics(words)))


def count_file(shard: Shard, cache: str, digest: str) -> Path:
    """Where the counts of a shard for the words of a batch of topics are kept."""
    return _folder(shard, cache) / "counts" / f"{_name(digest)}.frame"


def match_shard(
    shard: Shard,
    cache: str,
    topics: Sequence[TopicVersions],
    digest: str,
    mining: Mining,
    statistics: CorpusStatistics | None = None,
) -> pl.DataFrame:
    """The hits of each topic's query in a shard, and the version that each hit is.

    Args:
        shard: what is searched; it is indexed first where the cache lacks its index.
        cache: the folder where results are kept.
        topics: some topics of a resource.
        digest: of everything that these topics' matches depend on.
        mining: the parameters.
        statistics: of the whole corpus, for the words of these topics; those of the shard alone where it is None.
    """
    file = match_file(shard, cache, digest, mining, statistics)
    if (known := kept(file)) is not None:
        return known
    index, compared = _opened(shard, cache), _Compared(_comparison_file(shard, cache, digest, mining), mining.limit)
    rows = [row for topic in topics for row in _topic_rows(index, shard, topic, mining, statistics, compared)]
    compared.keep()
    return keep(file, pl.DataFrame(rows, schema=HIT_SCHEMA, orient="row"))


def match_file(shard: Shard, cache: str, digest: str, mining: Mining, statistics: CorpusStatistics | None) -> Path:
    """Where the matches of a shard and a batch of topics are kept."""
    name = _name(digest, json.dumps(asdict(mining)), statistics.digest if statistics else "")
    return _folder(shard, cache) / "matches" / f"{name}.frame"


def profile_shard(shard: Shard, cache: str) -> pl.DataFrame:
    """What is needed of a shard's documents to find duplicates among them and with other shards."""
    file = profile_file(shard, cache)
    if (known := kept(file)) is not None:
        return known
    return keep(file, _profile_frame(profile(_opened(shard, cache).documents())))


def profile_file(shard: Shard, cache: str) -> Path:
    """Where the profile of a shard is kept."""
    return _folder(shard, cache) / "profile.frame"


def index_corpus(shards: Sequence[Shard], cache: str, compute: Compute | None = None) -> list[ShardOutcome]:
    """Index every shard that is not indexed yet; outcomes by location."""
    tasks = (Task(shard.key, (shard,), f"shard {shard.location}") for shard in shards)
    outcomes = [outcome for _, outcome in (compute or LocalCompute()).run(_worker_spec("index_shard", cache), tasks)]
    return sorted(outcomes, key=lambda outcome: outcome.shard.location)


def match_corpus(
    shards: Sequence[Shard], cache: str, topics: ResourceTopics, mining: Mining, compute: Compute | None = None
) -> pl.DataFrame:
    """The best hits of every topic over all shards with their versions. Only what is missing is computed.

    Words are counted in all shards first. A batch of topics is loaded only where a shard lacks its counts or matches,
    and merged as soon as all shards are done, so that memory holds the counts and the best hits alone.
    """
    backend, statistics = compute or LocalCompute(), _Counts(shards, cache, topics, mining)
    for task, frame in backend.run(_worker_spec("count_shard", cache), statistics.tasks()):
        statistics.finish(task, frame)
    open_batches = _OpenBatches(shards, cache, topics, mining, statistics.joined())
    for task, frame in backend.run(_worker_spec("match_shard", cache), open_batches.tasks()):
        open_batches.finish(task, frame)
    return weighted(open_batches.merged(), mining.every_topic)


def profile_corpus(shards: Sequence[Shard], cache: str, compute: Compute | None = None) -> Profile:
    """The profile of all shards. Only what is missing is computed, and kept here where another machine computed it."""
    frames = {shard.key: kept(profile_file(shard, cache)) for shard in shards}
    tasks = (Task(shard.key, (shard,), f"shard {shard.location}") for shard in shards if frames[shard.key] is None)
    for task, frame in (compute or LocalCompute()).run(_worker_spec("profile_shard", cache), tasks):
        frames[task.key] = _kept_here(profile_file(task.payload[0], cache), frame)
    return joined([_profile_of(frame) for shard in shards if (frame := frames[shard.key]) is not None])


def worker(function: str, cache: str) -> Callable[[Any], Any]:
    """What a worker of a compute backend does with a payload: one of the shard functions above with this cache."""
    functions: dict[str, Callable[..., Any]] = {
        each.__name__: each for each in (index_shard, count_shard, match_shard, profile_shard)
    }
    return lambda payload: functions[function](payload[0], cache, *payload[1:])


def _worker_spec(function: str, cache: str) -> WorkerSpec:
    return WorkerSpec("resources.corpus.mining:worker", {"function": function, "cache": cache})


class _Counts:
    """The words of every batch of topics on their way: tasks for what is missing, and the counts of all shards."""

    def __init__(self, shards: Sequence[Shard], cache: str, topics: ResourceTopics, mining: Mining) -> None:
        self._shards, self._cache, self._topics, self._mining = shards, cache, topics, mining
        self._frames: dict[str, list[pl.DataFrame]] = {}

    def tasks(self) -> Iterator[Task]:
        """One task for each batch and shard without counts."""
        for batch in self._topics.batches():
            digest = self._digest(batch)
            frames = {shard.key: kept(count_file(shard, self._cache, digest)) for shard in self._shards}
            self._frames[batch.digest] = [frame for frame in frames.values() if frame is not None]
            lacking = [shard for shard in self._shards if frames[shard.key] is None]
            words = self._words(batch) if lacking else []
            for shard in lacking:
                yield Task(f"{shard.key} {batch.digest}", (shard, words, digest), f"shard {shard.location}")

    def finish(self, task: Task, frame: pl.DataFrame) -> None:
        """Take in the counts of one shard and batch, and keep them where another machine computed them."""
        shard, _, digest = task.payload
        _kept_here(count_file(shard, self._cache, digest), frame)
        self._frames[task.key.split(" ")[1]].append(frame)

    def joined(self) -> dict[str, CorpusStatistics]:
        """By batch, the statistics of the whole corpus."""
        return {
            digest: joined_statistics(_statistics_of(frame) for frame in frames)
            for digest, frames in self._frames.items()
        }

    def _words(self, batch: Batch) -> list[str]:
        most = self._mining.query_words
        return sorted({word for topic in self._topics.load(batch) for word in query_words(topic.query, most)})

    def _digest(self, batch: Batch) -> str:
        return _name(batch.digest, str(self._mining.query_words))


class _OpenBatches:
    """Batches of topics on their way: tasks for what is missing, and the best hits of those that are done."""

    def __init__(
        self,
        shards: Sequence[Shard],
        cache: str,
        topics: ResourceTopics,
        mining: Mining,
        statistics: Mapping[str, CorpusStatistics],
    ) -> None:
        self._shards, self._cache, self._topics, self._mining = shards, cache, topics, mining
        self._statistics = statistics
        self._frames: dict[str, list[pl.DataFrame]] = {}
        self._done: dict[str, pl.DataFrame] = {}

    def tasks(self) -> Iterator[Task]:
        """One task for each batch and shard without matches; batches that lack nothing are merged at once."""
        for batch in self._topics.batches():
            frames = {shard.key: kept(self._file(shard, batch.digest)) for shard in self._shards}
            self._frames[batch.digest] = [frame for frame in frames.values() if frame is not None]
            lacking = [shard for shard in self._shards if frames[shard.key] is None]
            versions = self._topics.load(batch) if lacking else []
            self._merge_if_whole(batch.digest)
            for shard in lacking:
                payload = (shard, versions, batch.digest, self._mining, self._statistics[batch.digest])
                yield Task(f"{shard.key} {batch.digest}", payload, f"shard {shard.location}")

    def finish(self, task: Task, frame: pl.DataFrame) -> None:
        """Take in the matches of one shard and batch, and keep them where another machine computed them."""
        shard, _, digest, _, _ = task.payload
        _kept_here(self._file(shard, digest), frame)
        self._frames[digest].append(frame)
        self._merge_if_whole(digest)

    def merged(self) -> pl.DataFrame:
        """The best hits of all batches in order of topic."""
        return pl.concat([merged_hits([], self._mining.top), *self._done.values()]).sort("topic", "bm25_rank")

    def _merge_if_whole(self, digest: str) -> None:
        if len(self._frames[digest]) == len(self._shards):
            self._done[digest] = merged_hits(self._frames.pop(digest), self._mining.top)

    def _file(self, shard: Shard, digest: str) -> Path:
        return match_file(shard, self._cache, digest, self._mining, self._statistics[digest])


class _Compared:
    """Which version each hit of a shard is, computed once however often the shard is searched."""

    def __init__(self, file: Path, limit: float) -> None:
        self._file, self._limit = file, limit
        known = kept(file)
        self._known = {} if known is None else {(row[0], row[1]): row[2:] for row in known.iter_rows()}
        self._new: list[tuple[object, ...]] = []
        self._matcher: tuple[str, VersionMatcher] | None = None

    def version(self, topic: TopicVersions, document: Document) -> tuple[int | None, float | None, list[date] | None]:
        """The edits, distance and months of the nearest versions; three times None where none is near enough."""
        key = topic.topic, document.document_id
        if key not in self._known:
            if self._matcher is None or self._matcher[0] != topic.topic:
                self._matcher = topic.topic, VersionMatcher(topic, self._limit)
            found = self._matcher[1].attribute(document.text)
            self._known[key] = (found.edits, found.distance, list(found.months)) if found else (None, None, None)
            self._new.append((*key, *self._known[key]))
        edits, distance, months = self._known[key]
        return edits, distance, months

    def keep(self) -> None:
        """Keep what is known now."""
        if self._new:
            rows = [(*key, *found) for key, found in self._known.items()]
            keep(self._file, pl.DataFrame(rows, schema={name: HIT_SCHEMA[name] for name in COMPARED}, orient="row"))


COMPARED = ("topic", "document_id", "edits", "distance", "months")
"""The columns of what was compared."""


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
            self._indexes[location] = _opened(self._shards[location], self._cache)
        return self._indexes[location]


def _topic_rows(
    index: SearchIndex,
    shard: Shard,
    topic: TopicVersions,
    mining: Mining,
    statistics: CorpusStatistics | None,
    compared: _Compared,
) -> list[tuple[object, ...]]:
    """The rows of one topic's hits, in the order of `HIT_SCHEMA`."""
    return [
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
            *compared.version(topic, document),
            document.replaced,
            " ".join(words(document.text)[: mining.hit_words]),
        )
        for score, document in index.search(topic.query, mining.top, mining.query_words, statistics)
    ]


def _opened(shard: Shard, cache: str) -> SearchIndex:
    """The index of a shard, which is built first where the cache lacks it."""
    folder = _index_folder(shard, cache)
    build(folder, read_shard(shard))
    return SearchIndex(folder)


def _folder(shard: Shard, cache: str) -> Path:
    return Path(cache) / shard.key


def _index_folder(shard: Shard, cache: str) -> Path:
    return _folder(shard, cache) / "index"


def _comparison_file(shard: Shard, cache: str, digest: str, mining: Mining) -> Path:
    return _folder(shard, cache) / "compared" / f"{_name(digest, str(mining.limit))}.frame"


def _name(*parts: str) -> str:
    """A file's name for what these parts lead to."""
    return sha256("\x1f".join([MATCHING_VERSION, *parts]).encode()).hexdigest()[:24]


def _kept_here(file: Path, frame: pl.DataFrame) -> pl.DataFrame:
    """Keep a frame that another machine computed, where it is not kept yet."""
    return keep(file, frame) if kept(file) is None else frame


def _statistics_frame(found: CorpusStatistics) -> pl.DataFrame:
    """Counts as a frame: a row a word, and one without a word for documents and words."""
    rows = [
        (None, found.n_documents, found.n_words),
        *((word, n, None) for word, n in sorted(found.frequencies.items())),
    ]
    return pl.DataFrame(rows, schema={"word": pl.String, "n_documents": pl.Int64, "n_words": pl.Int64}, orient="row")


def _statistics_of(frame: pl.DataFrame) -> CorpusStatistics:
    (_, n_documents, n_words), *words = frame.iter_rows()
    return CorpusStatistics(n_documents, n_words, {word: n for word, n, _ in words})


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
