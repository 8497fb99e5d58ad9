"""Where one judgement of the releases turns into another: each rule at its edges; and values that cannot be."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.releases import Listed, Listing, Project, Release, SourceDay
from strandline.releases.decoys import decoys_for, ended_lines, line_of, patch_jump, with_last
from strandline.releases.facts import read_projects, read_releases, source_day, write_releases
from strandline.releases.flags import flagged
from strandline.releases.items import ItemRules, askable, dataset_version, horizon, probe_items, thinned
from strandline.releases.trust import agree, redated
from strandline.releases.versions import canonical, existing_forms, from_tag, is_plain, natural, numbers_of, sort_key
from tests.fakes.registries import write_projects

DAY = date(2022, 3, 1)
TODAY = date(2026, 11, 29)


def release(version: str, day: date | None = DAY, source: str = "npm", **more: object) -> Release:
    return replace(Release("npm", "tool", "Tool", version, day, source), **more)  # type: ignore[arg-type]


def flags(*releases: Release) -> dict[str, tuple[str, ...]]:
    return {r.version: r.flags for r in flagged(releases, TODAY)}


@pytest.mark.parametrize(("ahead", "expected"), [(-1, ()), (0, ()), (1, ("future",))])
def test_a_day_after_today_is_the_future(ahead: int, expected: tuple[str, ...]) -> None:
    assert flags(release("1.0.1", TODAY + timedelta(days=ahead)))["1.0.1"] == expected


@pytest.mark.parametrize(("late", "expected"), [(0, ()), (1, ()), (2, ("backfilled",))])
def test_a_version_two_days_after_a_higher_one_of_its_line_was_backfilled(late: int, expected: tuple[str, ...]) -> None:
    assert flags(release("2.4.1", DAY + timedelta(days=late)), release("2.4.2", DAY))["2.4.1"] == expected


@pytest.mark.parametrize(("n", "expected"), [(2, ()), (3, ("backfilled",))])
def test_three_lines_of_a_major_on_one_day_are_an_import_and_two_are_not(n: int, expected: tuple[str, ...]) -> None:
    assert set(flags(*(release(f"3.{k}.0") for k in range(n))).values()) == {expected}


@pytest.mark.parametrize(("apart", "expected"), [(2, ()), (3, ("sources_disagree",))])
def test_days_three_apart_are_a_dispute(apart: int, expected: tuple[str, ...]) -> None:
    other = (SourceDay("endoflife", DAY - timedelta(days=apart)),)
    assert flags(release("1.0.1", other_days=other))["1.0.1"] == expected
    assert flags(release("1.0.1", other_days=other, flags=("sources_disagree",)))["1.0.1"] == expected


@pytest.mark.parametrize(("shift", "expected"), [(-1, ("too_early",)), (0, ())])
def test_a_day_before_npm_is_flagged_where_it_was_stored_once(shift: int, expected: tuple[str, ...]) -> None:
    row = release("1.0.1", date(2010, 1, 1) + timedelta(days=shift))
    assert flags(row)["1.0.1"] == expected
    assert flags(replace(row, source="transcribed"))["1.0.1"] == ()


def listing(days: dict[str, date]) -> Listing:
    return Listing("tool", tuple(Listed(v, d) for v, d in days.items()), "npm")


@pytest.mark.parametrize(
    ("n_known", "n_differing", "is_mirror"), [(4, 4, False), (5, 3, True), (6, 3, False), (6, 4, True)]
)
def test_more_than_half_of_five_known_days_must_differ(n_known: int, n_differing: int, is_mirror: bool) -> None:
    known = [release(f"{n}.0.1") for n in range(n_known)]
    days = {r.version: DAY + timedelta(days=90 if n < n_differing else 0) for n, r in enumerate(known)}
    assert (redated(known, listing(days)) is not None) is is_mirror


@pytest.mark.parametrize(
    ("n_pairs", "n_backwards", "is_mirror"), [(7, 7, False), (8, 2, True), (10, 2, False), (10, 3, True)]
)
def test_more_than_a_fifth_of_eight_pairs_must_run_backwards(n_pairs: int, n_backwards: int, is_mirror: bool) -> None:
    days = {}
    for n in range(n_pairs):
        days[f"{n}.1.0"], days[f"{n}.1.1"] = DAY, DAY + timedelta(days=-2 if n < n_backwards else 1)
    assert (redated([], listing(days)) is not None) is is_mirror


@pytest.mark.parametrize(("gap", "counts"), [(-1, False), (-2, True)])
def test_a_day_backwards_is_a_time_zone_and_two_are_not(gap: int, counts: bool) -> None:
    days = {f"{n}.1.{k}": DAY + timedelta(days=gap * k) for n in range(8) for k in (0, 1)}
    assert (redated([], listing(days)) is not None) is counts


@pytest.mark.parametrize(
    ("apart", "source", "same"),
    [(1, "npm", True), (2, "npm", False), (8, "scoop-main", True), (9, "scoop-main", False)],
)
def test_two_days_agree_within_what_their_sources_are_unsure_of_and_a_day(apart: int, source: str, same: bool) -> None:
    assert agree(release("1.0.0", source=source), DAY + timedelta(days=apart), "npm") is same


@pytest.mark.parametrize(("quiet", "has_ended"), [(364, False), (365, True)])
def test_a_line_has_ended_after_a_year_of_quiet(quiet: int, has_ended: bool) -> None:
    rows = [release("1.0.3"), release("1.1.0", DAY + timedelta(days=quiet))]
    assert ((1, 0) in ended_lines(rows)) is has_ended


@pytest.mark.parametrize("flag", ["future", "sources_disagree", "too_early", "mirror_dates", "tells_date"])
def test_a_line_whose_days_are_in_doubt_gives_no_near_miss_and_ends_no_other(flag: str) -> None:
    rows = [release("1.0.3"), release("1.1.0", DAY + timedelta(days=300))]
    doubtful = release("1.2.0", date(9999, 12, 31), flags=(flag,))
    assert ended_lines([*rows, doubtful]) == {}
    assert ended_lines([replace(rows[0], flags=(flag,)), release("1.1.0", DAY + timedelta(days=900))]) == {}


def test_three_next_patches_of_a_line_are_near_misses_and_no_fourth() -> None:
    rows = [
        *(release(f"1.0.{n}", DAY + timedelta(days=n)) for n in range(5)),
        release("1.1.0", DAY + timedelta(days=900)),
    ]
    found = decoys_for(rows, rows[:5])
    assert [found[f"1.0.{n}"].version for n in (4, 3, 2)] == ["1.0.5", "1.0.6", "1.0.7"]
    assert [found[f"1.0.{n}"].kind for n in (1, 0)] == ["patch_jump"] * 2


@pytest.mark.parametrize(("n_late", "reaches"), [(1, False), (2, True)])
def test_the_calendar_reaches_where_a_quarter_of_the_usual_projects_is_known(n_late: int, reaches: bool) -> None:
    first = date(2020, 1, 6)
    usual = [replace(release("1.0", first + timedelta(weeks=w)), project=f"P{n}") for n in range(8) for w in range(110)]
    late = [replace(release("2.0", first + timedelta(weeks=115)), project=f"P{n}") for n in range(n_late)]
    assert (horizon([*usual, *late], 0.25) >= first + timedelta(weeks=115)) is reaches


def test_nothing_but_a_sound_release_may_become_a_question() -> None:
    sound = release("1.0.1")
    assert askable([sound], ItemRules()) == [sound]
    for spoiled in (
        replace(sound, released_on=None),
        replace(sound, released_on=date(2014, 12, 31)),
        replace(sound, is_stable=False),
        replace(sound, is_yanked=True),
        replace(sound, flags=("anything",)),
        replace(sound, withdrawn_at=TODAY),  # type: ignore[arg-type]
    ):
        assert askable([spoiled], ItemRules()) == []


def test_another_rank_is_another_set_of_items() -> None:
    assert dataset_version([release("1.0")], {}, {"Tool": 1}) != dataset_version([release("1.0")], {}, {"Tool": 2})


REFUSED: dict[str, Callable[[], Any]] = {
    **{f"{v!r} a day": partial(ItemRules, per_day=v) for v in (0, -1, 1.5, nan, True)},
    **{f"{v!r} items": partial(ItemRules, min_items=v) for v in (0, -1, 1.5, nan, True)},
    **{f"{v!r} days a week": partial(ItemRules, days_a_week=v) for v in (0, 8, inf)},
    **{f"a coverage of {v!r}": partial(ItemRules, min_coverage=v) for v in (nan, -0.1, 1.1, "x")},
    **{f"a horizon at {v!r}": partial(horizon, [], v) for v in (nan, 2, None)},
    **{f"{v!r} a year": partial(thinned, [release("1.0")], v) for v in (0, -1, 2.5)},
    **{f"quiet for {v!r} days": partial(ended_lines, [release("1.0")], v) for v in (-1, nan, "x")},
    **{f"a jump of {v!r}": partial(patch_jump, v, set()) for v in ("", "x", "1", "1.x", "1.2.3.4.5")},
    "a jump of 5,000 digits": partial(patch_jump, "1." + "9" * 5000, set()),
    **{f"a patch of {v!r}": partial(with_last, v, 3) for v in ("", "x.y")},
    **{f"a line of {v!r}": partial(line_of, v) for v in ("", "x.y", "1.0-rc1")},
    "no releases": partial(probe_items, [], []),
    "half a source's day": partial(source_day, "npm soon"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_values_that_cannot_be_are_refused(name: str) -> None:
    with pytest.raises(ValueError) as caught:
        REFUSED[name]()
    assert not re.search(r"invalid literal|unpack|max\(\)|isoformat", str(caught.value)), caught.value


@given(
    st.one_of(st.text(max_size=12), st.from_regex(r"v?[0-9]{1,30}(\.[0-9]{1,30}){0,5}(-rc)?", fullmatch=True)),
    st.text(max_size=8),
)
def test_any_text_is_read_as_a_version_or_not(text: str, repository: str) -> None:
    numbers = numbers_of(text)
    assert canonical(text) is None or canonical(text) in existing_forms([text])
    assert not is_plain(text) or (2 <= len(numbers) <= 4 and sort_key(text) >= sort_key(""))
    assert natural(text) <= natural(text + "0")
    from_tag(text, repository)


def test_a_broken_line_of_the_facts_is_named(tmp_path: Path) -> None:
    projects = [Project("Tool", 1, "npm", "tool")]
    write_releases(tmp_path, [release("1.0.0", other_days=(SourceDay("github-tag", DAY),))])
    (kept,) = read_releases(tmp_path, projects)
    assert kept.other_days == (SourceDay("github-tag", DAY),)
    write_projects(tmp_path, projects)
    for line, said in (
        ("Tool,1", "no ecosystem"),
        ("Tool,x,npm,tool,,,", "more cells"),
        ("Tool,9999999999,npm,tool,,", "salience_rank"),
    ):
        (tmp_path / "projects.csv").write_text("project,salience_rank,ecosystem,package,registry,name\n" + line + "\n")
        with pytest.raises(ValueError, match=f"line 2: .*{said}"):
            read_projects(tmp_path)
