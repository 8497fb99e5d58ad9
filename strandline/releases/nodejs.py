"""Node.js: the distribution index, one entry a version (M11)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from strandline.releases import Listed, Listing
from strandline.releases.dates import read_day
from strandline.releases.source import Setting, Source

# The name of this source in the list of projects and in the tables.
SOURCE = "nodejs"
SINCE = date(2009, 5, 1)
"""Node.js was first shown in May 2009."""


def url(package: str, base: str) -> str:
    """The index of all versions; `package` is not part of the address, as there is one product."""
    return f"{base.rstrip('/')}/index.json"


def page(package: str, version: str, base: str) -> str:
    """The folder of a release."""
    return f"{base.rstrip('/')}/v{version}/"


def parse(payload: Any, package: str = "node") -> Listing:
    """All versions of the index, those without files flagged. ValueError where it is not a list of entries.

    Entries that name no version are passed over.
    """
    if not isinstance(payload, list) or not all(isinstance(entry, Mapping) for entry in payload):
        raise ValueError(f"nodejs: not a distribution index: {str(payload)[:80]!r}")
    entries = [entry for entry in payload if isinstance(entry.get("version"), str)]
    if payload and not entries:
        raise ValueError(f"nodejs: not a distribution index: {str(payload)[:80]!r}")
    return Listing("node", tuple(_listed(entry) for entry in entries), SOURCE)


def _listed(entry: Mapping[str, Any]) -> Listed:
    """An entry; one whose list of files is empty stands for a version that could not be had."""
    day, flags = read_day(entry.get("date"), SINCE)
    if "files" in entry and not entry["files"]:
        flags = (*flags, "no_files")
    return Listed(entry["version"].removeprefix("v"), day, flags=flags, label=support_line(entry.get("lts")))


def support_line(lts: Any) -> str | None:
    """The name of the long-term support line: the registry writes it as a text, or false until it is one."""
    return lts if isinstance(lts, str) and lts else None


# The entry of this source.
NODEJS = Source(
    name=SOURCE,
    url=url,
    parse=parse,
    page=page,
    setting=Setting(("STRANDLINE_NODEJS_URL",), lambda: "https://nodejs.org/dist"),
    uncertainty_days=1,
    since=SINCE,
)
