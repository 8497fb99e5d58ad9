"""Each source's address and what its payload says, on payloads written here."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from strandline.releases import github, nodejs, npm, pypi, python_org
from strandline.releases.dates import utc_day
from tests.fakes.registries import github_release, npm_document, simple_page

HOST = "http://127.0.0.1:1"


def by_version(listing: Any) -> dict[str, Any]:
    return {listed.version: listed for listed in listing.releases}


def test_npm_asks_for_a_scoped_name_with_an_at_sign_and_an_encoded_slash() -> None:
    assert npm.url("@scope/name", HOST + "/") == f"{HOST}/@scope%2Fname"
    assert npm.page("react", "19.0.0", HOST) == f"{HOST}/react/19.0.0"


def test_npm_dates_only_versions_that_are_there() -> None:
    document = npm_document("left-pad", {"1.0.0": "2014-03-14T00:09:00.000Z"}, {"1.0.1": "2016-03-22T21:00:00.000Z"})
    listed = by_version(npm.parse(document))
    assert set(listed) == {"1.0.0", "1.0.1"}
    assert listed["1.0.0"].released_on == date(2014, 3, 14)
    assert (listed["1.0.1"].released_on, listed["1.0.1"].flags) == (None, ("unpublished",))


def test_npm_knows_the_versions_of_a_package_that_was_unpublished_as_a_whole() -> None:
    document = {"name": "gone", "time": {"created": "x", "unpublished": {"time": "t", "versions": ["0.1.0", "0.2.0"]}}}
    listing = npm.parse(document)
    assert [listed.version for listed in listing.releases] == ["0.1.0", "0.2.0"]
    assert listing.note == "the package was unpublished"


def test_npm_recognises_the_abbreviated_document() -> None:
    abbreviated = {"name": "react", "modified": "2026-01-01T00:00:00Z", "versions": {"19.0.0": {}}}
    with pytest.raises(ValueError, match="abbreviated"):
        npm.parse(abbreviated)


@pytest.mark.parametrize("payload", [None, [], "text", {"error": "not found"}, 3])
def test_every_source_refuses_what_is_no_answer_of_its_own(payload: Any) -> None:
    for parse in (npm.parse, pypi.parse, python_org.parse, nodejs.parse):
        if payload == [] and parse in (python_org.parse, nodejs.parse):
            assert parse(payload).releases == ()
            continue
        with pytest.raises(ValueError, match="not a"):
            parse(payload)


def test_pypi_dates_a_release_by_its_earliest_file_whatever_the_order() -> None:
    files = [
        {"filename": "pkg-1.0-cp313-cp313-win_arm64.whl", "upload-time": "2024-10-01T00:00:00Z"},
        {"filename": "pkg-1.0.tar.gz", "upload-time": "2019-05-02T23:30:00.5Z"},
        {"filename": "pkg-1.0-py3-none-any.whl", "upload-time": "2019-05-03T00:10:00Z"},
    ]
    for order in (files, files[::-1]):
        assert by_version(pypi.parse(simple_page("pkg", order)))["1.0"].released_on == date(2019, 5, 2)


def test_pypi_calls_a_release_yanked_only_when_all_its_files_are() -> None:
    files = [
        {"filename": "pkg-1.0.tar.gz", "upload-time": "2020-01-01T00:00:00Z", "yanked": "broken"},
        {"filename": "pkg-1.0-py3-none-any.whl", "upload-time": "2020-01-01T00:00:00Z"},
        {"filename": "pkg-1.1.tar.gz", "upload-time": "2020-02-01T00:00:00Z", "yanked": True},
    ]
    listed = by_version(pypi.parse(simple_page("pkg", files)))
    assert (listed["1.0"].is_yanked, listed["1.1"].is_yanked) == (False, True)


def test_pypi_keeps_versions_without_files_or_times_as_undated() -> None:
    page = simple_page("pkg", [{"filename": "pkg-1.0.tar.gz"}], ["0.9", "1.0"])
    listed = by_version(pypi.parse(page))
    assert (listed["0.9"].released_on, listed["0.9"].flags) == (None, ("no_files",))
    assert (listed["1.0"].released_on, listed["1.0"].flags) == (None, ())


def test_pypi_survives_a_legacy_version_and_one_that_is_spelled_twice() -> None:
    files = [
        {"filename": "pytz-2004d.tar.gz", "upload-time": "2004-10-01T00:00:00Z"},
        {"filename": "pytz-1.0.0-rc1.tar.gz", "upload-time": "2010-01-02T00:00:00Z"},
        {"filename": "pytz-1.0.0rc1-py3-none-any.whl", "upload-time": "2010-01-01T00:00:00Z"},
        {"filename": "unrelated", "upload-time": "2010-01-01T00:00:00Z"},
    ]
    listed = by_version(pypi.parse(simple_page("pytz", files)))
    assert set(listed) == {"2004d", "1.0.0rc1"}
    assert listed["1.0.0rc1"].released_on == date(2010, 1, 1)


def test_pypi_asks_and_stores_under_the_normalised_name() -> None:
    assert pypi.url("Foo__.Bar", HOST + "/simple/") == f"{HOST}/simple/foo-bar/"
    assert pypi.parse(simple_page("Foo__.Bar", [])).package == "foo-bar"
    assert pypi.page("Foo.Bar", "1.0", HOST + "/simple/") == f"{HOST}/project/foo-bar/1.0/"
    assert pypi.page("Foo.Bar", "1.0", HOST + "/custom") == f"{HOST}/custom/foo-bar/"


def test_nodejs_reads_its_index_and_the_name_of_a_support_line_or_none() -> None:
    index = [
        {"version": "v22.11.0", "date": "2024-10-29", "lts": "Jod"},
        {"version": "v23.0.0", "date": "2024-10-16", "lts": False},
    ]
    listed = by_version(nodejs.parse(index))
    assert (listed["22.11.0"].released_on, listed["22.11.0"].label) == (date(2024, 10, 29), "Jod")
    assert listed["23.0.0"].label is None
    assert nodejs.url("node", HOST) == f"{HOST}/index.json"


def test_python_org_lists_published_python_releases_and_nothing_else() -> None:
    def entry(name: str, pre: bool = False, published: bool = True) -> dict[str, Any]:
        return {"name": name, "pre_release": pre, "is_published": published, "release_date": "2024-10-07T10:02:58Z"}

    listed = by_version(
        python_org.parse(
            [
                entry("Python 3.13.0"),
                entry("Python 3.14.0a1", pre=True),
                entry("Python 3.14.0rc1", pre=False),
                entry("Python 3.12.0", pre=True),
                entry("Python 3.11.99", published=False),
                entry("Python install manager 25.0"),
            ]
        )
    )
    assert set(listed) == {"3.13.0", "3.14.0a1", "3.14.0rc1", "3.12.0"}
    assert {v: (r.is_prerelease, r.flags) for v, r in listed.items()} == {
        "3.13.0": (False, ()),
        "3.14.0a1": (True, ("prerelease_declared",)),
        "3.14.0rc1": (True, ("prerelease_disagrees",)),
        "3.12.0": (True, ("prerelease_declared", "prerelease_disagrees")),
    }


def test_github_flags_drafts_and_declared_prereleases() -> None:
    listing = github.parse(
        [
            github_release("v1.1.0", "2024-02-01"),
            github_release("v1.2.0", "2024-03-01", prerelease=True),
            github_release("v1.3.0", "2024-04-01", draft=True, published_at=None),
        ],
        "me/tool",
    )
    told = {r.version: (r.released_on, r.flags) for r in listing.releases}
    assert told == {
        "1.1.0": (date(2024, 2, 1), ()),
        "1.2.0": (date(2024, 3, 1), ("prerelease_declared",)),
        "1.3.0": (None, ("draft",)),
    }


def test_github_s_object_instead_of_a_list_is_an_error_with_its_message() -> None:
    with pytest.raises(ValueError, match="API rate limit exceeded"):
        github.parse({"message": "API rate limit exceeded", "documentation_url": "…"})


def test_github_tags_are_undated_until_their_commit_is_read() -> None:
    listing, commits = github.parse_tags([{"name": "v2.0", "commit": {"sha": "abc"}}], "me/tool")
    assert (listing.source, listing.note, commits) == ("github-tag", "no releases", {"2.0": "abc"})
    tagged = listing.releases[0]
    assert (tagged.released_on, tagged.flags) == (None, ("tag_only",))
    dated = github.dated(tagged, {"commit": {"committer": {"date": "2021-06-30T23:59:00-02:00"}}})
    assert (dated.released_on, dated.flags) == (date(2021, 7, 1), ())
    assert github.dated(tagged, {"message": "gone"}) == tagged


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024-03-01T23:30:00-05:00", date(2024, 3, 2)),
        ("2024-03-01T23:30:00Z", date(2024, 3, 1)),
        ("2024-03-01", date(2024, 3, 1)),
        ("1970-01-01T00:00:00Z", None),
        ("yesterday", None),
        ("", None),
        (None, None),
        (1_700_000_000, None),
    ],
)
def test_days_are_utc_days_or_none(text: Any, day: date | None) -> None:
    assert utc_day(text) == day
