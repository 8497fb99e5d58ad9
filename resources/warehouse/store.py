"""The warehouse: one DuckDB file, owned by the pipeline, and the published copy that people read.

DuckDB lets one process write, and while it does no other process can even read. So every connection here is short and
taken under a lock file; writes happen in one transaction; readers get a copy that is swapped in atomically. Nothing
computes or fetches while a connection is open, and no connection outlives the call that opened it.
"""

import json
import logging
import os
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from errno import EIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import duckdb
import polars as pl
from filelock import FileLock, Timeout

from resources.warehouse.frames import Rows, declared_frame
from resources.warehouse.schema import MARTS_DIR, SCHEMA_DIR, Table, ddl_digest, ddl_files, tables

REBUILD = "python launch.py rebuild"
"""The command that mends a warehouse, named in errors."""

READABLE_SINCE = "v1.2.0"
"""Storage format of the published copy: DuckDB 1.2 is what notebooks of early 2025 pinned, and every later release
opens it; formats before lack nothing that the tables need, but 1.2 is the oldest release that was tested."""

PREVIOUS_COPIES = 2
"""Published copies kept beside the present one: enough to go back past one bad run and the run that noticed it."""

# This module's messages; the caller decides where they go.
_LOG = logging.getLogger("strandline.warehouse")
# One lock for each warehouse file, shared by the threads of this process.
_THREADS: dict[Path, threading.RLock] = {}


class WarehouseError(RuntimeError):
    """The warehouse cannot be used; the message names the file, the cause and the command that mends it."""


class DamagedFileError(WarehouseError):
    """A DuckDB file of which a part cannot be read."""


@dataclass(frozen=True)
class Replace:
    """Replace the rows that ``where`` selects (all rows where it is empty) by ``rows``."""

    table: str
    rows: Rows
    where: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Merge:
    """Insert ``rows``, or update those whose primary key is there; columns absent from ``rows`` keep their values."""

    table: str
    rows: Rows


def removal(table: str, where: Mapping[str, Any]) -> Replace:
    """The change that takes the rows which ``where`` selects out of a table."""
    return Replace(table, [], where)


Change = Replace | Merge
Params = Sequence[Any] | Mapping[str, Any] | None


class Reader(Protocol):
    """Whatever answers a query: the warehouse or its published copy."""

    def query(self, sql: str, params: Params = None) -> pl.DataFrame:
        """The rows of one query."""


