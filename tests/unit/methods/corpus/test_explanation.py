"""Why a cutoff is where it is: typical months, circular shifts, and the split of a gap."""

from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.corpus.attribution_sentence import sentence
from strandline.corpus.explanation import (
    GAP_STATUSES,
    SHIFT_STATUSES,
    calendar,
    circular_shift_test,
    gap_shares,
    reweighted,
    typical_month,
)
from strandline.corpus.histograms import Copy, monthly_weights, summed
from strandline.spans.months import month_range

MONTHS = month_range(date(2018, 1, 1), date(2021, 12, 1))
DUMP = date(2021, 6, 1)


def copies_at(month, count, subcorpus="crawl", crawled_on=None, topics=20, start=0):
    return [
        Copy(f"{subcorpus}-{month}-{start + n}", f"topic{n % topics}", subcorpus, (month,), crawled_on)
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([1], (0, 0, 0)),
        ([0, 5, 0], (1, 1, 1)),
        ([1, 1, 8, 1, 1], (2, 2, 2)),
        ([3, 3, 0, 0, 2, 2, 1], (0, 0, 1)),
        ([2, 2, 2, 9, 0, 0, 1], (3, 3, 3)),
        ([1, 1, 1, 1], (0, 0, 1)),
        ([1, 2, 2, 1], (1, 1, 2)),
    ],
)
def test_the_typical_month_is_in_the_shortest_run_with_half_of_the_copies(weights, expected):
    found = typical_month(weights)
    assert (found.middle, found.first, found.last) == expected


@settings(max_examples=300)
@given(st.lists(st.floats(0, 1e6, allow_nan=False), min_size=1, max_size=40))
def test_the_bulk_holds_half_and_nothing_shorter_does(weights):
    if not sum(weights) > 1e-6:
        return
    found = typical_month(weights)
    half = sum(weights) / 2
    assert found.first <= found.middle <= found.last
    assert sum(weights[found.first : found.last + 1]) >= half * (1 - 1e-9)
    length = found.last - found.first
    shorter = [sum(weights[start : start + length]) for start in range(len(weights) - length + 1)] if length else []
    assert all(mass < half * (1 + 1e-9) for mass in shorter)


@pytest.mark.parametrize("weights", [[], [0, 0], [-1, 2], [float("nan"), 1], [float("inf"), 1]])
def test_weights_without_meaning_have_no_typical_month(weights):
    with pytest.raises(ValueError, match="typical month"):
        typical_month(weights)


def test_a_histogram_sums_to_its_copies_by_sub_corpus():
    copies = [
        Copy("a", "t", "c4", MONTHS[:3]),
        Copy("b", "t", "wiki", (MONTHS[5],)),
        Copy("c", "u", "c4", (MONTHS[0],), weight=0.5),
        Copy("c", "v", "c4", (MONTHS[1],), weight=0.5),
    ]
    counted = monthly_weights(copies, MONTHS)
    assert counted["c4", MONTHS[0]] == pytest.approx(1 / 3 + 0.5)
    assert counted["wiki", MONTHS[0]] == 0
    assert sum(summed(counted, MONTHS)) == pytest.approx(3)
    with pytest.raises(ValueError, match="not among"):
        monthly_weights([Copy("a", "t", "c4", (date(1999, 1, 1),))], MONTHS)


def autocorrelated(rng, n, rho):
    values = np.zeros(n + 100)
    for place in range(1, n + 100):
        values[place] = rho * values[place - 1] + rng.normal()
    return values[100:]


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.8])
def test_unrelated_series_are_called_related_at_the_stated_rate(rho):
    rng = np.random.default_rng(17)
    found = [
        circular_shift_test(autocorrelated(rng, 85, rho), list(autocorrelated(rng, 85, rho))).p_value <= 0.05
        for _ in range(500)
    ]
    assert 0.015 <= np.mean(found) <= 0.075


def test_a_naive_correlation_test_would_not_hold_its_rate():
    from scipy.stats import spearmanr

    rng = np.random.default_rng(18)
    naive = [
        spearmanr(autocorrelated(rng, 85, 0.8), autocorrelated(rng, 85, 0.8), alternative="less").pvalue <= 0.05
        for _ in range(300)
    ]
    assert np.mean(naive) > 0.12


