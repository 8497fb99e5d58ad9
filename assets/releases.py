"""The release tables: tracked sources, dated releases, and the questions made from them.

Everything works without a network, from the committed facts. With `refresh` each registry is asked, and what is new is
merged, package by package, as it arrives.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import dagster as dg
from pydantic import Field, field_validator

from assets.tables import key_of, materialized, table_asset, table_multi_asset
from resources.configured import NetworkResource, WarehouseResource
from resources.releases.refresh import refresh
from resources.releases.registries import Registries, configured
from resources.releases.rows import (
    coverage,
    item_rows,
    refresh_writes,
    release_rows,
    source_summary,
    state_rows,
    stored_over_facts,
    stored_releases,
)
from resources.warehouse.store import Replace
from strandline.releases.dates import utc_day
from strandline.releases.facts import facts_folder, read_projects, read_releases
from strandline.releases.flags import RULES_VERSION, flagged
from strandline.releases.items import ItemRules, probe_items
from strandline.releases.sources import SOURCES

REGISTRIES = [source.name for source in SOURCES]
"""Every registry that is registered; a run may name fewer."""


REFRESHED_WITHIN = timedelta(days=3)
"""A daily schedule refreshes releases; two missed days are a weekend without a machine, three are worth a look."""


class RefreshConfig(dg.Config):
    """Whether to ask the registries, and which."""

    refresh: bool = Field(default=False, description="Ask the registries for what is new; off: the facts on disk.")
    registries: list[str] = Field(default=REGISTRIES, description="Which registries a refresh asks.")
    packages: list[str] = Field(default=[], description="Only these packages, by their name there; empty: all.")


class CalendarConfig(dg.Config):
    """How the calendar of questions is drawn; the defaults are those of `ItemRules`."""

    first_day: str = Field(default="2015-01-01", description="First day of the calendar, as YYYY-MM-DD.")
    days_a_week: int = Field(default=2, ge=1, le=7, description="Days kept of each week; 7 keeps all eligible ones.")
    per_day: int = Field(default=12, ge=1, description="Releases kept of a day.")
    per_project_year: int = Field(default=26, ge=1, description="Releases kept of a project in a year.")

    @field_validator("first_day")
    @classmethod
    def _is_a_day(cls, value: str) -> str:
        """A day that is none is refused where it is written, before anything runs."""
        if utc_day(value) is None:
            raise ValueError(f"first_day is a day as YYYY-MM-DD from 1990 on, got {value!r}")
        return value

    def rules(self) -> ItemRules:
        """As the methods take it."""
        return ItemRules(
            first_day=date.fromisoformat(self.first_day),
            days_a_week=self.days_a_week,
            per_day=self.per_day,
            per_project_year=self.per_project_year,
        )


@table_multi_asset(
    ["releases.sources", "releases.releases"],
    reads=["release_facts", "registries"],
    needs=["network"],
    fresh_for=REFRESHED_WITHIN,
    code_version=RULES_VERSION,
)
def merge_releases(
    context: dg.AssetExecutionContext, config: RefreshConfig, warehouse: WarehouseResource, network: NetworkResource
) -> Iterator[dg.MaterializeResult[Any]]:
    """The committed facts, what earlier refreshes found, and, if asked for, what the registries say now."""
    store, now, endpoints = warehouse.open(), datetime.now(UTC), configured()
    projects = read_projects(facts_folder())
    before = stored_over_facts(store, projects, read_releases(facts_folder(), projects))
    rows = release_rows(flagged(before.releases, now.date()), projects, endpoints)
    store.write(Replace("releases.sources", state_rows(before.states)), Replace("releases.releases", rows))
    requests: dict[str, int] = {}
    if config.refresh:
        with network.open(endpoints.authorization) as http:
            targets = before.targets(config.registries, config.packages)
            for outcome in refresh(targets, Registries(http, endpoints), now):
                if outcome.state.error:
                    context.log.warning(f"{outcome.state.project}: {outcome.state.status}: {outcome.state.error}")
                store.write(*refresh_writes(outcome, projects, endpoints))
            requests = dict(http.counters)
    yield materialized("releases.sources", requests=requests, **source_summary(store))
    yield materialized("releases.releases", **coverage(store))


@table_asset("releases.probe_items", deps=["releases.releases"], code_version=RULES_VERSION, follows=True)
def draw_probe_items(config: CalendarConfig, warehouse: WarehouseResource) -> dg.MaterializeResult[Any]:
    """A calendar of days, the releases of each, and a version beside each that never was."""
    store = warehouse.open()
    projects, releases = read_projects(facts_folder()), stored_releases(store)
    items = probe_items(releases, projects, config.rules())
    store.replace("releases.probe_items", item_rows(items, projects, configured()))
    return materialized(
        "releases.probe_items",
        dataset_version=items[0].dataset_version,
        days=items[-1].position + 1,
        items=len(items),
        projects=len({item.project for item in items}),
        decoys=dict(Counter(item.decoy_kind or "none" for item in items)),
    )


@dg.asset_check(
    asset=key_of("releases.probe_items"),
    name="decoys_do_not_exist",
    description="Names every decoy, in the calendar or asked of a model, that exists by now in any form.",
)
def decoys_do_not_exist(warehouse: WarehouseResource) -> dg.AssetCheckResult:
    """A decoy that was released since turns a right answer into a wrong one: boundaries that used it are named."""
    released = warehouse.open().query("select * from releases.decoys_released_since order by project, decoy_version")
    names = [
        f"{row['project']} {row['decoy_version']} ({row['released_on']})" for row in released.iter_rows(named=True)
    ]
    return dg.AssetCheckResult(
        passed=not names,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{len(names)} decoys exist by now: {', '.join(names[:20])}" if names else "no decoy exists",
        metadata={"n_released": len(names), "decoys": dg.MetadataValue.json(names[:200])},
    )


# What the code location collects from this module.
ASSETS = [merge_releases, draw_probe_items]
# What the code location collects from this module.
CHECKS = [decoys_do_not_exist]
