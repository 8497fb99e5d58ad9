"""Pictures of what a corpus holds, and attribution against known truth."""

from datetime import date
from io import BytesIO

from strandline.corpus.figures import BLUE, GREEN, ORANGE, BlackCurve, colours, stacked_versions
from strandline.corpus.truth import KnownDocument, compare_with_known
from strandline.perplexity.figures import CurveLine, CurvePanel, MinedBars, curve_panels
from strandline.spans.months import month_range

MONTHS = month_range(date(2020, 1, 1), date(2020, 6, 1))


def heights(figure) -> dict[str, float]:
    axis = figure.axes[0]
    return {bars.get_label(): sum(bar.get_height() for bar in bars) for bars in axis.containers}


def test_crawls_are_green_wikipedia_orange_and_c4_blue_and_no_colour_repeats():
    found = colours(["common_crawl", "wikipedia", "c4", "books", "arxiv", "cc/2023-06"])
    assert (found["wikipedia"], found["c4"]) == (ORANGE, BLUE)
    assert GREEN in (found["common_crawl"], found["cc/2023-06"])
    assert len(set(found.values())) == 6


def test_bars_are_stacked_by_sub_corpus_and_the_curve_is_black():
    weights = {"c4": [1, 2, 0, 0, 0, 0], "wikipedia": [0, 3, 0, 0, 0, 0]}
    curve = BlackCurve("a model", MONTHS, [1, 0, None, 0.5, 0.6, 0.7])
    figure = stacked_versions("title", MONTHS, weights, curve, reported=MONTHS[4], bulk=(MONTHS[0], MONTHS[1]))
    assert heights(figure) == {"c4 (3)": 3, "wikipedia (3)": 3}
    tops = [bar.get_y() + bar.get_height() for bars in figure.axes[0].containers for bar in bars]
    assert max(tops) == 5
    (line,) = figure.axes[1].lines
    assert line.get_color() == "black"
    assert list(line.get_xdata()) == list(MONTHS)
    figure.savefig(BytesIO(), format="png")


def test_bars_behind_curves_say_what_they_count_and_that_it_may_be_a_part_of_the_training_data():
    line = CurveLine("a model", MONTHS, [1, 0, None, 0.5, 0.6, 0.7], [None] * 6, [None] * 6)
    for unit in ("copies", "n-grams"):
        bars = MinedBars("c4", MONTHS, [1, 2, 0, 0, 0, 0], unit)
        figure = curve_panels([CurvePanel("title", [line], bars)])
        said = {axis.get_ylabel() for axis in figure.axes}
        assert f"{unit} in c4,\nmaybe a part of the training data" in said
        figure.savefig(BytesIO(), format="png")


def test_nothing_to_draw_is_said_in_the_picture():
    for weights in ({}, {"c4": [0.0] * 6}):
        figure = stacked_versions("title", MONTHS, weights)
        assert [text.get_text() for text in figure.axes[0].texts] == ["no copies were found"]
        figure.savefig(BytesIO(), format="png")


def test_each_known_document_has_one_outcome_with_its_reason():
    known = [KnownDocument(f"d{n}", topic, revision) for n, (topic, revision) in enumerate(
        [("numpy", "1.0"), ("numpy", "2.0"), ("numpy", "3.0"), ("numpy", "9.9"), ("unheard-of", "1")]
    )]  # fmt: skip
    in_force = {"numpy": {"1.0": [MONTHS[0], MONTHS[1]], "2.0": [MONTHS[2]], "3.0": [MONTHS[3]]}}
    found = {("numpy", "d0"): MONTHS[1:2], ("numpy", "d1"): MONTHS[3:4], ("numpy", "d3"): MONTHS[3:4]}
    checks = compare_with_known(known, in_force, found)
    assert [each.outcome for each in checks] == ["right", "wrong", "unmatched", "outside", "unknown_topic"]
    assert "in 2020-04, its last one, 3.0 was" in checks[3].reason
    assert "a version of 2020-04 is nearer than that of 2020-03" in checks[1].reason
