"""The code location: assets, checks, jobs, schedules, sensors and resources, put together.

Importing it opens, fetches and computes nothing, and does not import torch. What is materialized belongs in ``assets``.
"""

from typing import Any

import dagster as dg

from assets import families, sources
from assets.asset_checks import checks
from assets.jobs import JOBS
from assets.loggers import progress
from assets.schedules import SCHEDULES
from assets.sensors import SENSORS
from resources.configured import defaults


def build_definitions(**overrides: Any) -> dg.Definitions:
    """Assemble the code location.

    Args:
        overrides: resources by name that replace the defaults, as tests and other deployments need.
    """
    tables = [asset for family in families.TABLES for asset in family.ASSETS]
    exhibits = [asset for family in families.EXHIBITS for asset in family.ASSETS]
    return dg.Definitions(
        assets=[*sources.ASSETS, *tables, *exhibits],
        asset_checks=[*checks(tables, families.all_suites()), *families.further_checks()],
        jobs=JOBS,
        schedules=SCHEDULES,
        sensors=SENSORS,
        resources={**defaults(), **overrides},
        loggers={"console": dg.colored_console_logger, "progress": progress},
        executor=dg.multiprocess_executor.configured({"max_concurrent": 2}),
    )


defs = build_definitions()
