"""The calendar of the committed release facts, for simulation: what a fresh clone asks about.

In the product the calendar comes from the warehouse, where refreshed releases are merged in; a simulation needs the
same one everywhere, so it is drawn from the files of `data/releases` alone.
"""

from __future__ import annotations

import csv
import gzip
import os
from dataclasses import asdict
from datetime import date
from pathlib import Path

from strandline.probe.calendar import Calendar, build_calendar
from strandline.releases import Project, Release
from strandline.releases.flags import flagged
from strandline.releases.items import probe_items

FOLDER = Path(__file__).resolve().parents[2] / "data" / "releases"


def committed_calendar(folder: Path | None = None) -> Calendar:
    """Eligible days and items from `projects.csv` and `releases.csv.gz` in `folder`.

    Raises FileNotFoundError where the facts are not beside the package (an installation without the repository).
    """
    folder = folder or Path(os.environ.get("STRANDLINE_RELEASES", FOLDER))
    with (folder / "projects.csv").open(newline="", encoding="utf-8") as lines:
        tracked = [
            Project(r["project"], int(r["salience_rank"]), r["ecosystem"], r["package"]) for r in csv.DictReader(lines)
        ]
    projects = {project.project: project for project in tracked}
    with gzip.open(folder / "releases.csv.gz", "rt", newline="", encoding="utf-8") as lines:
        releases = [_release(projects[r["project"]], r) for r in csv.DictReader(lines) if r["project"] in projects]
    newest = max(r.released_on for r in releases if r.released_on)
    items = probe_items(flagged(releases, newest), tracked, newest)
    return build_calendar([asdict(item) for item in items])


def _release(project: Project, row: dict[str, str]) -> Release:
    flags = tuple(row["flags"].split())
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
    )
