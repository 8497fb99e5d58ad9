"""READMEs: the release in force, metadata in all its shapes, wheels read from their end."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.network.http import Http, Limits
from resources.spans.package_readmes import ReadmeSource
from resources.spans.sandbox import SandboxedFunction
from strandline.spans import Span, readme
from strandline.spans.months import month_range
from strandline.spans.readme import NoReadmeError, Release
from strandline.spans.selection import Known
from tests.fakes.web import Answer, Asked, WebServer, json_answer


def release(version: str, day: str | None, yanked: bool = False) -> Release:
    return Release(version, datetime.fromisoformat(day).replace(tzinfo=UTC) if day else None, yanked)


RELEASES = [
    release("1.0", "2020-01-10"), release("2.0rc1", "2020-02-10"), release("2.0", "2020-03-10"),
    release("1.0.1", "2020-04-10"), release("2.1", "2020-05-10", yanked=True), release("2004d", "2020-05-11"),
    release("3.0", None), release("1!0.1", "2020-06-10"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("day", "version"),
    [
        ("2020-01-01", None),
        ("2020-01-10", "1.0"),
        ("2020-03-01", "1.0"),
        ("2020-04-30", "2.0"),
        ("2020-06-01", "2.0"),
        ("2020-07-01", "1!0.1"),
    ],
)
def test_in_force_is_the_highest_stable_version_that_an_installer_could_have_had(day: str, version: str | None) -> None:
    found = readme.release_in_force(RELEASES, datetime.fromisoformat(day).replace(tzinfo=UTC))
    assert (found and found.version) == version
    assert readme.release_in_force(RELEASES[::-1], datetime.fromisoformat(day).replace(tzinfo=UTC)) == found


def test_a_package_with_only_pre_releases_has_its_highest_in_force() -> None:
    early = [release("0.1a1", "2020-01-01"), release("0.1a2", "2020-01-02"), release("not a version", "2020-01-03")]
    found = readme.release_in_force(early, datetime(2020, 2, 1, tzinfo=UTC))
    assert found is not None
    assert found.version == "0.1a2"


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ("Metadata-Version: 2.1\nName: a\nVersion: 1\n\n# Title\n\nBody é\n", "# Title\n\nBody é"),
        ("Metadata-Version: 2.1\r\nName: a\r\nVersion: 1\r\n\r\nBody\r\nmore\r\n", "Body\r\nmore"),
        ("Metadata-Version: 1\nName: a\nDescription: Title\n        \n        Body\nPlatform: x\n", "Title\n\nBody"),
        ("Metadata-Version: 1.0\nName: a\nVersion: 1\nDescription: UNKNOWN\n", None),
        ("Metadata-Version: 2.1\nName: a\nVersion: 1\n\n", None),
    ],
)  # fmt: skip
def test_the_description_is_found_in_the_body_or_the_header(metadata: str, text: str | None) -> None:
    found = readme.readme_of(metadata.encode())
    assert (found and found.replace("\r\n", "\n")) == (text and text.replace("\r\n", "\n"))


def test_what_is_no_metadata_is_refused() -> None:
    with pytest.raises(ValueError, match="no project"):
        readme.readme_of(b"<html>not found</html>")


def test_badges_images_comments_and_wrappers_go_and_prose_stays() -> None:
    raw = (
        '<p align="center"><img src="x.png"></p>\n<!-- a\ncomment -->\n'
        "[![build](https://a/b.svg)](https://a) ![logo](l.png)\n# Name\n\nDo [this](https://b) with `code`.\n\n\n\n"
        "[build]: https://a/b.svg\n"
    )
    assert readme.clean(raw) == "# Name\n\nDo [this](https://b) with `code`."
    rst = ".. image:: https://x.svg\n   :target: https://x\n\n.. |a| image:: y.svg\n\n|a| |b|_\n\nName\n====\n"
    assert readme.clean(rst) == "Name\n===="


@given(st.text(max_size=200))
def test_cleaning_is_total_and_settles(text: str) -> None:
    once = readme.clean(text)
    assert readme.clean(once + "\n").strip() == once or len(readme.clean(once)) <= len(once)


def wheel(readme_text: str, padding: int = 0, files: int = 0, comment: bytes = b"") -> bytes:
    """A wheel whose METADATA stands before `files` further entries and after `padding` bytes of code."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as members:
        members.writestr(zipfile.ZipInfo("pkg/data.bin"), b"\x00\x01PK\x05\x06" * (padding // 6))
        members.writestr("pkg-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: pkg\nVersion: 1\n\n{readme_text}")
        for n in range(files):
            members.writestr(f"pkg/module_{n:06d}_with_a_long_name.py", "")
        members.comment = comment
    return archive.getvalue()


@pytest.mark.parametrize("comment", [b"", b"a comment with PK\x05\x06 in it"])
def test_a_members_place_is_read_from_the_end_of_the_archive(comment: bytes) -> None:
    whole = wheel("Hello", comment=comment)
    place = readme.archive_end(whole, len(whole))
    assert place is not None
    member = readme.metadata_member(whole[place[0] : place[0] + place[1]])
    assert member is not None
    assert readme.readme_of(readme.member_bytes(whole[member.offset :], member)) == "Hello"
    with pytest.raises(ValueError, match="packed bytes"):
        readme.member_bytes(whole[member.offset : member.offset + 40], member)


@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=6))
def test_a_damaged_wheel_gives_a_text_or_says_what_is_wrong(damage: list[tuple[float, int]]) -> None:
    whole = bytearray(wheel("Hello " * 50))
    for place, byte in damage:
        whole[int(place * len(whole))] = byte
    directory = readme.archive_end(bytes(whole), len(whole))
    member = directory and readme.metadata_member(bytes(whole[directory[0] : directory[0] + directory[1]]))
    if member:
        with suppress(ValueError):
            readme.readme_of(readme.member_bytes(bytes(whole[member.offset :]), member))


