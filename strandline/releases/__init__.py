"""Dated software releases: what registries publish, which of it can be asked about, and versions that never were.

Here are the records that the sources, the merge and the probe items share. Methods live in the modules beside this
one; nothing here reads a server or a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime


@dataclass(frozen=True)
class Listed:
    """One version as a registry lists it.

    `released_on` is the UTC day of the earliest upload, None where the registry gives none. `flags` are what the
    registry itself says (`yanked`, `draft`, `unpublished`, …); `label` is the name of a support line, if any.
    """

    version: str
    released_on: date | None
    is_prerelease: bool = False
    is_yanked: bool = False
    flags: tuple[str, ...] = ()
    label: str | None = None


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
    """A version of a project, as releases.releases holds it. `flags` are the reasons that keep it out of the probe."""

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
