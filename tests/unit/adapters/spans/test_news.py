"""News: which captures are read, how bytes become text, and which articles make a month's sample."""

from __future__ import annotations

import gzip
import json
import lzma
import random
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.spans.news_files import matching, read_items
from resources.spans.news_pages import extractor, items_in
from strandline.spans import commoncrawl
from strandline.spans.commoncrawl import Capture, address_key, date_in_address, decode, plan
from strandline.spans.news import NewsItem, Rules, jaccard, sample, shingles, unplaced

MAY = date(2019, 5, 1)
JUNE = date(2019, 6, 1)


def prose(seed: int, count: int = 60) -> str:
    rng = random.Random(seed)
    return " ".join("".join(rng.choices("abcdefghij", k=6)) for _ in range(count))


def item(n: int, day: date | None = date(2019, 5, 10), text: str | None = None, **more: object) -> NewsItem:
    return NewsItem(f"site.test/{n}", day, prose(n) if text is None else text, **more)  # type: ignore[arg-type]


def by_name(items: list[NewsItem], rules: Rules) -> dict[str, tuple[str, str | None]]:
    return {
        version.topic.rpartition("/")[2]: (version.status, version.reason)
        for version in sample(items, [MAY, JUNE], rules)
    }


RULES = Rules(per_month=500, min_words=20)


def test_a_month_holds_what_was_published_in_it() -> None:
    items = [item(1, date(2019, 5, 31)), item(2, date(2019, 6, 1)), item(3, date(2019, 7, 1))]
    assert {version.topic: version.month for version in sample(items, [MAY, JUNE], RULES)} == {
        "site.test/1": MAY,
        "site.test/2": JUNE,
    }


def test_unusable_articles_are_kept_with_the_reason_and_not_drawn() -> None:
    body = prose(90)
    items = [
        item(1),
        item(2, text="  "),
        item(3, text="too few words here"),
        item(4, None, stated_on=date(2019, 5, 4)),
        item(5, date(2019, 5, 20), captured_on=date(2019, 5, 10)),
        item(6, date(2019, 1, 2), stated_on=date(2019, 5, 20)),
        item(7, date(2019, 5, 1), text=body),
        item(8, date(2019, 5, 2), text=body.upper() + " !"),
        item(9, date(2019, 5, 3), text=body + " and one more word"),
        item(10, status="truncated", reason="the capture was cut (length)"),
    ]
    found = by_name(items, RULES)
    assert {name: status for name, (status, _) in found.items()} == {
        "1": "ok", "2": "empty", "3": "too_short", "4": "undated", "5": "misdated", "6": "misdated", "7": "ok",
        "8": "duplicate", "9": "near_duplicate", "10": "truncated",
    }  # fmt: skip
    assert all(reason for status, reason in found.values() if status != "ok")
    assert "site.test/7" in str(found["8"][1])


def test_a_copy_in_a_later_month_gives_way_to_the_first() -> None:
    body = prose(5)
    items = [item(2, date(2019, 6, 3), text=body), item(1, date(2019, 5, 3), text=body)]
    assert by_name(items, RULES) == {"1": ("ok", None), "2": ("duplicate", "has the words of site.test/1")}