def test_what_does_not_end_like_an_archive_has_no_directory() -> None:
    assert readme.archive_end(b"<html>" * 100, 600) is None


class Index:
    """A package index on loopback. `ranges` False ignores range requests, as some mirrors do."""

    def __init__(self, files: dict[str, bytes], ranges: bool = True) -> None:
        self.files, self.ranges = files, ranges
        self.web: WebServer | None = None

    def __call__(self, asked: Asked) -> Answer:
        assert self.web is not None
        if asked.raw_path.startswith("/simple/"):
            name = asked.raw_path.split("/")[2]
            return self._page(name) if name == "pkg" else Answer(404, b"no such project")
        body = self.files.get(asked.raw_path.rpartition("/")[2])
        if body is None:
            return Answer(404)
        wanted = asked.headers.get("Range", "")
        if not (wanted and self.ranges):
            return Answer(200, body)
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start = max(0, len(body) - int(last)) if not first else int(first)
        end = len(body) - 1 if not first else min(int(last), len(body) - 1)
        return Answer(206, body[start : end + 1], {"Content-Range": f"bytes {start}-{end}/{len(body)}"})

    def _page(self, name: str) -> Answer:
        assert self.web is not None
        files = [
            {
                "filename": file,
                "url": f"{self.web.url}/files/{file}",
                "hashes": {"sha256": f"{n:064d}"},
                "upload-time": f"2020-{n:02d}-05T00:00:00Z",
                "yanked": False,
                "size": len(body),
                "core-metadata": f"{file}.metadata" in self.files,
            }
            for n, (file, body) in enumerate(self.files.items(), 1)
            if not file.endswith(".metadata")
        ]
        versions = [file["filename"] for file in files]
        return json_answer({"meta": {"api-version": "1.1"}, "name": name, "versions": versions, "files": files})


