"""The tables as the DDL in ``sql/schema`` declares them: the one place from which names, types and comments derive.

The DDL is executed in an in-memory database and read back from its catalogue, so that nothing here parses SQL.
"""

from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import duckdb
import polars as pl

from resources.places import ROOT

# The DDL of the tables, the one place where columns are declared.
SCHEMA_DIR = ROOT / "sql" / "schema"
# The views that readers of the warehouse query.
MARTS_DIR = ROOT / "sql" / "marts"


@dataclass(frozen=True)
class Column:
    """A column: its SQL type, whether it may be NULL, what it means, and the polars type of its values."""

    name: str
    type: str
    nullable: bool
    comment: str
    dtype: pl.DataType


@dataclass(frozen=True)
class Table:
    """A table as declared: ``name`` is ``schema.table``, ``comment`` says what a row is."""

    name: str
    comment: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]

    @property
    def schema(self) -> str:
        """The noun that owns the table."""
        return self.name.split(".")[0]

    @property
    def key(self) -> list[str]:
        """The Dagster asset key, the same two words."""
        return self.name.split(".")

    def column(self, name: str) -> Column | None:
        """The column of that name, or None."""
        return next((column for column in self.columns if column.name == name), None)


def ddl_files(directory: Path = SCHEMA_DIR) -> list[Path]:
    """The DDL files in the order in which they are executed."""
    return sorted(directory.glob("*.sql"))


def ddl_digest(*directories: Path) -> str:
    """A digest of all SQL files, so that a warehouse knows whether its schema is current."""
    digest = sha256()
    for directory in directories or (SCHEMA_DIR, MARTS_DIR):
        for file in ddl_files(directory):
            digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


@lru_cache(maxsize=4)
def tables(directory: Path = SCHEMA_DIR) -> dict[str, Table]:
    """All declared tables by name.

    Raises:
        duckdb.Error: a DDL file is not valid; the message names the statement.
    """
    connection = duckdb.connect()
    try:
        for file in ddl_files(directory):
            connection.execute(file.read_text(encoding="utf-8"))
        return {table.name: table for table in _catalogue(connection)}
    finally:
        connection.close()


def table(name: str) -> Table:
    """The declared table of that name; KeyError names the tables that exist."""
    declared = tables()
    if name not in declared:
        raise KeyError(f"no table {name!r} in sql/schema; declared: {', '.join(sorted(declared))}")
    return declared[name]


def _catalogue(connection: duckdb.DuckDBPyConnection) -> list[Table]:
    tables = connection.execute(
        "select schema_name, table_name, coalesce(comment, '') from duckdb_tables() order by all"
    ).fetchall()
    return [
        Table(f"{schema}.{name}", comment, _columns(connection, schema, name), _primary_key(connection, schema, name))
        for schema, name, comment in tables
    ]


def _columns(connection: duckdb.DuckDBPyConnection, schema: str, name: str) -> tuple[Column, ...]:
    rows = connection.execute(
        "select column_name, data_type, is_nullable, coalesce(comment, '') from duckdb_columns() "
        "where schema_name = ? and table_name = ? order by column_index",
        [schema, name],
    ).fetchall()
    empty = pl.from_arrow(connection.sql(f"from {schema}.{name} limit 0").to_arrow_table())
    assert isinstance(empty, pl.DataFrame)
    return tuple(Column(name, kind, nullable, comment, empty.schema[name]) for name, kind, nullable, comment in rows)


def _primary_key(connection: duckdb.DuckDBPyConnection, schema: str, name: str) -> tuple[str, ...]:
    keys = connection.execute(
        "select constraint_column_names from duckdb_constraints() "
        "where schema_name = ? and table_name = ? and constraint_type = 'PRIMARY KEY'",
        [schema, name],
    ).fetchall()
    return tuple(keys[0][0]) if keys else ()
