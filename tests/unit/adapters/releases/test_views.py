"""What SQL derives of releases and answers equals what the methods derive, and vocabularies stand once."""

from __future__ import annotations

from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from assets.suites.probe import SUITES as PROBE
from assets.suites.releases import SUITES as RELEASES
from resources.configured import WarehouseResource
from resources.warehouse.schema import table
from resources.warehouse.store import Warehouse
from strandline.probe import ROUND_STATUSES
from strandline.probe.boundaries import ESTIMATORS, STATUSES
from strandline.probe.modelclock import Probe
from strandline.releases import SOURCE_STATUSES
from strandline.releases.versions import canonical, existing_forms

DAY = date(2024, 1, 1)


@pytest.fixture
def store(tmp_path: Path) -> Warehouse:
    return WarehouseResource(path=str(tmp_path / "w.duckdb"), published=str(tmp_path / "p.duckdb")).open()


def answer_rows(round_number: int, kind: str, yes: int, total: int) -> list[dict[str, Any]]:
    return [
        {
            "model": "m", "run_id": "r", "replicate": 0, "round": round_number, "question": n + 100 * (kind == "decoy"),
            "position": 0, "released_on": DAY, "project": "p", "version": str(n), "kind": kind, "parse_status": "ok",
            "answer": "YES" if n < yes else "NO", "counted": True,
        }
        for n in range(total)
    ]  # fmt: skip


def test_the_transcript_gives_every_day_the_method_s_status(store: Warehouse) -> None:
    tallies = [
        (real, total, decoy)
        for total, decoy in product(range(7), range(3))
        for real in range(total + 1)
        if total or decoy
    ]
    rows = []
    for number, (real, total, decoy) in enumerate(tallies):
        rows += answer_rows(number, "real", real, total) + answer_rows(number, "decoy", decoy, 2)
    store.merge("probe.answers", rows)
    told = dict(store.query("select round, status from probe.transcript").iter_rows())
    expected = {n: Probe(0, real, total, decoy, 2).status for n, (real, total, decoy) in enumerate(tallies)}
    assert told == expected


VERSIONS = [
    "1.2", "1.2.0", "1.2.0.0", "v1.2", "V1.2", "1.02", "01.2", "1.2.0rc1", "1.2.1", "1.20", "1.2-beta", "0.0", "0", "1",
    "1.0", "10.2", "1.2.3.4", "1.2.3.4.5", "24.4.1", "24.4", "x", "", "1..2", "1.2.", " 1.2 ", "1.2.00", "2.07", "2.7",
    "1" * 25, "1.2+5", "1." + "9" * 25, "1.2\nrest",
]  # fmt: skip


def test_the_view_of_decoys_released_since_knows_versions_as_the_methods_do(store: Warehouse) -> None:
    decoys = [version for version in VERSIONS if canonical(version)]
    rows = [
        {
            **answer_rows(0, "decoy", 0, 1)[0],
            "question": n * 100 + k,
            "project": f"p{k}",
            "version": decoy,
        }
        for n, decoy in enumerate(decoys)
        for k in range(len(VERSIONS))
    ]
    store.merge("probe.answers", rows)
    releases = [
        {
            "ecosystem": "npm", "package": f"p{k}", "version": version or "-", "project": f"p{k}", "released_on": DAY,
            "source": "npm", "is_stable": True, "is_yanked": False,
        }
        for k, version in enumerate(VERSIONS)
    ]  # fmt: skip
    store.merge("releases.releases", releases)
    found = set(store.query("select decoy_version, project from releases.decoys_released_since").iter_rows())
    expected = {
        (decoy, f"p{k}")
        for decoy in decoys
        for k, version in enumerate(VERSIONS)
        if canonical(decoy) in existing_forms([version])
    }
    assert found == expected


def words(comment: str) -> set[str]:
    return {word.strip("(),.;") for word in comment.split()}


def test_each_vocabulary_stands_once_and_comments_and_suites_follow_it() -> None:
    for name, column, vocabulary, suites in (
        ("releases.sources", "status", SOURCE_STATUSES, RELEASES),
        ("probe.rounds", "status", ROUND_STATUSES, PROBE),
        ("probe.boundaries", "status", STATUSES, PROBE),
        ("probe.boundaries", "estimator", ESTIMATORS, PROBE),
    ):
        declared = table(name).column(column)
        assert declared is not None
        assert set(vocabulary) <= words(declared.comment), name
        sets = [
            e.arguments["value_set"]
            for e in suites[name].expectations
            if e.expectation == "ExpectColumnValuesToBeInSet" and e.arguments.get("column") == column
        ]
        assert sets == [list(vocabulary)], name