@given(st.permutations(range(24)), st.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_the_sample_does_not_depend_on_the_order_of_arrival(order: list[int], seed: int) -> None:
    rules = Rules(per_month=10, min_words=1, seed=seed)
    drawn = {name for name, (status, _) in by_name([item(n) for n in order], rules).items() if status == "ok"}
    assert drawn == {
        name for name, (status, _) in by_name([item(n) for n in range(24)], rules).items() if status == "ok"
    }
    assert len(drawn) == 10


def test_another_seed_draws_another_sample_and_every_article_is_drawn_as_often() -> None:
    items = [item(n, text=f"article {n} " + prose(n, 8)) for n in range(20)]
    counts = dict.fromkeys(map(str, range(20)), 0)
    for seed in range(120):
        for name, (status, _) in by_name(items, Rules(per_month=5, min_words=1, seed=seed)).items():
            counts[name] += status == "ok"
    assert sum(counts.values()) == 120 * 5
    assert all(12 <= count <= 48 for count in counts.values())


def test_articles_added_later_only_push_others_out() -> None:
    rules = Rules(per_month=10, min_words=1)
    few = {n for n, (s, _) in by_name([item(n) for n in range(30)], rules).items() if s == "ok"}
    more = {n for n, (s, _) in by_name([item(n) for n in range(60)], rules).items() if s == "ok"}
    assert {name for name in more if int(name) < 30} <= few


def test_the_same_article_twice_is_one_document() -> None:
    twice = [item(1, captured_on=date(2019, 5, 12)), item(1, status="revisit", reason="as before")]
    assert by_name(twice, RULES) == by_name(twice[::-1], RULES) == {"1": ("ok", None)}


def test_similarity_is_that_of_five_word_shingles() -> None:
    assert jaccard(shingles("a b c d e f"), shingles("A, b c d e f!")) == 1
    assert jaccard(shingles("a b c d e f"), shingles("a b c d e g")) == pytest.approx(1 / 3)
    assert shingles("two words") == {"two words"}


@pytest.mark.parametrize(
    ("url", "day"),
    [
        ("https://www.site.test/2019/05/17/world/story.html", date(2019, 5, 17)),
        ("https://site.test/news/2019-05-17/story", date(2019, 5, 17)),
        ("https://site.test/2019/05/story.html", date(2019, 5, 1)),
        ("https://site.test/2019/02/31/story.html", None),
        ("https://site.test/story?d=/2019/05/17/", None),
        ("https://site.test/story-20190517", None),
    ],
)
def test_a_date_in_an_address(url: str, day: date | None) -> None:
    assert date_in_address(url) == day


def test_captures_of_one_article_share_a_key() -> None:
    keys = {
        address_key(url)
        for url in ("http://www.Site.test/a/b/", "https://site.test:443/a/b?utm=1", "https://site.test/a/b#top")
    }
    assert keys == {"site.test/a/b"}
    assert address_key("https://site.test/A") != address_key("https://site.test/a")


def capture(url: str, day: int = 1, **more: object) -> Capture:
    base: dict[str, object] = {
        "captured_at": datetime(2019, 5, day, tzinfo=UTC), "filename": "w", "offset": 10, "length": 5,
        "digest": "d", "status": "200", "mime": "text/html",
    }  # fmt: skip
    return Capture(url=url, **{**base, **more})  # type: ignore[arg-type]


def test_the_plan_takes_one_good_capture_of_each_article_and_leaves_other_months() -> None:
    captures = [
        capture("https://site.test/2019/05/02/a", 9),
        capture("http://www.site.test/2019/05/02/a?x=1", 3, filename="earlier"),
        capture("https://site.test/2018/05/02/old"),
        capture("https://site.test/2019/05/03/gone", status="404"),
        capture("https://site.test/2019/05/04/again", mime="warc/revisit"),
        capture("https://site.test/2019/05/05/picture", mime="image/png"),
        capture("https://site.test/undated"),
    ]
    planned = plan(captures, [MAY], seed=1)
    assert {month: [c.filename for c in found] for month, found in planned.items()} == {MAY: ["earlier"], None: ["w"]}
    assert planned == plan(captures[::-1], [MAY], seed=1)
    assert planned[MAY][0].byte_range == "bytes=10-14"


def test_index_lines_are_captures_and_broken_ones_are_counted_with_their_place() -> None:
    line = {
        "urlkey": "test,site)/a", "timestamp": "20190517093000", "url": "https://site.test/a", "mime": "unk",
        "mime-detected": "text/html", "status": "200", "digest": "X", "length": "100", "offset": "7",
        "filename": "f.warc.gz", "truncated": "length",
    }  # fmt: skip
    found, odd = commoncrawl.parse_captures(json.dumps(line) + "\n\n", "CC-MAIN-2019-22")
    assert odd == []
    assert found[0].captured_at == datetime(2019, 5, 17, 9, 30, tzinfo=UTC)
    assert (found[0].mime, found[0].truncated, found[0].crawl) == ("text/html", "length", "CC-MAIN-2019-22")
    bad = [
        "<html>", "[]", "7", "{}", json.dumps({**line, "length": None}), json.dumps({**line, "offset": "x"}),
        json.dumps({**line, "timestamp": "20191345"}), json.dumps({**line, "length": 0}), "{" * 9000,
    ]  # fmt: skip
    for other in bad:
        found, odd = commoncrawl.parse_captures(f"{json.dumps(line)}\n{other}\n{json.dumps(line)}\n", "c")
        assert len(found) == 2
        assert odd[0].startswith("index line 2 ")
        assert len(odd[0]) < 300


@pytest.mark.parametrize(
    ("lines", "whole"),
    [("", True), ("{}\n", True), ("{}", True), ('{}\n{"url"', False), ("{}\n{}", True), ("{}\n7", False)],
)
def test_an_index_page_that_was_cut_is_seen(lines: str, whole: bool) -> None:
    assert commoncrawl.ends_whole(lines) == whole


def test_an_empty_list_of_crawls_is_an_outage() -> None:
    for payload in ([], {}, None, [None], [{"id": 7, "cdx-api": "x"}], [{"id": "c"}]):
        with pytest.raises(ValueError, match="outage"):
            commoncrawl.parse_crawls(payload)


@pytest.mark.parametrize(
    ("body", "content_type", "text", "encoding"),
    [
        ("é".encode(), "text/html; charset=utf-8", "é", "utf-8"),
        ("é".encode(), "text/html; charset=iso-8859-1", "é", "utf-8"),
        ("“é”".encode("cp1252"), "text/html; charset=ISO-8859-1", "“é”", "iso-8859-1"),
        ("ж".encode("koi8-r") * 3, "text/html; charset=koi8-r", "жжж", "koi8-r"),
        (
            b'<meta charset="windows-1251">' + "да".encode("cp1251"),
            "",
            '<meta charset="windows-1251">да',
            "windows-1251",
        ),
        ("日本".encode("iso2022_jp"), "text/html; charset=ISO-2022-JP", "日本", "iso-2022-jp"),
        ("\ufeffé".encode("utf-16"), "", "\ufeffé", "utf-16"),
        (b"plain", "text/html; charset=no-such-charset", "plain", "ascii"),
    ],
)
def test_bytes_are_read_as_what_they_are(body: bytes, content_type: str, text: str, encoding: str) -> None:
    found, used, replaced = decode(body, content_type)
    assert (found.lstrip("\ufeff"), replaced) == (text.lstrip("\ufeff"), 0)
    assert used == encoding


def test_bytes_that_no_encoding_explains_are_replaced_and_counted() -> None:
    text, _, replaced = decode(b"\xff\xfe" + b"\x00\xd8" * 10, "")
    assert replaced > 0.5
    assert "\ufffd" in text


@given(st.binary(max_size=200))
def test_any_bytes_become_a_text(body: bytes) -> None:
    text, _, replaced = decode(body)
    assert isinstance(text, str)
    assert 0 <= replaced <= 1


def record(
    url: str, body: bytes, when: str = "2019-05-20T00:00:00Z", head: str = "", line_end: str = "\r\n", **more: str
) -> bytes:
    """A WARC record of a page."""
    http = f"HTTP/1.1 200 OK{line_end}Content-Type: text/html{line_end}{head}{line_end}".encode() + body
    fields = {"WARC-Type": "response", "WARC-Target-URI": url, "WARC-Date": when}
    fields |= {name.replace("_", "-"): value for name, value in more.items()}
    fields.setdefault("Content-Length", str(len(http)))
    lines = "".join(f"{name}: {value}{line_end}" for name, value in fields.items())
    return f"WARC/1.0{line_end}{lines}{line_end}".encode() + http + (line_end * 2).encode()


def story(seed: int, day: str = "2019-05-10", size: int = 0) -> bytes:
    meta = f'<meta property="article:published_time" content="{day}T08:00:00Z">'
    body = "".join(f"<p>{prose(seed + n, 40)}.</p>" for n in range(5)) + "x" * size
    return f"<html><head><title>S {seed}</title>{meta}</head><body><article>{body}</article></body></html>".encode()


def statuses(archive: bytes) -> dict[str, str]:
    with extractor() as extract:
        return {found.name.rpartition("/")[2]: found.status for found in items_in(archive, extract, "a.warc")}


@pytest.mark.parametrize(
    ("middle", "status"),
    [
        (record("http://site.test/m", story(9), when="2019-13-45T99:00:00Z"), "ok"),
        (record("http://site.test/m", story(9), when=""), "ok"),
        (record("http://site.test/m", story(9), when="0001-01-01T00:00:00Z"), "ok"),
        (record("http://site.test/m", story(9), line_end="\n"), "ok"),
        (record("http://site.test/m", story(9), WARC_Truncated="length"), "truncated"),
        (record("http://site.test/m", gzip.compress(story(9))[:-20], head="Content-Encoding: gzip\r\n"), "truncated"),
        (record("http://site.test/m", gzip.compress(story(9)), head="Content-Encoding: gzip\r\n"), "ok"),
        (record("http://site.test/m", story(9), head="Content-Encoding: gzip\r\n"), "ok"),
        (record("http://site.test/m", gzip.compress(story(9))), "ok"),
        (record("http://site.test/m", story(9)[:600], head="Content-Length: 9000\r\n"), "truncated"),
        (record("http://site.test/m", story(9)[:-14].ljust(1 << 20, b" ")), "truncated"),
        (record("http://site.test/m", story(9), WARC_Type="revisit"), "revisit"),
        (record("http://site.test/m", story(9)).replace(b"200 OK", b"404 No"), "missing"),
        (record("http://site.test/m", story(9)).replace(b"text/html", b"image/png"), "ok"),
        (record("http://site.test/m", b"\x89PNG").replace(b"text/html", b"image/png"), "unsupported"),
        (record("http://site.test/m", story(9)).replace(b"HTTP/1.1 200", b"nonsense"), "unreadable"),
        (record("http://site.test/m", story(9), WARC_Block_Digest="sha1:" + "A" * 32), "unreadable"),
    ],
)
def test_one_odd_record_of_an_archive_is_judged_alone_and_its_neighbours_stand(middle: bytes, status: str) -> None:
    before, after = record("http://site.test/a", story(1)), record("http://site.test/z", story(2))
    plain = before + middle + after
    packed = b"".join(gzip.compress(part) for part in (before, middle, after))
    for archive in (plain, packed):
        assert statuses(archive) == {"a": "ok", "m": status, "z": "ok"}


@pytest.mark.parametrize("garbage", [b"WARC/1.0\r\n\r\n", b"\x00" * 50, b"<html>not a record</html>\r\n"])
def test_what_is_no_record_is_an_item_with_its_place_and_the_rest_is_read(garbage: bytes) -> None:
    before, after = record("http://site.test/a", story(1)), record("http://site.test/z", story(2))
    with extractor() as extract:
        found = list(items_in(before + garbage + after, extract, "a.warc"))
    good = [item.name for item in found if item.status == "ok"]
    bad = [item for item in found if item.status != "ok"]
    assert good == ["site.test/a", "site.test/z"]
    assert all(f"a.warc at byte {len(before)}" in str(item.reason) and len(str(item.reason)) < 300 for item in bad)
    assert len(unplaced(found)) == len(bad) == 1


def test_an_arc_archive_is_read(tmp_path: Path) -> None:
    http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + story(1, "2008-05-10")
    first = b"filedesc://a.arc 0.0.0.0 20080601000000 text/plain 8\n1 0 test\n\n"
    page = f"http://site.test/2008/05/10/a b 1.2.3.4 20080601000000 text/html {len(http)}\n".encode() + http + b"\n"
    (tmp_path / "a.arc.gz").write_bytes(gzip.compress(first + page))
    with extractor() as extract:
        found = list(read_items(tmp_path / "a.arc.gz", {}, extract))
    assert [(item.status, item.published_on, item.captured_on) for item in found] == [
        ("ok", date(2008, 5, 10), date(2008, 6, 1))
    ]


def test_local_files_of_every_kind_give_their_articles(tmp_path: Path) -> None:
    rows = [
        {"u": "https://site.test/2019/05/02/a", "body": prose(1), "when": "2019-05-02T10:00:00Z", "title": "T"},
        {"body": "b", "when": "soon"},
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "a.jsonl").write_text(lines)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "c.json").write_text("\ufeff" + json.dumps(rows, indent=1))
    (tmp_path / "d.jsonl.xz").write_bytes(lzma.compress(lines.encode()))
    pl.DataFrame(rows).write_parquet(tmp_path / "e.parquet")
    (tmp_path / "folder.jsonl").mkdir()
    fields = {"url": "u", "text": "body", "date": "when"}
    with extractor() as extract:
        found = [list(read_items(path, fields, extract)) for path in matching(["*"], tmp_path)]
    assert len(found) == 5
    for items in found:
        assert [(i.published_on, i.text.startswith(("T\n\n", "b"))) for i in items] == [
            (date(2019, 5, 2), True),
            (None, True),
        ]


