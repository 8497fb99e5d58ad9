"""Which tables each step reads: its SQL, with views and table macros replaced by what they select from."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import dagster as dg
import duckdb
import pytest

from resources.warehouse.schema import MARTS_DIR, SCHEMA_DIR, ddl_files, tables
from resources.warehouse.store import Warehouse


class ReadTables:
    """Turns a query into the declared tables that it reads."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        for folder in (SCHEMA_DIR, MARTS_DIR):
            for file in ddl_files(folder):
                self._connection.execute(file.read_text(encoding="utf-8"))
        self._views = self._bodies("select schema_name, view_name, sql from duckdb_views() where not internal")
        self._macros = self._bodies(
            "select schema_name, function_name, macro_definition from duckdb_functions() "
            "where function_type = 'table_macro' and not internal"
        )

    def of(self, sql: str) -> set[str]:
        """The declared tables behind a query."""
        read: set[str] = set()
        waiting, seen = [sql], set()
        while waiting:
            query = waiting.pop()
            for name in self._names(query):
                if name in tables():
                    read.add(name)
                elif name not in seen:
                    seen.add(name)
                    waiting += [body for bodies in (self._views, self._macros) if (body := bodies.get(name))]
        return read

    def _names(self, query: str) -> Iterator[str]:
        """Every ``schema.name`` that the query's syntax tree selects from, tables, views and table macros alike."""
        (tree,) = self._connection.execute("select json_serialize_sql(?)", [query]).fetchone() or ("{}",)
        parsed = json.loads(tree)
        assert not parsed["error"], parsed
        yield from _selected_from(parsed)

    def _bodies(self, sql: str) -> dict[str, str]:
        rows = self._connection.execute(sql).fetchall()
        return {f"{schema}.{name}": re.sub(r"(?is)^create view .*? as ", "", body) for schema, name, body in rows}


def _selected_from(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("type") == "BASE_TABLE" and node["schema_name"]:
            yield f"{node['schema_name']}.{node['table_name']}"
        if node.get("type") == "TABLE_FUNCTION" and node["function"].get("schema"):
            yield f"{node['function']['schema']}.{node['function']['function_name']}"
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _selected_from(child)


@contextmanager
def recorded_reads(patch: pytest.MonkeyPatch) -> Iterator[dict[str, set[str]]]:
    """The tables that each step (by its operation's name) reads while the context is open."""
    reads: dict[str, set[str]] = defaultdict(set)
    expand, query = ReadTables(), Warehouse.query

    def recording(store: Warehouse, sql: str, params: Any = None) -> Any:
        with suppress(dg.DagsterInvariantViolationError):
            reads[dg.AssetExecutionContext.get().op_execution_context.op.name] |= expand.of(sql)
        return query(store, sql, params)

    patch.setattr(Warehouse, "query", recording)
    yield reads
    patch.setattr(Warehouse, "query", query)
