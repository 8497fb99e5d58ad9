"""PyPI and every index that speaks its standard Simple API in JSON (PEP 691, upload times of PEP 700; M10).

A release is as old as its earliest file: wheels are added years later. It is yanked when all of its files are. Files
are read one by one, so that one odd file hides no other: a file of another project dates nothing, and a version that
the index does not list among its versions is not asked about.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import Version

from strandline.releases import Listed, Listing
from strandline.releases.dates import read_day
from strandline.releases.source import Setting, Source

# The name of this source in the list of projects and in the tables.
SOURCE = "pypi"
SINCE = date(2003, 1, 1)
"""The index opened in 2003."""
ACCEPT = "application/vnd.pypi.simple.v1+json"
"""The media type of PEP 691; without it an index answers in HTML."""
API_MAJOR = "1"
"""The major version of the Simple API that is read here; PEP 691 has clients refuse others."""
# The note of a listing without upload times.
NO_TIMES = "the index gives no upload times, so none of its versions can be dated"


@dataclass(frozen=True)
class File:
    """What one file of a page says: the day of its upload, flags about that day, and whether it is yanked."""

    day: date | None
    flags: tuple[str, ...]
    is_yanked: bool


def url(package: str, base: str) -> str:
    """The project's page of files, under its normalised name."""
    return f"{base.rstrip('/')}/{canonicalize_name(package)}/"


def page(package: str, version: str, base: str) -> str:
    """The page of a release: where the index keeps one beside `simple/`, else the project's page of files."""
    root = base.rstrip("/")
    if not root.endswith("/simple"):
        return url(package, base)
    return f"{root.removesuffix('/simple')}/project/{canonicalize_name(package)}/{version}/"


def parse(payload: Any, package: str = "") -> Listing:
    """All versions of the index's answer, those without files (and so without a date) included.

    ValueError for an answer that is not a project page, or that of another `package` than was asked for. A file whose
    name gives no version, or another project than the page's, is left out; `note` says so where no file has an upload
    time.
    """
    name, rows, versions = _page(payload)
    if package and canonicalize_name(name) != canonicalize_name(package):
        raise ValueError(f"pypi: not about {package}, which was asked for, but about {name[:80]!r}")
    files: dict[str, list[File]] = defaultdict(list)
    for row in rows:
        if (version := _version_of(row, name)) is not None:
            files[_spelled(version)].append(_file(row))
    listed = {_spelled(version) for version in versions}
    names = dict.fromkeys([*map(_spelled, versions), *files])
    releases = tuple(_listed(v, files.get(v, []), is_listed=v in listed or not listed) for v in names)
    is_dated = any(release.released_on for release in releases) or not files
    return Listing(canonicalize_name(name), releases, SOURCE, note=None if is_dated else NO_TIMES)


def _page(payload: Any) -> tuple[str, list[Mapping[str, Any]], list[str]]:
    """Name, files and versions of a project page; ValueError where it is none, or of another API version."""
    if not isinstance(payload, Mapping):
        raise ValueError(f"pypi: not a project page: {str(payload)[:80]!r}")
    name, files, meta = payload.get("name"), payload.get("files"), payload.get("meta")
    if not isinstance(name, str) or not isinstance(files, list):
        raise ValueError(f"pypi: not a project page, which has a name and files: {str(payload)[:80]!r}")
    api = str(meta.get("api-version", API_MAJOR)) if isinstance(meta, Mapping) else API_MAJOR
    if api.partition(".")[0] != API_MAJOR:
        raise ValueError(f"pypi: not a project page of API version {API_MAJOR}, but of {api[:20]}")
    versions = payload.get("versions")
    texts = [v for v in versions if isinstance(v, str) and v.strip()] if isinstance(versions, list) else []
    return name, [row for row in files if isinstance(row, Mapping)], texts


def _version_of(row: Mapping[str, Any], name: str) -> str | None:
    """The version in a file's name, None where it has none or the file belongs to another project."""
    from pypi_simple import UnparsableFilenameError, parse_filename

    try:
        project, version, _ = parse_filename(str(row.get("filename")), name)
    except UnparsableFilenameError:
        return None
    return version if canonicalize_name(project) == canonicalize_name(name) else None


def _file(row: Mapping[str, Any]) -> File:
    """A file's day, and whether it is yanked (`yanked` is a truth value or the reason as a text)."""
    day, flags = read_day(row.get("upload-time"), SINCE)
    return File(day, flags, bool(row.get("yanked")))


def _listed(version: str, files: list[File], *, is_listed: bool) -> Listed:
    day = min((file.day for file in files if file.day is not None), default=None)
    flags = {flag for file in files for flag in file.flags} if day is None else set()
    flags |= set() if files else {"no_files"}
    flags |= set() if is_listed else {"unlisted"}
    return Listed(version, day, is_yanked=bool(files) and all(f.is_yanked for f in files), flags=tuple(sorted(flags)))


def _spelled(version: str) -> str:
    """One spelling a version: as PEP 440 normalises it, or as it stands where it cannot be read."""
    try:
        return str(Version(version))
    except ValueError:
        return version.strip()


def _public() -> str:
    from pypi_simple import PYPI_SIMPLE_ENDPOINT

    return PYPI_SIMPLE_ENDPOINT


# The entry of this source.
PYPI = Source(
    name=SOURCE,
    url=url,
    parse=parse,
    page=page,
    setting=Setting(("PIP_INDEX_URL",), _public, ("python", "-m", "pip", "config", "list")),
    uncertainty_days=0,
    since=SINCE,
    accept=ACCEPT,
)
