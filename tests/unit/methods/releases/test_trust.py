"""Dates that are a mirror's own are recognised, and not believed."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from strandline.releases import Listed, Listing, Project, Release
from strandline.releases.merge import merged
from strandline.releases.trust import agree, redated, without_dates

START = date(2016, 4, 7)
NOW = datetime(2026, 11, 29, tzinfo=UTC)
VERSIONS = [f"15.{minor}.{patch}" for minor in range(6) for patch in range(4)]
TRUE = {version: START + timedelta(days=20 * i) for i, version in enumerate(VERSIONS)}


def listing(days: dict[str, date | None]) -> Listing:
    return Listing("react", tuple(Listed(v, d) for v, d in days.items()), "npm")


def known(source: str = "endoflife") -> list[Release]:
    return [Release("npm", "react", "React", v, d, source) for v, d in TRUE.items()]


def mirrored(seed: int) -> dict[str, date | None]:
    """Every version dated by when a cache happened to fetch it, eight years later."""
    rng = np.random.default_rng(seed)
    return {v: date(2024, 12, 1) + timedelta(days=int(rng.integers(0, 300))) for v in VERSIONS}


def test_a_registry_that_agrees_with_what_is_known_is_believed() -> None:
    shifted: dict[str, date | None] = {v: d + timedelta(days=1) for v, d in TRUE.items()}
    assert redated(known(), listing(shifted)) is None


def test_a_mirror_contradicts_what_is_known() -> None:
    assert "24 of 24 known releases" in str(redated(known(), listing(mirrored(0))))
    assert "24 of 24 known releases" in str(redated(known("npm"), listing(mirrored(0))))


def test_a_mirror_of_an_unknown_package_runs_against_the_order_of_versions() -> None:
    caught = [redated([], listing(mirrored(seed))) for seed in range(200)]
    assert sum(reason is not None for reason in caught) >= 190


def test_a_few_disputed_days_do_not_discredit_a_registry() -> None:
    days: dict[str, date | None] = dict(TRUE)
    days["15.2.1"] = START + timedelta(days=900)
    assert redated(known(), listing(days)) is None


def test_an_undated_or_tiny_listing_gives_no_ground_for_distrust() -> None:
    assert redated(known(), listing(dict.fromkeys(VERSIONS))) is None
    assert redated([], listing({"1.0.1": START, "1.0.0": START + timedelta(days=99)})) is None


def test_of_a_mirror_only_the_existence_of_versions_is_taken() -> None:
    project = Project("React", 3, "npm", "react", "npm", "react")
    days = {**mirrored(1), "99.0.0": date(2026, 1, 1)}
    told = without_dates(listing(days), "as a mirror does")
    rows = {r.version: r for r in merged(project, known()[:-1], told, NOW)}
    assert {v: (r.released_on, r.source, r.flags) for v, r in rows.items() if v in VERSIONS[:-1]} == {
        v: (TRUE[v], "endoflife", ()) for v in VERSIONS[:-1]
    }
    assert (rows["99.0.0"].released_on, rows["99.0.0"].flags) == (None, ("mirror_dates",))
    again = {r.version: r for r in merged(project, rows.values(), told, NOW + timedelta(days=1))}
    assert again == rows


def test_dates_agree_within_what_both_sources_are_unsure_of() -> None:
    row = known("scoop-main")[0]
    assert agree(row, START + timedelta(days=8), "npm")
    assert not agree(row, START + timedelta(days=9), "npm")


@given(st.dictionaries(st.sampled_from(VERSIONS), st.dates(date(2014, 1, 1), date(2026, 1, 1)), max_size=24))
def test_distrust_is_a_sentence_or_nothing_for_any_dates(days: dict[str, date]) -> None:
    reason = redated(known(), listing(dict(days)))
    assert reason is None or reason.startswith("the registry ")
