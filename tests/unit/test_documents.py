"""What the documents say is true of the repository: ids, SQL, commands, names that must not appear."""

import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from resources.warehouse.schema import tables
from resources.warehouse.store import Warehouse

ID = re.compile(r"\b([MTD])(\d+)(?:\s*[-–]\s*([MTD])?(\d+))?\b")


def ids(text: str) -> set[str]:
    """Every checklist id in a text; ``M22-M68`` and ``M22–68`` stand for all between."""
    found = set()
    for letter, first, _, last in ID.findall(text):
        found |= {f"{letter}{number}" for number in range(int(first), int(last or first) + 1)}
    return found


def tracked(root: Path) -> list[Path]:
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [root / name for name in listed.decode().split("\0") if name and (root / name).is_file()]


def test_every_checklist_id_is_covered_by_a_methods_page(root: Path, shared: Path) -> None:
    wanted = ids((shared / "checklist.md").read_text(encoding="utf-8").split("\n", 5)[5])
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (root / "docs" / "methods").glob("*.md"))
    assert sorted(wanted - ids(pages)) == []


def test_every_methods_page_says_what_it_cannot_show_and_which_tests_prove_it(root: Path) -> None:
    pages = sorted((root / "docs" / "methods").glob("*.md"))
    assert len(pages) > 10
    lacking = [page.name for page in pages if "cannot show" not in page.read_text(encoding="utf-8").lower()]
    assert lacking == []
    unproven = [page.name for page in pages if not re.search(r"test_\w+\.py", page.read_text(encoding="utf-8"))]
    assert unproven == []


def test_tests_that_methods_pages_name_exist(root: Path) -> None:
    there = {file.name for file in (root / "tests").rglob("*.py")}
    for page in (root / "docs" / "methods").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert sorted(set(re.findall(r"test_\w+\.py", text)) - there) == [], page.name
        for name in re.findall(r"`((?:bench|strandline|resources|assets|sql|data)/[\w/.]+\.\w+)`", text):
            assert (root / name).exists(), f"{page.name} names {name}"


def test_every_query_of_the_readme_runs(root: Path, tmp_path: Path) -> None:
    text = (root / "README.md").read_text(encoding="utf-8")
    blocks = [q for block in re.findall(r"```sql\n(.*?)```", text, re.S) for q in block.split(";") if q.strip()]
    lines = re.findall(r'launch\.py query "([^"]+)"', text)
    store = Warehouse(tmp_path / "w.duckdb", tmp_path / "p.duckdb")
    assert lines
    assert blocks
    for query in (*blocks, *lines):
        store.query(query)


def test_the_files_that_the_documents_name_exist(root: Path) -> None:
    for document in ("README.md", "CONTRIBUTING.md"):
        text = (root / document).read_text(encoding="utf-8")
        for name in re.findall(r"`((?:data|docs|bench|assets|resources|strandline|sql|tests)/[\w/.-]*)`", text):
            assert (root / name).exists() or "published" in name or "dagster_home" in name, f"{document} names {name}"


def test_no_registry_host_and_no_path_of_a_machine_is_in_the_repository(root: Path) -> None:
    forbidden = [urlsplit(PYPI_SIMPLE_ENDPOINT).netloc, str(root), "/home" + "/"]
    for file in tracked(root):
        if file.name == Path(__file__).name or file.suffix in {".gz", ".xz", ".png", ".parquet"}:
            continue
        text = file.read_text(encoding="utf-8", errors="replace")
        assert [word for word in forbidden if word in text] == [], file


def test_the_tables_that_the_design_lists_are_declared_with_their_contract_columns(shared: Path) -> None:
    for line in (shared / "DESIGN.md").read_text(encoding="utf-8").splitlines():
        row = re.match(r"\| ([a-z]+\.[a-z_]+) \| [^|]+ \| ([^|]+) \|", line)
        if row and row[1] in tables():
            columns = re.findall(r"[a-z_0-9]+", re.sub(r"\([^)]*\)", "", row[2].split(";")[0]))
            declared = {column.name for column in tables()[row[1]].columns}
            assert [name for name in columns if name not in declared] == [], row[1]
