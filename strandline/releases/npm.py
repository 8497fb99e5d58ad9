"""npm: the full package document, which alone carries upload times (M9).

`time` keeps an entry for versions that were unpublished later, and then holds the time of the unpublishing: only
versions that stand in `versions` have a date.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strandline.releases import Listed, Listing
from strandline.releases.dates import utc_day

SOURCE = "npm"
NOT_VERSIONS = frozenset({"created", "modified", "unpublished"})


def url(package: str, base: str) -> str:
    """The package's document; a scoped name goes as `@scope%2Fname`, the one form that every registry takes."""
    return f"{base.rstrip('/')}/{package.replace('/', '%2F')}"


def page(package: str, version: str, base: str) -> str:
    """The document of one release on the same registry."""
    return f"{url(package, base)}/{version}"


def parse(payload: Any) -> Listing:
    """All versions that the document speaks of.

    Unpublished ones come without a date and flagged, since they have existed. ValueError for a document without times
    (the abbreviated form) or one that is no package document at all.
    """
    if not isinstance(payload, Mapping) or not isinstance(payload.get("name"), str):
        raise ValueError(f"npm: not a package document: {str(payload)[:80]!r}")
    name = str(payload["name"])
    times = payload.get("time")
    if not isinstance(times, Mapping):
        raise ValueError(f"npm: {name} came as an abbreviated document, without upload times")
    versions = payload.get("versions") or {}
    present = [Listed(v, utc_day(times.get(v)), is_yanked=False) for v in versions]
    gone = [Listed(v, None, flags=("unpublished",)) for v in _unpublished(times) if v not in versions]
    note = "the package was unpublished" if "unpublished" in times else None
    return Listing(name, tuple(present + gone), SOURCE, note=note)


def _unpublished(times: Mapping[str, Any]) -> list[str]:
    """Versions that the times mention, also those of a package that was withdrawn as a whole."""
    mentioned = [key for key in times if key not in NOT_VERSIONS]
    whole = times.get("unpublished")
    listed = whole.get("versions", []) if isinstance(whole, Mapping) else []
    return list(dict.fromkeys([*mentioned, *map(str, listed)]))
