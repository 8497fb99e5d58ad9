"""The warehouse keeps what was finished, loses nothing to concurrency, and stores no number that is not one."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import duckdb
import polars as pl
import pytest

from resources.warehouse.schema import MARTS_DIR, SCHEMA_DIR, tables
from resources.warehouse.store import DamagedFileError, Merge, PublishedCopy, Replace, Warehouse, WarehouseError

ROOT = Path(__file__).resolve().parents[4]


def warehouse(folder: Path, patience: float = 60.0) -> Warehouse:
    return Warehouse(folder / "strandline.duckdb", folder / "published" / "strandline.duckdb", patience)


def scores(n: int, model: str = "m", start: int = 0) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "model": [model] * n,
            "text_sha256": [f"{i:08d}" for i in range(start, start + n)],
            "max_tokens": [512] * n,
            "mean_nll": [i / 7 for i in range(start, start + n)],
            "status": ["ok"] * n,
            "dtype": ["float32"] * n,
            "scorer_version": ["1"] * n,
        }
    )


def resource(name: str, **more: object) -> dict[str, object]:
    return {"resource": name, "kind": "panel", "max_tokens": 512, **more}


def python(script: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_new_file_holds_every_declared_table(tmp_path: Path) -> None:
    found = warehouse(tmp_path).query(
        "select schema_name || '.' || table_name as name from duckdb_tables() where schema_name <> 'meta'"
    )
    assert set(found["name"]) == set(tables())


def test_replace_touches_only_its_partition(tmp_path: Path) -> None:
    store = warehouse(tmp_path)
    store.merge("perplexity.scores", pl.concat([scores(3, "a"), scores(2, "b")]))
    store.replace("perplexity.scores", scores(1, "a"), where={"model": "a"})
    counts = store.query("select model, count(*) as n from perplexity.scores group by model order by model")
    assert counts.rows() == [("a", 1), ("b", 2)]


def test_a_merge_updates_what_is_there_and_keeps_columns_it_does_not_bring(tmp_path: Path) -> None:
    store = warehouse(tmp_path)
    store.merge("spans.resources", pl.DataFrame([resource("a", description="old"), resource("b", description="kept")]))
    store.merge("spans.resources", pl.DataFrame([resource("b", max_tokens=256), resource("c")]))
    rows = store.query("select resource, max_tokens, description from spans.resources order by resource").rows()
    assert rows == [("a", 512, "old"), ("b", 256, "kept"), ("c", 512, None)]


def test_all_changes_of_one_write_happen_or_none(tmp_path: Path) -> None:
    store = warehouse(tmp_path)
    bad = scores(1).with_columns(dtype=pl.lit(None, dtype=pl.String))
    with pytest.raises(ValueError, match="dtype"):
        store.write(Merge("perplexity.scores", scores(2)), Merge("perplexity.scores", bad))
    negative = scores(1, "z").with_columns(n_tokens=pl.lit(-1))
    with pytest.raises(duckdb.ConstraintException):
        store.write(Replace("perplexity.scores", scores(2)), Merge("perplexity.scores", negative))
    assert store.query("select count(*) as n from perplexity.scores").item() == 0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_value_that_is_not_finite_becomes_null_with_status_and_reason(tmp_path: Path, value: float) -> None:
    store = warehouse(tmp_path)
    store.merge("perplexity.scores", scores(2).with_columns(mean_nll=pl.Series([value, 1.5])))
    rows = store.query("select mean_nll, status, reason from perplexity.scores order by text_sha256").rows()
    assert rows == [(None, "nonfinite", "not a finite number: mean_nll"), (1.5, "ok", None)]


def test_a_status_that_already_explains_is_kept(tmp_path: Path) -> None:
    store = warehouse(tmp_path)
    frame = scores(1).with_columns(
        mean_nll=pl.lit(float("nan")), status=pl.lit("too_short"), reason=pl.lit("one token only")
    )
    store.merge("perplexity.scores", frame)
    assert store.query("select mean_nll, status, reason from perplexity.scores").rows() == [
        (None, "too_short", "one token only")
    ]


def test_unknown_tables_columns_and_absent_keys_are_refused_by_name(tmp_path: Path) -> None:
    store = warehouse(tmp_path)
    with pytest.raises(ValueError, match="not a declared table"):
        store.merge("perplexity.nothing", scores(1))
    with pytest.raises(ValueError, match="no column guess"):
        store.merge("perplexity.scores", scores(1).with_columns(guess=pl.lit(1)))
    with pytest.raises(ValueError, match="key column model is missing"):
        store.merge("perplexity.scores", scores(1).drop("model"))
    with pytest.raises(ValueError, match="1 rows have no model"):
        store.merge("perplexity.scores", scores(1).with_columns(model=pl.lit(None, dtype=pl.String)))
    with pytest.raises(ValueError, match="no column 'guess' to replace by"):
        store.replace("perplexity.scores", scores(1), where={"guess": 1})


def test_instants_are_stored_in_utc_whatever_zone_they_come_in(tmp_path: Path) -> None:
    store = warehouse(tmp_path)
    instant = datetime(2024, 3, 1, 12, tzinfo=timezone(timedelta(hours=9)))
    frame = pl.DataFrame(
        {"ecosystem": ["npm"], "package": ["p"], "project": ["P"], "status": ["ok"], "fetched_at": [instant]}
    )
    store.merge("releases.sources", frame)
    assert store.query("select fetched_at from releases.sources").item() == datetime(2024, 3, 1, 3)  # noqa: DTZ001


WRITE_SHUFFLED = """
import random, sys
from pathlib import Path
import polars as pl
from resources.warehouse.store import Warehouse
from tests.unit.adapters.warehouse.test_warehouse import mixed
folder = Path(sys.argv[1])
store = Warehouse(folder / "w.duckdb", folder / "p.duckdb")
frame = mixed().sample(fraction=1, shuffle=True, seed=int(sys.argv[2]))
half = frame.height // 2
store.merge("spans.revisions", frame[:half]); store.merge("spans.revisions", frame[half:])
print(store.digest("spans.revisions"))
"""


def mixed() -> pl.DataFrame:
    """Rows with dates, instants, NULL and one doubled key whose rows differ."""
    rows = [
        {
            "resource": "r",
            "topic": f"t{i % 7}",
            "month": date(2020 + i // 24, i // 2 % 12 + 1, 1),
            "revised_at": datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=7 * i),
            "status": "missing",
            "reason": "no revision yet",
            "revision": f"r{i}" if i % 5 else None,
        }
        for i in range(60)
    ]
    keyed = {(row["topic"], row["month"]): row for row in rows}
    return pl.DataFrame(list(keyed.values()))


def test_tables_do_not_depend_on_the_time_zone_or_on_the_order_of_input(tmp_path: Path) -> None:
    digests = []
    for i, zone in enumerate(["UTC", "America/Los_Angeles", "Asia/Tokyo", "UTC"]):
        folder = tmp_path / str(i)
        folder.mkdir()
        process = python(WRITE_SHUFFLED, str(folder), str(i), TZ=zone)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        digests.append(out.strip())
    assert len(set(digests)) == 1
    assert len(digests[0]) == 32


def test_a_doubled_key_in_a_batch_is_resolved_alike_in_any_order(tmp_path: Path) -> None:
    store = warehouse(tmp_path)
    twice = pl.concat([scores(1), scores(1).with_columns(mean_nll=pl.lit(9.0))])
    for frame in (twice, twice.reverse()):
        store.replace("perplexity.scores", frame)
        assert store.query("select mean_nll from perplexity.scores").rows() == [(9.0,)]


WRITE_FOR_EVER = """
import sys
from pathlib import Path
from resources.warehouse.store import Warehouse
from tests.unit.adapters.warehouse.test_warehouse import scores
folder = Path(sys.argv[1])
store = Warehouse(folder / "strandline.duckdb", folder / "p.duckdb")
batch = int(sys.argv[2]) * 1000
while True:
    store.merge("perplexity.scores", scores(500, "m%d" % batch))
    print(batch, flush=True)
    batch += 1
