"""Versions: what each ecosystem's rules read, and an order that no version breaks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from strandline.releases.versions import (
    canonical,
    existing_forms,
    from_tag,
    is_plain,
    natural,
    numbers_of,
    parse,
    scheme_of,
    sort_key,
)

NUMBERS = st.lists(st.integers(0, 30), min_size=2, max_size=4)
SCHEMES = st.sampled_from(["pep440", "semver", "dotted"])


def test_a_legacy_version_is_kept_and_sorts_before_the_others() -> None:
    versions = ["2.0", "2004d", "1.10", "1.9", "not a version"]
    assert parse("2004d", "pep440") is None
    assert sorted(versions, key=lambda v: sort_key(v, "pep440")) == ["2004d", "not a version", "1.9", "1.10", "2.0"]


def test_rc_and_dev_are_prereleases_and_post_is_not() -> None:
    told = {v: parse(v, "pep440").is_prerelease for v in ("1.0rc1", "1.0.dev1", "1.0a2", "1.0.post1", "1!1.0", "1.0+l")}  # type: ignore[union-attr]
    assert told == {"1.0rc1": True, "1.0.dev1": True, "1.0a2": True, "1.0.post1": False, "1!1.0": False, "1.0+l": False}


def test_epochs_and_local_parts_are_ordered_as_pep_440_says() -> None:
    versions = ["1!1.0", "2.0", "1.0+local", "1.0", "1.0.post1", "1.0.dev3", "1.0rc1"]
    ordered = sorted(versions, key=lambda v: sort_key(v, "pep440"))
    assert ordered == ["1.0.dev3", "1.0rc1", "1.0", "1.0+local", "1.0.post1", "2.0", "1!1.0"]


def test_semantic_prereleases_come_before_their_release_and_compare_by_their_parts() -> None:
    versions = ["1.0.0", "1.0.0-rc.10", "1.0.0-rc.2", "1.0.0-alpha", "0.9.9", "1.0.0-rc"]
    ordered = sorted(versions, key=lambda v: sort_key(v, "semver"))
    assert ordered == ["0.9.9", "1.0.0-alpha", "1.0.0-rc", "1.0.0-rc.2", "1.0.0-rc.10", "1.0.0"]


def test_two_to_four_numbers_are_plain_and_all_else_is_not() -> None:
    assert all(map(is_plain, ["16.1", "1.21", "1.2.3", "1.2.3.4"]))
    assert not any(map(is_plain, ["16", "1.2.3.4.5", "1.2rc1", "v1.2", "1.2.", "", "1..2"]))


def test_dotted_versions_know_prereleases_and_final_suffixes() -> None:
    told = {v: parse(v).is_prerelease for v in ("1.0-rc1", "2.0.0.Final", "1.2-beta", "3.1.RELEASE", "8.2p1", "1.2")}  # type: ignore[union-attr]
    assert told == {
        "1.0-rc1": True, "2.0.0.Final": False, "1.2-beta": True, "3.1.RELEASE": False, "8.2p1": False, "1.2": False,
    }  # fmt: skip
    assert parse("latest") is None


def test_a_version_has_one_identity_in_every_spelling() -> None:
    assert {canonical(v) for v in ("1.2", "v1.2.0", "1.2.0rc1", "V1.2.0.0", " 1.2 ")} == {(1, 2)}
    assert canonical("0.0") == (0,)
    assert canonical("next") is None


def test_a_version_takes_the_shorter_ones_that_begin_it() -> None:
    assert existing_forms(["24.4.1", "junk"]) == {(24, 4, 1), (24, 4)}


def test_tags_give_their_version_and_other_packages_tags_do_not() -> None:
    told = {
        tag: from_tag(tag, "vitejs/vite")
        for tag in ("v1.2.3", "1.2.3", "vite@5.0.1", "release-1.2", "plugin-vue@3.0.0", "REL_16_1", "nightly")
    }
    assert told == {
        "v1.2.3": "1.2.3",
        "1.2.3": "1.2.3",
        "vite@5.0.1": "5.0.1",
        "release-1.2": "1.2",
        "plugin-vue@3.0.0": "plugin-vue@3.0.0",
        "REL_16_1": "16.1",
        "nightly": "nightly",
    }
    assert from_tag("go1.21.3", "golang/go") == "1.21.3"


def test_each_ecosystem_has_its_rules() -> None:
    assert [scheme_of(e) for e in ("pypi", "npm", "maven", "app")] == ["pep440", "semver", "dotted", "dotted"]


@given(st.lists(st.text(max_size=12), max_size=30), SCHEMES)
def test_any_texts_sort_without_an_error_and_the_same_from_every_order(texts: list[str], scheme: str) -> None:
    backwards = texts[::-1]
    keys = {text: sort_key(text, scheme) for text in texts}  # type: ignore[arg-type]
    assert sorted(texts, key=keys.__getitem__) == sorted(backwards, key=keys.__getitem__)


def test_versions_that_read_alike_still_have_one_order() -> None:
    assert sorted(["01", "1"], key=sort_key) == sorted(["1", "01"], key=sort_key)


@given(NUMBERS, NUMBERS)
def test_dotted_order_agrees_with_pep_440_on_plain_numbers(a: list[int], b: list[int]) -> None:
    left, right = ".".join(map(str, a)), ".".join(map(str, b))
    ours = parse(left).order < parse(right).order  # type: ignore[union-attr]
    assert ours == (Version(left) < Version(right))


@given(NUMBERS)
def test_numbers_of_reads_back_what_was_written(numbers: list[int]) -> None:
    text = ".".join(map(str, numbers))
    assert numbers_of(text) == tuple(numbers)
    assert numbers_of(f"v{text}-beta.1") == tuple(numbers)
    assert natural(text) == natural(text)
