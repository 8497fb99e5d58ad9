"""All readers of corpus files, and the choice of one by a file's name."""

from __future__ import annotations

from resources.corpus import jsonl, parquet, web_archives
from resources.corpus.reader import Reader
from resources.corpus.streams import unpacked_name

READERS: tuple[Reader, ...] = (jsonl.READER, parquet.READER, web_archives.READER)
"""The one place where a format of corpus files is listed."""


def reader_of(path: str) -> Reader | None:
    """The reader for a file by its name, endings of packing aside; None where the name tells no format."""
    name = unpacked_name(path)
    return next((reader for reader in READERS if name.endswith(reader.endings)), None)


def known_endings() -> str:
    """The endings that readers know, for messages."""
    return ", ".join(ending for reader in READERS for ending in reader.endings)