def versions(index: Index, folder: Path, topics: tuple[str, ...] = ("pkg",)) -> Iterator[tuple[str, str, str | None]]:
    with WebServer(index) as web, Http(folder, contact="a@example.org", limits=Limits(attempts=2, backoff=0)) as http:
        index.web = web
        options = {"index": web.url + "/simple"}
        span = Span(
            "readme",
            "readme",
            "panel",
            month_range(date(2020, 1, 1), date(2020, 5, 1)),
            512,
            topics=topics,
            options=options,
        )
        for batch in ReadmeSource(http, folder).versions(span, span.months, Known()):
            yield from ((version.status, str(version.revision), version.text) for version in batch)
        index.asked = [asked.raw_path for asked in web.asked]  # type: ignore[attr-defined]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_readme_is_read_from_a_wheel_wherever_its_metadata_stands(tmp_path: Path, ranges: bool) -> None:
    files = {
        "pkg-1.0-py3-none-any.whl": wheel("First"),
        "pkg-1.1-py3-none-any.whl": wheel("Second", padding=200_000),
        "pkg-1.2-py3-none-any.whl": wheel("Third", files=3_000),
    }
    found = list(versions(Index(files, ranges), tmp_path))
    assert found == [
        ("not_created", "None", None),
        ("ok", "1.0", "First"),
        ("ok", "1.1", "Second"),
        ("ok", "1.2", "Third"),
        ("ok", "1.2", "Third"),
    ]


def test_a_readme_that_only_names_another_file_is_a_redirect_and_no_text(tmp_path: Path) -> None:
    files = {
        "pkg-1.0-py3-none-any.whl": wheel("../README.md"),
        "pkg-1.1-py3-none-any.whl": wheel("See ../README.md for more."),
    }
    found = list(versions(Index(files), tmp_path))
    assert found[1] == ("redirect", "1.0", None)
    assert found[2] == ("ok", "1.1", "See ../README.md for more.")


def test_served_metadata_is_preferred_and_a_broken_wheel_is_a_row_with_its_reason(tmp_path: Path) -> None:
    files = {
        "pkg-1.0-py3-none-any.whl": b"never read",
        "pkg-1.0-py3-none-any.whl.metadata": b"Metadata-Version: 2.1\nName: pkg\nVersion: 1\n\nServed",
        "pkg-1.1-py3-none-any.whl": b"not a wheel at all",
    }
    found = list(versions(Index(files), tmp_path))
    assert found[1] == ("ok", "1.0", "Served")
    assert found[3] == ("unreadable", "1.1", None)


