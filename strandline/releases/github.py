"""GitHub: the releases of selected repositories (M13), and their tags where there are no releases.

Both come in pages, the newest first. A tag has no date of its own; that of its commit is asked for separately, and a
version dated so says it (`github-tag`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from strandline.releases import Listed, Listing
from strandline.releases.dates import utc_day
from strandline.releases.versions import from_tag

SOURCE = "github"
TAG_SOURCE = "github-tag"
PAGE_SIZE = 100


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


def parse(payload: Any, package: str = "") -> Listing:
    """One page of releases, drafts and pre-releases flagged as such. ValueError where it is no list (see `entries`)."""
    listed = [_listed(entry, package) for entry in entries(payload)]
    return Listing(package, tuple(listed), SOURCE, incomplete=len(listed) >= PAGE_SIZE)


def parse_tags(payload: Any, package: str = "") -> tuple[Listing, dict[str, str]]:
    """One page of tags as undated versions, and the commit of each version."""
    rows = entries(payload)
    listed = [Listed(from_tag(str(row["name"]), package), None, flags=("tag_only",)) for row in rows]
    commits = {from_tag(str(row["name"]), package): str((row.get("commit") or {}).get("sha", "")) for row in rows}
    return Listing(package, tuple(listed), TAG_SOURCE, len(rows) >= PAGE_SIZE, note="no releases"), commits


def dated(listed: Listed, commit: Any) -> Listed:
    """A tagged version with the day on which its commit was made; unchanged where the commit tells none."""
    detail = commit.get("commit") if isinstance(commit, dict) else None
    committer = detail.get("committer") if isinstance(detail, dict) else None
    day = utc_day(committer.get("date")) if isinstance(committer, dict) else None
    return listed if day is None else replace(listed, released_on=day, flags=())


def entries(payload: Any) -> list[dict[str, Any]]:
    """The rows of a page. An object instead of a list is GitHub's way to refuse: ValueError with its message."""
    if isinstance(payload, dict):
        raise ValueError(f"github: answered with an object, not a list: {payload.get('message', '')!r}")
    if not isinstance(payload, list) or not all(isinstance(row, dict) for row in payload):
        raise ValueError(f"github: not a list of releases: {str(payload)[:80]!r}")
    return payload


def _listed(entry: dict[str, Any], package: str) -> Listed:
    draft, prerelease = bool(entry.get("draft")), bool(entry.get("prerelease"))
    flags = [*(["draft"] if draft else []), *(["prerelease_declared"] if prerelease else [])]
    version = from_tag(str(entry.get("tag_name") or entry.get("name") or ""), package)
    return Listed(version, utc_day(entry.get("published_at")), prerelease or draft, flags=tuple(flags))
