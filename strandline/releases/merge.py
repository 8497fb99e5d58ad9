"""What is known of a package, with what its registry says now: new versions, better dates, withdrawals, disputes.

Every source's day is kept. First-hand dates (the registry that a release is uploaded to) win over second-hand lists
that agree with them; where days are more than two apart, the day that was known stays and the release is not asked
about (`flags.far_apart`) until the sources agree. Merging the same listing twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime

from strandline.releases import Listed, Listing, Project, Release, SourceDay, pypi
from strandline.releases.dates import far_apart
from strandline.releases.flags import DISAGREE
from strandline.releases.github import TAG_SOURCE
from strandline.releases.sources import is_first_hand
from strandline.releases.trust import MIRROR
from strandline.releases.versions import canonical, is_plain

ABSENT = "not_in_registry"
"""Flag of a version that a second-hand list knows and its registry does not."""
LISTED_TWICE = "listed_twice"
"""Flag of a version that one answer lists with two days far apart."""
UNPUBLISHED = "unpublished"
"""Flag of a version that its registry remembers as taken back."""
UNDATED = frozenset({"tag_only", MIRROR})
"""Flags of a version that came without a day; they go where a day is known from elsewhere."""
MAX_LENGTH = 200
"""Characters of a version. The longest real ones (development builds with a commit) have about 60; longer texts are
mistakes of an index, and no question."""
FILES_CAN_GO = frozenset({pypi.SOURCE})
"""Registries whose day is that of the earliest file still there: a deleted file makes a version look younger."""


def merged(project: Project, known: Iterable[Release], listing: Listing, now: datetime) -> list[Release]:
    """The package's releases after a fetch, in any order of the inputs the same.

    New versions get `first_seen_at` = now. A version that the registry listed before and lists no longer gets
    `withdrawn_at` = now, unless the listing is incomplete; one that is back loses it. A version known only from a
    second-hand list and absent from a complete listing is flagged.
    """
    before = {release.version: release for release in known}
    listed_by_version = distinct(listing)
    spelled = _spellings(before, listed_by_version)
    rows = {
        version: merged_release(project, before.get(spelled.get(version, version)), listed, listing, now)
        for version, listed in listed_by_version.items()
    }
    matched = set(spelled.values()) | set(listed_by_version)
    for version, release in before.items():
        if version not in matched:
            rows[version] = release if listing.incomplete else _missing(release, listing, now)
    return [rows[version] for version in sorted(rows)]


def distinct(listing: Listing) -> dict[str, Listed]:
    """The listed versions by their text; one that is listed with days far apart keeps its earliest, with a flag.

    Entries without a version, or with one of more than `MAX_LENGTH` characters, are no releases and are passed over.
    """
    listed_by_version: dict[str, Listed] = {}
    for listed in sorted(listing.releases, key=lambda listed: listed.released_on or date.max):
        if not 0 < len(listed.version.strip()) <= MAX_LENGTH:
            continue
        first = listed_by_version.setdefault(listed.version, listed)
        days = [day for day in (first.released_on, listed.released_on) if day is not None]
        if far_apart(days):
            listed_by_version[listed.version] = replace(first, flags=tuple(sorted({*first.flags, LISTED_TWICE})))
    return listed_by_version


def _spellings(before: Mapping[str, Release], listed_by_version: Mapping[str, Listed]) -> dict[str, str]:
    """Versions that were known under another spelling ('5.0' for '5.0.0'): told spelling -> known spelling."""
    exact = set(before) & set(listed_by_version)
    forms = {canonical(version): version for version in sorted(before) if version not in exact and is_plain(version)}
    return {
        version: forms[form]
        for version in listed_by_version
        if version not in exact and is_plain(version) and (form := canonical(version)) in forms
    }


def merged_release(
    project: Project, before: Release | None, listed: Listed, listing: Listing, now: datetime
) -> Release:
    """A listed version with what was known of it: when it was first seen, and every day that a source gives for it."""
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
        other_days=listed.other_days,
    )
    if before is None:
        return with_days(fresh, fresh.days, fresh.source)
    kept = replace(fresh, first_seen_at=before.first_seen_at, withdrawn_at=_withdrawn(before, listed, now))
    if listed.released_on is None and before.released_on is not None:
        flags = tuple(flag for flag in kept.flags if flag not in UNDATED)
        kept = replace(kept, source=before.source, flags=flags)
    return dated_again(kept, before.days, fresh.days, before.source)


def dated_again(release: Release, known: Mapping[str, date], said: Mapping[str, date], before: str) -> Release:
    """A release with all its days: what was `known`, and in its place what the same sources have `said` now.

    Where all days agree, the day of `release.source` stands. Where they are too far apart, the day of the source
    `before` stays, the others beside it, and the release is not asked about until they agree again. A day that its
    own source has withdrawn is forgotten, so a correction heals; only an index whose files can be deleted, and so
    can seem to date a version later, keeps its earlier word until another source confirms the later one.
    """
    days = {**known, **said}
    for source in set(known) & set(said) & FILES_CAN_GO:
        others = [day for name, day in days.items() if name != source]
        if known[source] < said[source] and not any(_near(said[source], day) for day in others):
            days[source] = known[source]
    preferred = before if before in days and far_apart(days.values()) else release.source
    return with_days(release, days, preferred)


def with_days(release: Release, days: Mapping[str, date], preferred: str) -> Release:
    """The release on the day of the `preferred` source, else of any that has one, with the other days beside it."""
    source = preferred if preferred in days else min(days, default=release.source)
    others = tuple(SourceDay(name, days[name]) for name in sorted(days) if name != source)
    doubt = {DISAGREE} if far_apart(days.values()) else set()
    flags = tuple(sorted({*release.flags} - {DISAGREE} | doubt))
    return replace(release, source=source, released_on=days.get(source), other_days=others, flags=flags)


def _near(one: date, other: date) -> bool:
    return not far_apart((one, other))


def _withdrawn(before: Release, listed: Listed, now: datetime) -> datetime | None:
    if UNPUBLISHED not in listed.flags:
        return None
    return before.withdrawn_at if UNPUBLISHED in before.flags else now


def _missing(release: Release, listing: Listing, now: datetime) -> Release:
    """A version that a complete listing does not hold: withdrawn where the registry listed it before, else doubted."""
    if listing.source in release.days:
        return release if release.withdrawn_at else replace(release, withdrawn_at=now)
    return replace(release, flags=tuple(sorted({*release.flags, ABSENT})))


def with_facts(stored: Iterable[Release], facts: Iterable[Release]) -> list[Release]:
    """Rows of the warehouse with the committed facts under them.

    What a registry said first-hand, or showed first, stays, and the fact's day stands beside it. A second-hand row
    stays, with what a registry added to it, while the facts still say the same; where they were edited, the facts
    win. A fact whose version is stored under another spelling is not added again.
    """
    by_form = {_form(fact): fact for fact in facts}
    kept: dict[tuple[str, str, object], Release] = {}
    for row in stored:
        fact = by_form.get(_form(row))
        if _is_ours(row):
            kept[_form(row)] = stored_over_fact(row, fact)
        elif _says_the_same(fact, row):
            kept[_form(row)] = row
    return [*kept.values(), *(fact for form, fact in by_form.items() if form not in kept)]


def stored_over_fact(row: Release, fact: Release | None) -> Release:
    """A row of a registry with the day of the committed fact beside it, in place of what older facts said."""
    firsthand = {source: day for source, day in row.days.items() if is_first_hand(source) or source == TAG_SOURCE}
    from_fact = {source: day for source, day in (fact.days if fact else {}).items() if source not in firsthand}
    days = {**firsthand, **from_fact}
    if not days or days == row.days:
        return row
    if not far_apart(days.values()) or row.source not in days:
        preferred = next((source for source in sorted(firsthand) if is_first_hand(source)), row.source)
    else:
        preferred = row.source
    return with_days(row, days, preferred)


def _form(release: Release) -> tuple[str, str, object]:
    version = canonical(release.version) if is_plain(release.version) else release.version
    return release.ecosystem, release.package, version


def _is_ours(release: Release) -> bool:
    """Whether a registry has said something about it, rather than a list alone."""
    return release.first_seen_at is not None or any(map(is_first_hand, (release.source, *release.days)))


def _says_the_same(fact: Release | None, row: Release) -> bool:
    return fact is not None and (fact.version, fact.released_on, fact.source) == (
        row.version,
        row.released_on,
        row.source,
    )
