"""What keeps a release out of the probe."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from strandline.releases import Release
from strandline.releases.flags import flagged, uncertainty_days

TODAY = date(2026, 11, 29)


def release(version: str, day: str | None, **more: object) -> Release:
    row = Release("app", "tool", "Tool", version, date.fromisoformat(day) if day else None, "endoflife")
    return replace(row, **more)  # type: ignore[arg-type]


def flags(*releases: Release) -> dict[str, tuple[str, ...]]:
    return {r.version: r.flags for r in flagged(releases, TODAY)}


def test_an_ordinary_release_has_no_flag_and_is_stable() -> None:
    (done,) = flagged([release("1.2.3", "2024-01-02")], TODAY)
    assert (done.flags, done.is_stable, done.uncertainty_days) == ((), True, 1)


def test_each_doubt_is_a_flag() -> None:
    rows = [
        release("1.0.0", None),
        release("1.9.0", "2026-11-30"),
        release("1.0.2", "2024-01-01", is_yanked=True),
        release("1.1.0-rc1", "2024-01-01"),
        release("nightly", "2024-01-01"),
        release("7", "2024-01-01"),
        release("1.2.0", "2024-01-01", flags=("draft",)),
        release("1.3.0", "2024-01-02", flags=("sources_disagree",)),
    ]
    assert flags(*rows) == {
        "1.0.0": ("no_date",),
        "1.9.0": ("future",),
        "1.0.2": ("yanked",),
        "1.1.0-rc1": ("prerelease",),
        "nightly": ("unparsed",),
        "7": ("odd_form",),
        "1.2.0": ("draft", "prerelease"),
        "1.3.0": ("sources_disagree",),
    }


def test_today_is_not_the_future() -> None:
    assert flags(release("1.0.1", str(TODAY)))["1.0.1"] == ()


def test_a_version_dated_after_a_higher_one_of_its_line_was_backfilled() -> None:
    found = flags(release("2.4.1", "2020-06-01"), release("2.4.2", "2020-03-01"), release("2.4.3", "2020-03-02"))
    assert found == {"2.4.1": ("backfilled",), "2.4.2": (), "2.4.3": ()}


def test_a_line_opened_after_a_higher_line_of_its_major_was_backfilled() -> None:
    found = flags(release("2.4.0", "2020-06-01"), release("2.5.0", "2020-03-01"), release("3.0.0", "2020-01-01"))
    assert found == {"2.4.0": ("backfilled",), "2.5.0": (), "3.0.0": ()}


def test_patches_of_old_lines_beside_newer_lines_are_ordinary() -> None:
    rows = [release(v, d) for v, d in (("3.8.0", "2019-10-14"), ("2.7.18", "2020-04-20"), ("3.7.9", "2020-08-17"))]
    assert set(flags(*rows).values()) == {()}


def test_three_lines_of_a_major_opened_on_one_day_are_an_import() -> None:
    bulk = [release(f"1.{n}.0", "2022-05-05") for n in range(3)]
    lines_of_three_majors = [release(f"{n}.4.0", "2023-05-05") for n in (10, 12, 14)]
    found = flags(*bulk, *lines_of_three_majors)
    assert [found[f"1.{n}.0"] for n in range(3)] == [("backfilled",)] * 3
    assert [found[f"{n}.4.0"] for n in (10, 12, 14)] == [()] * 3


def test_versions_that_spell_out_their_year_tell_the_date() -> None:
    assert flags(release("2024.8.1", "2024-08-05"), release("3006.1", "2024-01-01")) == {
        "2024.8.1": ("tells_date",),
        "3006.1": (),
    }


def test_two_digit_years_count_only_where_the_project_counts_by_years() -> None:
    by_years = [release(f"{y}.{m}.1", f"20{y}-{m:02}-03") for y in (22, 23, 24) for m in (2, 8)]
    assert set(flags(*by_years).values()) == {("tells_date",)}
    by_numbers = [release(f"{major}.0.0", f"20{major - 1}-01-03") for major in (22, 23, 24)]
    one_match = [*by_numbers, release("25.3.0", "2025-03-03")]
    assert set(flags(*one_match).values()) == {()}


def test_flags_of_a_registry_stay_and_computed_ones_are_worked_out_anew() -> None:
    once = flagged([release("1.0.0", "2026-12-01", flags=("sources_disagree",))], TODAY)
    later = flagged(once, TODAY + timedelta(days=30))
    assert once[0].flags == ("future", "sources_disagree")
    assert later[0].flags == ("sources_disagree",)


def test_packages_are_judged_apart() -> None:
    a, b = release("1.1.0", "2020-01-01"), replace(release("1.0.0", "2021-01-01"), package="other")
    assert [r.flags for r in flagged([a, b], TODAY)] == [(), ()]


def test_uncertainty_is_that_of_the_source_and_known_exceptions() -> None:
    told = [uncertainty_days(s, p) for s, p in (("npm", "React"), ("python", "Python"), ("scoop-main", "Git"))]
    assert told == [0, 1, 7]
    assert uncertainty_days("endoflife", "PostgreSQL") == 4
    assert uncertainty_days("somewhere new", "X") == 7


VERSIONS = st.one_of(st.text(max_size=8), st.from_regex(r"\d{1,2}(\.\d{1,2}){0,3}(-rc\d)?", fullmatch=True))
DAYS = st.one_of(st.none(), st.dates(date(2014, 1, 1), date(2027, 1, 1)))


@given(st.lists(st.tuples(VERSIONS, DAYS, st.booleans()), max_size=25, unique_by=lambda row: row[0]))
def test_flagging_twice_changes_nothing_and_the_order_does_not_matter(
    rows: list[tuple[str, date | None, bool]],
) -> None:
    releases = [replace(release(v, None), released_on=d, is_yanked=y) for v, d, y in rows]
    once = flagged(releases, TODAY)
    assert flagged(once, TODAY) == once
    assert sorted(flagged(releases[::-1], TODAY), key=lambda r: r.version) == sorted(once, key=lambda r: r.version)
