"""The git source on a real panel: a repository built from a sample of the World Factbook gives the same texts back."""

from __future__ import annotations

import json
import lzma
import subprocess
from collections import defaultdict
from datetime import UTC, date, datetime
from pathlib import Path

import dagster as dg
import pytest
import yaml

from assets.asset_checks import checks
from assets.spans import ASSETS, CHECKS
from assets.suites.spans import SUITES
from resources.configured import NetworkResource, SpanListResource, WarehouseResource
from resources.warehouse.store import Warehouse
from strandline.spans.months import month_range

pytestmark = pytest.mark.slow
TOPICS, MONTHS = 12, month_range(date(2021, 1, 1), date(2022, 12, 1))


def sampled(root: Path) -> dict[str, dict[date, str]]:
    """The first topics by name, and the text of each of the months that the file has."""
    found: dict[str, dict[date, str]] = defaultdict(dict)
    with lzma.open(root / "tests/data/factbook.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            month = date.fromisoformat(f"{row['month']}-01")
            if row["topic"] not in found and len(found) == TOPICS:
                break
            if month in MONTHS:
                found[row["topic"]][month] = row["text"]
    return found


def repository(folder: Path, texts: dict[str, dict[date, str]]) -> Path:
    """A repository with a commit at each month's instant, made by one import."""
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", "--bare", str(folder)], check=True)
    stream = bytearray()
    for month in sorted({month for months in texts.values() for month in months}):
        stamp = int(datetime(month.year, month.month, 1, tzinfo=UTC).timestamp())
        stream += f"commit refs/heads/main\ncommitter A <a@example.org> {stamp} +0000\ndata 1\n.\n".encode()
        for topic, months in texts.items():
            if month in months:
                body = months[month].encode()
                stream += f"M 100644 inline pages/{topic}.md\ndata {len(body)}\n".encode() + body + b"\n"
    subprocess.run(["git", "-C", str(folder), "fast-import", "--quiet"], input=bytes(stream), check=True)
    subprocess.run(["git", "-C", str(folder), "symbolic-ref", "HEAD", "refs/heads/main"], check=True)
    return folder


@pytest.fixture(scope="module")
def materialized(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, dict[date, str]], Warehouse]:
    folder = tmp_path_factory.mktemp("factbook")
    texts = sampled(root)
    address = f"file://{repository(folder / 'factbook.git', texts)}"
    entry = {"resource": "factbook", "source": "git", "months": {"first": "2021-01", "last": "2022-12"}}
    settings = {"spans": [{**entry, "options": {"repository": address, "patterns": ["pages/*.md"]}}]}
    (folder / "spans.yaml").write_text(yaml.safe_dump(settings))
    store = WarehouseResource(
        path=str(folder / "w.duckdb"), published=str(folder / "p.duckdb"), reports=str(folder / "reports")
    )
    result = dg.materialize(
        [*ASSETS, *CHECKS, *checks(ASSETS, SUITES)],
        resources={
            "warehouse": store,
            "network": NetworkResource(cache_dir=str(folder / "cache")),
            "span_list": SpanListResource(path=str(folder / "spans.yaml")),
        },
    )
    assert all(check.passed for check in result.get_asset_check_evaluations())
    return texts, store.open()


def test_every_month_of_every_country_has_the_text_that_was_committed(
    materialized: tuple[dict[str, dict[date, str]], Warehouse],
) -> None:
    texts, store = materialized
    rows = store.query("select topic, month, text from spans.documents")
    found = {(topic, month): text for topic, month, text in rows.iter_rows()}
    assert len(found) == TOPICS * len(MONTHS)
    for topic, months in texts.items():
        held = None
        for month in MONTHS:
            held = months.get(month, held)
            assert found[f"pages/{topic}.md", month] == held, (topic, month)


def test_a_month_without_a_commit_keeps_the_text_before_it(
    materialized: tuple[dict[str, dict[date, str]], Warehouse],
) -> None:
    gap = date(2021, 4, 1)
    texts, store = materialized
    assert all(gap not in months for months in texts.values())
    distinct = store.query(
        "select count(distinct text_sha256) from spans.revisions where month in ('2021-03-01', ?)", [gap]
    )
    assert distinct.item() == TOPICS


def test_texts_are_stored_once(materialized: tuple[dict[str, dict[date, str]], Warehouse]) -> None:
    texts, store = materialized
    distinct = {text for months in texts.values() for text in months.values()}
    assert store.query("select count(*) from spans.texts").item() == len(distinct)
    assert store.query("select sum(n_changes) from spans.topics").item() >= len(distinct) - TOPICS
    assert store.query("select bool_and(is_complete) from spans.topics").item()
