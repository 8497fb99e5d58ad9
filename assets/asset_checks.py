"""One blocking check a table, made from its suite in ``assets/suites``.

A failed check stops what is downstream of the table: blocking, with severity ERROR. In a partitioned run only the rows
of that partition are judged; of a large partition a deterministic sample of ``SAMPLE_ROWS`` rows, so that memory stays
flat.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from warnings import catch_warnings, simplefilter

import dagster as dg

from assets.partitions import months_of, rows_of
from assets.tables import key_of, storable
from resources.configured import WarehouseResource
from resources.warehouse.schema import table
from resources.warehouse.store import Warehouse
from resources.warehouse.validation import Expect, Report, Suite, validate

# A judgement: enough rows to see what is wrong in general, few enough to be judged in memory.
SAMPLE_ROWS = 100_000


def checks(
    assets: Iterable[dg.AssetsDefinition], suites: Mapping[str, Suite | Sequence[Expect]]
) -> list[dg.AssetChecksDefinition]:
    """A check for every table that is an asset; KeyError names a table without a suite."""
    made = []
    for asset in assets:
        for spec in asset.specs:
            name = ".".join(spec.key.path)
            if spec.metadata.get("dagster/table_name") != name:
                continue
            if name not in suites:
                raise KeyError(f"{name} has no suite in assets/suites")
            made.append(table_check(name, suites[name], _judged_by(spec.partitions_def)))
    return made


def _judged_by(definition: dg.PartitionsDefinition | None) -> dg.PartitionsDefinition | None:
    """Tables by month have no partitioned check: a run without a partition brings all months up to date, and Dagster
    refuses a partitioned check in it. In a run of some months the check reads which from the run's tags."""
    return None if isinstance(definition, dg.TimeWindowPartitionsDefinition) else definition


def table_check(
    name: str, suite: Suite | Sequence[Expect], partitions_def: dg.PartitionsDefinition | None = None
) -> dg.AssetChecksDefinition:
    """The check of one table."""

    def meets_expectations(context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource) -> dg.AssetCheckResult:
        keys = context.partition_keys if partitions_def and context.has_partition_key_range else [None]
        if partitions_def and context.has_partition_key and keys == [None]:
            keys = [context.partition_key]
        wanted = months_of(context.run.tags) if partitions_def is None and table(name).column("month") else None
        reports = [judge(warehouse.open(), name, suite, rows_of(partitions_def, key), wanted) for key in keys]
        return result(reports)

    with catch_warnings():
        simplefilter("ignore", dg.PreviewWarning)  # partitioned checks are a preview feature of Dagster 1.13
        return dg.asset_check(
            asset=key_of(name),
            name="meets_expectations",
            description=f"What {name} must satisfy beyond its DDL.",
            blocking=True,
            partitions_def=partitions_def,
        )(meets_expectations)


def judge(
    warehouse: Warehouse,
    name: str,
    suite: Suite | Sequence[Expect],
    where: Mapping[str, object],
    months: Sequence[date] | None = None,
) -> Report:
    """Judge the rows that ``where`` selects, and of these only those of some months where they are given."""
    conditions = [f"{column} is not distinct from ?" for column in where] + ["month in ?"] * (months is not None)
    order = ", ".join(table(name).primary_key)
    values = [*where.values(), *([list(months)] if months is not None else [])]
    rows = warehouse.query(
        f"select * from {name} where {' and '.join(conditions) or 'true'} order by hash({order}) limit {SAMPLE_ROWS}",
        values,
    )
    return validate(name, rows, suite)


def result(reports: Sequence[Report]) -> dg.AssetCheckResult:
    """One Dagster result for the reports of one run."""
    findings = [finding for report in reports for finding in report.findings]
    return dg.AssetCheckResult(
        passed=all(report.passed for report in reports),
        severity=dg.AssetCheckSeverity.ERROR,
        description="; ".join(dict.fromkeys(report.sentence for report in reports if not report.passed))
        or reports[0].sentence,
        metadata=storable(
            {
                "rows_judged": sum(report.n_rows for report in reports),
                "expectations": reports[0].n_expectations,
                "findings": [
                    {
                        "expectation": finding.expectation,
                        "column": finding.column,
                        "unexpected_count": finding.unexpected_count,
                        "samples": finding.samples,
                        "crashed": finding.crashed,
                        "message": finding.message,
                    }
                    for finding in findings
                ],
            }
        ),
    )
