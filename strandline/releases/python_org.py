"""python.org: the releases of the download pages (M12).

The list mixes final releases, pre-releases, unpublished pages and other products; its dates and those of the release
schedules differ by a day up to about forty, so that a row is never surer than a day.
"""

from __future__ import annotations

import re
from typing import Any

from strandline.releases import Listed, Listing
from strandline.releases.dates import utc_day
from strandline.releases.versions import parse as parse_version

SOURCE = "python"
_NAME = re.compile(r"Python (\d\S*)")


def url(package: str, base: str) -> str:
    """All published releases in one answer; `package` is not part of the address."""
    return f"{base.rstrip('/')}/api/v2/downloads/release/?is_published=true"


def page(package: str, version: str, base: str) -> str:
    """The download page of a release."""
    return f"{base.rstrip('/')}/downloads/release/python-{version.replace('.', '')}/"


def parse(payload: Any) -> Listing:
    """The published Python releases; other products (`Python install manager`) are left out.

    A release is final only if BOTH its flag and its version say so; where they disagree it is flagged.
    ValueError where the answer is not a list of releases.
    """
    if not isinstance(payload, list) or not all(isinstance(e, dict) and "name" in e for e in payload):
        raise ValueError(f"python.org: not a list of releases: {str(payload)[:80]!r}")
    entries = [(match[1], e) for e in payload if (match := _NAME.fullmatch(str(e["name"]).strip()))]
    return Listing("python", tuple(_listed(v, e) for v, e in entries if e.get("is_published", True)), SOURCE)


def _listed(version: str, entry: dict[str, Any]) -> Listed:
    read = parse_version(version, "pep440")
    by_text = read is not None and read.is_prerelease
    by_flag = bool(entry.get("pre_release"))
    flags = ["prerelease_declared"] if by_flag else []
    if by_text != by_flag:
        flags.append("prerelease_disagrees")
    return Listed(version, utc_day(entry.get("release_date")), by_text or by_flag, flags=tuple(flags))
