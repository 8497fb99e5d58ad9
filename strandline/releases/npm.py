"""npm: the full package document, which alone carries upload times (M9).

`time` keeps an entry for versions that were unpublished later, and then holds the time of the unpublishing: only
versions that stand in `versions` have a date.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from strandline.releases import Listed, Listing
from strandline.releases.dates import read_day
from strandline.releases.source import Setting, Source

# The name of this source in the list of projects and in the tables.
SOURCE = "npm"
SINCE = date(2010, 1, 1)
"""npm was first shown in January 2010; its registry holds nothing older."""
NOT_VERSIONS = frozenset({"created", "modified", "unpublished"})
"""Entries of `time` that stand for the package, not for a version."""
YARN_ALIAS = "https://registry.yarnpkg.com"
"""Yarn's public alias of the registry, for who has no npm and no setting."""


def url(package: str, base: str) -> str:
    """The package's document; a scoped name goes as `@scope%2Fname`, the one form that every registry takes."""
    return f"{base.rstrip('/')}/{package.replace('/', '%2F')}"


def page(package: str, version: str, base: str) -> str:
    """The document of one release on the same registry."""
    return f"{url(package, base)}/{version}"


def parse(payload: Any, package: str = "") -> Listing:
    """All versions that the document speaks of.

    Unpublished ones come without a date and flagged, since they have existed. ValueError for a document without times
    (the abbreviated form), one of another `package` than was asked for, or one that is no package document at all.
    """
    if not isinstance(payload, Mapping) or not isinstance(payload.get("name"), str):
        raise ValueError(f"npm: not a package document: {str(payload)[:80]!r}")
    name, times, versions = str(payload["name"]), payload.get("time"), payload.get("versions") or {}
    if package and name.casefold() != package.casefold():
        raise ValueError(f"npm: not about {package}, which was asked for, but about {name[:80]!r}")
    if not isinstance(times, Mapping):
        raise ValueError(f"npm: {name} came as an abbreviated document, without upload times")
    if not isinstance(versions, Mapping):
        raise ValueError(f"npm: {name} came with versions that are no mapping: {str(versions)[:80]!r}")
    present = [_listed(version, times.get(version)) for version in versions]
    gone = [Listed(version, None, flags=("unpublished",)) for version in _unpublished(times) if version not in versions]
    note = "the package was unpublished" if "unpublished" in times else None
    return Listing(name, tuple(present + gone), SOURCE, note=note)


def _listed(version: str, uploaded: Any) -> Listed:
    day, flags = read_day(uploaded, SINCE)
    return Listed(version, day, flags=flags)


def _unpublished(times: Mapping[str, Any]) -> list[str]:
    """Versions that the times mention, also those of a package that was withdrawn as a whole."""
    mentioned = [key for key in times if key not in NOT_VERSIONS]
    whole = times.get("unpublished")
    listed = whole.get("versions") if isinstance(whole, Mapping) else None
    texts = [version for version in listed if isinstance(version, str)] if isinstance(listed, list | tuple) else []
    return list(dict.fromkeys([*mentioned, *texts]))


# The entry of this source.
NPM = Source(
    name=SOURCE,
    url=url,
    parse=parse,
    page=page,
    setting=Setting(
        ("NPM_CONFIG_REGISTRY", "npm_config_registry"), lambda: YARN_ALIAS, ("npm", "config", "get", "registry")
    ),
    uncertainty_days=0,
    since=SINCE,
)
