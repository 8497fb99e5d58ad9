"""The news source against an index and an archive on loopback, with every kind of bad page and a busy server."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from resources.network.http import Http, Limits, PermanentError
from resources.spans.news import NewsSource
from resources.spans.refresh import refresh
from resources.warehouse.store import Warehouse
from strandline.spans import DeferredError, Span, Version
from strandline.spans.selection import Known
from tests.fakes.archive import ARCHIVE, Archive, Shot
from tests.fakes.web import Answer, Asked, WebServer

MAY, JUNE = date(2019, 5, 1), date(2019, 6, 1)
CRAWLED = datetime(2019, 6, 20, 12, tzinfo=UTC)
WORDS = "river market council border winter school harvest bridge letter island motor garden"


def story(seed: int, extra: str = "") -> str:
    rng = random.Random(seed)
    sentences = [" ".join(rng.choices(WORDS.split(), k=11)).capitalize() + "." for _ in range(30)]
    return "".join(f"<p>{' '.join(sentences[n : n + 5])}</p>" for n in range(0, 30, 5)) + extra


def page(seed: int, day: str | None, extra: str = "", charset: str = "utf-8") -> bytes:
    meta = f'<meta property="article:published_time" content="{day}T08:00:00Z">' if day else ""
    html = (
        f"<html><head><meta charset='{charset}'><title>Story {seed}</title>{meta}</head><body><article>"
        f"<h1>Story {seed}</h1>{story(seed, extra)}</article></body></html>"
    )
    return html.encode(charset)


def shot(name: str, body: bytes, **more: object) -> Shot:
    return Shot(f"https://www.paper.test/{name}", CRAWLED, body, **more)  # type: ignore[arg-type]


FIRST = [
    shot("2019/05/03/one", page(1, "2019-05-03")),
    shot("2019/05/04/two", page(2, "2019-05-04")),
    shot("2019/06/02/june", page(3, "2019-06-02")),
    shot("2019/05/05/latin", page(4, "2019-05-05", "<p>Café “Zoë” über alles gesagt.</p>", "cp1252"),
         content_type="text/html; charset=ISO-8859-1"),
    shot("2019/05/06/copy", page(1, "2019-05-06")),
    shot("2019/05/07/revisit", b"", kind="revisit"),
    shot("2019/05/08/cut", page(5, "2019-05-08")[:900], truncated="length"),
    shot("2019/05/09/broken", page(6, "2019-05-09"), cut=300),
    shot("2019/05/10/late", page(7, "2016-01-01")),
    shot("2019/05/11/gone", b"", status=404),
    shot("2019/05/12/nothing", b"<html><body></body></html>"),
    shot("2019/05/13/garbled", b"<html><body><p>" + b"\x81\x8d\x8f\x90\x9d\xff\xfe" * 200 + b"</p></body></html>"),
    shot("undated/story", page(8, "2019-05-14")),
    shot("2018/01/01/old", page(9, "2018-01-01")),
]  # fmt: skip
SECOND = [Shot("http://paper.test/2019/05/03/one?again=1", CRAWLED.replace(month=8), page(1, "2019-05-03"))]
CRAWLS = {"CC-MAIN-2019-35": SECOND, "CC-MAIN-2019-26": FIRST, "CC-MAIN-2019-22": []}


def run(
    folder: Path, archive: Archive, known: Known | None = None, **options: object
) -> tuple[dict[str, Version], list[str]]:
    versions: list[Version] = []
    asked: list[str] = []
    with WebServer(archive) as web, Http(folder, contact="a@example.org", limits=Limits(attempts=2, backoff=0)) as http:
        archive.base = web.url
        span = Span("news", "news", "unpaired", (MAY, JUNE), 256, options={
            "site": "paper.test", "index": web.url, "data": web.url, "pause": 0, "min_words": 100, **options,
        })  # fmt: skip
        reader = NewsSource(http, folder)
        run.reader = reader  # type: ignore[attr-defined]
        try:
            for batch in reader.versions(span, span.months, known or Known()):
                versions += batch
        finally:
            asked += [request.raw_path for request in web.asked]
            run.versions = {v.topic.partition("/")[2]: v for v in versions}  # type: ignore[attr-defined]
    return {version.topic.partition("/")[2]: version for version in versions}, asked


def test_good_pages_become_articles_and_bad_ones_rows_with_a_reason(tmp_path: Path) -> None:
    found, _ = run(tmp_path, Archive(CRAWLS))
    assert {name: version.status for name, version in found.items()} == {
        "2019/05/03/one": "ok",
        "2019/05/04/two": "ok",
        "2019/06/02/june": "ok",
        "2019/05/05/latin": "ok",
        "2019/05/06/copy": "duplicate",
        "2019/05/08/cut": "truncated",
        "2019/05/09/broken": "truncated",
        "2019/05/10/late": "misdated",
        "2019/05/12/nothing": "empty",
        "2019/05/13/garbled": "garbled",
        "undated/story": "ok",
    }
    assert all(version.reason for version in found.values() if version.status != "ok")
    assert "Café “Zoë” über" in str(found["2019/05/05/latin"].text)
    assert str(found["2019/05/03/one"].text).startswith("Story 1\n\n")
    assert found["undated/story"].month == MAY
    assert found["2019/05/03/one"].replaced_share == 0
    assert (found["2019/05/13/garbled"].replaced_share or 0) > 0.01


def test_only_pages_that_may_be_drawn_are_read_and_each_once(tmp_path: Path) -> None:
    _, asked = run(tmp_path, Archive(CRAWLS))
    assert asked.count(f"/{ARCHIVE}") == 11
    _, again = run(tmp_path, Archive(CRAWLS))
    assert again == ["/collinfo.json"]


def test_no_more_records_are_read_than_the_sample_needs(tmp_path: Path) -> None:
    shots = [shot(f"2019/05/{n % 28 + 1:02d}/n{n}", page(100 + n, f"2019-05-{n % 28 + 1:02d}")) for n in range(40)]
    found, asked = run(tmp_path, Archive({"CC-MAIN-2019-26": shots}), per_month=6)
    assert sum(version.status == "ok" for version in found.values()) == 6
    assert asked.count(f"/{ARCHIVE}") == 6


def test_a_crawl_that_holds_nothing_is_no_error_and_another_404_is(tmp_path: Path) -> None:
    found, _ = run(tmp_path / "a", Archive({"CC-MAIN-2019-22": []}))
    assert found == {}
    lost = Archive(
        CRAWLS, lambda asked: Answer(404, b"<html>moved</html>") if asked.raw_path.endswith("-index") else None
    )
    with pytest.raises(PermanentError, match="404"):
        run(tmp_path / "b", lost)


def test_an_empty_list_of_crawls_is_an_outage(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match="outage"):
        run(tmp_path, Archive({}))


def test_a_crawl_asked_for_by_name_must_be_there(tmp_path: Path) -> None:
    found, _ = run(tmp_path, Archive(CRAWLS), crawls=["CC-MAIN-2019-35"])
    assert set(found) == {"2019/05/03/one"}
    with pytest.raises(PermanentError, match="CC-MAIN-1999-01"):
        run(tmp_path, Archive(CRAWLS), crawls=["CC-MAIN-1999-01"])


def test_a_throttling_index_defers_at_once_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    busy = Archive(CRAWLS, lambda asked: Answer(503) if asked.query.get("page") == "2" else None)
    with pytest.raises(DeferredError, match="busy"):
        run(tmp_path, busy)
    _, asked = run(tmp_path, Archive(CRAWLS))
    assert asked.count("/CC-MAIN-2019-35-index") == 0
    assert asked.count("/CC-MAIN-2019-26-index") == 2


def test_a_throttling_archive_keeps_what_it_gave_and_defers(tmp_path: Path) -> None:
    served: list[int] = []

    def faults(asked: Asked) -> Answer | None:
        if asked.raw_path != f"/{ARCHIVE}":
            return None
        served.append(1)
        return Answer(429, headers={"Retry-After": "0"}) if len(served) > 4 else None

    with pytest.raises(DeferredError, match="in a row"):
        run(tmp_path, Archive(CRAWLS, faults))
    kept = run.versions  # type: ignore[attr-defined]
    assert sum(version.status != "failed" for version in kept.values()) == 4
    assert all(version.status != "ok" or version.text for version in kept.values())


def test_a_month_short_of_articles_is_shown_and_complete_and_a_second_run_asks_for_nothing(tmp_path: Path) -> None:
    store = Warehouse(tmp_path / "w.duckdb", tmp_path / "p.duckdb")
    archive = Archive(CRAWLS)
    with WebServer(archive) as web, Http(tmp_path, contact="a@example.org") as http:
        archive.base = web.url
        options = {
            "site": "paper.test",
            "index": web.url,
            "data": web.url,
            "pause": 0,
            "min_words": 100,
            "per_month": 4,
        }
        span = Span("news", "news", "unpaired", (MAY, JUNE), 256, options=options)
        months = refresh(store, span, NewsSource(http, tmp_path), span.months, CRAWLED)
        before = len(web.asked)
        assert refresh(store, span, NewsSource(http, tmp_path), span.months, CRAWLED) == []
        assert len(web.asked) == before
    assert [(month.status, month.n_ok) for month in months] == [("ok", 4), ("short", 1)]
    assert months[1].reason == "1 documents where 4 were asked for"


def test_an_index_page_that_was_cut_defers_and_is_asked_for_again(tmp_path: Path) -> None:
    def cut(asked: Asked) -> Answer | None:
        if asked.query.get("page") != "2":
            return None
        whole = Archive(CRAWLS)._index(asked)
        return Answer(200, whole.body[:-40])

    with pytest.raises(DeferredError, match="middle of a line"):
        run(tmp_path, Archive(CRAWLS, cut))
    found, _ = run(tmp_path, Archive(CRAWLS))
    assert found["undated/story"].status == "ok"


def test_a_line_of_the_index_that_is_no_capture_is_left_out_and_told(tmp_path: Path) -> None:
    def odd(asked: Asked) -> Answer | None:
        if asked.query.get("page") != "0" or "2019-26" not in asked.raw_path:
            return None
        return Answer(200, b'{"url": null}\n' + Archive(CRAWLS)._index(asked).body)

    found, _ = run(tmp_path, Archive(CRAWLS, odd))
    assert found["2019/05/03/one"].status == "ok"
    assert run.reader.notes == [  # type: ignore[attr-defined]
        "CC-MAIN-2019-26, page 0: 1 lines left out, the first: index line 1 is no capture (it has no url): "
        "'{\"url\": null}'"
    ]


@pytest.mark.parametrize("whole", [True, False])
def test_a_record_that_comes_short_is_failed_and_one_out_of_the_whole_file_is_cut_out(
    tmp_path: Path, whole: bool
) -> None:
    archive = Archive({"CC-MAIN-2019-26": FIRST[:2]})

    def faults(asked: Asked) -> Answer | None:
        if asked.raw_path != f"/{ARCHIVE}":
            return None
        return Answer(200, archive._bytes) if whole else Answer(206, archive._bytes[:50])

    archive.faults = faults
    found, _ = run(tmp_path, archive)
    assert {version.status for version in found.values()} == ({"ok"} if whole else {"failed"})


def test_what_belongs_to_no_month_is_noted_beside_the_months(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('not json\n{"text": "no date"}\n{"text": "short", "date": "2019-05-02"}\n')
    store = Warehouse(tmp_path / "w.duckdb", tmp_path / "p.duckdb")
    span = Span("news", "news", "unpaired", (MAY, JUNE), 256, options={"files": [str(tmp_path / "a.jsonl")]})
    months = refresh(store, span, NewsSource(None, tmp_path), span.months, CRAWLED)  # type: ignore[arg-type]
    told = store.query("select distinct note from spans.months").item()
    assert told == months[0].note
    assert told.startswith("1 undated, the first a.jsonl:2: it names no date of publication; 1 unreadable, the first ")
    assert "a.jsonl:1: is not JSON" in told
    assert [(month.status, month.n_documents) for month in months] == [("short", 1), ("short", 0)]
