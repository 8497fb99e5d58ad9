"""Rows of the result tables: what is counted as excluded, edit paths, and the listed references."""

from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from strandline.perplexity import rows as records
from strandline.perplexity.rows import edit_path
from strandline.perplexity.score_matrices import ScoredResource, resources_of, tokens_note
from strandline.perplexity.settings import ReferenceSetting, read_references

MONTHS = [date(2022, m, 1) for m in range(1, 4)]


def curve_rows(model: str, versions: pl.DataFrame, *, complete_cases: bool = True) -> pl.DataFrame:
    return pl.DataFrame(records.curve_rows(model, versions, complete_cases=complete_cases), infer_schema_length=None)


def cutoff_rows(model: str, versions: pl.DataFrame) -> pl.DataFrame:
    return pl.DataFrame(records.cutoff_rows(model, versions, {}), infer_schema_length=None)


def reference_rows(model: str, resource: ScoredResource, scores: list[tuple[str, pl.DataFrame]]) -> pl.DataFrame:
    return pl.DataFrame(records.reference_rows(model, resource, scores), infer_schema_length=None)


def versions(resource: str, kind: str, cells: dict[str, list[float | None]]) -> pl.DataFrame:
    rows = [
        {
            "resource": resource,
            "kind": kind,
            "topic": topic,
            "month": month,
            "text_sha256": f"{topic}{i}",
            "mean_nll": v,
            "token_digest": None if v is None else f"{topic}{i}",
        }
        for topic, values in cells.items()
        for i, (month, v) in enumerate(zip(MONTHS, values, strict=True))
    ]
    return pl.DataFrame(rows, schema_overrides={"mean_nll": pl.Float64, "token_digest": pl.String})


def test_every_version_that_is_not_averaged_is_counted_as_excluded() -> None:
    panel = versions("r", "panel", {"a": [1.0, 2.0, 3.0], "b": [1.0, None, 3.0], "c": [None, None, None]})
    complete = curve_rows("m", panel)
    assert complete.select("n_documents", "n_excluded").rows() == [(1, 2)] * 3
    available = curve_rows("m", panel, complete_cases=False)
    assert available.select("n_documents", "n_excluded").rows() == [(2, 1), (1, 2), (2, 1)]
    assert available["mean_perplexity"].to_list() == pytest.approx([np.exp(1), np.exp(2), np.exp(3)])


def test_missing_values_are_null_and_never_nan() -> None:
    rows = curve_rows("m", versions("r", "unpaired", {"a": [1.0, None, 1.0]}))
    assert rows["mean_perplexity"].to_list() == [pytest.approx(np.e), None, pytest.approx(np.e)]
    assert rows["relative_perplexity"].to_list() == [None, None, None]


