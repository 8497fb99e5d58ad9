"""The code location: assets, checks, jobs, schedules, sensors and resources, put together.

Importing it opens, fetches and computes nothing, and does not import torch. What is materialized belongs in ``assets``.
"""

from typing import Any

import dagster as dg

from assets import automation, families, progress
from assets.quality import checks
from resources.configured import defaults


def build_definitions(**overrides: Any) -> dg.Definitions:
    """Assemble the code location.

    Args:
        overrides: resources by name that replace the defaults, as tests and other deployments need.
    """
    tables = [asset for family in families.tables() for asset in family.ASSETS]
    exhibits = [asset for family in families.exhibits() for asset in family.ASSETS]
    return dg.Definitions(
        assets=[*tables, *exhibits],
        asset_checks=[*checks(tables, families.suites()), *families.further_checks()],
        jobs=automation.JOBS,
        schedules=automation.SCHEDULES,
        sensors=automation.SENSORS,
        resources={**defaults(), **overrides},
        loggers={"console": dg.colored_console_logger, "progress": progress.progress},
        executor=dg.multiprocess_executor.configured({"max_concurrent": 2}),
    )


defs = build_definitions()
