"""The report says what is there, and nothing about what is not."""

from datetime import date
from pathlib import Path

import polars as pl

from assets.report import full_report
from resources.warehouse import PublishedCopy, Warehouse


def cutoff(resource: str, **more: object) -> dict[str, object]:
    row = {"model": "m", "resource": resource, "estimator": "panel", "reference": "ngram", "n_topics": 25}
    return {**row, "is_default": True, "month": None, "low95": None, "high95": None, **more}


def published(folder: Path, *rows: dict[str, object]) -> PublishedCopy:
    store = Warehouse(folder / "w.duckdb", folder / "p.duckdb")
    if rows:
        store.replace("perplexity.effective_cutoffs", pl.DataFrame(list(rows), infer_schema_length=None))
    return PublishedCopy(store.publish())


def test_an_empty_warehouse_has_an_empty_report(tmp_path: Path) -> None:
    assert full_report(published(tmp_path), "m") == ""


def test_a_month_is_printed_only_where_one_was_found(tmp_path: Path) -> None:
    copy = published(
        tmp_path,
        cutoff(
            "wiki",
            status="found",
            month=date(2020, 3, 1),
            low95=date(2020, 2, 1),
            high95=date(2020, 5, 1),
        ),
        cutoff("readme", status="flat", reason="the curve does not move"),
    )
    text = full_report(copy, "m")
    assert "wiki, panel against ngram, 25 topics: 2020-03 (95 %: 2020-02 to 2020-05)" in text
    assert "readme, panel against ngram, 25 topics: flat: the curve does not move" in text
    assert "RELEASE PROBE" not in text
    assert full_report(copy, "another") == ""
