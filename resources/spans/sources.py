"""The kinds of sources of versioned documents: a new kind is one new file and one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Protocol

from resources.network.http import Http
from resources.spans.git_repositories import GitSource
from resources.spans.mediawiki import WikipediaSource
from resources.spans.news import NewsSource
from resources.spans.package_readmes import ReadmeSource
from strandline.spans import Span, Version
from strandline.spans.selection import Known


class SpanSource(Protocol):
    """What a source gives. `cleaner` names the cleaning that makes its texts, with a version; `options` the settings
    that belong to it alone."""

    cleaner: str
    options: frozenset[str]

    def versions(self, span: Span, months: Sequence[date], known: Known) -> Iterator[list[Version]]:
        """The versions of these months in batches, as they are found; what is `known` is not fetched again.

        A document that could not be fetched is a version of status `failed`. Raises DeferredError to stop early, and
        what the HTTP adapter raises where nothing can be read at all.
        """
        ...


SOURCES: Mapping[str, Callable[[Http, Path], SpanSource]] = {
    "wikipedia": WikipediaSource,
    "readme": ReadmeSource,
    "git": GitSource,
    "news": NewsSource,
}


def known_options() -> dict[str, frozenset[str]]:
    """The kinds of sources with the names of their options."""
    return {name: frozenset(getattr(kind, "options", ())) for name, kind in SOURCES.items()}


def fingerprint(source: SpanSource, span: Span) -> str:
    """What, beside the settings, decides which texts a month holds; empty for sources whose past does not change."""
    told: Callable[[Span], str] | None = getattr(source, "fingerprint", None)
    return told(span) if told else ""
