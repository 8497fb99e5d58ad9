"""Decoys: versions that never were, near enough to be taken for real ones."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from strandline.releases import Release
from strandline.releases.decoys import JUMPS, decoys_for, ended_lines, patch_jump, with_last
from strandline.releases.versions import canonical, existing_forms


def release(version: str, day: str | None, source: str = "npm", **more: object) -> Release:
    row = Release("npm", "tool", "Tool", version, date.fromisoformat(day) if day else None, source)
    return replace(row, **more)  # type: ignore[arg-type]


HISTORY = [
    release("4.33.0", "2020-01-10"),
    release("4.34.7", "2020-03-01"),
    release("4.34.8", "2020-04-01"),
    release("5.0.0", "2021-06-01"),
    release("5.0.1", "2021-07-01"),
    release("5.1.0", "2023-01-01"),
]


def test_the_seed_s_decoy_raises_the_last_number_by_one_of_four_jumps() -> None:
    decoy = patch_jump("19.0.2", set(), "React")
    assert decoy is not None
    assert decoy.kind == "patch_jump"
    assert int(decoy.version.removeprefix("19.0.")) - 2 in JUMPS


def test_a_jump_that_exists_gives_way_to_the_next_and_none_is_left_after_four() -> None:
    taken = existing_forms(f"1.0.{n + jump}" for n in (0,) for jump in JUMPS[:3])
    assert patch_jump("1.0.0", taken) == patch_jump("1.0.0", taken | {(9, 9)})
    assert patch_jump("1.0.0", taken).version == f"1.0.{JUMPS[3]}"  # type: ignore[union-attr]
    assert patch_jump("1.0.0", existing_forms(f"1.0.{jump}" for jump in JUMPS)) is None


def test_jumps_work_on_two_and_four_numbers_and_keep_padding() -> None:
    assert patch_jump("16.1", set()).version.count(".") == 1  # type: ignore[union-attr]
    assert patch_jump("1.2.3.4", set()).version.startswith("1.2.3.")  # type: ignore[union-attr]
    assert (with_last("2.07", 8), with_last("2.7", 8), with_last("1.0", 10)) == ("2.08", "2.8", "1.10")


def test_a_line_ends_when_a_later_one_is_open_and_it_has_been_quiet_for_a_year() -> None:
    assert ended_lines(HISTORY) == {(4, 33): "4.33.0", (4, 34): "4.34.8", (5, 0): "5.0.1"}


def test_the_newest_line_and_a_line_with_recent_patches_have_not_ended() -> None:
    assert (5, 1) not in ended_lines(HISTORY)
    assert (5, 0) not in ended_lines([*HISTORY, release("5.0.2", "2022-12-01")])


def test_a_prerelease_or_a_yanked_version_counts_for_where_a_line_ends() -> None:
    more = [release("4.34.9-rc.1", "2020-05-01", is_stable=False), release("5.0.2", "2021-08-01", is_yanked=True)]
    ends = ended_lines([*HISTORY, *more])
    assert (ends[4, 34], ends[5, 0]) == ("4.34.9", "5.0.2")


def test_a_line_with_an_undated_version_or_a_partial_source_gives_no_near_miss() -> None:
    undated = [*HISTORY, release("4.34.9", None)]
    partial = [*HISTORY, release("4.34.6", "2020-02-01", source="scoop-main")]
    assert (4, 34) not in ended_lines(undated)
    assert (4, 34) not in ended_lines(partial)


def test_the_last_of_an_ended_line_gets_the_next_patch_as_its_near_miss() -> None:
    found = decoys_for(HISTORY, HISTORY)
    assert (found["4.34.8"].version, found["4.34.8"].kind) == ("4.34.9", "near_miss")
    assert (found["4.34.7"].version, found["4.34.7"].kind) == ("4.34.10", "near_miss")


def test_a_release_of_an_open_line_gets_what_is_left_of_the_nearest_ended_line_and_then_a_jump() -> None:
    found = decoys_for(HISTORY, HISTORY)
    assert (found["5.1.0"].version, found["5.1.0"].kind) == ("5.0.4", "near_miss")
    two = [release("4.33.0", "2020-01-10"), *(release(f"5.0.{n}", "2023-01-01") for n in range(6))]
    kinds = [decoy.kind for decoy in decoys_for(two, two).values()]
    assert sorted(kinds) == ["near_miss"] * 3 + ["patch_jump"] * 4


def test_a_near_miss_is_spelled_as_its_line_is() -> None:
    docker = [release("19.03.9", "2020-05-15"), release("19.03.10", "2020-05-29"), release("20.10.0", "2022-12-09")]
    assert decoys_for(docker, docker)["19.03.10"].version == "19.03.11"
    assert decoys_for(docker[::2], docker[::2])["19.03.9"].version == "19.03.10"


def test_a_near_miss_that_exists_as_a_tag_or_as_a_longer_version_is_never_used() -> None:
    more = [release("v4.34.9.1", "2020-04-02"), release("4.33.1-beta", "2020-01-11")]
    found = decoys_for([*HISTORY, *more], HISTORY)
    assert "4.34.9" not in {d.version for d in found.values()}
    assert "4.33.1" not in {d.version for d in found.values()}


NUMBERS = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 60))
ROWS = st.lists(
    st.tuples(NUMBERS, st.dates(date(2015, 1, 1), date(2026, 1, 1)), st.sampled_from(["", "rc1", "-beta", ".0"])),
    min_size=1,
    max_size=40,
    unique_by=lambda row: (row[0], row[2]),
)


@given(ROWS, st.randoms(use_true_random=False))
def test_no_decoy_exists_in_any_form_none_is_used_twice_and_the_order_of_rows_is_immaterial(rows, random) -> None:  # type: ignore[no-untyped-def]
    releases = [release(".".join(map(str, n)) + s, str(day)) for n, day, s in rows]
    askable = [r for r, (_, _, suffix) in zip(releases, rows, strict=True) if not suffix]
    found = decoys_for(releases, askable)
    forms = [canonical(decoy.version) for decoy in found.values()]
    assert not set(forms) & existing_forms(r.version for r in releases)
    assert len(set(forms)) == len(forms)
    shuffled, few = releases[:], askable[:]
    random.shuffle(shuffled)
    random.shuffle(few)
    assert decoys_for(shuffled, few) == found
