"""GitHub: the releases of selected repositories (M13), and their tags where there are no releases.

Both come in pages, the newest first. A release has two days: that of its publication and that of the commit which its
tag points at. Releases that were added in retrospect are published long after that commit, so both days are kept and
one that differs is not asked about. A tag has no date of its own; that of its commit is asked for separately, and a
version dated so says it (`github-tag`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from strandline.releases import Listed, Listing, SourceDay
from strandline.releases.dates import read_day, utc_day
from strandline.releases.source import Get, Setting, Source
from strandline.releases.versions import from_tag

# The name of this source in the list of projects and in the tables.
SOURCE = "github"
TAG_SOURCE = "github-tag"
"""Source of a day that is the commit's, not the release's."""
SINCE = date(2008, 1, 1)
"""GitHub opened in 2008; commits, and so tags, can be older."""
PAGE_SIZE = 100
"""The largest page that GitHub gives."""
PAGES = 3
"""Three pages hold the newest 300 releases: years of most projects, for three requests of a small hourly allowance."""
TAG_DATES = 20
"""New tags that are dated in one refresh: each takes a request, and without a token there are 60 an hour."""


def url(package: str, base: str, page_number: int = 1) -> str:
    """A page of the repository's releases."""
    return f"{base.rstrip('/')}/repos/{package}/releases?per_page={PAGE_SIZE}&page={page_number}"


def tags_url(package: str, base: str, page_number: int = 1) -> str:
    """A page of the repository's tags."""
    return f"{base.rstrip('/')}/repos/{package}/tags?per_page={PAGE_SIZE}&page={page_number}"


def commit_url(package: str, sha: str, base: str) -> str:
    """The commit that a tag points at, which carries the date."""
    return f"{base.rstrip('/')}/repos/{package}/commits/{sha}"


def page(package: str, version: str, base: str) -> str:
    """The list of releases that holds it (the tag's exact spelling is not known from the version)."""
    return f"{base.rstrip('/')}/{package}/releases"


def read(get: Get, package: str, base: str, known: Collection[str] = ()) -> Listing:
    """The newest releases, up to `PAGES` pages or to a page of known ones; the tags where there are no releases."""
    releases: list[Listed] = []
    incomplete = True
    for number in range(1, PAGES + 1):
        part = parse(get(url(package, base, number)), package)
        incomplete = part.incomplete
        releases.extend(part.releases)
        if not incomplete or all(listed.version in known for listed in part.releases):
            break
    return Listing(package, tuple(releases), SOURCE, incomplete) if releases else read_tags(get, package, base, known)


def read_tags(get: Get, package: str, base: str, known: Collection[str] = ()) -> Listing:
    """The newest tags, each new one dated by its commit, up to a limit."""
    listing, commits = parse_tags(get(tags_url(package, base)), package)
    new = [listed for listed in listing.releases if listed.version not in known and commits[listed.version]]
    dates = {
        listed.version: dated(listed, get(commit_url(package, commits[listed.version], base)))
        for listed in new[:TAG_DATES]
    }
    return replace(listing, releases=tuple(dates.get(listed.version, listed) for listed in listing.releases))


def parse(payload: Any, package: str = "") -> Listing:
    """One page of releases, drafts and pre-releases flagged as such. ValueError where it is no list (see `entries`)."""
    rows = entries(payload)
    listed = [_listed(entry, package) for entry in rows if _tag(entry)]
    return Listing(package, tuple(listed), SOURCE, incomplete=len(rows) >= PAGE_SIZE)


def parse_tags(payload: Any, package: str = "") -> tuple[Listing, dict[str, str]]:
    """One page of tags as undated versions, and the commit of each version ('' where none is told)."""
    rows = entries(payload)
    commits = {from_tag(row["name"], package): _sha(row) for row in rows if isinstance(row.get("name"), str)}
    listed = [Listed(version, None, flags=("tag_only",)) for version in commits]
    return Listing(package, tuple(listed), TAG_SOURCE, len(rows) >= PAGE_SIZE, note="no releases"), commits


def _sha(row: Mapping[str, Any]) -> str:
    commit = row.get("commit")
    return str(commit.get("sha") or "") if isinstance(commit, Mapping) else ""


def dated(listed: Listed, commit: Any) -> Listed:
    """A tagged version with the day on which its commit was made; unchanged where the commit tells none."""
    detail = commit.get("commit") if isinstance(commit, Mapping) else None
    committer = detail.get("committer") if isinstance(detail, Mapping) else None
    day = utc_day(committer.get("date")) if isinstance(committer, Mapping) else None
    return listed if day is None else replace(listed, released_on=day, flags=())


def entries(payload: Any) -> list[Mapping[str, Any]]:
    """The rows of a page. An object instead of a list is GitHub's way to refuse: ValueError with its message."""
    if isinstance(payload, Mapping):
        raise ValueError(f"github: answered with an object, not a list: {payload.get('message', '')!r}")
    if not isinstance(payload, list) or not all(isinstance(row, Mapping) for row in payload):
        raise ValueError(f"github: not a list of releases: {str(payload)[:80]!r}")
    return payload


def _tag(entry: Mapping[str, Any]) -> str:
    return next((text for key in ("tag_name", "name") if isinstance(text := entry.get(key), str) and text), "")


def _listed(entry: Mapping[str, Any], package: str) -> Listed:
    """A release with the day of its publication, and the day of its commit beside it."""
    draft, prerelease = bool(entry.get("draft")), bool(entry.get("prerelease"))
    day, flags = read_day(entry.get("published_at"), SINCE)
    flags = (*flags, *(["draft"] if draft else []), *(["prerelease_declared"] if prerelease else []))
    committed = utc_day(entry.get("created_at"))
    others = () if committed is None or draft else (SourceDay(TAG_SOURCE, committed),)
    return Listed(from_tag(_tag(entry), package), day, prerelease or draft, flags=flags, other_days=others)


# The entry of this source.
GITHUB = Source(
    name=SOURCE,
    url=url,
    parse=parse,
    page=page,
    setting=Setting(("STRANDLINE_GITHUB_API",), lambda: "https://api.github.com"),
    uncertainty_days=0,
    since=SINCE,
    accept="application/vnd.github+json",
    page_setting=Setting(("STRANDLINE_GITHUB_URL",), lambda: "https://github.com"),
    token_variable="GITHUB_TOKEN",
    read=read,
)
