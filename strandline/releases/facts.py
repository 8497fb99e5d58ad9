"""The committed facts: tracked projects and their releases, from `data/releases`. No registry's address stands in them.

`projects.csv` is what a user edits: a project a line, its salience rank, the identity of its rows and, where a refresh
can look it up, the registry and the name there. `releases.csv.gz` is written by `write_releases`.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

from strandline.releases import Project, Release, SourceDay
from strandline.releases.dates import utc_day
from strandline.releases.flags import COMPUTED

RANK = re.compile(r"[1-9][0-9]{0,8}")
"""A rank as text: a whole number from 1 that fits the table's integer."""
PROJECT_COLUMNS = ("project", "salience_rank", "ecosystem", "package", "registry", "name")
"""Columns of `projects.csv`, which a user edits."""
RELEASE_COLUMNS = ("project", "version", "released_on", "source", "flags", "other_days")
"""Columns of the file as it is written; `other_days` (`source day` pairs) may be absent from an older one."""


def facts_folder() -> Path:
    """Where the committed facts lie: STRANDLINE_RELEASES, else `data/releases` of the repository."""
    folder = os.environ.get("STRANDLINE_RELEASES")
    return Path(folder) if folder else Path(__file__).resolve().parents[2] / "data" / "releases"


def read_projects(folder: Path) -> tuple[Project, ...]:
    """The tracked projects in order of salience. ValueError names the line of a broken or repeated entry."""
    path = folder / "projects.csv"
    with path.open(newline="", encoding="utf-8") as lines:
        rows = csv.DictReader(lines)
        if tuple(rows.fieldnames or ()) != PROJECT_COLUMNS:
            raise ValueError(f"{path}: the first line must name the columns {', '.join(PROJECT_COLUMNS)}")
        projects = [_project(path, number, row) for number, row in enumerate(rows, start=2)]
    for what, values in (
        ("project", [p.project for p in projects]),
        ("package", [f"{p.ecosystem} {p.package}" for p in projects]),
    ):
        repeated = {value for value in values if values.count(value) > 1}
        if repeated:
            raise ValueError(f"{path}: {what} {sorted(repeated)[0]!r} stands there more than once")
    return tuple(sorted(projects, key=lambda p: (p.salience_rank, p.project)))


def _project(path: Path, number: int, row: dict[str, str]) -> Project:
    rank = row["salience_rank"] or ""
    missing = [name for name in ("project", "ecosystem", "package") if not row[name]]
    if None in row:  # what csv calls the cells beyond the header
        raise ValueError(f"{path}, line {number}: more cells than the {len(PROJECT_COLUMNS)} columns")
    if missing or not RANK.fullmatch(rank):
        what = f"no {missing[0]}" if missing else f"salience_rank {rank!r} is not a whole number from 1"
        raise ValueError(f"{path}, line {number}: {what}")
    return Project(
        row["project"], int(rank), row["ecosystem"], row["package"], row["registry"] or None, row["name"] or None
    )


def read_releases(folder: Path, projects: Iterable[Project]) -> list[Release]:
    """The committed releases of these projects, not yet flagged. ValueError names the line of a broken row."""
    path, tracked = folder / "releases.csv.gz", {p.project: p for p in projects}
    with gzip.open(path, "rt", newline="", encoding="utf-8") as lines:
        rows = csv.DictReader(lines)
        missing = set(RELEASE_COLUMNS) - {"other_days"} - set(rows.fieldnames or ())
        if missing:
            raise ValueError(f"{path}: the first line lacks the column {sorted(missing)[0]}")
        releases = []
        for number, row in enumerate(rows, start=2):
            try:
                releases += [_release(tracked[row["project"]], row)] if row["project"] in tracked else []
            except (ValueError, TypeError, AttributeError) as error:
                raise ValueError(f"{path}, line {number}: not a release: {error}") from error
        return releases


def _release(project: Project, row: dict[str, str]) -> Release:
    flags = tuple(row["flags"].split()) if row["flags"] else ()
    return Release(
        ecosystem=project.ecosystem,
        package=project.package,
        project=project.project,
        version=row["version"],
        released_on=date.fromisoformat(row["released_on"]) if row["released_on"] else None,
        source=row["source"],
        is_stable="prerelease" not in flags,
        is_yanked="yanked" in flags,
        flags=flags,
        other_days=tuple(map(source_day, (row.get("other_days") or "").split(";"))) if row.get("other_days") else (),
    )


def source_day(text: str) -> SourceDay:
    """A source and its day out of their text form; ValueError for any other text."""
    source, _, day = text.strip().rpartition(" ")
    read = utc_day(day)
    if not source or read is None:
        raise ValueError(f"a source and its day are written as 'npm 2024-12-05', got {text[:80]!r}")
    return SourceDay(source, read)


def _told_flags(release: Release) -> list[str]:
    """The flags that cannot be worked out again: what a registry said."""
    return sorted({*release.flags} - COMPUTED | ({"yanked"} if release.is_yanked else set()))


def write_releases(folder: Path, releases: Sequence[Release]) -> None:
    """Write `releases.csv.gz`: sorted, and the same bytes for the same rows, so that git sees only real changes."""
    text = io.StringIO(newline="")
    out = csv.writer(text, lineterminator="\n")
    out.writerow(RELEASE_COLUMNS)
    ordered = sorted(releases, key=lambda r: (r.project, str(r.released_on or ""), r.version))
    out.writerows(
        (
            r.project,
            r.version,
            r.released_on or "",
            r.source,
            " ".join(_told_flags(r)),
            "; ".join(map(str, r.other_days)),
        )
        for r in ordered
    )
    with (folder / "releases.csv.gz").open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(text.getvalue().encode())