def test_a_month_in_which_nothing_was_published_is_a_gap_of_a_stream_and_does_not_close_up() -> None:
    months = [date(2020 + m // 12, m % 12 + 1, 1) for m in range(36)]
    rows = [(month, f"{month} {n}") for month in months if month != months[20] for n in range(6)]
    held = pl.DataFrame(rows, schema=["month", "topic"], orient="row").with_columns(
        resource=pl.lit("news"),
        kind=pl.lit("unpaired"),
        mean_nll=pl.lit(2.0),
        text_sha256="topic",
        token_digest="topic",
    )
    curve = curve_rows("m", held)
    assert curve["month"].to_list() == months
    assert curve.row(20, named=True)["mean_perplexity"] is None
    assert curve.select("n_documents", "n_excluded").row(20) == (0, 0)
    rise = cutoff_rows("m", held).filter(pl.col("estimator") == "rise").row(0, named=True)
    assert (rise["status"], rise["n_topics"]) == ("gaps", 0)
    assert f"{months[20]:%Y-%m}" in rise["reason"]


def test_a_resource_without_any_score_has_rows_that_say_so() -> None:
    both = pl.concat([versions("r", "panel", {"a": [1.0, 2.0, 1.0]}), versions("s", "panel", {"a": [None] * 3})])
    curve = curve_rows("m", both)
    assert curve.select("resource", "status").rows() == [("r", "ok")] * 3 + [("s", "missing")] * 3
    assert curve.filter(pl.col("resource") == "s")["reason"].unique().to_list() == [records.NOT_SCORED]
    missing = cutoff_rows("m", both).filter(pl.col("resource") == "s")
    assert missing.select("status", "is_default", "reason").rows() == [("missing", True, records.NOT_SCORED)]


@pytest.mark.parametrize(
    ("cells", "statuses"),
    [
        ([1.0, 2.0, 1.5], ["ok", "ok", "ok"]),
        ([1.0, None, 2.0], ["ok", "empty", "ok"]),
        ([2.0, 2.0, 2.0], ["constant"] * 3),
        ([2.0, 2.0 + 1e-15, 2.0], ["constant"] * 3),
        ([2.0, None, 2.0], ["constant", "empty", "constant"]),
        ([None, None, None], ["missing"] * 3),
        ([float("nan"), 1.0, 2.0], ["empty", "ok", "ok"]),
    ],
)
def test_every_point_without_a_relative_value_has_a_status_and_a_reason(
    cells: list[float | None], statuses: list[str]
) -> None:
    curve = curve_rows("m", versions("r", "unpaired", {"a": cells}))
    assert curve["status"].to_list() == statuses
    for status, reason, relative in curve.select("status", "reason", "relative_perplexity").iter_rows():
        assert (status == "ok") == (relative is not None) == (reason is None)


def test_a_panel_of_which_no_topic_is_complete_says_what_to_change() -> None:
    panel = versions("r", "panel", {"a": [1.0, None, 2.0], "b": [None, 1.0, 2.0]})
    curve = curve_rows("m", panel)
    assert curve["status"].unique().to_list() == ["missing"]
    assert "no topic has a score in every month of r (3 months)" in curve["reason"][0]
    assert "complete_cases" in curve["reason"][0]
    assert set(curve_rows("m", panel, complete_cases=False)["status"]) == {"ok"}


@pytest.mark.parametrize(
    ("max_tokens", "context_tokens", "note"),
    [
        (512, 127, "only the first 127 of 512 tokens were scored: the model's context ends there"),
        (512, None, None), (None, None, None), (512, 512, None), (512, 511, "only the first 511 of 512 tokens "
         "were scored: the model's context ends there"),
    ],
)  # fmt: skip
def test_it_is_said_where_fewer_tokens_were_scored(
    max_tokens: int | None, context_tokens: int | None, note: str | None
) -> None:
    assert tokens_note(max_tokens, context_tokens) == note


def test_rows_say_how_the_texts_were_scored() -> None:
    scored = versions("r", "panel", {"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 2.5]}).with_columns(
        max_tokens=512, n_tokens=pl.Series([127, 127, 90] * 2), dtype=pl.lit("float32"),
        is_context_limited=pl.Series([True, True, False] * 2),
    )  # fmt: skip
    for rows in (curve_rows("m", scored), cutoff_rows("m", scored)):
        assert rows.select("dtype", "max_tokens", "context_tokens").unique().rows() == [("float32", 512, 127)]


def test_a_reference_without_a_finding_of_its_own_stores_no_interval() -> None:
    months = [date(2022 + m // 12, m % 12 + 1, 1) for m in range(24)]
    rng = np.random.default_rng(1)
    cells = [(f"t{t}", month, float(3 + rng.normal(0, 0.1))) for t in range(30) for month in months]
    every = pl.DataFrame(cells, schema=["topic", "month", "mean_nll"], orient="row").with_columns(
        resource=pl.lit("r"), kind=pl.lit("panel"), text_sha256=pl.concat_str("topic", "month"), token_digest=None
    )
    [row] = records.reference_rows("m", next(resources_of(every)), [("noise", every)])
    assert row["status"] == "flat-or-unclear"
    assert (row["month"], row.get("low95"), row.get("high95"), row["is_usable"]) == (None, None, None, True)


def test_a_small_resource_has_rows_that_say_why_there_is_no_month() -> None:
    rows = cutoff_rows("m", versions("r", "panel", {"a": [1.0, 2.0, 3.0], "b": [2.0, 2.0, 1.0]}))
    assert rows.select("estimator", "status").rows() == [
        ("trimmed95_minmax", "descriptive"),
        ("panel_noref", "too-few-topics"),
    ]
    assert rows["month"].null_count() == 2


def test_an_edit_path_adds_up_word_edits_and_needs_every_month() -> None:
    path = edit_path(["a b c d", "a b c d", "a x c d", "a x c d e f g h"], 512)
    assert path is not None
    assert path.tolist() == pytest.approx([0, 0, 0.25, 0.75])
    assert edit_path(["a", None, "a"], 512) is None
    assert edit_path([], 512) is None
    beyond = edit_path(["a b c", "a b z"], 2)
    assert beyond is not None
    assert beyond.tolist() == [0, 0]


def test_topics_without_a_path_are_not_judged() -> None:
    resource = next(resources_of(versions("r", "panel", {"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0]})))
    other = versions("r", "panel", {"a": [1.0, 1.0, 1.0], "b": [1.0, 1.0, 1.0]})
    [row] = records.topic_rows("m", resource, "ref", other, {"a": np.array([0.0, 0.1, 0.2])})
    assert (row["topic"], row["status"]) == ("a", "too-few-edits")
    assert row["reason"] == records.TOPIC_REASONS["too-few-edits"]
    assert records.topic_rows("m", resource, "ref", other, {}) == []


def test_a_reference_that_scored_other_tokens_is_said_to() -> None:
    cells: dict[str, list[float | None]] = {"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0]}
    resource = next(resources_of(versions("r", "panel", cells)))
    same = versions("r", "panel", cells)
    other = same.with_columns(token_digest=pl.lit("x"))
    unknown = same.with_columns(token_digest=pl.lit(None, dtype=pl.String))
    rows = reference_rows("m", resource, [("a", same), ("b", other), ("c", unknown)])
    assert rows.select("reference", "rank", "tokenization").rows() == [
        ("a", 1, "same"),
        ("b", 2, "other"),
        ("c", 3, None),
    ]
    assert rows["status"].to_list() == ["too-few-topics"] * 3


def test_a_reference_with_scores_of_few_topics_is_not_usable_where_the_model_has_enough() -> None:
    months = [date(2022 + m // 12, m % 12 + 1, 1) for m in range(12)]
    cells = [(f"t{t}", month, float(t + m % 3)) for t in range(20) for m, month in enumerate(months)]
    every = pl.DataFrame(cells, schema=["topic", "month", "mean_nll"], orient="row").with_columns(
        resource=pl.lit("r"), kind=pl.lit("panel"), text_sha256=pl.col("topic") + pl.col("month").cast(pl.String)
    )
    every = every.with_columns(token_digest="text_sha256")
    few = every.filter(pl.col("topic").is_in(["t1", "t2"]))
    rows = reference_rows("m", next(resources_of(every)), [("few", few), ("every", every)])
    assert rows.select("reference", "is_usable").rows() == [("few", False), ("every", True)]
    assert "2 topics" in rows["reason"][0]


def test_listed_references_serve_the_models_and_resources_that_they_name(tmp_path: Path) -> None:
    file = tmp_path / "references.yaml"
    file.write_text("references:\n  - model: base\n  - {model: old, resources: [laws], of: [small, old]}\n")
    base, old = read_references(file)
    assert base == ReferenceSetting("base")
    assert (base.serves("small", "news"), base.serves("base", "news")) == (True, False)
    assert [old.serves("small", "laws"), old.serves("small", "news"), old.serves("large", "laws")] == [
        True,
        False,
        False,
    ]
    assert not old.serves("old", "laws")
    assert read_references(tmp_path / "absent.yaml") == []


def test_the_committed_reference_list_can_be_read(root: Path) -> None:
    assert read_references(root / "data" / "references.yaml") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("references:\n  - name: x\n", "entry 1: needs a 'model'"),
        ("references:\n  - {model: x, of: y}\n", "'of' is a list"),
        ("references:\n  - {model: x, weight: 2}\n", "unknown key weight"),
        ("- model: x\n", "expected a list under 'references'"),
    ],
)
def test_a_faulty_reference_list_is_refused_with_the_entry(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "references.yaml"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_references(file)