def test_p_values_of_independent_draws_are_uniform_on_their_grid():
    rng = np.random.default_rng(19)
    p_values = np.array([circular_shift_test(rng.random(20), list(rng.random(20))).p_value for _ in range(1200)])
    for level in (0.05, 0.1, 0.25, 0.5, 0.75):
        assert np.mean(p_values <= level + 1e-9) == pytest.approx(level, abs=3.5 * (level * (1 - level) / 1200) ** 0.5)


def test_copies_that_mirror_the_curve_are_found_with_their_lag():
    rng = np.random.default_rng(20)
    bump = np.exp(-0.5 * ((np.arange(85) - 40) / 8) ** 2)
    copies = bump + 0.3 * rng.random(85)
    related = circular_shift_test(copies, list(1 - copies + 0.1 * rng.random(85)))
    assert related.correlation < -0.9
    assert related.p_value == pytest.approx(1 / 85)
    assert related.lag == 0
    later = circular_shift_test(bump, list(1 - np.roll(bump, 7)))
    assert later.lag == 7


def test_two_smooth_bumps_at_one_place_are_weak_evidence_as_any_near_shift_would_do():
    bump = np.exp(-0.5 * ((np.arange(85) - 40) / 8) ** 2)
    found = circular_shift_test(bump, list(1 - np.roll(bump, 3)))
    assert found.correlation < -0.8
    assert 0.05 < found.p_value < 0.2


@pytest.mark.parametrize(
    ("copies", "curve", "status"),
    [
        ([1.0] * 20, [float(n) for n in range(20)], "flat"),
        ([float(n) for n in range(20)], [1.0] * 20, "flat"),
        ([1.0, 2.0], [2.0, 1.0], "too_short"),
        ([float(n) for n in range(20)], [None] * 15 + [1.0] * 5, "too_short"),
        ([float(n) for n in range(10)], [float("nan")] * 10, "too_short"),
    ],
)
def test_series_without_information_get_a_status_and_no_number(copies, curve, status):
    found = circular_shift_test(copies, curve)
    assert (found.status, found.correlation, found.p_value) == (status, None, None)
    assert found.reason


def test_an_aligned_corpus_has_no_gap():
    found = gap_shares(copies_at(DUMP, 60, "wiki") + copies_at(MONTHS[3], 10), MONTHS, DUMP, ["crawl"], {})
    assert (found.gap, found.old_crawl, found.duplicates, found.remainder) == (0, 0, 0, 0)
    assert found.share(found.old_crawl) is None


def test_old_pages_in_a_crawl_of_the_dumps_month_account_for_the_whole_gap():
    copies = copies_at(date(2019, 6, 1), 80, crawled_on=date(2021, 6, 15)) + copies_at(DUMP, 20, "wiki")
    found = gap_shares(copies, MONTHS, DUMP, ["crawl"], {})
    assert found.typical == date(2019, 6, 1)
    assert (found.gap, found.old_crawl, found.duplicates, found.remainder) == (24, 24, 0, 0)
    assert found.share(found.old_crawl) == 1.0


def test_duplicates_of_an_old_version_account_for_the_whole_gap():
    old = copies_at(date(2020, 6, 1), 60)
    groups = {copy.document_id: copy.topic for copy in old}
    found = gap_shares(old + copies_at(DUMP, 40, "wiki"), MONTHS, DUMP, ["crawl"], groups)
    assert (found.gap, found.old_crawl, found.duplicates, found.remainder) == (12, 0, 12, 0)


def test_old_dumps_in_the_mix_are_neither_old_pages_nor_duplicates():
    copies = copies_at(date(2019, 6, 1), 80, crawled_on=date(2019, 7, 3)) + copies_at(DUMP, 20, "wiki")
    found = gap_shares(copies, MONTHS, DUMP, ["crawl"], {})
    assert (found.gap, found.old_crawl, found.duplicates, found.remainder) == (24, 0, 0, 24)


def test_two_causes_that_must_both_go_share_the_gap_equally():
    old_page = copies_at(date(2019, 6, 1), 40, crawled_on=date(2021, 6, 2))
    doubled = copies_at(date(2019, 6, 1), 40, "books", start=100)
    groups = {copy.document_id: copy.topic for copy in doubled}
    found = gap_shares(old_page + doubled + copies_at(DUMP, 25, "wiki"), MONTHS, DUMP, ["crawl"], groups)
    assert found.gap == 24
    assert found.old_crawl + found.duplicates + found.remainder == 24


