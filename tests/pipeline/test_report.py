"""The report says what is there, and nothing about what is not."""

from datetime import date
from pathlib import Path

import polars as pl

from console.report import full_report
from resources.warehouse.store import PublishedCopy, Warehouse


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


def test_it_is_said_that_fewer_tokens_were_scored_than_asked_for(tmp_path: Path) -> None:
    scored = {"max_tokens": 512, "context_tokens": 127}
    text = full_report(published(tmp_path, cutoff("wiki", status="flat", reason="it does not move", **scored)), "m")
    assert text.count("(only the first 127 of 512 tokens were scored: the model's context ends there)") == 2


def test_the_first_lines_say_what_was_found_in_plain_words(tmp_path: Path) -> None:
    store = Warehouse(tmp_path / "w.duckdb", tmp_path / "p.duckdb")
    model, month = {"model": ["m"], "partition_key": ["m"], "is_listed": [False]}, date(2020, 3, 1)
    claim = {"source": ["card"], "kind": ["reported"], "value": [date(2023, 4, 1)], "value_to": [date(2023, 4, 30)]}
    store.replace("models.models", pl.DataFrame(model))
    store.replace(
        "models.declared_cutoffs",
        pl.DataFrame({"model": ["m"], **claim, "is_valid": [True], "is_conflicting": [False]}),
    )
    rows = [
        cutoff("readme", status="flat", reason="the curve does not move"),
        cutoff("wiki", status="found", month=month, low95=month, high95=month),
    ]
    store.replace("perplexity.effective_cutoffs", pl.DataFrame(rows, infer_schema_length=None))
    verdict = {"model": "m", "benchmark": "b", "method": "z", "is_verdict": True, "verdict": "no_evidence"}
    store.replace("contamination.tests", pl.DataFrame([{**verdict, "p_value": 0.4, "ln_p": -0.916, "alpha": 0.05}]))
    lines = full_report(PublishedCopy(store.publish()), "m").split("\n\n")[0].splitlines()[2:]
    assert lines[0].split(maxsplit=1) == ["Advertised", "2023-04, by 1 claim(s)"]
    assert lines[1] == "Resource readme  no month (flat): the curve does not move"
    assert "m is advertised with knowledge up to 2023-04, but of wiki it knows the state of about 2020-03" in lines[2]
    assert lines[3] == "Benchmark b      no evidence of its published order, which is no proof of absence (p = 0.4)"


def test_a_corpus_that_is_not_the_models_says_so_and_tells_only_what_it_holds(tmp_path: Path) -> None:
    store = Warehouse(tmp_path / "w.duckdb", tmp_path / "p.duckdb")
    store.replace(
        "perplexity.effective_cutoffs", pl.DataFrame([cutoff("readme", status="flat", reason="it does not move")])
    )
    sentences = [
        {
            "corpus": "crawl",
            "resource": "readme",
            "model": name,
            "n_copies": 1,
            "status": "ok",
            "sentence": f"what {name} shows",
        }
        for name in ("none", "m", "another")
    ]
    store.replace("corpus.explanations", pl.DataFrame(sentences))
    shards = [{"corpus": name, "subcorpus": "s", "location": "l", "status": "ok"} for name in ("crawl", "mine")]
    store.replace("corpus.corpora", pl.DataFrame(shards))
    text = full_report(PublishedCopy(store.publish()), "m")
    assert "Not listed as training data of m: mine" in text
    assert "what none shows" in text
    assert "what m shows" in text
    assert "what another shows" not in text