def test_a_file_of_another_kind_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "x.pdf").write_text("")
    with extractor() as extract, pytest.raises(ValueError, match=r"x\.pdf is neither"):
        list(read_items(tmp_path / "x.pdf", {}, extract))
    with pytest.raises(ValueError, match="no file matches"):
        matching(["*.nothing"], tmp_path)


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"not json", "unreadable"),
        (b"[1]", "unreadable"),
        (b'{"a":' * 60_000, "unreadable"),
        (b'{"text": ["a"], "date": "2019-05-02"}', "unreadable"),
        (b'{"text": "a", "url": 7}', "unreadable"),
        (b'{"text": "caf\xe9"}', "garbled"),
        (b'{"text": null}', "ok"),
    ],
)
def test_a_line_that_is_no_article_is_counted_with_its_place_and_the_rest_is_read(
    tmp_path: Path, line: bytes, status: str
) -> None:
    good = json.dumps({"text": prose(1), "date": "2019-05-02"}).encode()
    (tmp_path / "y.jsonl").write_bytes(b"\n".join([good, line, good]))
    with extractor() as extract:
        items = list(read_items(tmp_path / "y.jsonl", {}, extract))
    assert [item.status for item in items] == ["ok", status, "ok"]
    assert (items[1].reason is None) == (status == "ok")
    assert len(items[1].reason or "") < 300
    notes = unplaced(items)
    assert len(notes) == 1
    assert "y.jsonl:2" in notes[0]


