"""PyPI and every index that speaks its standard Simple API in JSON (PEP 691, upload times of PEP 700; M10).

A release is as old as its earliest file: wheels are added years later. It is yanked when all of its files are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from strandline.releases import Listed, Listing
from strandline.releases.dates import utc_day

if TYPE_CHECKING:
    from pypi_simple import DistributionPackage

SOURCE = "pypi"
ACCEPT = "application/vnd.pypi.simple.v1+json"


def url(package: str, base: str) -> str:
    """The project's page of files, under its normalised name."""
    return f"{base.rstrip('/')}/{canonicalize_name(package)}/"


def page(package: str, version: str, base: str) -> str:
    """The page of a release: where the index keeps one beside `simple/`, else the project's page of files."""
    root = base.rstrip("/")
    if not root.endswith("/simple"):
        return url(package, base)
    return f"{root.removesuffix('/simple')}/project/{canonicalize_name(package)}/{version}/"


def parse(payload: Any) -> Listing:
    """All versions of the index's answer, those without files (and so without a date) included.

    ValueError for an answer that is not a project page. A file whose name gives no version is left out.
    """
    from pypi_simple import ProjectPage

    if not isinstance(payload, Mapping):
        raise ValueError(f"pypi: not a project page: {str(payload)[:80]!r}")
    try:
        project = ProjectPage.from_json_data(payload)
    except Exception as error:
        raise ValueError(f"pypi: not a project page: {str(error).splitlines()[0]}") from error
    files: dict[str, list[DistributionPackage]] = defaultdict(list)
    for file in project.packages:
        if file.version is not None:
            files[_spelled(file.version)].append(file)
    names = dict.fromkeys([*map(_spelled, project.versions or ()), *files])
    return Listing(canonicalize_name(project.project), tuple(_listed(v, files.get(v, [])) for v in names), SOURCE)


def _listed(version: str, files: list[DistributionPackage]) -> Listed:
    days = [day for file in files if (day := utc_day(file.upload_time)) is not None]
    yanked = bool(files) and all(file.is_yanked for file in files)
    return Listed(version, min(days, default=None), is_yanked=yanked, flags=() if files else ("no_files",))


def _spelled(version: str) -> str:
    """One spelling a version: as PEP 440 normalises it, or as it stands where it cannot be read."""
    try:
        return str(Version(version))
    except InvalidVersion:
        return version
