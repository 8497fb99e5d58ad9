"""Merging a registry's listing into what is known."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from strandline.releases import Listed, Listing, Project, Release
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


def test_the_uncertainty_of_both_sources_is_granted_before_they_disagree() -> None:
    told = listing(Listed("19.0.0", DAY + timedelta(days=8)))
    assert rows([fact("19.0.0", source="scoop-main")], told, NOW)["19.0.0"].flags == ()
    assert rows([fact("19.0.0", source="endoflife")], told, NOW)["19.0.0"].flags == ("sources_disagree",)


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
