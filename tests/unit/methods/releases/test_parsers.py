"""Each source's address and what its payload says, on payloads written here."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strandline.releases import Project, SourceDay, github, nodejs, npm, pypi, python_org
from strandline.releases.dates import utc_day
from strandline.releases.flags import flagged
from strandline.releases.merge import merged
from strandline.releases.source import Source
from strandline.releases.sources import SOURCES
from tests.fakes.registries import github_release, npm_document, simple_page

HOST = "http://127.0.0.1:1"
NOW = datetime(2026, 11, 29, tzinfo=UTC)


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


@pytest.mark.parametrize(
    "unpublished", [{"versions": None}, {"versions": 3}, {"versions": [None, {}, "0.1.0"]}, None, "x", []]
)
def test_npm_reads_around_an_odd_note_of_unpublishing(unpublished: Any) -> None:
    document = npm_document("gone", {"1.0.0": "2024-01-01T00:00:00Z"})
    document["time"]["unpublished"] = unpublished
    listed = by_version(npm.parse(document))
    assert listed["1.0.0"].released_on == date(2024, 1, 1)
    assert set(listed) <= {"1.0.0", "0.1.0"}


ODD_TIMES = [
    ("9999-12-31T23:59:59-10:00", "unreadable_day"),
    ("0001-01-01T00:00:00+02:00", "unreadable_day"),
    ("0001-01-01T00:00:00Z", "too_early"),
    ("1970-01-01T00:00:00Z", "too_early"),
    ("yesterday", "unreadable_day"),
    (1705312800, "unreadable_day"),
    ({"$date": 1}, "unreadable_day"),
]


@pytest.mark.parametrize(("value", "flag"), ODD_TIMES)
def test_an_odd_day_is_no_day_and_says_so_and_hides_no_other_version(value: Any, flag: str) -> None:
    npm_listed = by_version(npm.parse(npm_document("p", {"1.0.0": "2024-01-01T00:00:00Z", "1.0.1": value})))
    files = [
        {"filename": "p-1.0.0.tar.gz", "upload-time": "2024-01-01T00:00:00Z"},
        {"filename": "p-1.0.1.tar.gz", "upload-time": value},
    ]
    pypi_listed = by_version(pypi.parse(simple_page("p", files)))
    entries = [{"version": "v1.0.0", "date": "2024-01-01"}, {"version": "v1.0.1", "date": value}]
    rows = [github_release("v1.0.0", "2024-01-01"), github_release("v1.0.1", "", published_at=value)]
    for listed in (npm_listed, pypi_listed, by_version(nodejs.parse(entries)), by_version(github.parse(rows))):
        assert listed["1.0.0"].released_on == date(2024, 1, 1)
        assert (listed["1.0.1"].released_on, listed["1.0.1"].flags) == (None, (flag,))


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_days_before_a_registry_held_anything_are_no_days(source: Source) -> None:
    for days, expected in ((-1, None), (0, source.since)):
        day = str(source.since + timedelta(days=days))
        payloads = {
            "npm": npm_document("p", {"1.0.0": day}),
            "pypi": simple_page("p", [{"filename": "p-1.0.0.tar.gz", "upload-time": day}]),
            "nodejs": [{"version": "v1.0.0", "date": day}],
            "python": [{"name": "Python 1.0.0", "release_date": day}],
            "github": [github_release("v1.0.0", day, published_at=day)],
        }
        (listed,) = [r for r in source.parse(payloads[source.name], "p").releases if r.version in ("1.0.0", "1.0")]
        assert (listed.released_on, listed.flags) == (expected, () if expected else ("too_early",))


def test_a_file_of_another_project_dates_nothing() -> None:
    files = [
        {"filename": "bar-2.0.tar.gz", "upload-time": "2024-01-01T00:00:00Z"},
        {"filename": "other-3.0.tar.gz", "upload-time": "2024-02-01T00:00:00Z"},
        {"filename": "bar_plugin-4.0-py3-none-any.whl", "upload-time": "2024-03-01T00:00:00Z"},
        {"filename": "other-2.0.tar.gz", "upload-time": "2001-01-01T00:00:00Z"},
    ]
    listed = by_version(pypi.parse(simple_page("Bar", files)))
    assert {v: r.released_on for v, r in listed.items()} == {"2.0": date(2024, 1, 1)}
    named = by_version(pypi.parse(simple_page("Bar", files, ["2.0", "3.0"])))
    assert (named["3.0"].released_on, named["3.0"].flags) == (None, ("no_files",))


def test_a_version_that_the_index_does_not_list_among_its_versions_is_flagged() -> None:
    files = [{"filename": f"bar-{v}.tar.gz", "upload-time": "2024-01-01T00:00:00Z"} for v in ("1.0", "9.9")]
    listed = by_version(pypi.parse(simple_page("bar", files, ["1.0"])))
    assert {v: r.flags for v, r in listed.items()} == {"1.0": (), "9.9": ("unlisted",)}


def test_an_answer_about_another_package_than_was_asked_for_is_refused() -> None:
    day = "2024-01-01T00:00:00Z"
    page = simple_page("Foo.Bar", [{"filename": "foo_bar-1.0.tar.gz", "upload-time": day}])
    assert len(pypi.parse(page, "foo__bar").releases) == len(
        npm.parse(npm_document("Left", {"1.0.0": day}), "left").releases
    )
    with pytest.raises(ValueError, match=r"pypi: not about other, which was asked for, but about 'Foo\.Bar'"):
        pypi.parse(page, "other")
    with pytest.raises(ValueError, match="npm: not about right, which was asked for, but about 'left'"):
        npm.parse(npm_document("left", {"1.0.0": day}), "right")


def test_an_index_without_upload_times_says_so_and_an_odd_file_hides_no_other() -> None:
    listing = pypi.parse(simple_page("bar", [{"filename": "bar-1.0.tar.gz"}, {"filename": "bar-1.1.tar.gz"}]))
    assert listing.note == "the index gives no upload times, so none of its versions can be dated"
    files: list[Any] = [{"filename": "bar-1.0.tar.gz", "upload-time": "2024-01-01T00:00:00Z"}]
    page = simple_page("bar", files)
    page["files"] += [None, 3, {}, {"filename": None}, {"filename": "bar-1.1.tar.gz", "size": "many", "hashes": 3}]
    listed = by_version(pypi.parse(page))
    assert {v: r.released_on for v, r in listed.items()} == {"1.0": date(2024, 1, 1), "1.1": None}


def test_node_and_python_versions_without_files_or_page_are_flagged() -> None:
    index = [
        {"version": "v22.0.0", "date": "2024-04-24", "files": []},
        {"version": "v22.1.0", "date": "2024-05-02", "files": ["src"]},
    ]
    assert {v: r.flags for v, r in by_version(nodejs.parse(index)).items()} == {"22.0.0": ("no_files",), "22.1.0": ()}
    rows = [
        {
            "name": "Python 3.12.0",
            "release_date": "2023-10-02T12:00:00Z",
            "slug": "python-3120",
            "show_on_download_page": True,
        },
        {"name": "Python 3.12.1", "release_date": "2023-12-08T12:00:00Z", "slug": ""},
        {"name": "Python 3.12.2", "release_date": "2024-02-06T12:00:00Z", "show_on_download_page": False},
        {"name": "Python 3.12.3", "release_date": "2024-04-09T12:00:00Z", "files": []},
    ]
    assert {v: r.flags for v, r in by_version(python_org.parse(rows)).items()} == {
        "3.12.0": (),
        "3.12.1": ("no_page",),
        "3.12.2": ("no_page",),
        "3.12.3": ("no_files",),
    }


def test_a_github_release_tells_the_day_of_its_commit_beside_that_of_its_publication() -> None:
    row = github_release("v1.0.0", "2022-05-05", created_at="2019-03-01T10:00:00Z")
    (listed,) = github.parse([row]).releases
    assert (listed.released_on, listed.other_days) == (date(2022, 5, 5), (SourceDay("github-tag", date(2019, 3, 1)),))


def test_github_rows_without_a_tag_and_tags_without_a_commit_are_read_around() -> None:
    rows = [github_release("", "2024-01-01", name=None), github_release("v1.0.0", "2024-01-01")]
    assert [r.version for r in github.parse(rows).releases] == ["1.0.0"]
    listing, commits = github.parse_tags(
        [{"name": "v1.0"}, {"name": "v2.0", "commit": []}, {"commit": {}}, {"name": None}]
    )
    assert [r.version for r in listing.releases] == ["1.0", "2.0"]
    assert commits == {"1.0": "", "2.0": ""}


KEYS = ["name", "time", "versions", "files", "filename", "upload-time", "yanked", "version", "date", "unpublished"]
KEYS += ["release_date", "tag_name", "published_at", "created_at", "commit", "meta", "api-version", "1.0", "message"]
ODD = ["2024-01-01T00:00:00Z", "1.0", "1" * 5000, "9999-12-31T23:59:59-10:00", "p-1.0.tar.gz", "Python 3.1"]
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6), *(st.just(text) for text in ODD)
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.text(max_size=4), st.sampled_from(KEYS)), inner, max_size=6),
    ),
    max_leaves=15,
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(JSON)
def test_any_document_is_a_listing_or_a_sentence(payload: Any) -> None:
    project = Project("P", 1, "pypi", "p", "pypi", "p")
    sentences: list[str] = []
    for source in SOURCES:
        try:
            listing = source.parse(payload, "p")
        except ValueError as error:
            sentences.append(str(error))
            continue
        rows = flagged(merged(project, [], listing, NOW), NOW.date())
        assert all(row.released_on is None or row.released_on >= source.since for row in rows)
    assert all(re.match(r"(npm|pypi|nodejs|python\.org|github): ", sentence) for sentence in sentences)
