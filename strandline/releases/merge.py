"""What is known of a package, with what its registry says now: new versions, better dates, withdrawals, disputes.

First-hand dates (the registry that a release is uploaded to) win over second-hand lists, and a difference larger than
both are unsure of is flagged. Merging the same listing twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from strandline.releases import Listed, Listing, Project, Release
from strandline.releases.trust import MIRROR, agree
from strandline.releases.versions import canonical, is_plain

DISAGREE = "sources_disagree"
ABSENT = "not_in_registry"
UNPUBLISHED = "unpublished"
UNDATED = frozenset({"tag_only", MIRROR})
FIRST_HAND = frozenset({"npm", "pypi", "nodejs", "python", "github"})


def merged(project: Project, known: Iterable[Release], listing: Listing, now: datetime) -> list[Release]:
    """The package's releases after a fetch, in any order of the inputs the same.

    New versions get `first_seen_at` = now. A version that the registry listed before and lists no longer gets
    `withdrawn_at` = now, unless the listing is incomplete; one that is back loses it. A version known only from a
    second-hand list and absent from a complete listing is flagged.
    """
    before = {release.version: release for release in known}
    told = {listed.version: listed for listed in listing.releases}
    spelled = _spellings(before, told)
    rows = {
        version: _one(project, before.get(spelled.get(version, version)), listed, listing, now)
        for version, listed in told.items()
    }
    matched = set(spelled.values()) | set(told)
    for version, release in before.items():
        if version not in matched:
            rows[version] = release if listing.incomplete else _missing(release, listing, now)
    return [rows[version] for version in sorted(rows)]


def _spellings(before: Mapping[str, Release], told: Mapping[str, Listed]) -> dict[str, str]:
    """Versions that were known under another spelling ('5.0' for '5.0.0'): told spelling -> known spelling."""
    exact = set(before) & set(told)
    forms = {canonical(version): version for version in sorted(before) if version not in exact and is_plain(version)}
    return {
        version: forms[form]
        for version in told
        if version not in exact and is_plain(version) and (form := canonical(version)) in forms
    }


def _one(project: Project, before: Release | None, listed: Listed, listing: Listing, now: datetime) -> Release:
    fresh = Release(
        ecosystem=project.ecosystem,
        package=project.package,
        project=project.project,
        version=listed.version,
        released_on=listed.released_on,
        source=listing.source,
        is_stable=not listed.is_prerelease,
        is_yanked=listed.is_yanked,
        flags=listed.flags,
        label=listed.label,
        first_seen_at=now,
    )
    if before is None:
        return fresh
    kept = replace(fresh, first_seen_at=before.first_seen_at, withdrawn_at=_withdrawn(before, listed, now))
    if listed.released_on is None and before.released_on is not None:
        flags = tuple(flag for flag in kept.flags if flag not in UNDATED)
        return replace(kept, released_on=before.released_on, source=before.source, flags=flags)
    if before.source == listing.source:
        return _again(kept, before)
    if listed.released_on is not None and not agree(before, listed.released_on, listing.source):
        return replace(kept, flags=(*kept.flags, DISAGREE))
    return kept


def _again(kept: Release, before: Release) -> Release:
    """A release that the same source has dated before: the earlier day stands, and so does a dispute."""
    days = [day for day in (before.released_on, kept.released_on) if day is not None]
    disputed = (DISAGREE,) if DISAGREE in before.flags else ()
    return replace(kept, released_on=min(days, default=None), flags=(*kept.flags, *disputed))


def _withdrawn(before: Release, listed: Listed, now: datetime) -> datetime | None:
    if UNPUBLISHED not in listed.flags:
        return None
    return before.withdrawn_at if UNPUBLISHED in before.flags else now


def _missing(release: Release, listing: Listing, now: datetime) -> Release:
    if release.source == listing.source:
        return release if release.withdrawn_at else replace(release, withdrawn_at=now)
    return replace(release, flags=tuple(sorted({*release.flags, ABSENT})))


def with_facts(stored: Iterable[Release], facts: Iterable[Release]) -> list[Release]:
    """Rows of the warehouse with the committed facts under them.

    What a registry said first-hand, or showed first, stays. A second-hand row stays, with what a registry added to it,
    while the facts still say the same; where they were edited, the facts win. A fact whose version is stored under
    another spelling is not added again.
    """
    by_form = {_form(fact): fact for fact in facts}
    kept = {_form(row): row for row in stored if _is_ours(row) or _says_the_same(by_form.get(_form(row)), row)}
    return [*kept.values(), *(fact for form, fact in by_form.items() if form not in kept)]


def _form(release: Release) -> tuple[str, str, object]:
    version = canonical(release.version) if is_plain(release.version) else release.version
    return release.ecosystem, release.package, version


def _is_ours(release: Release) -> bool:
    return release.source in FIRST_HAND or release.first_seen_at is not None


def _says_the_same(fact: Release | None, row: Release) -> bool:
    return fact is not None and (fact.version, fact.released_on, fact.source) == (
        row.version,
        row.released_on,
        row.source,
    )
