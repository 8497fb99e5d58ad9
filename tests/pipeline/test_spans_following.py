"""Tables that are made from documents of all months are rebuilt when one month changes, for each model."""

from __future__ import annotations

import dagster as dg

from assets.partitions import BY_MONTH, models
from assets.spans import ASSETS
from assets.tables import table_spec
from resources.configured import defaults


def test_tables_by_month_are_known_as_such() -> None:
    months = {".".join(s.key.path) for asset in ASSETS for s in asset.specs if s.partitions_def is not None}
    assert months == BY_MONTH


def test_one_new_month_rebuilds_what_follows_for_every_model_although_other_months_are_missing() -> None:
    @dg.multi_asset(
        specs=[table_spec("perplexity.reference_tests", deps=["spans.revisions"], partitions_def=models, follows=True)]
    )
    def follower() -> None: ...

    definitions = dg.Definitions([*ASSETS, follower], resources=defaults())
    dg.Definitions.validate_loadable(definitions)
    instance = dg.DagsterInstance.ephemeral()
    instance.add_dynamic_partitions("models", ["a", "b"])
    for name in ("a", "b"):
        event = dg.AssetMaterialization(["perplexity", "reference_tests"], partition=name)
        instance.report_runless_asset_event(event)
    first = dg.evaluate_automation_conditions(definitions, instance)
    instance.report_runless_asset_event(dg.AssetMaterialization(["spans", "revisions"], partition="2022-10-01"))
    second = dg.evaluate_automation_conditions(definitions, instance, cursor=first.cursor)
    assert (first.total_requested, second.total_requested) == (0, 2)