def test_a_copy_that_may_be_as_new_as_its_crawl_is_not_old():
    copies = [
        Copy(f"d{n}", f"t{n}", "crawl", (date(2019, 6, 1), date(2021, 5, 1)), date(2021, 6, 9)) for n in range(30)
    ]
    assert gap_shares(copies, MONTHS, DUMP, ["crawl"], {}).old_crawl == 0


def test_a_gap_is_counted_in_months_of_the_calendar_also_where_a_resource_lacks_some():
    sparse = [month for month in MONTHS if month.month in (6, 12)]
    copies = copies_at(date(2019, 6, 1), 80, crawled_on=date(2021, 3, 15)) + copies_at(DUMP, 20, "wiki")
    found = gap_shares(copies, sparse, DUMP, ["crawl"], {})
    assert (found.typical, found.gap, found.old_crawl, found.remainder) == (date(2019, 6, 1), 24, 21, 3)
    old = copies_at(date(2019, 6, 1), 30) + copies_at(date(2020, 12, 1), 30)
    assert calendar(sparse)[reweighted(old, sparse, {})["none"].middle] == date(2019, 6, 1)


def test_a_document_that_two_topics_share_is_one_copy():
    shared = [Copy("d", topic, "crawl", (DUMP,), weight=0.5) for topic in ("t", "u")]
    assert gap_shares(shared + copies_at(DUMP, 3), MONTHS, DUMP, [], {}).n_copies == 4


def test_copies_without_a_typical_month_explain_nothing():
    spread = [copy for month in MONTHS for copy in copies_at(month, 3)]
    assert gap_shares(spread, MONTHS, DUMP, ["crawl"], {}).status == "flat"
    assert gap_shares([], MONTHS, DUMP, ["crawl"], {}).status == "missing"


def test_the_interval_of_the_typical_month_covers_the_truth():
    shape = np.exp(-0.5 * ((np.arange(48) - 20) / 5) ** 2)
    truth = typical_month(shape).middle
    rng = np.random.default_rng(21)
    covered = []
    for run in range(40):
        places = rng.choice(48, size=150, p=shape / shape.sum())
        copies = [Copy(f"d{n}", f"t{n % 50}", "crawl", (MONTHS[place],)) for n, place in enumerate(places.tolist())]
        found = gap_shares(copies, MONTHS, DUMP, [], {}, seed=run)
        covered.append(found.low95 <= MONTHS[truth] <= found.high95)
    assert np.mean(covered) >= 0.9


def test_each_duplicate_class_is_undone_alone():
    old = copies_at(date(2020, 6, 1), 60)
    copies = old + copies_at(DUMP, 40, "wiki")
    found = reweighted(copies, MONTHS, {"exact": {c.document_id: c.topic for c in old}, "whitespace": {}})
    assert MONTHS[found["none"].middle] == MONTHS[found["whitespace"].middle] == date(2020, 6, 1)
    assert MONTHS[found["exact"].middle] == DUMP


def test_the_sentence_names_the_months_and_the_shares():
    copies = copies_at(date(2019, 6, 1), 80, crawled_on=date(2021, 6, 15)) + copies_at(DUMP, 20, "wiki")
    shares = gap_shares(copies, MONTHS, DUMP, ["crawl"], {})
    said = sentence("redpajama", "wikispan", DUMP, shares, effective=date(2019, 7, 1))
    assert "reported as of 2021-06 in redpajama" in said
    assert "2019-07" in said
    assert "gap of 24 months, old pages in crawls account for 24 months (100%)" in said
    assert said.count(". ") == 0


