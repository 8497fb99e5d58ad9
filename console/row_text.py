"""Rows as text for people: a table where it fits the width, else one record below the other, never cut."""

from datetime import datetime
from typing import Any

import polars as pl


def as_text(rows: pl.DataFrame, width: int = 160) -> str:
    """All rows and columns; NULL where a value is missing. A result without rows says so under its columns."""
    cells = [[_cell(value) for value in row] for row in rows.iter_rows()]
    lengths = [max(map(len, column)) for column in zip(rows.columns, *cells, strict=True)]
    is_plain = all("\n" not in cell for row in cells for cell in row)
    if is_plain and sum(lengths) + 2 * (len(lengths) - 1) <= width:
        rule = ["-" * length for length in lengths]
        lines = ["  ".join(map(str.ljust, line, lengths)).rstrip() for line in (rows.columns, rule, *cells)]
    else:
        longest = max(map(len, rows.columns))
        lines = [line for number, row in enumerate(cells, 1) for line in _record(number, rows.columns, row, longest)]
        lines = lines or [", ".join(rows.columns)]
    return "\n".join([*lines, *([] if cells else ["(no rows)"])])


def _record(number: int, names: list[str], row: list[str], longest: int) -> list[str]:
    indent = "\n" + " " * (longest + 4)
    return [
        f"row {number}",
        *(f"  {n:<{longest}}  {v.replace(chr(10), indent)}" for n, v in zip(names, row, strict=True)),
    ]


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, (list, pl.Series)):
        return f"[{', '.join(map(_cell, value))}]"
    return str(value)
