"""Which estimator is chosen, what a row says, and that a month is printed only for a finding."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl
import pytest

from strandline.perplexity.estimates import (
    CONSTANT,
    ESTIMATORS,
    NOT_SCORED,
    REASONS,
    STATUSES,
    EffectiveCutoff,
    Estimator,
    cutoffs,
    mark_default,
    own_cutoff,
)
from strandline.perplexity.planted import planted_panel
from strandline.perplexity.score_matrices import Panel, ScoredResource, panel_of

MONTHS = tuple(date(2019 + m // 12, m % 12 + 1, 1) for m in range(59))


def panel(values: np.ndarray, months: tuple[date, ...] = MONTHS) -> Panel:
    return Panel(tuple(f"t{n}" for n in range(len(values))), months[: values.shape[1]], values)


def scored(panel: Panel) -> ScoredResource:
    """The resource whose versions make that panel."""
    rows = [
        {"resource": "r", "kind": "panel", "topic": topic, "month": month, "mean_nll": value}
        for topic, values in zip(panel.topics, panel.values.tolist(), strict=True)
        for month, value in zip(panel.months, values, strict=True)
    ]
    versions = pl.DataFrame(rows, schema_overrides={"mean_nll": pl.Float64})
    return ScoredResource("r", "panel", panel.months, versions)


def panel_cutoffs(target: Panel, references: Mapping[str, Panel]) -> list[EffectiveCutoff]:
    return cutoffs(scored(target), {name: scored(panel) for name, panel in references.items()})


def reference_test(reference: Panel) -> EffectiveCutoff:
    return own_cutoff(scored(reference))


def bucket_cutoffs(
    target: pl.DataFrame, references: Mapping[str, pl.DataFrame], months: Sequence[date]
) -> list[EffectiveCutoff]:
    resources = {name: ScoredResource("news", "unpaired", tuple(months), frame) for name, frame in references.items()}
    return cutoffs(ScoredResource("news", "unpaired", tuple(months), target), resources)


def sharp(seed: int = 1, n_topics: int = 300) -> tuple[Panel, Panel, date]:
    world = planted_panel("sharp", "wiki", np.random.default_rng(seed), n_topics=n_topics)
    assert world.truth is not None
    return panel(world.target), panel(world.reference), MONTHS[world.truth]


def by_name(rows: list[EffectiveCutoff]) -> dict[tuple[str, str], EffectiveCutoff]:
    return {(row.estimator, row.reference): row for row in rows}


def test_a_panel_with_a_reference_is_dated_and_that_row_is_the_default() -> None:
    target, reference, truth = sharp()
    rows = by_name(panel_cutoffs(target, {"timeless": reference}))
    found = rows["panel", "timeless"]
    assert (found.status, found.month, found.reason, found.n_topics) == ("found", truth, None, 300)
    assert [name for name, row in rows.items() if row.is_default] == [("panel", "timeless")]
    assert rows["trimmed95_minmax", "none"].status == "descriptive"
    assert ("panel_noref", "none") in rows


def test_a_month_stands_only_where_the_status_is_found_and_every_other_status_has_a_reason() -> None:
    seen = set()
    for world in ("sharp", "flat", "monoR", "two"):
        for seed in range(4):
            planted = planted_panel(world, "factbook", np.random.default_rng(seed))
            for row in panel_cutoffs(panel(planted.target), {"r": panel(planted.reference)}):
                assert (row.month is not None) == (row.status == "found")
                assert (row.reason is None) == (row.status == "found")
                assert row.lowest_month is not None
                seen.add(row.status)
    assert {"flat", "descriptive", "flat-or-unclear"} <= seen


def test_without_a_reference_the_default_is_the_estimator_that_needs_none() -> None:
    target, _, _ = sharp()
    rows = panel_cutoffs(target, {})
    assert [row.estimator for row in rows if row.is_default] == ["panel_noref"]


def test_a_reference_with_a_cutoff_of_its_own_is_refused_and_the_next_one_reported() -> None:
    _, timeless, _ = sharp(1)
    wide, _, _ = sharp(3, 1000)
    own = reference_test(wide)
    assert own.status == "found"
    rows = by_name(panel_cutoffs(wide, {"dated": wide, "timeless": timeless}))
    assert rows["panel", "dated"].status == "reference-dated"
    assert rows["panel", "dated"].month is None
    assert f"{own.month:%Y-%m}" in (rows["panel", "dated"].reason or "")
    assert [name for name, row in rows.items() if row.is_default] == [("panel", "timeless")]


def test_a_reference_with_scores_of_few_topics_does_not_stand_in_the_way_of_the_next_one() -> None:
    target, reference, truth = sharp()
    few = Panel(reference.topics[:10], reference.months, reference.values[:10])
    rows = by_name(panel_cutoffs(target, {"few": few, "timeless": reference}))
    assert rows["panel", "few"].status == "too-few-topics"
    assert [name for name, row in rows.items() if row.is_default] == [("panel", "timeless")]
    assert rows["panel", "timeless"].month == truth
    alone = by_name(panel_cutoffs(target, {"few": few}))
    assert [name for name, row in alone.items() if row.is_default] == [("panel_noref", "none")]


def test_the_default_does_not_depend_on_which_row_has_a_finding() -> None:
    target, reference, _ = sharp()
    flat = panel(planted_panel("flat", "wiki", np.random.default_rng(9), n_topics=300).reference)
    rows = panel_cutoffs(target, {"bad": flat, "good": reference})
    assert [row.reference for row in rows if row.is_default] == ["bad"]


def test_topics_that_lack_a_month_are_dropped_and_too_few_of_them_are_a_status() -> None:
    target, reference, _ = sharp(n_topics=40)
    values = target.values.copy()
    values[:25, 3] = np.nan
    rows = by_name(panel_cutoffs(Panel(target.topics, target.months, values), {"r": reference}))
    assert rows["panel", "r"].status == "too-few-topics"
    assert "15 topics" in (rows["panel", "r"].reason or "")
    assert rows["panel_noref", "none"].status == "too-few-topics"
    assert rows["trimmed95_minmax", "none"].n_topics == 15


def test_too_few_months_are_a_status() -> None:
    target, reference, _ = sharp()
    short = [Panel(p.topics, p.months[:11], p.values[:, :11]) for p in (target, reference)]
    row = by_name(panel_cutoffs(short[0], {"r": short[1]}))["panel", "r"]
    assert (row.status, row.month) == ("too-few-months", None)


def test_two_dips_are_both_named_and_neither_is_a_finding() -> None:
    for seed in range(8):
        world = planted_panel("two", "wiki", np.random.default_rng(seed), n_topics=1000)
        row = by_name(panel_cutoffs(panel(world.target), {"r": panel(world.reference)}))["panel", "r"]
        if row.status == "two-valley":
            assert row.month is None
            assert row.second_month is not None
            assert f"{row.second_month:%Y-%m}" in (row.reason or "")
            return
    pytest.fail("no world of eight gave two dips")


def test_the_reference_is_paired_by_topic_and_not_by_row() -> None:
    target, reference, truth = sharp()
    turned = Panel(reference.topics[::-1], reference.months, reference.values[::-1])
    assert by_name(panel_cutoffs(target, {"r": turned}))["panel", "r"].month == truth
    with pytest.raises(ValueError, match="different months"):
        target.paired(Panel(reference.topics, reference.months[1:], reference.values[:, 1:]))


def news(seed: int, snr: float, months: int = 54, articles: int = 40) -> tuple[pl.DataFrame, date]:
    rng = np.random.default_rng(seed)
    start = 30
    rows = [
        {
            "month": MONTHS[m],
            "topic": f"{m}/{a}",
            "mean_nll": 3.0 + 0.3 * rng.normal() + snr * 0.05 * (m >= start),
        }
        for m in range(months)
        for a in range(articles)
    ]
    return pl.DataFrame(rows), MONTHS[start - 1]


def test_an_unpaired_resource_is_dated_by_its_rise() -> None:
    scores, truth = news(1, 4.0)
    rows = by_name(bucket_cutoffs(scores, {}, MONTHS[:54]))
    assert rows["rise", "none"].month == truth
    assert rows["rise", "none"].is_default
    assert rows["trimmed95_minmax", "none"].lowest_month is not None
    assert rows["trimmed95_minmax", "none"].month is None


def test_a_reference_takes_out_what_every_model_sees_in_the_articles() -> None:
    scores, _ = news(2, 4.0)
    rows = by_name(bucket_cutoffs(scores, {"same": scores.with_columns(pl.col("mean_nll") + 0.01)}, MONTHS[:54]))
    assert rows["rise", "same"].status != "found"


def test_a_reference_that_rises_itself_is_refused() -> None:
    scores, truth = news(3, 4.0)
    other, _ = news(4, 4.0)
    row = by_name(bucket_cutoffs(scores, {"dated": other}, MONTHS[:54]))["rise", "dated"]
    assert row.status == "reference-dated"
    assert f"{truth:%Y-%m}" in (row.reason or "")


def test_a_month_without_articles_is_a_gap_and_not_a_value() -> None:
    scores, _ = news(5, 4.0)
    rows = bucket_cutoffs(scores.filter(pl.col("month") != MONTHS[7]), {}, MONTHS[:54])
    assert by_name(rows)["rise", "none"].status == "gaps"
    assert f"{MONTHS[7]:%Y-%m}" in (by_name(rows)["rise", "none"].reason or "")
    assert by_name(bucket_cutoffs(scores, {}, MONTHS[:20]))["rise", "none"].status == "too-few-months"


def test_a_panel_is_made_of_rows_in_any_order_and_double_rows_are_refused() -> None:
    rows = pl.DataFrame(
        {
            "topic": ["b", "a", "a", "b"],
            "month": [MONTHS[1], MONTHS[1], MONTHS[0], MONTHS[0]],
            "mean_nll": [4.0, 2.0, 1.0, None],
        }
    )
    made = panel_of(rows)
    assert made.topics == ("a", "b")
    assert np.allclose(made.values, [[1.0, 2.0], [np.nan, 4.0]], equal_nan=True)
    assert made.complete().topics == ("a",)
    with pytest.raises(ValueError, match="two scores"):
        panel_of(pl.concat([rows, rows]))


def test_reasons_are_sentences_for_every_status() -> None:
    assert all(reason is None or len(reason) > 20 for reason in REASONS.values())
    assert set(STATUSES) > set(REASONS)


def test_a_reference_is_tested_on_all_its_topics_and_not_only_on_those_that_the_target_has() -> None:
    wide, _, _ = sharp(3, 1000)
    few = Panel(wide.topics[:60], wide.months, wide.values[:60])
    assert reference_test(few).status != "found"
    assert by_name(panel_cutoffs(few, {"dated": wide}))["panel", "dated"].status == "reference-dated"


def test_a_constant_curve_has_no_lowest_month_and_no_interval() -> None:
    months = MONTHS[:24]
    constant = panel(np.tile(np.linspace(2, 3, 30)[:, None], (1, 24)), months)
    for row in panel_cutoffs(constant, {"r": constant}):
        assert (row.status, row.month) in [("flat", None), ("flat-or-unclear", None)]
        ends = (row.low95, row.high95)
        assert ends in ((None, None), (months[0], months[-1])), row.estimator
    described = by_name(panel_cutoffs(constant, {}))["trimmed95_minmax", "none"]
    assert (described.reason, described.lowest_month, described.low95) == (CONSTANT, None, None)
    news_rows = [{"month": m, "topic": f"{m}{n}", "mean_nll": 2.5} for m in MONTHS[:30] for n in range(6)]
    rows = by_name(bucket_cutoffs(pl.DataFrame(news_rows), {}, MONTHS[:30]))
    assert (rows["trimmed95_minmax", "none"].status, rows["trimmed95_minmax", "none"].lowest_month) == ("flat", None)
    assert (rows["rise", "none"].status, rows["rise", "none"].low95) == ("no-rise", None)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), None])
def test_one_value_that_is_none_changes_no_verdict_of_an_unpaired_resource(value: float | None) -> None:
    scores, truth = news(1, 4.0)
    first = pl.col("topic") == "7/0"
    broken = scores.with_columns(mean_nll=pl.when(first).then(pl.lit(value, dtype=pl.Float64)).otherwise("mean_nll"))
    without = bucket_cutoffs(scores.filter(~first), {}, MONTHS[:54])
    assert bucket_cutoffs(broken, {}, MONTHS[:54]) == without
    assert by_name(without)["rise", "none"].month == truth
    rows = by_name(bucket_cutoffs(scores, {"r": broken.with_columns(mean_nll=pl.col("mean_nll") * 0)}, MONTHS[:54]))
    assert rows["rise", "r"].month == truth


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 800.0])
def test_one_value_that_is_none_takes_one_topic_out_of_a_panel(value: float) -> None:
    target, reference, truth = sharp()
    values = target.values.copy()
    values[5, 9] = value
    rows = by_name(panel_cutoffs(Panel(target.topics, target.months, values), {"r": reference}))
    assert {row.n_topics for row in rows.values()} == {299}
    assert rows["panel", "r"].month == truth


def test_a_resource_without_scores_has_one_row_that_says_so() -> None:
    for kind, name in (("panel", "panel_noref"), ("unpaired", "rise")):
        versions = pl.DataFrame({"topic": ["a"], "month": [MONTHS[0]], "mean_nll": [None]})
        [row] = cutoffs(ScoredResource("r", kind, MONTHS[:1], versions), {})
        assert (row.estimator, row.status, row.reason, row.is_default) == (name, "missing", NOT_SCORED, True)


def row(estimator: str, reference: str, status: str) -> EffectiveCutoff:
    return EffectiveCutoff(estimator, reference, status, "a reason")


@pytest.mark.parametrize(
    ("alone", "first", "reported"),
    [
        ("flat-or-unclear", "found", "first"),
        ("flat-or-unclear", "flat", "first"),
        ("flat-or-unclear", "reference-dated", "second"),
        ("flat-or-unclear", "too-few-topics", "second"),
        ("too-few-topics", "too-few-topics", "first"),
        ("too-few-months", "too-few-topics", "second"),
        ("gaps", "gaps", "first"),
    ],
)
def test_which_row_is_reported(alone: str, first: str, reported: str) -> None:
    rows = [row("panel_noref", "none", alone), row("panel", "first", first), row("panel", "second", "flat")]
    [default] = [each for each in mark_default(rows, {"panel"}, "panel_noref") if each.is_default]
    assert default.reference == reported


def test_an_estimator_is_one_record_and_one_from_outside_is_applied_beside_the_others() -> None:
    target, reference, _ = sharp(n_topics=40)

    def middle(resource: ScoredResource, other: ScoredResource | None, name: str, seed: int) -> EffectiveCutoff:
        month = resource.months[len(resource.months) // 2]
        return EffectiveCutoff("middle", name, "found", None, month=month, lowest_month=month)

    added = (*ESTIMATORS, Estimator("middle", "panel", True, False, middle))
    known = cutoffs(scored(target), {"r": scored(reference)})
    rows = cutoffs(scored(target), {"r": scored(reference)}, estimators=added)
    assert rows[:-1] == known
    assert rows[-1] == replace(known[-1], **vars(middle(scored(target), None, "r", 1)))
    assert not rows[-1].is_default