def test_the_sentence_says_why_nothing_can_be_said():
    assert "no copy of the resource was found" in sentence("c4", "wikispan", DUMP, gap_shares([], MONTHS, DUMP, [], {}))
    shares = gap_shares(copies_at(DUMP, 5), MONTHS, DUMP, [], {})
    assert "no month is reported" in sentence("c4", "wikispan", None, shares)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 47), st.integers(0, 47), st.sampled_from(["crawl", "wiki"]), st.integers(0, 5)),
        min_size=1,
        max_size=25,
    ),
    st.dates(date(2015, 1, 1), date(2025, 1, 1)),
)
def test_the_parts_always_sum_to_the_gap(rows, reported):
    copies = [
        Copy(f"d{n}", f"t{group}", subcorpus, (MONTHS[month],), MONTHS[crawl])
        for n, (month, crawl, subcorpus, group) in enumerate(rows)
    ]
    groups = {copy.document_id: str(group) for copy, (*_, group) in zip(copies, rows, strict=True)}
    found = gap_shares(copies, MONTHS, reported, ["crawl"], groups)
    if found.status == "ok":
        assert found.old_crawl + found.duplicates + found.remainder == pytest.approx(found.gap)
        assert found.old_crawl_low95 <= found.old_crawl_high95
    sentence("c", "r", reported, found)


@pytest.mark.parametrize(
    ("crawled_on", "subcorpus", "moved"),
    [
        (date(2018, 1, 31), "crawl", False),
        (date(2018, 4, 1), "crawl", False),
        (date(2018, 4, 30), "crawl", False),
        (date(2018, 5, 1), "crawl", True),
        (date(2018, 5, 1), "wiki", False),
        (None, "crawl", False),
    ],
    ids=["same month", "3 months", "3 months, last day", "4 months", "no crawl", "no day"],
)
def test_a_page_is_old_where_its_crawl_came_more_than_three_months_later(
    crawled_on: date | None, subcorpus: str, moved: bool
) -> None:
    copies = copies_at(MONTHS[0], 20, subcorpus, crawled_on)
    found = gap_shares(copies, MONTHS, MONTHS[10], ["crawl"], {})
    assert (found.gap, found.old_crawl) == (10, 4 if moved else 0)


@pytest.mark.parametrize(
    ("spread", "n_months", "status"),
    [
        (19, 50, "ok"),
        (20, 50, "flat"),
        (21, 50, "flat"),
        (1, 2, "ok"),
        (2, 3, "flat"),
        (2, 5, "flat"),
        (2, 6, "ok"),
        (1, 1, "ok"),
        (1, 3, "ok"),
    ],
)
def test_copies_are_flat_from_forty_percent_of_the_months_on(spread: int, n_months: int, status: str) -> None:
    months = list(month_range(date(2010, 1, 1), date(2030, 1, 1)))[:n_months]
    copies = even_over(months, spread)
    bulk = typical_month(summed(monthly_weights(copies, months), months))
    assert bulk.last - bulk.first + 1 == spread
    found = gap_shares(copies, months, months[-1], [], {})
    assert (found.status, found.reason is None) == (status, status == "ok")


def even_over(months: list[date], spread: int) -> list[Copy]:
    """Copies of which the shortest run with half of all has just so many months: one each, and as many outside."""
    inside = [Copy(f"in{place}", f"t{place}", "c", (months[place],)) for place in range(spread)]
    rest = months[spread:]
    share = max(0.0, spread - 1.5) / max(1, len(rest))
    outside = [Copy(f"out{month}", "t0", "c", (month,), weight=share) for month in rest]
    return inside + outside


@pytest.mark.parametrize(("shift", "lag"), [(0, 0), (7, 7), (-7, -7), (9, 9), (10, 10), (-9, -9), (-10, 10), (11, -9)])
def test_a_lag_is_positive_where_the_curve_comes_after_the_copies_and_negative_before(shift: int, lag: int) -> None:
    rng = np.random.default_rng(3)
    copies = rng.random(20)
    found = circular_shift_test(copies.tolist(), (1 - np.roll(copies, shift)).tolist())
    assert (found.lag, found.status, found.n_months) == (lag, "ok", 20)


@pytest.mark.parametrize(("n_months", "status"), [(7, "too_short"), (8, "ok")])
def test_eight_months_are_compared_and_seven_are_not(n_months: int, status: str) -> None:
    copies = [float(n) for n in range(n_months)]
    assert circular_shift_test(copies, copies[::-1]).status == status
    assert circular_shift_test([*copies, 1.0], [*copies[::-1], None]).status == status


def test_every_status_is_one_of_those_that_are_listed() -> None:
    assert GAP_STATUSES == ("ok", "flat", "missing")
    assert SHIFT_STATUSES == ("ok", "flat", "too_short")
    assert gap_shares([], MONTHS, DUMP, [], {}).status == "missing"
