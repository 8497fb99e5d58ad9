"""Dated software releases: what registries publish, which of it can be asked about, and versions that never were.

Here are the records that the sources, the merge and the probe items share. Methods live in the modules beside this
one; nothing here reads a server or a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, NamedTuple, get_args

SourceStatus = Literal[
    "ok", "incomplete", "tags_only", "undated", "facts_only", "mirror_dates",
    "unreachable", "failed", "missing", "shrunken",
]  # fmt: skip
"""How a tracked package's last fetch went; the last four are failures, which leave its rows as they were."""
SOURCE_STATUSES: tuple[SourceStatus, ...] = get_args(SourceStatus)
"""The vocabulary that suites and column comments follow."""
FAILED_STATUSES: tuple[SourceStatus, ...] = ("unreachable", "failed", "missing", "shrunken")
"""Fetches that brought nothing; a refresh in which a tenth of the sources has one is broken."""


class SourceDay(NamedTuple):
    """The day that one source gives for a release."""

    source: str
    day: date

    def __str__(self) -> str:
        return f"{self.source} {self.day}"


@dataclass(frozen=True)
class Listed:
    """One version as a registry lists it.

    `released_on` is the UTC day of the earliest upload, None where the registry gives none. `flags` are what the
    registry itself says (`yanked`, `draft`, `unpublished`, …); `label` is the name of a support line, if any.
    `other_days` are further days that the same answer gives, such as the day of a tag's commit.
    """

    version: str
    released_on: date | None
    is_prerelease: bool = False
    is_yanked: bool = False
    flags: tuple[str, ...] = ()
    label: str | None = None
    other_days: tuple[SourceDay, ...] = ()


@dataclass(frozen=True)
class Listing:
    """All that one registry says about a package. `incomplete` means that more exists than was read."""

    package: str
    releases: tuple[Listed, ...]
    source: str
    incomplete: bool = False
    note: str | None = None


@dataclass(frozen=True)
class Project:
    """A tracked project: how questions call it, how well it is known, and where its releases are looked up.

    `ecosystem` and `package` identify its rows; `registry` and `name` are what a refresh asks (None: facts only).
    """

    project: str
    salience_rank: int
    ecosystem: str
    package: str
    registry: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class Release:
    """A version of a project, as releases.releases holds it.

    `flags` are the reasons that keep it out of the probe; `other_days` is what other sources say of its day.
    """

    ecosystem: str
    package: str
    project: str
    version: str
    released_on: date | None
    source: str
    is_stable: bool = True
    is_yanked: bool = False
    flags: tuple[str, ...] = ()
    label: str | None = None
    uncertainty_days: int = 0
    first_seen_at: datetime | None = None
    withdrawn_at: datetime | None = None
    other_days: tuple[SourceDay, ...] = ()

    @property
    def days(self) -> dict[str, date]:
        """Every day that is known of it, by source."""
        own = {} if self.released_on is None else {self.source: self.released_on}
        return dict(self.other_days) | own
