"""The registries over real sockets: where they are looked for, how they are asked, and what a refresh makes of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from resources.network.http import Http, Limits, PermanentError, ShrunkenFetchError, TransientError
from resources.releases.refresh import SourceState, initial_state, listing_status, refresh
from resources.releases.registries import Endpoints, Fetched, Registries, configured, release_page
from strandline.releases import FAILED_STATUSES, Listed, Listing, Project, Release, npm, sources
from strandline.releases.dates import utc_day
from strandline.releases.source import Setting, Source
from tests.fakes.registries import Registry, github_release, npm_document, paged, simple_page
from tests.fakes.web import Answer, Asked, FakeTime, WebServer, json_answer

NOW = datetime(2026, 11, 29, 4, 17, tzinfo=UTC)


def project(registry: str, name: str) -> Project:
    return Project(name, 1, registry, name, registry, name)


def endpoints(url: str) -> Endpoints:
    names = {"pypi": "simple", "npm": "npm", "nodejs": "node", "python": "python", "github": "github"}
    bases = {name: f"{url}/{path}" for name, path in names.items()}
    return Endpoints(bases, {**bases, "github": f"{url}/pages"}, authorization={})


@pytest.fixture
def told() -> FakeTime:
    return FakeTime()


@pytest.fixture
def http(tmp_path: Path, told: FakeTime) -> Iterator[Http]:
    with Http(tmp_path, sleep=told.sleep, clock=told.clock, limits=Limits(attempts=3)) as client:
        yield client


def test_addresses_come_from_the_user_s_settings_before_any_default() -> None:
    env = {
        "PIP_INDEX_URL": "https://mirror.example/simple/",
        "NPM_CONFIG_REGISTRY": "https://npm.example/",
        "STRANDLINE_NODEJS_URL": "http://127.0.0.1:9/dist",
    }
    found = configured(env, ask=lambda _: "https://asked.example/")
    assert tuple(found.bases[name] for name in ("pypi", "npm", "nodejs")) == (
        "https://mirror.example/simple/",
        "https://npm.example/",
        "http://127.0.0.1:9/dist",
    )


def test_without_variables_pip_and_npm_are_asked_and_then_the_public_ones_serve() -> None:
    from pypi_simple import PYPI_SIMPLE_ENDPOINT

    asked = configured({}, ask=lambda command: f"https://{command[1].strip('-')}.example/")
    assert (asked.bases["pypi"], asked.bases["npm"]) == ("https://m.example/", "https://config.example/")
    public = configured({}, ask=lambda _: None)
    assert public.bases["pypi"] == PYPI_SIMPLE_ENDPOINT
    assert "yarn" in public.bases["npm"]


def test_pip_s_own_configuration_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = https://conf.example/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    assert configured({"NPM_CONFIG_REGISTRY": "https://npm.example"}).pypi == "https://conf.example/simple"


def test_credentials_in_an_address_become_a_header_of_its_host_and_leave_the_address() -> None:
    found = configured(
        {"PIP_INDEX_URL": "https://me:canary@index.example/simple", "GITHUB_TOKEN": "canary-token"}, ask=lambda _: None
    )
    assert found.pypi == "https://index.example/simple"
    assert found.authorization["index.example"] == "Basic bWU6Y2FuYXJ5"
    assert found.authorization["api.github.com"] == "Bearer canary-token"
    assert "canary" not in str(release_page(found, project("pypi", "x"), "1.0"))


@pytest.mark.parametrize(
    "address", ["http://[::1", "http://host:port/simple", "simple", "http://", "ftp://host/simple"]
)
def test_an_address_that_is_none_names_the_setting_it_came_from(address: str) -> None:
    with pytest.raises(ValueError, match=r"PIP_INDEX_URL: .* is no http or https address"):
        configured({"PIP_INDEX_URL": address}, ask=lambda _: None)


def test_a_scoped_npm_name_travels_with_an_encoded_slash(http: Http) -> None:
    document = npm_document("@scope/name", {"1.0.0": "2024-01-01T00:00:00Z"})
    with WebServer(Registry({"/npm/@scope%2Fname": document})) as web:
        fetched = Registries(http, endpoints(web.url)).fetch(project("npm", "@scope/name"))
    assert web.asked[0].raw_path == "/npm/@scope%2Fname"
    assert [r.version for r in fetched.listing.releases] == ["1.0.0"]
    assert "gzip" in web.asked[0].headers["Accept-Encoding"]


def test_an_unnormalised_name_is_redirected_to_one_project(http: Http) -> None:
    def handler(asked: Asked) -> Answer:
        if asked.raw_path != "/simple/foo-bar/":
            return Answer(301, headers={"Location": "/simple/foo-bar/"})
        assert asked.headers["Accept"] == "application/vnd.pypi.simple.v1+json"
        return json_answer(
            simple_page("Foo.Bar", [{"filename": "foo_bar-1.0.tar.gz", "upload-time": "2020-01-01T00:00:00Z"}])
        )

    with WebServer(handler) as web:
        registries = Registries(http, endpoints(web.url))
        listings = {registries.fetch(project("pypi", name)).listing for name in ("Foo__.Bar", "foo-bar")}
        redirected = http.get(f"{web.url}/simple/Foo__.Bar/", headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    assert {listing.package for listing in listings} == {"foo-bar"}
    assert len(listings) == 1
    assert redirected.url.endswith("/simple/foo-bar/")


def test_250_github_releases_are_read_over_three_pages(http: Http) -> None:
    rows = [github_release(f"v1.{n}.0", "2024-01-01") for n in range(250)]
    with WebServer(Registry({"/github/repos/me/tool/releases": paged(rows)})) as web:
        listing = Registries(http, endpoints(web.url)).fetch(project("github", "me/tool")).listing
    assert (len(listing.releases), listing.incomplete, len(web.asked)) == (250, False, 3)
    assert len({r.version for r in listing.releases}) == 250


def test_more_pages_than_are_read_make_the_listing_incomplete(http: Http) -> None:
    rows = [github_release(f"v1.{n}.0", "2024-01-01") for n in range(301)]
    with WebServer(Registry({"/github/repos/me/tool/releases": paged(rows)})) as web:
        listing = Registries(http, endpoints(web.url)).fetch(project("github", "me/tool")).listing
    assert (len(listing.releases), listing.incomplete) == (300, True)


def test_a_page_of_known_releases_ends_the_reading(http: Http) -> None:
    rows = [github_release(f"v1.{n}.0", "2024-01-01") for n in range(250, 0, -1)]
    known = {f"1.{n}.0" for n in range(240)}
    with WebServer(Registry({"/github/repos/me/tool/releases": paged(rows)})) as web:
        listing = Registries(http, endpoints(web.url)).fetch(project("github", "me/tool"), known).listing
    assert (len(web.asked), listing.incomplete) == (2, True)


def test_a_repository_with_only_tags_is_dated_by_its_commits_and_says_so(http: Http) -> None:
    documents = {
        "/github/repos/me/tool/releases": [],
        "/github/repos/me/tool/tags": [{"name": f"v{n}.0", "commit": {"sha": f"s{n}"}} for n in (3, 2, 1)],
        **{
            f"/github/repos/me/tool/commits/s{n}": {"commit": {"committer": {"date": f"202{n}-01-01T00:00:00Z"}}}
            for n in (2, 3)
        },
    }
    with WebServer(Registry(documents)) as web:
        fetched = Registries(http, endpoints(web.url)).fetch(project("github", "me/tool"), {"1.0"})
    assert (fetched.listing.source, fetched.listing.note) == ("github-tag", "no releases")
    dates = {r.version: r.released_on for r in fetched.listing.releases}
    assert dates == {"3.0": date(2023, 1, 1), "2.0": date(2022, 1, 1), "1.0": None}


def test_an_exhausted_rate_limit_ends_with_its_reset_time_and_is_never_read_as_releases(
    http: Http, told: FakeTime
) -> None:
    refused = json_answer(
        {"message": "API rate limit exceeded"}, 403, X_RateLimit_Remaining="0", X_RateLimit_Reset=str(told.now + 3000)
    )
    with WebServer(lambda _: refused) as web, pytest.raises(TransientError, match="come back") as caught:
        Registries(http, endpoints(web.url)).fetch(project("github", "me/tool"))
    assert caught.value.retry_at == datetime.fromtimestamp(told.now + 3000, UTC)


def test_an_object_with_status_200_is_a_readable_error(http: Http) -> None:
    with (
        WebServer(lambda _: json_answer({"message": "Moved"})) as web,
        pytest.raises(PermanentError, match="object, not a list: 'Moved'"),
    ):
        Registries(http, endpoints(web.url)).fetch(project("github", "me/tool"))


def test_a_missing_package_is_asked_once(http: Http) -> None:
    with WebServer(Registry({})) as web, pytest.raises(PermanentError) as caught:
        Registries(http, endpoints(web.url)).fetch(project("npm", "nothing"))
    assert (caught.value.status, len(web.asked)) == (404, 1)


def test_an_unknown_registry_is_named() -> None:
    with pytest.raises(ValueError, match="'cran' is not a registry"):
        Registries(Http(), endpoints("")).fetch(project("cran", "x"))


def test_pages_of_releases_follow_the_configured_base() -> None:
    base = endpoints("https://mirror.example")
    pages = {r: release_page(base, project(r, "x/y"), "3.13.0") for r in ("npm", "nodejs", "python", "github")}
    assert pages == {
        "npm": "https://mirror.example/npm/x%2Fy/3.13.0",
        "nodejs": "https://mirror.example/node/v3.13.0/",
        "python": "https://mirror.example/python/downloads/release/python-3130/",
        "github": "https://mirror.example/pages/x/y/releases",
    }
    assert release_page(base, Project("Ruby", 1, "runtime", "ruby"), "3.3.0") is None


def target(p: Project, n_known: int = 0) -> tuple[Project, list[Release], SourceState]:
    known = [Release(p.ecosystem, p.package, p.project, f"0.{n}.0", date(2020, 1, 1), "npm") for n in range(n_known)]
    return p, known, initial_state(p, None, n_known)


def test_one_source_that_fails_leaves_the_others_and_its_own_rows(http: Http) -> None:
    documents = {
        "/npm/good": npm_document("good", {"1.0.0": "2024-01-01T00:00:00Z"}),
        "/npm/shrunken": npm_document("shrunken", {"0.1.0": "2024-01-01T00:00:00Z"}),
        "/npm/abbreviated": {"name": "abbreviated", "versions": {"1.0.0": {}}},
        "/npm/empty": npm_document("empty", {}),
    }
    registry = Registry(documents)
    registry.faults["/npm/broken"] = Answer(500)
    names = ["good", "shrunken", "abbreviated", "empty", "broken", "absent"]
    targets = [target(project("npm", name), 10 if name == "shrunken" else 0) for name in names]
    with WebServer(registry) as web:
        outcomes = {o.state.project: o for o in refresh(targets, Registries(http, endpoints(web.url)), NOW)}
    assert {name: o.state.status for name, o in outcomes.items()} == {
        "good": "ok",
        "shrunken": "shrunken",
        "abbreviated": "failed",
        "empty": "failed",
        "broken": "unreachable",
        "absent": "missing",
    }
    assert [name for name, o in outcomes.items() if o.releases is not None] == ["good"]
    assert outcomes["shrunken"].state.n_releases == 10
    assert "without upload times" in str(outcomes["abbreviated"].state.error)
    assert outcomes["good"].state.fetched_at == datetime(2026, 11, 29, tzinfo=UTC)


def test_a_failed_refresh_keeps_the_day_and_the_validator_of_the_last_good_one(http: Http) -> None:
    p, known, state = target(project("npm", "broken"))
    good = replace(state, fetched_at=datetime(2026, 11, 1, tzinfo=UTC), etag='"v1"', status="ok")
    with WebServer(lambda _: Answer(503)) as web:
        (outcome,) = refresh([(p, known, good)], Registries(http, endpoints(web.url)), NOW)
    assert (outcome.state.fetched_at, outcome.state.etag, outcome.state.status) == (
        good.fetched_at,
        '"v1"',
        "unreachable",
    )


def test_a_second_refresh_is_conditional_and_ends_in_the_same_rows(http: Http) -> None:
    p = project("npm", "good")
    document = npm_document("good", {f"1.{n}.0": f"2024-01-{n + 1:02}T00:00:00Z" for n in range(20)})
    with WebServer(Registry({"/npm/good": document})) as web:
        registries = Registries(http, endpoints(web.url))
        (first,) = refresh([target(p)], registries, NOW)
        (second,) = refresh([(p, first.releases or [], first.state)], registries, NOW.replace(hour=20))
    assert second == first
    assert web.asked[1].headers["If-None-Match"] == first.state.etag
    assert http.counters["revalidated"] == 1


ODD_DOCUMENTS: dict[str, Any] = {
    "odd-note": {"name": "odd-note", "versions": {"1.0.0": {}}, "time": {"unpublished": {"versions": None}}},
    "far-year": npm_document("far-year", {"1.0.0": "9999-12-31T23:59:59-10:00"}),
    "long-version": npm_document("long-version", {"1." + "9" * 5000 + ".0": "2024-01-01T00:00:00Z"}),
    "versions-list": {"name": "versions-list", "time": {}, "versions": ["1.0.0"]},
    "deep": {"name": "deep", "time": {}, "versions": {"1.0.0": 1}},
}


def test_one_odd_document_ends_no_refresh_of_the_others(http: Http) -> None:
    documents = {f"/npm/{name}": document for name, document in ODD_DOCUMENTS.items()}
    documents["/npm/good"] = npm_document("good", {"1.0.0": "2024-01-01T00:00:00Z"})
    targets = [target(project("npm", name)) for name in (*ODD_DOCUMENTS, "good")]
    with WebServer(Registry(documents)) as web:
        outcomes = {o.state.project: o for o in refresh(targets, Registries(http, endpoints(web.url)), NOW)}
    assert list(outcomes) == sorted([*ODD_DOCUMENTS, "good"])
    assert outcomes["good"].state.status == "ok"
    assert [r.released_on for r in outcomes["good"].releases or []] == [date(2024, 1, 1)]
    askable = [r for o in outcomes.values() for r in o.releases or [] if not r.flags and o.state.project != "good"]
    assert askable == []


def test_a_parser_that_stumbles_is_its_package_s_trouble_alone(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(payload: Any, package: str) -> Listing:
        raise KeyError(package)

    monkeypatch.setattr(sources, "SOURCES", (replace(npm.NPM, parse=stumble), *sources.SOURCES[1:]))
    page = simple_page("good", [{"filename": "good-1.0.tar.gz", "upload-time": "2024-01-01T00:00:00Z"}])
    documents = {"/npm/bad": npm_document("bad", {}), "/simple/good/": page}
    targets = [target(project("npm", "bad")), target(project("pypi", "good"))]
    with WebServer(Registry(documents)) as web:
        outcomes = {o.state.project: o.state for o in refresh(targets, Registries(http, endpoints(web.url)), NOW)}
    assert {name: state.status for name, state in outcomes.items()} == {"bad": "failed", "good": "ok"}
    assert "cannot be read: KeyError('bad')" in str(outcomes["bad"].error)


def test_a_registry_from_outside_the_tree_is_one_record_in_one_tuple(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(payload: Any, package: str) -> Listing:
        return Listing(package, tuple(Listed(v, utc_day(day)) for v, day in payload.items()), "crates")

    crates = Source(
        name="crates",
        url=lambda package, base: f"{base}/{package}.json",
        parse=parse,
        page=lambda package, version, base: f"{base}/{package}/{version}",
        setting=Setting(("CRATES_URL",), lambda: "https://crates.example"),
        uncertainty_days=2,
        since=date(2014, 11, 1),
    )
    monkeypatch.setattr(sources, "SOURCES", (*sources.SOURCES, crates))
    with WebServer(Registry({"/serde.json": {"1.0.0": "2017-04-20", "0.1.0": "2014-01-01"}})) as web:
        found = configured({"CRATES_URL": web.url}, ask=lambda _: None)
        (outcome,) = refresh([target(project("crates", "serde"))], Registries(http, found), NOW)
    rows = {r.version: r for r in outcome.releases or []}
    assert (rows["1.0.0"].source, rows["1.0.0"].uncertainty_days, rows["1.0.0"].flags) == ("crates", 2, ())
    assert rows["0.1.0"].flags == ("too_early",)
    assert release_page(found, project("crates", "serde"), "1.0.0") == f"{web.url}/serde/1.0.0"
    assert sources.is_first_hand("crates")


LISTED = Listed("1.0", date(2024, 1, 1))


@pytest.mark.parametrize(
    ("listing", "status"),
    [
        (Listing("p", (LISTED,), "npm"), "ok"),
        (Listing("p", (LISTED, Listed("1.1", None)), "npm"), "ok"),
        (Listing("p", (Listed("1.1", None),), "pypi"), "undated"),
        (Listing("p", (LISTED,), "github", incomplete=True), "incomplete"),
        (Listing("p", (Listed("1.1", None),), "github", incomplete=True), "incomplete"),
        (Listing("p", (LISTED,), "github-tag", incomplete=True), "tags_only"),
        (Listing("p", (Listed("1.1", None, flags=("mirror_dates",)),), "npm", incomplete=True), "mirror_dates"),
    ],
)
def test_a_listing_has_the_status_of_what_it_can_be_used_for(listing: Listing, status: str) -> None:
    assert listing_status(listing) == status


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (TransientError("x"), "unreachable"),
        (ShrunkenFetchError("x"), "shrunken"),
        (PermanentError("x", status=404), "missing"),
        (PermanentError("x", status=410), "missing"),
        (PermanentError("x", status=403), "failed"),
        (PermanentError("x"), "failed"),
        (ValueError("x"), "failed"),
    ],
)
def test_a_failure_has_the_status_of_its_kind(error: Exception, status: str) -> None:
    class Broken(Registries):
        def fetch(self, project: Project, known: Collection[str] = ()) -> Fetched:
            raise error

    (outcome,) = refresh([target(project("npm", "p"))], Broken(Http(), endpoints("")), NOW)
    assert (outcome.state.status, outcome.releases) == (status, None)
    assert status in FAILED_STATUSES


def test_an_index_without_upload_times_is_undated_and_says_why(http: Http) -> None:
    with WebServer(Registry({"/simple/old/": simple_page("old", [{"filename": "old-1.0.tar.gz"}])})) as web:
        (outcome,) = refresh([target(project("pypi", "old"))], Registries(http, endpoints(web.url)), NOW)
    assert outcome.state.status == "undated"
    assert outcome.state.error == "the index gives no upload times, so none of its versions can be dated"
    zero = npm_document("zero", {"1.0.0": "0001-01-01T00:00:00Z"})
    with WebServer(Registry({"/npm/zero": zero})) as web:
        (zeros,) = refresh([target(project("npm", "zero"))], Registries(http, endpoints(web.url)), NOW)
    assert (zeros.state.status, zeros.state.error) == ("undated", "no version has a day that can be believed")
    assert [r.flags for r in outcome.releases or []] == [("no_date",)]
