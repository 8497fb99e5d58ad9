"""The release registries that a refresh can ask. Adding one is a file that makes a `Source`, and its line here."""

from __future__ import annotations

from strandline.releases import github, nodejs, npm, pypi, python_org
from strandline.releases.source import Source

SOURCES: tuple[Source, ...] = (npm.NPM, pypi.PYPI, nodejs.NODEJS, python_org.PYTHON_ORG, github.GITHUB)
"""Every registry; the order is that in which a refresh names them."""
SECOND_HAND_DAYS = {
    "endoflife": 1,
    "transcribed": 1,
    "git-tag": 3,
    github.TAG_SOURCE: 3,
    "scoop-main": 7,
    "scoop-extras": 7,
}
"""By how many days lists and tags may be off. Measured against registries: 76 of 76 dates of endoflife lists and of
transcribed ones within a day; 1.5 to 3.5 % of Scoop's more than a week late; tags precede announcements by days."""
DEFAULT_UNCERTAINTY_DAYS = 7
"""For a source that nothing is known about: as unsure as the worst that is known."""


def named(name: str | None) -> Source | None:
    """The registry of this name, or None."""
    return next((source for source in SOURCES if source.name == name), None)


def is_first_hand(source: str) -> bool:
    """Whether releases are published there, so that its day is the release's own."""
    registry = named(source)
    return registry is not None and registry.is_first_hand


def source_uncertainty(source: str) -> int:
    """By how many days a day of this source may be off."""
    registry = named(source)
    return registry.uncertainty_days if registry else SECOND_HAND_DAYS.get(source, DEFAULT_UNCERTAINTY_DAYS)