"""


@pytest.mark.slow
def test_killing_a_writer_at_random_moments_loses_at_most_the_batch_in_hand(tmp_path: Path) -> None:
    chance = random.Random(5)
    finished: set[int] = set()
    for turn in range(20):
        process = python(WRITE_FOR_EVER, str(tmp_path), str(turn))
        assert process.stdout
        finished.add(int(process.stdout.readline()))
        time.sleep(chance.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        rest, _ = process.communicate()
        finished |= {int(line) for line in rest.split()}
        rows = warehouse(tmp_path).query("select model, count(*) as n from perplexity.scores group by model").rows()
        assert {f"m{batch}" for batch in finished} <= {model for model, _ in rows}
        assert {n for _, n in rows} == {500}


WRITE_SOME = """
import sys
from pathlib import Path
from resources.warehouse.store import Warehouse
from tests.unit.adapters.warehouse.test_warehouse import scores
folder = Path(sys.argv[1])
store = Warehouse(folder / "strandline.duckdb", folder / "published" / "strandline.duckdb")
for batch in range(15):
    store.merge("perplexity.scores", scores(40, sys.argv[2], batch * 40))
    if batch % 5 == 0:
        store.publish()
"""


def test_four_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    writers = [python(WRITE_SOME, str(tmp_path), f"writer{i}") for i in range(4)]
    for writer in writers:
        _, err = writer.communicate(timeout=120)
        assert writer.returncode == 0, err
    counts = warehouse(tmp_path).query("select model, count(*) as n from perplexity.scores group by model")
    assert dict(counts.rows()) == {f"writer{i}": 600 for i in range(4)}


def test_a_reader_of_the_published_copy_neither_blocks_a_writer_nor_sees_half_a_state(tmp_path: Path) -> None:
    store = warehouse(tmp_path, patience=5)
    store.merge("perplexity.scores", scores(10))
    published = store.publish()
    reader = duckdb.connect(str(published), read_only=True)
    store.merge("perplexity.scores", scores(10, "later"))
    assert reader.sql("select count(*) from perplexity.scores").fetchall() == [(10,)]
    store.publish()
    assert reader.sql("select count(*) from perplexity.scores").fetchall() == [(10,)]
    reader.close()
    assert PublishedCopy(published).query("select count(*) as n from perplexity.scores").item() == 20
    assert left_behind(store) == []


def test_reading_before_anything_was_published_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match="make run"):
        PublishedCopy(tmp_path / "none.duckdb").query("select 1")


def test_a_writer_that_fails_half_way_leaves_the_file_free(tmp_path: Path) -> None:
    store = warehouse(tmp_path)
    with pytest.raises(duckdb.Error):
        store.query("select * from nowhere.at_all")
    process = python(WRITE_SOME, str(tmp_path), "other")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err


def test_a_process_that_holds_the_file_too_long_is_named(tmp_path: Path) -> None:
    store = warehouse(tmp_path)
    store.query("select 1 as one")
    from filelock import FileLock

    (tmp_path / "strandline.holder").write_text(json.dumps({"pid": 4242, "since": "noon"}))
    holder = FileLock(tmp_path / "strandline.lock")
    with holder, pytest.raises(WarehouseError, match="process 4242"):
        warehouse(tmp_path, patience=0.2).query("select 1 as one")


def test_a_damaged_file_names_the_command_that_mends_it_and_restores_what_was_published(tmp_path: Path) -> None:
    store = warehouse(tmp_path)
    store.merge("perplexity.scores", scores(4))
    store.publish()
    store.path.write_bytes(b"not a database" * 1000)
    with pytest.raises(WarehouseError, match="rebuild"):
        warehouse(tmp_path).query("select 1 as one")
    aside, copy = warehouse(tmp_path).restore()
    assert aside.exists()
    assert copy == store.published
    assert warehouse(tmp_path).query("select count(*) as n from perplexity.scores").item() == 4


def test_a_published_copy_that_no_longer_fits_the_tables_gives_an_empty_warehouse(tmp_path: Path) -> None:
    store = warehouse(tmp_path)
    store.merge("perplexity.scores", scores(4))
    connection = duckdb.connect(str(store.path))
    connection.execute("create or replace table spans.texts (text_sha256 integer, text text)")
    connection.execute("delete from meta.versions")
    connection.close()
    shutil.copyfile(store.path, tmp_path / "p.duckdb")
    old = Warehouse(store.path, tmp_path / "p.duckdb", 5)
    with pytest.raises(WarehouseError, match=r"text_sha256 is INTEGER.*rebuild"):
        old.query("select 1 as one")
    old.restore()
    assert old.query("select count(*) as n from perplexity.scores").item() == 0


def test_a_file_of_an_older_schema_gains_the_new_columns_and_keeps_its_rows(tmp_path: Path) -> None:
    store = warehouse(tmp_path)
    store.merge("spans.revisions", mixed())
    connection = duckdb.connect(str(store.path))
    connection.execute("drop view if exists spans.coverage")
    for view in connection.sql("select schema_name, view_name from duckdb_views() where not internal").fetchall():
        connection.execute(f"drop view if exists {view[0]}.{view[1]} cascade")
    connection.execute("alter table spans.revisions drop column url")
    connection.execute("delete from meta.versions")
    connection.close()
    again = warehouse(tmp_path)
    assert again.query("select count(url) as urls, count(*) as n from spans.revisions").rows() == [(0, mixed().height)]


def test_every_view_of_the_marts_answers_on_an_empty_warehouse(tmp_path: Path) -> None:
    store = warehouse(tmp_path)
    views = store.query("select schema_name || '.' || view_name as name from duckdb_views() where not internal")["name"]
    assert len(list(MARTS_DIR.glob("*.sql"))) == 0 or len(views) > 0
    for view in views:
        store.query(f"select * from {view}")


def test_one_partition_of_a_large_table_is_rewritten_in_seconds(tmp_path: Path) -> None:
    store = warehouse(tmp_path)
    big = pl.concat([scores(2000, f"model{i}") for i in range(100)])
    store.merge("perplexity.scores", big)
    started = time.monotonic()
    store.replace("perplexity.scores", scores(2000, "model42"), where={"model": "model42"})
    assert time.monotonic() - started < 20
    assert store.query("select count(*) as n from perplexity.scores").item() == 200_000


def test_every_column_of_every_table_has_a_comment_and_every_table_a_key() -> None:
    for table in tables(SCHEMA_DIR).values():
        assert table.comment, table.name
        assert table.primary_key, table.name
        assert [column.name for column in table.columns if not column.comment] == [], table.name


def long_texts(n: int) -> list[dict[str, str]]:
    """Rows that fill blocks all over the file: random letters do not compress."""
    letters = random.Random(n)
    return [{"text_sha256": f"{i:064x}", "text": "".join(letters.choices("abcdefghijklmnop", k=400))} for i in range(n)]


def damaged(path: Path) -> None:
    """Overwrite the middle of a file, so that it opens and cannot be read whole."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\x5a" * (size // 3))


def test_a_damaged_warehouse_is_not_published_and_the_good_copy_stays(tmp_path: Path) -> None:
    store = warehouse(tmp_path)
    store.merge("spans.texts", long_texts(8000))
    store.publish()
    total = "select sum(length(text)) from spans.texts"
    good = PublishedCopy(store.published).query(total).item()
    damaged(store.path)
    with pytest.raises(WarehouseError, match=r"rebuild"):
        warehouse(tmp_path).publish()
    assert PublishedCopy(store.published).query(total).item() == good
    assert left_behind(store) == []


def left_behind(store: Warehouse) -> list[str]:
    """Names of scratch files beside the published copy, the lock file aside."""
    return [file.name for file in store.published.parent.glob(".*") if file.suffix != ".lock"]


@pytest.fixture
def no_copy_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB is asked for a format that it does not know, so that writing fails while every file can be read."""
    monkeypatch.setattr("resources.warehouse.store.READABLE_SINCE", "no such format")


def test_a_copy_that_cannot_be_written_is_not_taken_for_a_damaged_warehouse(
    tmp_path: Path, no_copy_can_be_written: None
) -> None:
    store = warehouse(tmp_path)
    store.merge("spans.texts", long_texts(10))
    with pytest.raises(WarehouseError, match=r"cannot be written: .*the old copy stays") as caught:
        store.publish()
    assert not isinstance(caught.value, DamagedFileError)
    assert left_behind(store) == []


def test_a_rebuild_that_cannot_write_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = warehouse(tmp_path)
    store.merge("spans.texts", long_texts(10))
    store.publish()
    monkeypatch.setattr("resources.warehouse.store.READABLE_SINCE", "no such format")
    before = sorted(file.name for file in tmp_path.iterdir())
    with pytest.raises(OSError, match="fresh"):
        store.restore()
    assert sorted(file.name for file in tmp_path.iterdir()) == before
    assert store.query("select count(*) from spans.texts").item() == 10


PUBLISH_OFTEN = """
import sys
from pathlib import Path
from resources.warehouse.store import Warehouse
folder = Path(sys.argv[1])
for _ in range(5):
    Warehouse(folder / "strandline.duckdb", folder / "published" / "strandline.duckdb").publish()
"""


@pytest.mark.slow
def test_four_processes_publish_at_once_and_every_kept_copy_is_whole(tmp_path: Path) -> None:
    store = warehouse(tmp_path)
    store.merge("spans.texts", long_texts(100))
    publishers = [python(PUBLISH_OFTEN, str(tmp_path)) for _ in range(4)]
    for publisher in publishers:
        _, err = publisher.communicate(timeout=120)
        assert publisher.returncode == 0, err
    for copy in (store.published, *store.previous_copies):
        assert PublishedCopy(copy).query("select count(*) from spans.texts").item() == 100
    assert left_behind(store) == []


def test_where_there_are_no_hard_links_the_copy_before_is_kept_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("this file system has no hard links")

    monkeypatch.setattr("os.link", refuse)
    store = warehouse(tmp_path)
    store.publish()
    store.publish()
    assert PublishedCopy(store.previous_copies[0]).query("select count(*) from spans.texts").item() == 0


def test_the_copies_before_are_kept_and_a_rebuild_starts_from_the_newest_that_reads(tmp_path: Path) -> None:
    store, count = warehouse(tmp_path), "select count(*) from spans.texts"
    for n in (5000, 6000, 7000, 8000):
        store.replace("spans.texts", long_texts(n))
        store.publish()
    assert [PublishedCopy(copy).query(count).item() for copy in store.previous_copies] == [7000, 6000]
    damaged(store.published)
    store.path.write_bytes(b"not a database" * 1000)
    _, copy = warehouse(tmp_path).restore()
    assert copy == store.previous_copies[0]
    assert warehouse(tmp_path).query(count).item() == 7000


def test_what_a_killed_publisher_left_behind_is_swept_away(tmp_path: Path) -> None:
    store = warehouse(tmp_path)
    store.publish()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = store.published.with_name(f".{store.published.name}.{gone.pid}.fresh")
    left.write_bytes(b"half a copy")
    store.publish()
    assert not left.exists()


def test_the_winner_of_a_key_that_stands_twice_depends_on_no_order_and_the_log_counts_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [{"text_sha256": "a", "text": "alpha"}, {"text_sha256": "a", "text": "beta"}]
    turned = [dict(reversed(row.items())) for row in reversed(rows)]
    kept = []
    for number, batch in enumerate((rows, turned)):
        store = warehouse(tmp_path / str(number))
        assert store.merge("spans.texts", batch) == 1
        kept.append(store.query("select text from spans.texts").item())
    assert kept == ["beta", "beta"]
    assert caplog.messages == ["spans.texts: 1 rows share a key with another row of their batch and were dropped"] * 2
