"""Node.js: the distribution index, one entry a version (M11)."""

from __future__ import annotations

from typing import Any

from strandline.releases import Listed, Listing
from strandline.releases.dates import utc_day

SOURCE = "nodejs"


def url(package: str, base: str) -> str:
    """The index of all versions; `package` is not part of the address, as there is one product."""
    return f"{base.rstrip('/')}/index.json"


def page(package: str, version: str, base: str) -> str:
    """The folder of a release."""
    return f"{base.rstrip('/')}/v{version}/"


def parse(payload: Any) -> Listing:
    """All versions of the index. ValueError where it is not a list of entries with a version."""
    if not isinstance(payload, list) or not all(isinstance(e, dict) and "version" in e for e in payload):
        raise ValueError(f"nodejs: not a distribution index: {str(payload)[:80]!r}")
    return Listing("node", tuple(_listed(entry) for entry in payload), SOURCE)


def _listed(entry: dict[str, Any]) -> Listed:
    version = str(entry["version"]).removeprefix("v")
    return Listed(version, utc_day(entry.get("date")), label=support_line(entry.get("lts")))


def support_line(lts: Any) -> str | None:
    """The name of the long-term support line: the registry writes it as a text, or false until it is one."""
    return lts if isinstance(lts, str) and lts else None
