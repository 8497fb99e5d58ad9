"""The calendar of the committed release facts, for simulation: what a fresh clone asks about.

In the product the calendar comes from the warehouse, where refreshed releases are merged in; a simulation needs the
same one everywhere, so it is drawn from the committed facts alone.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from strandline.probe.calendar import Calendar, build_calendar
from strandline.releases.facts import facts_folder, read_projects, read_releases
from strandline.releases.flags import flagged
from strandline.releases.items import probe_items


def committed_calendar(folder: Path | None = None) -> Calendar:
    """Eligible days and items drawn from the facts in `folder`, as of their newest release.

    Raises FileNotFoundError where the facts are not beside the package (an installation without the repository).
    """
    folder = folder or facts_folder()
    projects = read_projects(folder)
    releases = read_releases(folder, projects)
    newest = max(release.released_on for release in releases if release.released_on)
    items = probe_items(flagged(releases, newest), projects)
    return build_calendar([asdict(item) for item in items])