class Warehouse:
    """Short, locked access to one DuckDB file.

    Args:
        path: the warehouse file; created with all tables on first use.
        published: where readers find their copy.
        patience: seconds to wait for another process before giving up with the holder's process id.
    """

    def __init__(self, path: Path, published: Path, patience: float = 300.0) -> None:
        self.path = Path(path).resolve()
        self.published = Path(published).resolve()
        self.patience = patience
        self._current = False

    def query(self, sql: str, params: Params = None) -> pl.DataFrame:
        """The rows of one query as a polars frame."""
        with self._connection() as connection:
            return _frame(connection, sql, params)

    def replace(self, table: str, rows: Rows, where: Mapping[str, Any] | None = None) -> int:
        """Replace a partition (or the whole table) in one transaction; returns the rows written."""
        return self.write(Replace(table, rows, where or {}))

    def merge(self, table: str, rows: Rows) -> int:
        """Upsert rows by primary key in one transaction; returns the rows written."""
        return self.write(Merge(table, rows))

    def write(self, *changes: Change) -> int:
        """Apply all changes in ONE transaction, or none of them.

        Duplicate keys inside a batch are resolved without regard to the order of rows or columns: the row that sorts
        last over the columns in the order in which the table declares them wins, and the log counts those dropped. NaN
        and infinity become NULL, and ``status`` says ``nonfinite``. Returns the rows written.

        Raises:
            ValueError: an unknown table or column, or a missing key.
            duckdb.ConstraintException: a value that the DDL forbids; nothing is written.
        """
        prepared = [(change, _prepared(_declared(change.table), change.rows)) for change in changes]
        with self._connection() as connection:
            connection.begin()
            try:
                for change, frame in prepared:
                    _apply(connection, _declared(change.table), change, frame)
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
        return sum(frame.height for _, frame in prepared)

    def digest(self, table: str, columns: Sequence[str] | None = None) -> str:
        """A hash of the table's rows in key order, to compare two states of it."""
        declared = _declared(table)
        names = ", ".join(columns or [column.name for column in declared.columns])
        order = ", ".join(declared.primary_key)
        frame = self.query(
            f"select md5(string_agg(row_text, '\n')) as d from (select ({names})::varchar as row_text "
            f"from {table} order by {order})"
        )
        return str(frame.item())

    def publish(self) -> Path:
        """Swap a fresh copy in for readers; those who still read the old copy are not disturbed.

        Every row is read and written anew, so that a file with a damaged block is never published, in the storage
        format of ``READABLE_SINCE``, so that older clients can open it. The copies that it replaces are kept beside it
        as ``previous_copies``.

        Raises:
            DamagedFileError: the warehouse cannot be read whole; what is published stays.
            WarehouseError: the new copy cannot be written, as on a full disk; what is published stays.
        """
        self.published.parent.mkdir(parents=True, exist_ok=True)
        snapshot, fresh = (self._scratch(kind) for kind in ("snapshot", "fresh"))
        with FileLock(self.published.with_name(f".{self.published.name}.lock")):
            self._sweep()
            try:
                self._take(snapshot)
                _copy_every_row(snapshot, fresh)
                _flush(fresh)
                self._keep_previous()
                os.replace(fresh, self.published)
            except DamagedFileError as error:
                raise DamagedFileError(
                    f"{self.path} cannot be read whole: {error}. Nothing was published; "
                    f"rebuild it from the last good copy with `{REBUILD}`"
                ) from error
            except OSError as error:
                raise WarehouseError(
                    f"{self.published} cannot be written: {error.strerror or error}; the old copy stays"
                ) from error
            finally:
                _remove_database(snapshot)
                _remove_database(fresh)
        return self.published

    def _take(self, snapshot: Path) -> None:
        """Copy the file as it stands, which takes less time under the lock than to read every row."""
        with self._lock():
            with self._open() as connection:
                try:
                    connection.execute("checkpoint")
                except duckdb.Error as error:
                    raise DamagedFileError(str(error).splitlines()[0]) from error
            shutil.copyfile(self.path, snapshot)

    @property
    def previous_copies(self) -> list[Path]:
        """Where the published copies before the present one are kept, the newest first."""
        stem, ending = self.published.stem, self.published.suffix
        return [self.published.with_name(f"{stem}.previous-{age}{ending}") for age in range(1, PREVIOUS_COPIES + 1)]

    def restore(self) -> tuple[Path, Path | None]:
        """Set the file aside and start from the newest published copy that can be read whole and fits the DDL.

        Returns where the old file is, and the copy from which the new one starts; None where none fits and the new
        warehouse is empty. OSError where the new file cannot be written; the old one then stays in its place.
        """
        aside = self.path.with_name(f"{self.path.name}.{datetime.now(UTC):%Y%m%dT%H%M%S}.aside")
        fresh = self.path.with_name(f".{self.path.name}.{os.getpid()}.fresh")
        with self._lock():
            try:
                copies = (copy for copy in (self.published, *self.previous_copies) if copy.exists())
                start = next((copy for copy in copies if _starts_from(copy, fresh)), None)
                _move(self.path, aside)
                if start:
                    _move(fresh, self.path)
            finally:
                _remove_database(fresh)
            self._current = False
            with self._open():
                pass
        return aside, start

    def _keep_previous(self) -> None:
        """Move the published copies on by one place; the oldest goes."""
        copies = [self.published, *self.previous_copies]
        for newer, older in reversed(list(pairwise(copies))):
            if newer.exists():
                _remove(older)
                _duplicate(newer, older) if newer == self.published else newer.rename(older)

    def _scratch(self, kind: str) -> Path:
        return self.published.with_name(f".{self.published.name}.{os.getpid()}.{kind}")

    def _sweep(self) -> None:
        """Remove what publishing runs left behind whose process is gone."""
        for file in self.published.parent.glob(f".{self.published.name}.*"):
            pid = file.name.removeprefix(f".{self.published.name}.").split(".")[0]
            if pid.isdigit() and not _is_alive(int(pid)):
                _remove(file)

    @contextmanager
    def _connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._lock(), self._open() as connection:
            yield connection

    @contextmanager
    def _open(self) -> Iterator[duckdb.DuckDBPyConnection]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = _connect(self.path)
        try:
            if not self._current:
                _bring_up_to_date(connection, self.path)
                self._current = True
            yield connection
        finally:
            connection.close()

    @contextmanager
    def _lock(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        holder = self.path.with_suffix(".holder")
        lock = FileLock(self.path.with_suffix(".lock"), timeout=self.patience, poll_interval=0.02)
        with _THREADS.setdefault(self.path, threading.RLock()):
            try:
                lock.acquire()
            except Timeout:
                raise WarehouseError(
                    f"{self.path} has been in use by {_describe(holder)} for over {self.patience:.0f} s; "
                    f"read the published copy {self.published} meanwhile"
                ) from None
            try:
                holder.write_text(json.dumps({"pid": os.getpid(), "since": datetime.now(UTC).isoformat()}))
                yield
            finally:
                lock.release()


class PublishedCopy:
    """Read-only access to the readers' copy; it blocks no writer and is never half-written."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)

    def query(self, sql: str, params: Params = None) -> pl.DataFrame:
        """The rows of one query.

        Raises:
            WarehouseError: nothing has been published yet.
            ValueError: DuckDB does not accept the query; the message is DuckDB's.
        """
        if not self.path.exists():
            raise WarehouseError(f"{self.path} does not exist yet: run `make run` first")
        connection = self._connect()
        try:
            connection.execute("set timezone = 'UTC'")
            return _frame(connection, sql, params)
        except duckdb.Error as error:
            raise ValueError(str(error)) from error
        finally:
            connection.close()

    def _connect(self) -> duckdb.DuckDBPyConnection:
        try:
            return duckdb.connect(str(self.path), read_only=True)
        except duckdb.Error as error:
            raise WarehouseError(
                f"{self.path} cannot be read with DuckDB {duckdb.__version__}: {str(error).splitlines()[0]}. "
                "The next `make run` publishes it anew."
            ) from error


def _frame(connection: duckdb.DuckDBPyConnection, sql: str, params: Params = None) -> pl.DataFrame:
    relation = connection.sql(sql, params=params)
    if relation is None:
        raise ValueError(f"not a query that returns rows: {sql.strip()[:80]!r}")
    frame = pl.from_arrow(relation.to_arrow_table())
    assert isinstance(frame, pl.DataFrame)
    return frame


def _declared(name: str) -> Table:
    declared = tables()
    if name not in declared:
        raise ValueError(f"{name!r} is not a declared table; sql/schema has {', '.join(sorted(declared))}")
    return declared[name]


def _connect(path: Path) -> duckdb.DuckDBPyConnection:
    try:
        connection = duckdb.connect(str(path))
    except (
        duckdb.IOException,
        duckdb.SerializationException,
        duckdb.InternalException,
        duckdb.FatalException,
    ) as error:
        raise WarehouseError(
            f"{path} cannot be opened with DuckDB {duckdb.__version__}: {str(error).splitlines()[0]}. "
            f"Rebuild it from the published copy and the caches with `{REBUILD}`."
        ) from error
    connection.execute("set timezone = 'UTC'")
    return connection


def _bring_up_to_date(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Create what the DDL declares and the file lacks; refuse a file whose tables have other columns."""
    digest = ddl_digest(SCHEMA_DIR, MARTS_DIR)
    connection.execute("create schema if not exists meta")
    connection.execute(
        "create table if not exists meta.versions (ddl_digest text, duckdb_version text, written_at timestamp)"
    )
    if connection.execute("select 1 from meta.versions where ddl_digest = ?", [digest]).fetchall():
        return
    connection.begin()
    try:
        _create_missing(connection, path)
        for file in ddl_files(MARTS_DIR):
            connection.execute(file.read_text(encoding="utf-8"))
        connection.execute("delete from meta.versions")
        connection.execute(
            "insert into meta.versions values (?, ?, ?)",
            [digest, duckdb.__version__, datetime.now(UTC).replace(tzinfo=None)],
        )
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def _create_missing(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    there = {
        f"{row[0]}.{row[1]}"
        for row in connection.execute("select schema_name, table_name from duckdb_tables()").fetchall()
    }
    for name, declared in tables().items():
        if name in there:
            _add_columns(connection, declared, path)
    for file in ddl_files(SCHEMA_DIR):
        for statement in duckdb.extract_statements(file.read_text(encoding="utf-8")):
            if not any(_creates(statement.query, name) for name in there):
                connection.execute(statement)


def _creates(query: str, name: str) -> bool:
    return query.lower().lstrip().startswith(f"create table {name} ")


def _add_columns(connection: duckdb.DuckDBPyConnection, declared: Table, path: Path) -> None:
    schema, name = declared.key
    rows = connection.execute(
        "select column_name, data_type from duckdb_columns() where schema_name = ? and table_name = ?", [schema, name]
    ).fetchall()
    stored = dict(rows)
    for column in declared.columns:
        if column.name not in stored and column.nullable:
            connection.execute(f"alter table {declared.name} add column {column.name} {column.type}")
        elif stored.get(column.name) != column.type:
            raise WarehouseError(
                f"{path}: {declared.name}.{column.name} is {stored.get(column.name, 'missing')}, declared as "
                f"{column.type}; rebuild the warehouse with `{REBUILD}`"
            )


def _prepared(declared: Table, rows: Rows) -> pl.DataFrame:
    """A frame that fits the table, its columns in declared order and one row a key."""
    frame = declared_frame(declared, rows)
    frame = frame.select(column.name for column in declared.columns if column.name in frame.columns)
    if not declared.primary_key:
        return frame
    keys = list(declared.primary_key)
    dropped = frame.height - frame.select(keys).n_unique()
    if not dropped:
        return frame
    _LOG.warning("%s: %d rows share a key with another row of their batch and were dropped", declared.name, dropped)
    order = [name for name in frame.columns if not isinstance(frame.schema[name], pl.List)]
    ranked = frame.sort(order, descending=True, nulls_last=True, maintain_order=True)
    return ranked.unique(keys, keep="first", maintain_order=True)


def _apply(connection: duckdb.DuckDBPyConnection, declared: Table, change: Change, frame: pl.DataFrame) -> None:
    connection.register("batch", frame.to_arrow())
    if isinstance(change, Replace):
        _delete(connection, declared, change.where)
    connection.execute(_insert(declared, frame.columns, upsert=isinstance(change, Merge)))
    connection.unregister("batch")


def _delete(connection: duckdb.DuckDBPyConnection, declared: Table, where: Mapping[str, Any]) -> None:
    unknown = [name for name in where if declared.column(name) is None]
    if unknown:
        raise ValueError(f"{declared.name} has no column {unknown[0]!r} to replace by")
    condition = " and ".join(f"{name} is not distinct from ?" for name in where) or "true"
    connection.execute(f"delete from {declared.name} where {condition}", list(where.values()))


def _insert(declared: Table, columns: Sequence[str], *, upsert: bool) -> str:
    key = ", ".join(declared.primary_key)
    types = {column.name: column.type for column in declared.columns}
    cast = ", ".join(f"cast({name} as {types[name]}) as {name}" for name in columns)
    ordered = f" order by {key}" if key else ""
    return f"insert into {declared.name} by name select {cast} from batch{ordered}" + (
        _on_conflict(declared, columns) if upsert else ""
    )


def _on_conflict(declared: Table, columns: Sequence[str]) -> str:
    values = [name for name in columns if name not in declared.primary_key]
    update = ", ".join(f"{name} = excluded.{name}" for name in values)
    return f" on conflict ({', '.join(declared.primary_key)}) do " + (f"update set {update}" if update else "nothing")


def _copy_every_row(source: Path, target: Path) -> None:
    """Read every row of a DuckDB file and write it, with views, macros and comments, into a new one.

    Raises:
        DamagedFileError: a part of the source cannot be read.
        OSError: the target cannot be written, although the source is whole.
    """
    connection = duckdb.connect()
    try:
        connection.execute(f"attach '{_quoted(source)}' as source (read_only)")
        connection.execute(f"attach '{_quoted(target)}' as target (storage_version '{READABLE_SINCE}')")
        connection.execute("copy from database source to target")
        connection.execute("detach target")
    except duckdb.Error as error:
        _require_whole(source)
        raise OSError(EIO, str(error).splitlines()[0], str(target)) from error
    finally:
        connection.close()


def _require_whole(path: Path) -> None:
    """Read every value of a DuckDB file; DamagedFileError, with DuckDB's words, where that fails."""
    connection = duckdb.connect()
    try:
        connection.execute(f"attach '{_quoted(path)}' as source (read_only)")
        named = connection.execute(
            "select schema_name, table_name from duckdb_tables() where database_name = 'source'"
        ).fetchall()
        for schema, name in named:
            connection.execute(f'select bit_xor(hash(t)) from source."{schema}"."{name}" t').fetchall()
    except duckdb.Error as error:
        raise DamagedFileError(str(error).splitlines()[0]) from error
    finally:
        connection.close()


def _starts_from(copy: Path, fresh: Path) -> bool:
    """Take every row of a published copy into a new file; False, and no file, where it is damaged or unfit."""
    try:
        _copy_every_row(copy, fresh)
        connection = _connect(fresh)
        try:
            _bring_up_to_date(connection, fresh)
        finally:
            connection.close()
    except WarehouseError:
        _remove_database(fresh)
        return False
    return True


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _duplicate(path: Path, target: Path) -> None:
    """A second name for a file, or a second file where the file system has no hard links."""
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)


def _remove_database(path: Path) -> None:
    """Remove a DuckDB file and its write-ahead log where they are there."""
    _remove(path)
    _remove(Path(f"{path}.wal"))


def _remove(path: Path) -> None:
    """Remove a file where it is there; a file that cannot be removed is nobody's error here."""
    with suppress(OSError):
        path.unlink()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _move(path: Path, target: Path) -> None:
    for ending in ("", ".wal"):
        file = Path(f"{path}{ending}")
        if file.exists():
            file.rename(f"{target}{ending}")


def _describe(holder: Path) -> str:
    try:
        state = json.loads(holder.read_text())
        return f"process {state['pid']} (since {state['since']})"
    except (OSError, ValueError, KeyError):
        return "another process"


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
