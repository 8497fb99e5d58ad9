"""READMEs from the package index that pip is configured with, for two small packages that the project itself uses."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from resources.network.download_cache import DownloadCache
from resources.network.http import FetchError, Http
from resources.releases.registries import configured
from resources.spans.package_readmes import PackageIndex, ReadmeSource
from resources.spans.refresh import refresh
from resources.warehouse.store import Warehouse
from strandline.spans import Span
from strandline.spans.months import month_range

MONTHS = month_range(date(2023, 1, 1), date(2023, 12, 1))


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Http:
    endpoints = configured()
    client = Http(tmp_path_factory.mktemp("http"), contact="tests@example.org", authorization=endpoints.authorization)
    try:
        client.get(f"{endpoints.pypi.rstrip('/')}/httpx/")
    except FetchError as error:
        pytest.skip(f"the package index cannot be reached: {error.status}")
    return client


@pytest.mark.system
def test_real_releases_give_their_readmes_and_a_second_run_asks_for_nothing(http: Http, tmp_path: Path) -> None:
    store = Warehouse(tmp_path / "w.duckdb", tmp_path / "p.duckdb")
    span = Span("readme", "readme", "panel", MONTHS, 512, topics=("httpx", "uvicorn"))
    months = refresh(store, span, ReadmeSource(http, tmp_path), MONTHS, datetime.now(UTC))
    assert [(month.status, month.n_ok) for month in months] == [("ok", 2)] * 12
    held = store.query("select revision, text from spans.documents where topic = 'httpx' and month = '2023-06-01'").row(
        0
    )
    assert held[0] == "0.24.1"
    assert "A next-generation HTTP client for Python" in held[1]
    before = http.counters["requests"]
    assert refresh(store, span, ReadmeSource(http, tmp_path), MONTHS, datetime.now(UTC)) == []
    assert http.counters["requests"] == before


@pytest.mark.system
def test_a_release_is_read_from_the_end_of_its_wheel_by_few_requests(http: Http, tmp_path: Path) -> None:
    index = PackageIndex(http, configured().pypi, DownloadCache(tmp_path))
    release = next(one for one in index.releases("httpx") if one.version == "0.24.1")
    before = http.counters["requests"]
    text = index.readme(release)
    assert text is not None
    assert "HTTPX" in text
    assert http.counters["requests"] - before <= 2
