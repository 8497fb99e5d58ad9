"""python.org: the releases of the download pages (M12).

The list mixes final releases, pre-releases, unpublished pages and other products; its dates and those of the release
schedules differ by a day up to about forty, so that a row is never surer than a day.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from strandline.releases import Listed, Listing
from strandline.releases.dates import read_day
from strandline.releases.source import Setting, Source
from strandline.releases.versions import parse as parse_version

# The name of this source in the list of projects and in the tables.
SOURCE = "python"
SINCE = date(1991, 2, 1)
"""Python 0.9.0 came out in February 1991."""
# A release's name on python.org, of which the version is kept.
_NAME = re.compile(r"Python (\d\S*)")


def url(package: str, base: str) -> str:
    """All published releases in one answer; `package` is not part of the address."""
    return f"{base.rstrip('/')}/api/v2/downloads/release/?is_published=true"


def page(package: str, version: str, base: str) -> str:
    """The download page of a release."""
    return f"{base.rstrip('/')}/downloads/release/python-{version.replace('.', '')}/"


def parse(payload: Any, package: str = "python") -> Listing:
    """The published Python releases; other products (`Python install manager`) are left out.

    A release is final only if BOTH its flag and its version say so; where they disagree it is flagged, and so is one
    without a page or files. ValueError where the answer is not a list of releases.
    """
    if not isinstance(payload, list) or not all(isinstance(entry, Mapping) for entry in payload):
        raise ValueError(f"python.org: not a list of releases: {str(payload)[:80]!r}")
    if payload and not any("name" in entry for entry in payload):
        raise ValueError(f"python.org: not a list of releases: {str(payload)[:80]!r}")
    entries = [(match[1], e) for e in payload if (match := _NAME.fullmatch(str(e.get("name")).strip()))]
    return Listing("python", tuple(_listed(v, e) for v, e in entries if e.get("is_published", True)), SOURCE)


def _listed(version: str, entry: Mapping[str, Any]) -> Listed:
    read = parse_version(version, "pep440")
    by_text = read is not None and read.is_prerelease
    by_flag = bool(entry.get("pre_release"))
    day, flags = read_day(entry.get("release_date"), SINCE)
    doubts = {
        "prerelease_declared": by_flag,
        "prerelease_disagrees": by_text != by_flag,
        "no_page": _is_hidden(entry),
        "no_files": "files" in entry and not entry["files"],
    }
    flags = (*flags, *(flag for flag, holds in doubts.items() if holds))
    return Listed(version, day, by_text or by_flag, flags=flags)


def _is_hidden(entry: Mapping[str, Any]) -> bool:
    """Whether the list says that a release has no page: it has no name in addresses, or is kept off the downloads."""
    return ("slug" in entry and not entry["slug"]) or entry.get("show_on_download_page", True) is False


# The entry of this source.
PYTHON_ORG = Source(
    name=SOURCE,
    url=url,
    parse=parse,
    page=page,
    setting=Setting(("STRANDLINE_PYTHON_ORG_URL",), lambda: "https://www.python.org"),
    uncertainty_days=1,
    since=SINCE,
)
