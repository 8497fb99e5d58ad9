"""What a reader of corpus files is, and what all readers share: one record in one file, listed once in `readers`.

Nothing is skipped silently: a record that cannot be read is a `BrokenRecord` with its place, and reading goes on after
it. What a record's fields mean is decided by its layout in `strandline.corpus.layouts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from strandline.corpus import BrokenRecord, Document, Location
from strandline.corpus.layouts import DocumentParts, Layout

Record = Document | BrokenRecord
Read = Callable[[BinaryIO, str, Layout, str | None], Iterator[Record]]


@dataclass(frozen=True)
class Reader:
    """A format of corpus files.

    Args:
        name: of the format.
        endings: of the names of such files, in lower case, endings of packing aside.
        read: gives the documents and broken records of an open file; called with the file, its name as shown, the
            layout of its records, and the sub-corpus that all of them belong to, where the settings name one.
    """

    name: str
    endings: tuple[str, ...]
    read: Read


def document(found: DocumentParts, location: Location, subcorpus: str | None, replaced: float = 0.0) -> Document:
    """A document of its parts; lone surrogates, which no file can hold, are replaced and counted."""
    text = found.text
    if not text.isascii():
        clean = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        if clean != text:
            replaced += clean.count("\ufffd") / len(clean)
            text = clean
    return Document(
        text=text,
        location=location,
        subcorpus=subcorpus or found.subcorpus or "all",
        crawled_on=found.crawled_on,
        source_id=found.source_id,
        url=found.url,
        replaced=replaced,
    )
