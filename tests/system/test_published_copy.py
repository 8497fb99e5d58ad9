"""The published copy opens in the oldest DuckDB that it promises, with every table, view and macro."""

import subprocess
import sys
from pathlib import Path

import pytest

from resources.warehouse.store import Warehouse

OLDEST = "1.2.2"
READ_EVERYTHING = """
import sys
import duckdb
connection = duckdb.connect(sys.argv[1], read_only=True)
relations = connection.execute(
    "select schema_name, view_name from duckdb_views() where not internal "
    "union all select schema_name, table_name from duckdb_tables()"
).fetchall()
for schema, name in relations:
    connection.execute(f"from {schema}.{name}").fetchall()
connection.execute("from perplexity.versions_of('m')").fetchall()
print(duckdb.__version__, len(relations), connection.execute("select text from spans.texts").fetchone()[0])
"""


@pytest.fixture(scope="module")
def old_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the oldest release, from the index that the user's pip is configured with."""
    folder = tmp_path_factory.mktemp("oldest")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--only-binary", ":all:", f"duckdb=={OLDEST}"]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"duckdb {OLDEST} cannot be installed here: {done.stderr.strip().splitlines()[-1][:200]}")
    return python


@pytest.mark.slow
def test_every_table_view_and_macro_answers_in_the_oldest_release(old_python: Path, tmp_path: Path) -> None:
    store = Warehouse(tmp_path / "w.duckdb", tmp_path / "p.duckdb")
    store.replace("spans.texts", [{"text_sha256": "a", "text": "tide"}])
    answer = subprocess.run(
        [str(old_python), "-c", READ_EVERYTHING, str(store.publish())], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    version, relations, text = answer.stdout.split()
    assert (version, text) == (OLDEST, "tide")
    assert int(relations) > 60