def test_a_packed_file_without_its_end_gives_what_it_holds_and_says_where_it_ends(tmp_path: Path) -> None:
    lines = b"".join(json.dumps({"text": prose(n), "date": "2019-05-02"}).encode() + b"\n" for n in range(200))
    (tmp_path / "y.jsonl.gz").write_bytes(gzip.compress(lines)[:-500])
    (tmp_path / "z.parquet").write_bytes(b"PAR1 and no more")
    with extractor() as extract:
        items = list(read_items(tmp_path / "y.jsonl.gz", {}, extract))
        damaged = list(read_items(tmp_path / "z.parquet", {}, extract))
    assert sum(item.status == "ok" for item in items) > 100
    assert items[-1].status == "truncated"
    assert [item.status for item in damaged] == ["unreadable"]


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, "ok"),
        ({"published_on": None}, "undated"),
        ({"published_on": date(2019, 5, 11), "captured_on": date(2019, 5, 10)}, "misdated"),
        ({"published_on": date(2019, 5, 10), "captured_on": date(2019, 5, 10)}, "ok"),
        ({"stated_on": date(2019, 4, 9)}, "ok"),
        ({"stated_on": date(2019, 4, 8)}, "misdated"),
        ({"stated_on": date(2019, 6, 10)}, "ok"),
        ({"stated_on": date(2019, 6, 11)}, "misdated"),
        ({"text": " "}, "empty"),
        ({"text": prose(1, 19)}, "too_short"),
        ({"text": prose(1, 20)}, "ok"),
        ({"status": "truncated", "reason": "cut", "text": ""}, "truncated"),
    ],
)
def test_the_status_of_an_article_at_the_edges_of_its_rules(changes: dict[str, object], status: str) -> None:
    article = replace(item(1), **{"stated_on": date(2019, 5, 10), **changes})  # type: ignore[arg-type]
    found = sample([article], [MAY, JUNE, date(2019, 4, 1)], RULES)
    assert [version.status for version in found] == [status]


@pytest.mark.parametrize(("shared", "status"), [(36, "near_duplicate"), (35, "ok")])
def test_a_near_copy_shares_four_fifths_of_its_shingles(shared: int, status: str) -> None:
    words = [f"plain{n}" for n in range(44)]
    changed = " ".join([*words[: shared + 4], *(f"other{n}" for n in range(44 - shared - 4))])
    plain = " ".join(words)
    assert (jaccard(shingles(plain), shingles(changed)) >= 0.8) == (status == "near_duplicate")
    found = by_name([item(1, date(2019, 5, 1), plain), item(2, date(2019, 5, 2), changed)], RULES)
    assert found["2"][0] == status
