"""Merging a registry's listing into what is known."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from strandline.releases import Listed, Listing, Project, Release, SourceDay
from strandline.releases.merge import merged, with_facts

PROJECT = Project("React", 3, "npm", "react", "npm", "react")
NOW = datetime(2026, 11, 29, 4, 17, tzinfo=UTC)
LATER = NOW + timedelta(days=1)
DAY = date(2024, 12, 5)


def fact(version: str, day: date | None = DAY, source: str = "endoflife", **more: object) -> Release:
    return replace(Release("npm", "react", "React", version, day, source), **more)  # type: ignore[arg-type]


def listing(*listed: Listed, source: str = "npm", incomplete: bool = False) -> Listing:
    return Listing("react", listed, source, incomplete)


def rows(*args: object) -> dict[str, Release]:
    return {r.version: r for r in merged(PROJECT, *args)}  # type: ignore[arg-type]


def test_a_new_version_is_stamped_with_when_it_was_first_seen_and_keeps_that() -> None:
    first = rows([], listing(Listed("19.0.0", DAY)), NOW)
    again = rows(first.values(), listing(Listed("19.0.0", DAY)), LATER)
    assert first["19.0.0"].first_seen_at == NOW
    assert again == first


def test_a_first_hand_date_replaces_a_second_hand_one_that_agrees() -> None:
    found = rows([fact("19.0.0")], listing(Listed("19.0.0", DAY - timedelta(days=1))), NOW)["19.0.0"]
    assert (found.released_on, found.source, found.flags) == (DAY - timedelta(days=1), "npm", ())
    assert found.first_seen_at is None


def test_sources_that_disagree_are_flagged_and_stay_so() -> None:
    told = listing(Listed("19.0.0", DAY + timedelta(days=40)))
    first = rows([fact("19.0.0")], told, NOW)
    again = rows(first.values(), told, LATER)
    assert first["19.0.0"].flags == ("sources_disagree",)
    assert again == first


@pytest.mark.parametrize("source", ["endoflife", "scoop-main", "transcribed", "git-tag", "somewhere new"])
@pytest.mark.parametrize(("apart", "flags"), [(0, ()), (2, ()), (3, ("sources_disagree",)), (8, ("sources_disagree",))])
@pytest.mark.parametrize("sign", [1, -1])
def test_days_more_than_two_apart_are_no_question_whatever_the_sources(
    source: str, apart: int, flags: tuple[str, ...], sign: int
) -> None:
    told = listing(Listed("19.0.0", DAY + sign * timedelta(days=apart)))
    found = rows([fact("19.0.0", source=source)], told, NOW)["19.0.0"]
    assert found.flags == flags
    assert found.days == {source: DAY, "npm": DAY + sign * timedelta(days=apart)}


@pytest.mark.parametrize("shift", [40, -40])
def test_a_source_that_disagrees_does_not_overwrite_the_day_and_its_correction_heals(shift: int) -> None:
    wrong = listing(Listed("19.0.0", DAY + timedelta(days=shift)))
    first = rows([fact("19.0.0")], wrong, NOW)["19.0.0"]
    assert (first.released_on, first.source) == (DAY, "endoflife")
    assert first.other_days == (SourceDay("npm", DAY + timedelta(days=shift)),)
    healed = rows([first], listing(Listed("19.0.0", DAY)), LATER)["19.0.0"]
    assert (healed.released_on, healed.source, healed.flags) == (DAY, "npm", ())


@pytest.mark.parametrize("shift", [40, -40])
def test_a_registry_that_corrects_itself_is_believed(shift: int) -> None:
    first = rows([], listing(Listed("19.0.0", DAY + timedelta(days=shift))), NOW)
    healed = rows(first.values(), listing(Listed("19.0.0", DAY)), LATER)["19.0.0"]
    assert (healed.released_on, healed.flags, healed.other_days) == (DAY, (), ())


def test_a_deleted_first_file_makes_no_release_younger_until_another_source_confirms_it() -> None:
    first = rows([], listing(Listed("1.0", DAY), source="pypi"), NOW)
    later = listing(Listed("1.0", DAY + timedelta(days=400)), source="pypi")
    assert rows(first.values(), later, LATER)["1.0"].released_on == DAY
    confirmed = with_facts(first.values(), [fact("1.0", DAY + timedelta(days=401))])
    assert rows(confirmed, later, LATER)["1.0"].flags == ()


def test_an_earlier_file_that_turns_up_dates_a_release_earlier() -> None:
    first = rows([], listing(Listed("1.0", DAY), source="pypi"), NOW)
    earlier = listing(Listed("1.0", DAY - timedelta(days=400)), source="pypi")
    assert rows(first.values(), earlier, LATER)["1.0"].released_on == DAY - timedelta(days=400)


def test_a_disputed_version_that_its_registry_lists_no_longer_is_withdrawn() -> None:
    disputed = rows([fact("1.0.0")], listing(Listed("1.0.0", DAY + timedelta(days=9)), Listed("1.1.0", DAY)), NOW)
    assert disputed["1.0.0"].source == "endoflife"
    gone = rows(disputed.values(), listing(Listed("1.1.0", DAY)), LATER)["1.0.0"]
    assert gone.withdrawn_at == LATER


def test_an_edited_fact_stands_beside_the_registry_s_day_and_settles_or_opens_a_dispute() -> None:
    (disputed,) = merged(PROJECT, [fact("19.0.0")], listing(Listed("19.0.0", DAY + timedelta(days=9))), NOW)
    (settled,) = with_facts([disputed], [fact("19.0.0", DAY + timedelta(days=10))])
    assert (settled.released_on, settled.source, settled.flags) == (DAY + timedelta(days=9), "npm", ())
    (opened,) = with_facts([settled], [fact("19.0.0", DAY)])
    assert (opened.flags, opened.days) == (
        ("sources_disagree",),
        {"npm": DAY + timedelta(days=9), "endoflife": DAY},
    )


def test_a_dispute_of_an_older_warehouse_that_kept_one_day_is_judged_anew_by_the_fact() -> None:
    stored = fact("19.0.0", DAY + timedelta(days=1), "npm", flags=("sources_disagree",))
    (healed,) = with_facts([stored], [fact("19.0.0", DAY)])
    assert healed.flags == ()
    (kept,) = with_facts([stored], [])
    assert kept.flags == ("sources_disagree",)


def test_a_github_release_added_in_retrospect_keeps_both_days_and_is_no_question() -> None:
    late = Listed("1.0.0", date(2022, 5, 5), other_days=(SourceDay("github-tag", date(2019, 3, 1)),))
    found = rows([], listing(late, source="github"), NOW)["1.0.0"]
    assert found.flags == ("sources_disagree",)
    assert found.days == {"github": date(2022, 5, 5), "github-tag": date(2019, 3, 1)}
    soon = Listed("1.0.0", date(2022, 5, 5), other_days=(SourceDay("github-tag", date(2022, 5, 3)),))
    assert rows([], listing(soon, source="github"), NOW)["1.0.0"].flags == ()


def test_a_version_that_is_listed_twice_far_apart_keeps_its_earliest_day_and_a_flag() -> None:
    for order in (1, -1):
        entries = [Listed("1.0.0", DAY), Listed("1.0.0", DAY + timedelta(days=30))][::order]
        found = rows([], listing(*entries), NOW)["1.0.0"]
        assert (found.released_on, found.flags) == (DAY, ("listed_twice",))


def test_entries_without_a_version_or_with_an_endless_one_are_no_releases() -> None:
    assert list(
        rows([], listing(Listed("", DAY), Listed(" ", DAY), Listed("1" * 5000, DAY), Listed("1.0", DAY)), NOW)
    ) == ["1.0"]


def test_a_version_that_disappears_is_withdrawn_once_and_returns_when_it_is_back() -> None:
    first = rows([], listing(Listed("1.0.0", DAY), Listed("1.0.1", DAY)), NOW)
    gone = rows(first.values(), listing(Listed("1.0.0", DAY)), LATER)
    still = rows(gone.values(), listing(Listed("1.0.0", DAY)), LATER + timedelta(days=1))
    back = rows(still.values(), listing(Listed("1.0.0", DAY), Listed("1.0.1", DAY)), LATER)
    assert gone["1.0.1"].withdrawn_at == LATER
    assert still == gone
    assert back == first


def test_an_incomplete_listing_withdraws_nothing() -> None:
    first = rows([], listing(Listed("1.0.0", DAY), Listed("1.0.1", DAY)), NOW)
    assert rows(first.values(), listing(Listed("1.0.1", DAY), incomplete=True), LATER) == first


def test_an_unpublished_version_keeps_its_day_and_is_withdrawn_once() -> None:
    first = rows([], listing(Listed("1.0.0", DAY)), NOW)
    gone = rows(first.values(), listing(Listed("1.0.0", None, flags=("unpublished",))), LATER)
    still = rows(gone.values(), listing(Listed("1.0.0", None, flags=("unpublished",))), LATER + timedelta(days=2))
    assert (gone["1.0.0"].released_on, gone["1.0.0"].flags, gone["1.0.0"].withdrawn_at) == (
        DAY,
        ("unpublished",),
        LATER,
    )
    assert still == gone


def test_a_version_that_only_a_second_hand_list_knows_is_flagged() -> None:
    found = rows([fact("18.9.9")], listing(Listed("19.0.0", DAY)), NOW)["18.9.9"]
    assert (found.flags, found.withdrawn_at) == (("not_in_registry",), None)


def test_another_spelling_of_a_known_version_is_the_same_version() -> None:
    found = rows([fact("5.0")], listing(Listed("5.0.0", DAY)), NOW)
    assert list(found) == ["5.0.0"]
    assert found["5.0.0"].first_seen_at is None


def test_the_date_of_a_tag_stays_when_the_next_listing_does_not_ask_for_it_again() -> None:
    first = rows([], listing(Listed("1.0", DAY), source="github-tag"), NOW)
    again = rows(first.values(), listing(Listed("1.0", None, flags=("tag_only",)), source="github-tag"), LATER)
    assert again == first


def test_a_yank_that_is_taken_back_is_taken_back() -> None:
    first = rows([], listing(Listed("1.0.0", DAY, is_yanked=True)), NOW)
    assert first["1.0.0"].is_yanked
    assert not rows(first.values(), listing(Listed("1.0.0", DAY)), LATER)["1.0.0"].is_yanked


def test_facts_lie_under_what_registries_said() -> None:
    stored = rows([fact("18.0.0"), fact("17.9")], listing(Listed("18.0.0", DAY), Listed("19.0.0", DAY)), NOW)
    facts = [fact("18.0.0"), fact("17.9"), fact("16.0.0")]
    found = {r.version: r for r in with_facts(stored.values(), facts)}
    assert found["18.0.0"].source == "npm"
    assert found["19.0.0"].first_seen_at == NOW
    assert found["17.9"].flags == ("not_in_registry",)
    assert found["16.0.0"].source == "endoflife"


def test_an_edited_fact_takes_effect_and_a_removed_one_goes() -> None:
    stored = [fact("1.0", DAY), fact("1.1", DAY)]
    found = with_facts(stored, [fact("1.0", date(2020, 1, 1))])
    assert [(r.version, r.released_on) for r in found] == [("1.0", date(2020, 1, 1))]
