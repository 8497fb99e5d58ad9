"""The kinds of sources of versioned documents: each is one record in its own file, and one name in this tuple."""

from __future__ import annotations

from resources.spans.git_repositories import GIT
from resources.spans.mediawiki import WIKIPEDIA
from resources.spans.news import NEWS
from resources.spans.package_readmes import README
from resources.spans.source import Source
from strandline.spans.settings import SourceKind

# The sources of documents: a new one is added here.
SOURCES: tuple[Source, ...] = (WIKIPEDIA, README, GIT, NEWS)


def source_of(name: str) -> Source:
    """The source of that name, which the settings have been checked to hold. KeyError where there is none."""
    for source in SOURCES:
        if source.kind.name == name:
            return source
    raise KeyError(f"there is no source {name!r}")


def known_kinds() -> dict[str, SourceKind]:
    """What the settings of each kind of source may say, by its name."""
    return {source.kind.name: source.kind for source in SOURCES}
