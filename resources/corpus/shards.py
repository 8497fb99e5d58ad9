"""Training corpora as users list them: their shards, wherever they lie, and the stream of each one's documents.

A shard is one file, opened through fsspec: a local path, `https://…`, `s3://…` and what else is installed. What is in
a file is read by one of `readers`; an installed environment's READMEs by `environment`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from hashlib import sha256
from io import UnsupportedOperation
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

from resources.corpus import environment as corpus_environment
from resources.corpus.reader import Record
from resources.corpus.readers import known_endings, reader_of
from resources.corpus.streams import PACKED_ENDINGS
from resources.places import ROOT, rooted
from strandline.corpus import BrokenRecord, Location
from strandline.corpus.layouts import Layout
from strandline.corpus.settings import CorpusPart, CorpusSpec

READER_VERSION = "3"
"""Raise it when the same file would give other documents: every shard is then read again."""

_STAMPS = (
    "size", "mtime", "LastModified", "last_modified", "Last-Modified", "ETag", "etag", "created", "md5", "content_md5"
)  # fmt: skip
"""What file systems tell of a file that changes when the file does."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a corpus and how it is read. `fingerprint` changes when the file or the way of reading it does."""

    corpus: str
    location: str
    layout: Layout
    subcorpus: str | None
    is_crawl: bool
    dump_month: date | None
    fingerprint: str
    reader: str = "files"
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """A name for what is derived from this shard as it is now."""
        return sha256(f"{self.location}\x1f{self.fingerprint}".encode()).hexdigest()[:24]


def shards(spec: CorpusSpec) -> list[Shard]:
    """The shards of a corpus, by location.

    Raises FileNotFoundError where a pattern matches nothing, so that a wrong path never looks like an empty corpus.
    """
    if spec.reader == "environment":
        return [_environment(spec)]
    found = [shard for part in spec.parts for pattern in part.files for shard in _matching(spec.corpus, part, pattern)]
    by_location = {shard.location: shard for shard in found}
    return [by_location[location] for location in sorted(by_location)]


def read_shard(shard: Shard) -> Iterator[Record]:
    """The documents and broken records of a shard, streamed. OSError where the file cannot be reached at all."""
    if shard.reader == "environment":
        yield from corpus_environment.read()
        return
    import fsspec

    reader = reader_of(shard.location)
    if reader is None:
        reason = f"its name tells no known format ({known_endings()}; packed with {', '.join(PACKED_ENDINGS)} or not)"
        yield BrokenRecord(Location(shard.location, "file", 1), "format", reason)
        return
    path = _absolute(shard.location)
    with fsspec.open(path, "rb", compression=None, **shard.options).open() as remote, _seekable(remote) as file:
        yield from reader.read(file, shard.location, shard.layout, shard.subcorpus)


@contextmanager
def _seekable(file: Any) -> Iterator[BinaryIO]:
    """The file itself where one can move in it, else a copy on disk: some servers only give a file from its start."""
    try:
        file.seek(0, 2)
        file.seek(0)
    except (ValueError, UnsupportedOperation):
        with TemporaryFile() as copy:
            shutil.copyfileobj(file, copy)
            copy.seek(0)
            yield copy
    else:
        yield file


def _environment(spec: CorpusSpec) -> Shard:
    return Shard(
        spec.corpus, "environment", Layout(), "installed", False, None, corpus_environment.fingerprint(), "environment"
    )


def _matching(corpus: str, part: CorpusPart, pattern: str) -> Iterator[Shard]:
    import fsspec

    system, path = fsspec.core.url_to_fs(_absolute(pattern), **part.options)
    is_pattern = any(sign in path for sign in "*?[") and not ("[" in path and system.exists(path))
    names = sorted(system.glob(path)) if is_pattern else [path]
    try:
        found = [(name, system.info(name)) for name in names]
    except FileNotFoundError as error:
        raise FileNotFoundError(f"corpus {corpus}: no file matches {pattern} ({error})") from error
    files = [(name, info) for name, info in found if info.get("type") == "file"]
    if not files:
        raise FileNotFoundError(f"corpus {corpus}: no file matches {pattern}")
    way = repr(replace(part, files=()))
    for name, info in files:
        location = _shown(system.unstrip_protocol(name), pattern)
        stamp = [READER_VERSION, way, *(str(info.get(key)) for key in _STAMPS)]
        digest = sha256("\x1f".join(stamp).encode()).hexdigest()[:24]
        yield Shard(
            corpus, location, part.layout, part.subcorpus, part.is_crawl, part.dump_month, digest, options=part.options
        )


def _absolute(pattern: str) -> str:
    """A path as users write it, relative to the project's root unless absolute; addresses stay as they are."""
    return pattern if "://" in pattern or "::" in pattern else str(rooted(pattern))


def _shown(address: str, pattern: str) -> str:
    """The location as the user would write it: relative to the project's root where the pattern was."""
    if "://" in pattern or "::" in pattern:
        return address
    path = Path(address.removeprefix("file://"))
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
