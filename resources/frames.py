"""From a method's frame to what a declared table accepts: the one path by which values reach the warehouse."""

import polars as pl

from resources.schema import Table


def declared_frame(table: Table, rows: pl.DataFrame) -> pl.DataFrame:
    """Check a frame against its table and make its values storable.

    NaN and infinity become NULL; where the table has ``status`` and ``reason`` and the row says ``ok``, they say
    ``nonfinite`` and name the columns. A status without a reason clears the reason. Instants with a time zone become
    UTC. Columns keep the frame's order.

    Raises:
        ValueError: a column that the table does not declare, or a key column that is absent or NULL.
    """
    unknown = [name for name in rows.columns if table.column(name) is None]
    if unknown:
        raise ValueError(f"{table.name} has no column {', '.join(unknown)}")
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
