"""From a method's frame to what a declared table accepts: the one path by which values reach the warehouse."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from resources.warehouse.schema import Table, table

Rows = pl.DataFrame | Sequence[Mapping[str, Any]]
"""What can be stored: a frame, or records whose types the table declares."""


def typed_frame(name: str, records: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Records as a frame whose columns have the types that the table declares.

    The columns are those of any record, in the order in which they first occur; a record without one has NULL there.
    No records give a frame without rows that has the key columns.

    Raises:
        ValueError: a column that the table does not declare, or a value that is not of its column's type.
        KeyError: the table is not declared.
    """
    declared = table(name)
    columns = list(dict.fromkeys(key for record in records for key in record)) or list(declared.primary_key)
    _refuse_unknown(declared, columns)
    return pl.DataFrame([_series(declared, column, [record.get(column) for record in records]) for column in columns])


def _series(declared: Table, name: str, values: list[Any]) -> pl.Series:
    column = declared.column(name)
    assert column is not None
    try:
        return pl.Series(name, values, dtype=column.dtype, strict=True)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"{declared.name}.{name} is {column.type}: {str(error).splitlines()[0]}") from error


def _refuse_unknown(declared: Table, columns: Sequence[str]) -> None:
    unknown = [name for name in columns if declared.column(name) is None]
    if unknown:
        raise ValueError(f"{declared.name} has no column {', '.join(unknown)}")


def declared_frame(table: Table, rows: Rows) -> pl.DataFrame:
    """Check a frame, or records, against their table and make the values storable.

    NaN and infinity become NULL; where the table has ``status`` and ``reason`` and the row says ``ok``, they say
    ``nonfinite`` and name the columns. A status without a reason clears the reason. Instants with a time zone become
    UTC. Columns keep the frame's order.

    Raises:
        ValueError: a column that the table does not declare, or a key column that is absent or NULL.
    """
    if not isinstance(rows, pl.DataFrame):
        rows = typed_frame(table.name, rows)
    _refuse_unknown(table, rows.columns)
    absent = [name for name in table.primary_key if name not in rows.columns]
    if absent:
        raise ValueError(f"{table.name}: the key column {', '.join(absent)} is missing from the rows")
    empty = [name for name in table.primary_key if rows[name].null_count()]
    if empty:
        raise ValueError(f"{table.name}: {rows[empty[0]].null_count()} rows have no {empty[0]}")
    if "status" in rows.columns and "reason" not in rows.columns and table.column("reason"):
        rows = rows.with_columns(reason=pl.lit(None, dtype=pl.String))
    return _finite(table, _in_utc(rows))


def _in_utc(rows: pl.DataFrame) -> pl.DataFrame:
    zoned = [name for name, dtype in rows.schema.items() if isinstance(dtype, pl.Datetime) and dtype.time_zone]
    return rows.with_columns(pl.col(name).dt.convert_time_zone("UTC").dt.replace_time_zone(None) for name in zoned)


def _finite(table: Table, rows: pl.DataFrame) -> pl.DataFrame:
    floats = [name for name, dtype in rows.schema.items() if dtype.is_float()]
    broken = [name for name in floats if not rows[name].is_finite().fill_null(True).all()]
    if not broken:
        return rows
    bad = pl.any_horizontal(pl.col(name).is_finite().not_().fill_null(False) for name in broken)
    said: list[pl.Expr] = []
    if table.column("status") and "status" in rows.columns:
        ok = bad & (pl.col("status") == "ok")
        said.append(pl.when(ok).then(pl.lit("nonfinite")).otherwise(pl.col("status")).alias("status"))
        if table.column("reason"):
            before = pl.col("reason") if "reason" in rows.columns else pl.lit(None, dtype=pl.String)
            words = pl.lit(f"not a finite number: {', '.join(broken)}")
            said.append(pl.when(ok).then(words).otherwise(before).alias("reason"))
    values = [pl.when(pl.col(name).is_finite()).then(pl.col(name)).alias(name) for name in broken]
    return rows.with_columns(*said, *values)
