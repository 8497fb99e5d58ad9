"""Versions that spell out when they came, in the schemes that projects use; and those that only look so."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.releases import Release, SourceDay
from strandline.releases.decoys import decoys_for, patch_jump
from strandline.releases.facts import facts_folder, read_projects, read_releases
from strandline.releases.flags import flagged
from strandline.releases.items import probe_items
from strandline.releases.spelled_dates import spells_day, telling_date


def release(version: str, day: str) -> Release:
    return Release("app", "tool", "Tool", version, date.fromisoformat(day), "endoflife")


def telling(*rows: tuple[str, str]) -> set[str]:
    return {r.version for r in telling_date([release(*row) for row in rows])}


HALF_YEARS = [
    (f"{y}.{n}.{p}", f"20{y + (p > 3)}-{5 * n:02}-0{p + 1}") for y in (19, 20, 21) for n in (1, 2) for p in (0, 5)
]
"""CockroachDB's: a line a half-year, patched for years after."""


def test_a_project_that_opens_a_line_a_half_year_tells_its_years_in_late_patches_too() -> None:
    assert telling(*HALF_YEARS) == {version for version, _ in HALF_YEARS}


def test_a_disputed_day_hides_no_scheme() -> None:
    rows = [release(v, d) for v, d in HALF_YEARS]
    wrong = replace(rows[4], released_on=date(2012, 1, 1), other_days=(SourceDay("npm", date(2020, 5, 1)),))
    assert wrong.version.startswith("20.")
    assert {r.version for r in telling_date([*rows[:4], wrong, *rows[5:]])} == {version for version, _ in HALF_YEARS}


def test_a_project_that_began_to_count_by_years_tells_them_from_there_on() -> None:
    before = [("6.4.0", "2022-08-18"), ("7.5.0", "2023-02-02"), ("7.6.0", "2023-08-21")]
    since = [("24.2.0", "2024-01-31"), ("24.8.0", "2024-08-22"), ("25.2.0", "2025-02-06")]
    assert telling(*before, *since) == {version for version, _ in since}


def test_a_line_that_opens_in_december_may_bear_the_year_to_come() -> None:
    docker = [
        ("17.03.0", "2017-02-23"),
        ("18.01.0", "2017-12-12"),
        ("18.09.2", "2019-02-11"),
        ("19.03.0", "2019-07-22"),
    ]
    assert telling(*docker) == {version for version, _ in docker}


def test_several_majors_a_year_that_pass_the_year_s_number_are_ordinary() -> None:
    electron = [("21.0.0", "2022-09-27"), ("22.0.0", "2022-11-29"), ("23.0.0", "2023-02-07"), ("24.0.0", "2023-04-04")]
    node = [("24.0.0", "2025-05-06"), ("25.0.0", "2025-10-15"), ("26.0.0", "2026-04-22")]
    assert telling(*electron) == telling(*node) == set()


def test_years_at_a_later_place_take_three_lines_of_their_own() -> None:
    rows = [("3.22.0", "2022-03-01"), ("3.23.0", "2023-03-01"), ("3.24.1", "2024-03-01"), ("3.25.0", "2025-03-01")]
    assert telling(*rows) == {version for version, _ in rows}
    assert telling(*rows[:2]) == set()


def test_quarters_in_three_digits_are_read_where_the_project_goes_on_so() -> None:
    rows = [
        ("223.7571.1", "2022-11-30"),
        ("231.8109.2", "2023-03-29"),
        ("232.8660.3", "2023-07-26"),
        ("241.1.1", "2024-04-04"),
    ]
    assert telling(*rows) == {version for version, _ in rows}
    assert telling(("231.0", "2016-07-25"), ("241.0", "2019-02-14"), ("251.0", "2022-05-21")) == set()


def test_the_first_year_of_a_scheme_shows_in_its_months() -> None:
    rows = [("26.1.0", "2026-01-20"), ("26.3.0", "2026-03-09"), ("26.4.0", "2026-04-11")]
    assert telling(*rows) == {version for version, _ in rows}
    assert telling(*rows[:2], ("26.4.0", "2026-08-11")) == set()


@pytest.mark.parametrize(("n_months", "tells"), [(2, False), (3, True)])
def test_a_scheme_s_first_year_shows_in_three_months_and_not_in_two(n_months: int, tells: bool) -> None:
    rows = [(f"26.{month}.0", f"2026-0{month}-09") for month in (1, 3, 4)[:n_months]]
    assert bool(telling(*rows)) is tells


@pytest.mark.parametrize(("n_years", "tells"), [(2, False), (3, True)])
def test_years_at_the_third_place_take_three_as_well(n_years: int, tells: bool) -> None:
    rows = [(f"4.6.{y}", f"20{y}-05-05") for y in (20, 21, 22)[:n_years]]
    assert bool(telling(*rows)) is tells


def test_quarters_of_two_years_are_a_scheme_and_those_of_one_are_not() -> None:
    rows = [("231.8109", "2023-03-29"), ("232.8660", "2023-07-26"), ("241.14494", "2024-04-04")]
    assert telling(*rows) == {version for version, _ in rows}
    assert telling(*rows[:2]) == set()


