"""What a kind of source of versioned documents is: one record, made beside the class that reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Protocol

from resources.network.http import Http
from strandline.spans import Span, Version
from strandline.spans.selection import Known
from strandline.spans.settings import SourceKind


class Reader(Protocol):
    """What reads the documents of a source. `cleaner` names the cleaning that makes its texts, with a version.

    It may have `fingerprint(span) -> str`: what, beside the settings, decides which texts a month holds; and `notes`:
    a list of sentences on what it found and could not place in any month.
    """

    cleaner: str

    def versions(self, span: Span, months: Sequence[date], known: Known) -> Iterator[list[Version]]:
        """The versions of these months in batches, as they are found; what is `known` is not fetched again.

        A document that could not be fetched is a version of status `failed`. Raises DeferredError to stop early, and
        what the HTTP adapter raises where nothing can be read at all.
        """
        ...


@dataclass(frozen=True)
class Source:
    """A kind of source: what its settings may say, and what makes its reader from the HTTP adapter and the folder for
    what is kept on disk."""

    kind: SourceKind
    open: Callable[[Http, Path], Reader]


def fingerprint(reader: Reader, span: Span) -> str:
    """What, beside the settings, decides which texts a month holds; empty for sources whose past does not change."""
    of: Callable[[Span], str] | None = getattr(reader, "fingerprint", None)
    return of(span) if of else ""
