"""Write what the warehouse knows about releases back into the committed facts: `python -m console.committed_facts`.

For maintainers, after the job `refresh_releases`. The files change only where the facts did.
"""

from __future__ import annotations

from pathlib import Path

from resources.configured import WarehouseResource
from resources.releases.rows import stored_releases
from resources.warehouse.store import Warehouse
from strandline.releases.facts import facts_folder, read_projects, read_releases, write_releases


def export(warehouse: Warehouse, folder: Path) -> int:
    """Write all stored releases to `releases.csv.gz` in `folder` and return their number.

    ValueError where the warehouse holds fewer than half of what is committed: an empty one must not empty the facts.
    """
    releases = stored_releases(warehouse)
    committed = len(read_releases(folder, read_projects(folder))) if (folder / "releases.csv.gz").exists() else 0
    if 2 * len(releases) < committed:
        raise ValueError(f"the warehouse holds {len(releases)} releases, the facts {committed}: run the job first")
    write_releases(folder, releases)
    return len(releases)


if __name__ == "__main__":
    print(f"{export(WarehouseResource().open(), facts_folder())} releases written to {facts_folder()}")