def test_a_value_between_two_runs_that_came_a_year_late_belongs_to_them() -> None:
    packaging = [("15.0", "2015-01-02"), ("16.0", "2016-01-19"), ("17.0", "2018-02-28"), ("18.0", "2018-09-26")]
    since = [("19.0", "2019-01-20"), ("20.0", "2020-01-06")]
    assert telling(*packaging, *since) == {version for version, _ in (*packaging, *since)}
    assert telling(*packaging[:2], ("17.0", "2019-02-28"), *since[1:], ("21.0", "2021-01-29")) == {
        "15.0", "16.0", "20.0", "21.0"
    }  # fmt: skip


SPELLED = [
    ("1.2023.4", "2023-06-01"), ("5.2024.1", "2023-12-15"), ("0.0.20240115", "2024-01-15"),
    ("2.31.0.20240125", "2024-01-26"), ("4.202401", "2024-01-30"), ("1.240115", "2024-01-15"), ("2403.1", "2024-03-20"),
    ("7.2435", "2024-08-28"), ("1.2024075", "2024-03-15"), ("1.24075", "2024-03-15"), ("0.1705312800", "2024-01-15"),
    ("0.1705312800000", "2024-01-15"),
    ("22.9.29", "2022-09-30"), ("1.24.3.15", "2024-03-15"), ("15.3.24", "2024-03-15"), ("3.15.24", "2024-03-15"),
    ("1.20240115123000", "2024-01-15"), ("17.03.1", "2017-03-23"),
]  # fmt: skip


@pytest.mark.parametrize(("version", "day"), SPELLED)
def test_numbers_that_speak_for_themselves_tell_the_date(version: str, day: str) -> None:
    assert telling((version, day)) == {version}


@pytest.mark.parametrize(
    ("version", "day"),
    [("2.7.2100", "2020-01-23"), ("3006.1", "2024-01-01"), ("10.0.19045", "2023-05-05"), ("1.17.0", "2021-08-16"),
     ("25.3.0", "2025-03-03"), ("1.20240115", "2027-06-01"), ("4.1234567", "2024-01-01")],
)  # fmt: skip
def test_other_numbers_do_not(version: str, day: str) -> None:
    assert telling((version, day)) == set()


def test_a_line_whose_versions_spell_their_date_gives_no_decoy_to_others() -> None:
    rows = [release(v, d) for v, d in (("19.03.14", "2020-12-01"), ("20.10.1", "2020-12-14"), ("23.0.1", "2023-02-09"))]
    told = [release("17.03.1", "2017-03-23"), release("18.01.0", "2017-12-12"), release("19.03.0", "2019-07-22"), *rows]
    done = {r.version: r for r in flagged(told, date(2026, 1, 1))}
    decoys = decoys_for(list(done.values()), [done["23.0.1"]])
    assert decoys["23.0.1"].kind == "patch_jump"


def test_a_near_miss_that_would_spell_the_day_gives_way_to_a_jump() -> None:
    rows = [release("1.2022", "2010-05-05"), release("2.0", "2020-01-01"), release("2.1", "2023-06-01")]
    decoys = decoys_for(rows, rows[1:])
    assert not spells_day(decoys["2.1"].version, date(2023, 6, 1))
    assert decoys["2.1"].kind == "patch_jump"


def test_no_decoy_spells_the_day_that_is_asked_about() -> None:
    decoy = patch_jump("1.1933", set(), day=date(2024, 5, 5))
    assert decoy is not None
    assert not spells_day(decoy.version, date(2024, 5, 5))


def test_no_shipped_question_spells_its_date() -> None:
    projects = read_projects(facts_folder())
    releases = flagged(read_releases(facts_folder(), projects), date(2026, 11, 29))
    items = probe_items(releases, projects)
    asked = {(item.project, item.version): item.released_on for item in items}
    assert not [key for key, day in asked.items() if spells_day(key[1], day)]
    assert not [i for i in items if i.decoy_version and spells_day(i.decoy_version, i.released_on)]
    by_years = {"ClickHouse", "DBeaver", "Helix", "SonarQube"}
    years = {(item.project, item.version) for item in items if item.project in by_years}
    assert not [key for key in years if int(key[1].split(".")[0]) >= 20]
    assert {v for p, v in asked if p == "CockroachDB"} <= {v for p, v in asked if v.startswith(("1.", "2."))}
    assert not [v for p, v in asked if p == "Docker Engine" and v.startswith(("17.", "18.", "19.", "20."))]


@given(
    st.lists(
        st.tuples(
            st.one_of(st.text(max_size=8), st.from_regex(r"[0-9]{1,14}(\.[0-9]{1,14}){0,3}", fullmatch=True)),
            st.dates(),
        ),
        max_size=15,
    )
)
def test_any_versions_and_days_are_judged_without_an_error_and_in_any_order(rows: list[tuple[str, date]]) -> None:
    releases = [replace(release("1.0", "2020-01-01"), version=v, released_on=d) for v, d in rows]
    forwards = sorted(r.version for r in telling_date(releases))
    assert forwards == sorted(r.version for r in telling_date(releases[::-1]))
