"""Data quality: what a table must satisfy beyond its DDL, judged by Great Expectations on a dataframe batch.

A suite is plain data; Great Expectations is imported only when one is run. What the expectations of a library do not
say by themselves is added here: a suite without expectations, a frame without rows, a judged column that is wholly NULL
and a value that is not finite all fail, each with its own message. An expectation that crashes is told apart from bad
data.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import polars as pl

if TYPE_CHECKING:
    import pandas as pd

# How many bad values a message shows: enough to see the kind, few enough to read.
SAMPLES = 10
# How many reasons a message shows: enough to see the kind, few enough to read.
REASONS = 3


@dataclass(frozen=True)
class Expect:
    """One expectation: the class name in ``great_expectations.expectations`` and its arguments.

    ``may_be_null`` lets the judged column be wholly NULL, where that is an honest outcome (a boundary not found). An
    argument ``where`` judges only the rows in which columns have the given values.
    """

    expectation: str
    may_be_null: bool
    arguments: dict[str, Any]

    def __init__(self, expectation: str, *, may_be_null: bool = False, **arguments: Any) -> None:
        object.__setattr__(self, "expectation", expectation)
        object.__setattr__(self, "may_be_null", may_be_null)
        object.__setattr__(self, "arguments", arguments)

    @property
    def column(self) -> str | None:
        """The judged column, where there is one."""
        return self.arguments.get("column")


@dataclass(frozen=True)
class Suite:
    """The expectations of one table; ``may_be_empty`` where having no rows is an honest outcome."""

    expectations: tuple[Expect, ...]
    may_be_empty: bool = False


@dataclass(frozen=True)
class Finding:
    """What is wrong: which expectation, on which column, how often, up to ten samples; ``crashed`` if it raised."""

    expectation: str
    column: str | None
    unexpected_count: int | None
    samples: tuple[Any, ...] = field(default=())
    message: str = ""
    crashed: bool = False


@dataclass(frozen=True)
class Report:
    """The outcome of one suite on one frame; `reasons` are those that its rows give most often, where it failed."""

    table: str
    n_rows: int
    n_expectations: int
    findings: tuple[Finding, ...]
    reasons: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """True where nothing is wrong."""
        return not self.findings

    @property
    def sentence(self) -> str:
        """One plain sentence for the head of a check."""
        if self.passed:
            return f"{self.table}: {self.n_rows} rows meet all {self.n_expectations} expectations"
        return f"{self.table}: " + "; ".join([*self.reasons, *(finding.message for finding in self.findings)])


def validate(table: str, rows: pl.DataFrame, suite: Suite | Sequence[Expect]) -> Report:
    """Judge a frame by a suite.

    Args:
        table: the name that messages use.
        rows: the rows of one partition, or a sample of a large table.
        suite: what must hold.
    """
    suite = suite if isinstance(suite, Suite) else Suite(tuple(suite))
    findings = _structural(rows, suite)
    if rows.height and suite.expectations:
        findings += _expectations(rows, suite.expectations)
    return Report(table, rows.height, len(suite.expectations), tuple(findings), _reasons(rows) if findings else ())


def _reasons(rows: pl.DataFrame) -> tuple[str, ...]:
    """What the rows themselves say of why they are not `ok`: the commonest reasons, ties by text."""
    if not {"status", "reason"} <= set(rows.columns):
        return ()
    said = rows.filter(pl.col("status") != "ok").drop_nulls("reason").group_by("reason").len()
    return tuple(said.sort(["len", "reason"], descending=[True, False])["reason"].head(REASONS))


def pandas_frame(rows: pl.DataFrame) -> "pd.DataFrame":
    """The frame as pandas sees it, with the meaning kept: integers stay integers beside NULL, dates stay dates."""
    import pandas as pd

    frame = pd.DataFrame()
    for name, dtype in rows.schema.items():
        values = rows[name].to_list()
        if dtype.is_integer():
            frame[name] = pd.array(values, dtype="Int64")
        elif isinstance(dtype, pl.Datetime):
            frame[name] = pd.to_datetime(pd.Series(values, dtype="object"))
        elif dtype == pl.Boolean:
            frame[name] = pd.array(values, dtype="boolean")
        else:
            frame[name] = pd.Series(values, dtype=None if dtype.is_float() else "object")
    return frame


def _structural(rows: pl.DataFrame, suite: Suite) -> list[Finding]:
    found: list[Finding] = []
    if not suite.expectations:
        found.append(Finding("suite", None, None, message="the suite has no expectations"))
    if not rows.height and not suite.may_be_empty:
        found.append(Finding("rows", None, 0, message="there are no rows"))
    for name in dict.fromkeys(e.column for e in suite.expectations if e.column and not e.may_be_null):
        if rows.height and name in rows.columns and rows[name].null_count() == rows.height:
            found.append(Finding("not_all_null", name, rows.height, message=f"every value of {name} is NULL"))
    for name, dtype in rows.schema.items():
        bad = rows.filter(~pl.col(name).is_finite()) if dtype.is_float() else rows.clear()
        if bad.height:
            samples = tuple(str(value) for value in bad[name].head(SAMPLES))
            found.append(Finding("finite", name, bad.height, samples, f"{bad.height} values of {name} are not finite"))
    return found


def _expectations(rows: pl.DataFrame, expectations: Sequence[Expect]) -> list[Finding]:
    import great_expectations as gx

    asset = _source().add_dataframe_asset(name=f"rows-{uuid4()}")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": pandas_frame(rows)})
    findings = []
    for expect in expectations:
        try:
            expectation = getattr(gx.expectations, expect.expectation)(**_with_condition(expect.arguments))
            result = batch.validate(expectation).to_json_dict()
        except Exception as error:
            findings.append(_crash(expect, f"{type(error).__name__}: {error}"))
            continue
        finding = _finding(expect, result)
        if finding:
            findings.append(finding)
    _source().delete_asset(asset.name)
    return findings


def _with_condition(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as Great Expectations takes them: ``where`` becomes a condition on the rows."""
    from great_expectations.expectations.row_conditions import AndCondition, Column

    where = arguments.get("where")
    if where is None:
        return arguments
    equal = [Column(name) == value for name, value in where.items()]
    rest = {name: value for name, value in arguments.items() if name != "where"}
    return {**rest, "row_condition": AndCondition(conditions=equal) if len(equal) > 1 else equal[0]}


def _finding(expect: Expect, result: dict[str, Any]) -> Finding | None:
    raised = [info for info in _exceptions(result.get("exception_info") or {}) if info.get("raised_exception")]
    if raised:
        return _crash(expect, str(raised[0].get("exception_message")))
    if result["success"]:
        return None
    detail = result.get("result") or {}
    count = detail.get("unexpected_count")
    observed = f", observed {detail['observed_value']}" if "observed_value" in detail else ""
    where = f" on {expect.column}" if expect.column else ""
    return Finding(
        expect.expectation,
        expect.column,
        count,
        tuple(detail.get("partial_unexpected_list", ())[:SAMPLES]),
        f"{expect.expectation}{where} failed" + (f" for {count} values" if count is not None else observed),
    )


def _exceptions(info: dict[str, Any]) -> list[dict[str, Any]]:
    return [info] if "raised_exception" in info else [value for value in info.values() if isinstance(value, dict)]


def _crash(expect: Expect, text: str) -> Finding:
    message = f"{expect.expectation} crashed, which says nothing about the data: {text}"
    return Finding(expect.expectation, expect.column, None, message=message, crashed=True)


@cache
def _source() -> Any:
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}  # type: ignore[assignment]  # the setter takes a mapping
    return context.data_sources.add_or_update_pandas("frames")