def source_archive(member: str, text: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        info = tarfile.TarInfo(member)
        info.size = len(text)
        archive.addfile(info, io.BytesIO(text.encode()))
    return packed.getvalue()


def test_a_source_archive_is_read_and_a_damaged_one_is_a_row_with_its_reason(tmp_path: Path) -> None:
    whole = source_archive("pkg-1.0/PKG-INFO", "Metadata-Version: 2.1\nName: pkg\nVersion: 1\n\nPacked")
    files = {
        "pkg-1.0.tar.gz": whole,
        "pkg-1.1.tar.gz": whole[: len(whole) // 2],
        "pkg-1.2.tar.gz": b"<html>not an archive</html>",
        "pkg-1.3.tar.gz": gzip.compress(b"no archive either" * 100),
    }
    found = list(versions(Index(files), tmp_path))
    assert found == [
        ("not_created", "None", None),
        ("ok", "1.0", "Packed"),
        ("unreadable", "1.1", None),
        ("unreadable", "1.2", None),
        ("unreadable", "1.3", None),
    ]


@pytest.mark.parametrize(
    "page",
    [
        {},
        [],
        {"files": "none"},
        {"files": [{"filename": "x"}]},
        {"meta": {"api-version": "9.0"}, "name": "x", "files": []},
    ],
)
def test_what_is_no_project_page_is_refused(page: Any) -> None:
    with pytest.raises(ValueError, match=r"project page|validation error"):
        readme.parse_index(page)


def test_an_unknown_package_is_missing_and_does_not_fail_the_others(tmp_path: Path) -> None:
    found = list(versions(Index({"pkg-1.0-py3-none-any.whl": wheel("Text")}), tmp_path, ("absent", "pkg")))
    assert [status for status, _, _ in found] == ["not_created"] + ["ok"] * 4 + ["missing"] * 5


def test_an_index_that_has_none_of_the_packages_is_no_proof_that_they_do_not_exist(tmp_path: Path) -> None:
    found = list(versions(Index({}), tmp_path, ("one", "other")))
    assert [status for status, _, _ in found] == ["failed"] * 10


def test_two_spellings_of_one_package_are_one_document(tmp_path: Path) -> None:
    index = Index({"pkg-1.0-py3-none-any.whl": wheel("Text")})
    found = list(versions(index, tmp_path, ("PKG", "pkg")))
    assert [status for status, _, _ in found] == ["not_created", *["ok"] * 4, *["duplicate"] * 5]


def test_each_release_is_read_once_and_never_again(tmp_path: Path) -> None:
    index = Index({"pkg-1.0-py3-none-any.whl": wheel("Text")})
    list(versions(index, tmp_path))
    assert index.asked == ["/simple/pkg/", "/files/pkg-1.0-py3-none-any.whl"]  # type: ignore[attr-defined]
    list(versions(index, tmp_path))
    assert index.asked == ["/simple/pkg/"]  # type: ignore[attr-defined]


@given(st.text(alphabet=" \t\n.|:imageA-><!p/br[]()", max_size=120))
def test_cleaning_in_linear_time_drops_what_the_plain_patterns_drop(text: str) -> None:
    comment = re.compile(r"<!--.*?-->", re.DOTALL)
    image = re.compile(r"^\s*\.\.\s+(?:\|[^|]+\|\s+)?image::[^\n]*\n(?:[ \t]+:[^\n]*\n?)*", re.MULTILINE)
    assert readme._without_comments(text) == comment.sub("", text)
    assert readme._without_rst_images(text) == image.sub("", text)
    framed = f"one\n \n\n.. image:: x\n   :alt: y\n{text}\n\n.. |b| image:: z\ntwo{text}"
    assert readme._without_rst_images(framed) == image.sub("", framed)


@pytest.mark.parametrize("hostile", ["\n", " \n", "<!--", "<p ", ".. ", "[a\n", "\t.", "|a", "[![", "![a]("])
def test_a_hostile_readme_takes_no_longer_than_its_budget(hostile: str) -> None:
    text = hostile * (160_000 // len(hostile))
    began = time.process_time()
    with SandboxedFunction("strandline.spans.readme:clean", 1.0) as run:
        outcome = run.call(text)
    assert outcome.status in {"ok", "timeout"}
    assert time.process_time() - began < 5
    if hostile.isspace() or hostile in ("<!--", "<p ", ".. ", "\t.", "|a"):
        assert outcome.status == "ok"


@pytest.mark.parametrize(
    ("text", "prose"),
    [
        ("one<br>two", "one two"),
        ("<p>one</p><p>two</p>", "one two"),
        ("<p>one</p>\n\n<p>two</p>", "one\n\ntwo"),
        ("one <br> two", "one  two"),
        ("one<br>\ntwo", "one\ntwo"),
        ("a<b>b</b>c", "abc"),
    ],
)
def test_tags_that_end_a_line_glue_no_words(text: str, prose: str) -> None:
    assert readme.clean(text) == prose


HEAD = "Metadata-Version: 2.1\nName: a\nVersion: 1\n"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("x" * 65_536, "truncated"),
        ("x" * 65_535, "truncated"),
        ("x" * 65_536 + "\n", "truncated"),
        ("é" * 32_768, "truncated"),
        ("x" * 65_537, None),
        ("x" * 65_534, None),
        ("ERROR: No README data found!", "no_text"),
        ("No README data found!\n", "no_text"),
        ("  The author of this package has not provided a project description ", "no_text"),
        ("TODO", "no_text"),
        ("No README data found! But here is one.", None),
    ],
)
def test_what_is_no_whole_readme_has_a_word_for_it(body: str, status: str | None) -> None:
    if status is None:
        assert readme.readme_of(f"{HEAD}\n{body}".encode()) == body.strip()
        return
    with pytest.raises(NoReadmeError) as told:
        readme.readme_of(f"{HEAD}\n{body}".encode())
    assert told.value.status == status


def test_a_readme_in_another_encoding_is_read_or_garbled_and_never_full_of_replacements() -> None:
    with pytest.raises(NoReadmeError, match="cannot be read"):
        readme.readme_of(HEAD.encode() + b"\n" + b"\x81\x8d\x8f\x90\x9d\xff\xfe" * 50)


def test_a_package_whose_files_bear_no_dates_is_undated_and_not_said_to_be_absent() -> None:
    day = datetime(2020, 2, 1, tzinfo=UTC)
    dated, undated = release("1.0", "2020-03-01"), release("1.0", None)
    assert readme.why_none([dated], day)[0] == "not_created"
    assert readme.why_none([undated], day)[0] == "undated"
    assert readme.why_none([dated, undated], day)[0] == "undated"
    assert readme.why_none([release("1.0", "2020-02-01", yanked=True)], day)[0] == "deleted"
    assert readme.why_none([release("2004d", "2020-01-01")], day)[0] == "deleted"
    assert readme.why_none([], day)[0] == "missing"


@pytest.mark.parametrize(
    ("field", "odd"),
    [
        ("upload-time", None), ("upload-time", 7), ("upload-time", "soon"), ("upload-time", "1970-01-01T00:00:00Z"),
        ("upload-time", "0001-01-01T00:00:00+14:00"), ("hashes", None), ("hashes", {"sha256": 7}), ("size", "12"),
        ("yanked", None), ("core-metadata", {"sha256": 7}), ("core-metadata", "yes"), ("filename", None), ("url", 7),
    ],
)  # fmt: skip
def test_one_odd_file_of_a_project_page_does_not_hide_the_others(field: str, odd: Any) -> None:
    good = {
        "filename": "a-1.0.tar.gz", "url": "https://x.test/a", "hashes": {}, "upload-time": "2020-01-05T00:00:00Z",
    }  # fmt: skip
    bad = {**good, "filename": "a-1.1.tar.gz", field: odd}
    page = {"meta": {"api-version": "1.1"}, "name": "a", "files": [bad, good, None, "x"]}
    found = {item.version: item for item in readme.parse_index(page)}
    assert found["1.0"].uploaded_at == datetime(2020, 1, 5, tzinfo=UTC)
    if field == "upload-time":
        assert found["1.1"].uploaded_at is None


def test_a_file_that_was_added_to_a_release_later_says_nothing_of_the_months_before(tmp_path: Path) -> None:
    files = {
        "pkg-1.0.tar.gz": source_archive("pkg-1.0/PKG-INFO", f"{HEAD}\nFirst"),
        "pkg-0.9.tar.gz": source_archive("pkg-0.9/PKG-INFO", f"{HEAD}\nOld"),
        "pkg-1.0-py3-none-any.whl": wheel("Later"),
    }
    found = list(versions(Index(files), tmp_path))
    assert [text for _, _, text in found] == [None, "First", "First", "Later", "Later"]


def test_packed_zeros_are_refused_before_they_fill_the_memory() -> None:
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(bytes(readme.LARGEST_METADATA + 1)) + packer.flush()
    local = b"PK\x03\x04" + bytes(26) + packed
    with pytest.raises(ValueError, match="larger than"):
        readme.member_bytes(local, readme.Member("METADATA", 0, len(packed), 8))
