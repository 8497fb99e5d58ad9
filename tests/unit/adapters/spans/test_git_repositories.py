"""A repository's log as data, and the git source on real repositories made here."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from resources.spans.git_repositories import GitSource, Repository
from strandline.spans import DeferredError, Span, Version, git
from strandline.spans.months import month_range
from strandline.spans.selection import Known

MONTHS = month_range(date(2020, 1, 1), date(2020, 6, 1))


class Made:
    """A repository to which commits are added at chosen instants."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch", "trunk")

    def git(self, *arguments: str, when: str = "2020-01-01") -> str:
        identity = {
            f"GIT_{role}_{what}": f"{role}@example.org"
            for role in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        dates = {"GIT_AUTHOR_DATE": f"{when}T00:00:00Z", "GIT_COMMITTER_DATE": f"{when}T00:00:00Z"}
        environment = {**os.environ, **identity, **dates, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", "-C", str(self.folder), *arguments], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    def commit(self, when: str, files: Mapping[str, str | bytes | None]) -> str:
        for name, content in files.items():
            path = self.folder / name
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", when, when=when)
        return self.git("rev-parse", "HEAD").strip()


def read(
    location: object, folder: Path, months: Sequence[date] = MONTHS, known: Known | None = None, **options: object
) -> list[Version]:
    span = Span("docs", "git", "panel", MONTHS, 512, options={"repository": str(location), **options})
    batches = GitSource(None, folder / "cache").versions(span, months, known or Known())
    return [version for batch in batches for version in batch]


def texts(versions: Sequence[Version], topic: str) -> list[str | None]:
    return [
        version.text if version.status == "ok" else version.status for version in versions if version.topic == topic
    ]


LONG = "".join(f"line {n}\n" for n in range(40))


@pytest.fixture
def made(tmp_path: Path) -> Made:
    repository = Made(tmp_path / "made")
    repository.commit("2019-12-20", {"docs/a.md": "a0", "docs/move.md": LONG, "src/x.py": "no", "top.md": "top"})
    repository.commit("2020-01-01", {"docs/a.md": "a1"})
    repository.commit("2020-01-20", {"docs/a.md": "a2", "docs/new page é.md": "n"})
    repository.git("mv", "docs/move.md", "docs/moved.md")
    repository.commit("2020-02-10", {"docs/moved.md": LONG + "one more\n"})
    repository.commit("2020-03-05", {"docs/a.md": None, "docs/move.md": "another file"})
    repository.commit("2020-04-05", {"docs/a.md": "a3", "docs/bin.md": b"\x00\x01", "docs/empty.md": " \n"})
    return repository


def test_files_are_as_they_stood_at_each_snapshot(made: Made, tmp_path: Path) -> None:
    found = read(made.folder, tmp_path)
    assert texts(found, "docs/a.md") == ["a1", "a2", "a2", "deleted", "a3", "a3"]
    assert texts(found, "docs/new page é.md") == ["not_created", "n", "n", "n", "n", "n"]
    assert texts(found, "top.md") == ["top"] * 6
    assert texts(found, "docs/bin.md")[-1] == "binary"
    assert texts(found, "docs/empty.md")[-1] == "blank"
    assert "src/x.py" not in {version.topic for version in found}


def test_a_renamed_file_keeps_its_topic_and_a_new_one_in_its_place_gets_its_own(made: Made, tmp_path: Path) -> None:
    found = read(made.folder, tmp_path)
    assert texts(found, "docs/move.md") == [LONG, LONG, *[LONG + "one more\n"] * 4]
    assert [v.document for v in found if v.topic == "docs/move.md"] == ["docs/move.md"] * 2 + ["docs/moved.md"] * 4
    others = {version.topic for version in found} - {"docs/a.md", "docs/move.md", "top.md", "docs/new page é.md"}
    second = next(topic for topic in others if topic.startswith("docs/move.md ("))
    assert texts(found, second) == ["not_created"] * 3 + ["another file"] * 3


def test_the_revision_is_the_commit_that_last_changed_the_file(made: Made, tmp_path: Path) -> None:
    log = made.git("log", "--format=%H %cI", "--", "docs/a.md").split("\n")
    newest = next(version for version in read(made.folder, tmp_path)[::-1] if version.topic == "docs/a.md")
    assert newest.revision == log[0].split()[0]
    assert newest.revised_at == datetime(2020, 4, 5, tzinfo=UTC)


def test_patterns_choose_files_and_a_single_star_stays_in_its_folder(made: Made, tmp_path: Path) -> None:
    topics = {
        version.topic for version in read(made.folder, tmp_path, patterns=["*.md", "src/**"], exclude=["**/y.py"])
    }
    assert topics == {"top.md", "src/x.py"}


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        ("a.md", "**/*.md", True),
        ("x/y/a.md", "**/*.md", True),
        ("x/a.md", "*.md", False),
        ("x/a.md", "x/?.md", True),
        ("x/a.mdx", "**/*.md", False),
        ("a+b.md", "a+b.md", True),
        ("x/y", "x/**", True),
    ],
)
def test_what_a_pattern_fits(path: str, pattern: str, fits: bool) -> None:
    assert git.matcher([pattern])(path) == fits


def test_merges_count_when_they_reach_the_branch(made: Made, tmp_path: Path) -> None:
    made.git("checkout", "--quiet", "-b", "side", "HEAD~3")
    made.commit("2020-02-20", {"side.md": "from the side"})
    made.git("checkout", "--quiet", "trunk")
    made.git("merge", "--quiet", "--no-ff", "-m", "merge", "side", when="2020-05-15")
    assert texts(read(made.folder, tmp_path), "side.md") == ["not_created"] * 5 + ["from the side"]


def test_a_remote_is_cloned_without_contents_and_only_those_needed_are_fetched(made: Made, tmp_path: Path) -> None:
    made.git("config", "uploadpack.allowFilter", "true")
    made.git("config", "uploadpack.allowAnySHA1InWant", "true")
    address = f"file://{made.folder}"
    assert read(address, tmp_path) == read(made.folder, tmp_path)
    clone = Repository(address, tmp_path / "cache")
    missing = subprocess.run(
        ["git", "-C", str(clone._folder), "rev-list", "--objects", "--missing=print", "refs/strandline/head"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    unread = made.git("rev-parse", "HEAD:src/x.py").strip()
    assert f"?{unread}" in missing.split()


def test_new_commits_of_a_remote_are_seen_by_the_next_run(made: Made, tmp_path: Path) -> None:
    address = f"file://{made.folder}"
    read(address, tmp_path)
    made.commit("2020-05-20", {"docs/a.md": "a4"})
    assert texts(read(address, tmp_path), "docs/a.md")[-1] == "a4"


def test_known_contents_are_not_read_again(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read(made.folder, tmp_path, months=MONTHS[:5])
    asked: list[str] = []
    plain = Repository.blobs
    monkeypatch.setattr(Repository, "blobs", lambda self, names: (asked.extend(names), plain(self, names))[1])
    again = read(made.folder, tmp_path, months=MONTHS[5:], known=Known.of(first))
    assert asked == []
    held = {v.topic: (v.status, v.text_sha256) for v in first if v.month == MONTHS[4]}
    assert {v.topic: (v.status, v.text_sha256) for v in again} == held


def test_two_files_swapping_names_keep_their_series(tmp_path: Path) -> None:
    made = Made(tmp_path / "made")
    other = "".join(f"other {n}\n" for n in range(40))
    made.commit("2019-12-01", {"a.md": LONG, "b.md": other})
    made.commit("2020-01-10", {"a.md": None, "b.md": None, "c.md": LONG, "d.md": other})
    made.commit("2020-02-10", {"c.md": None, "d.md": None, "a.md": other, "b.md": LONG})
    found = read(made.folder, tmp_path)
    assert texts(found, "a.md") == [LONG] * 6
    assert texts(found, "b.md") == [other] * 6


def test_a_path_that_is_no_utf_8_has_its_bytes_escaped(tmp_path: Path) -> None:
    made = Made(tmp_path / "odd")
    (made.folder / os.fsdecode(b"caf\xe9.md")).write_bytes(b"text")
    made.commit("2019-12-20", {"plain.md": "other"})
    found = read(made.folder, tmp_path, MONTHS[:1])
    assert [(version.topic, version.text) for version in found] == [("caf\\xe9.md", "text"), ("plain.md", "other")]
    assert all(version.topic.encode() for version in found)


def test_an_unreachable_repository_defers_and_says_why(tmp_path: Path) -> None:
    with pytest.raises(DeferredError, match="git clone"):
        read(f"file://{tmp_path}/nowhere", tmp_path)


def test_a_repository_that_looks_like_an_option_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no repository"):
        read("--upload-pack=touch", tmp_path)


def commit_of(name: str, at: datetime, blob: str, path: str = "a.md") -> git.Commit:
    return git.Commit(name, at, (git.FileChange("M", "100644", blob, path),))


def day(number: int, month: int = 1, year: int = 2020) -> datetime:
    return datetime(year, month, number, tzinfo=UTC)


def test_where_clocks_run_backwards_no_text_stands_before_one_that_it_follows() -> None:
    commits = [commit_of("c1", day(1), "b1"), commit_of("c2", day(20), "b2"), commit_of("c3", day(5), "b3")]
    shots = git.states(commits, [day(2), day(10), day(19), day(20)], ["*.md"])
    assert [shot["a.md"].blob for shot in shots] == ["b1", "b1", "b1", "b3"]
    assert shots[-1]["a.md"].changed_at == day(20)


@pytest.mark.parametrize(
    ("dates", "made"),
    [
        ([], []),
        ([5, 5, 6], [5, 5, 6]),
        ([5, 4, 9], [5, 5, 9]),
        ([5, 3, 9], [5, 9, 9]),
        ([5, 3, 2, 9], [5, 9, 9, 9]),
        ([5, 9, 2], [5, 9, 9]),
        ([5, 31, 9], [5, 9, 9]),
        ([31], [30]),
        ([31, 31, 7], [7, 7, 7]),
    ],
)
def test_when_each_commit_counts_as_made_if_it_is_the_30th(dates: list[int], made: list[int]) -> None:
    commits = [commit_of(str(n), day(number), "b") for n, number in enumerate(dates)]
    assert git.instants_of(commits, day(30)) == [day(number) for number in made]


@pytest.mark.parametrize("wrong", [day(1, 1, 1970), day(1, 1, 2037), day(31, 12, 9999)])
def test_one_commit_with_an_impossible_date_moves_no_other(wrong: datetime) -> None:
    commits = [
        commit_of("c1", day(1), "b1"), commit_of("c2", wrong, "b2"), commit_of("c3", day(20), "b3"),
    ]  # fmt: skip
    shots = git.states(commits, [day(2), day(19), day(20), day(1, 2)], ["*.md"], now=day(1, 1, 2021))
    assert [shot["a.md"].blob for shot in shots] == ["b1", "b1", "b3", "b3"]
    made_at = git.instants_of(commits, day(1, 1, 2021))
    assert made_at == sorted(made_at)


def test_a_shallow_clone_defers_the_months_before_its_beginning_and_reads_the_others(
    made: Made, tmp_path: Path
) -> None:
    shallow = tmp_path / "shallow"
    made.git("clone", "--quiet", "--depth", "2", f"file://{made.folder}", str(shallow))
    source = GitSource(None, tmp_path / "cache")
    span = Span("docs", "git", "panel", MONTHS, 512, options={"repository": str(shallow)})
    found: list[Version] = []
    with pytest.raises(DeferredError, match="fetch --unshallow") as stopped:
        found.extend(version for batch in source.versions(span, MONTHS, Known()) for version in batch)
    assert stopped.value.months == frozenset(MONTHS[:3])
    assert {version.month for version in found} == set(MONTHS[3:])
    assert "not_created" not in {version.status for version in found if version.topic == "top.md"}
    late = read(shallow, tmp_path, months=MONTHS[4:])
    assert texts(late, "docs/a.md") == ["a3", "a3"]
    before = source.fingerprint(span)
    made.git("-C", str(shallow), "fetch", "--quiet", "--unshallow")
    assert before
    assert source.fingerprint(span) == ""
    assert read(shallow, tmp_path) == read(made.folder, tmp_path)


def test_a_remote_that_is_itself_shallow_is_seen(made: Made, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    made.git("clone", "--quiet", "--bare", "--depth", "2", f"file://{made.folder}", str(shallow))
    with pytest.raises(DeferredError, match="shallow"):
        read(f"file://{shallow}", tmp_path)


def test_a_content_that_a_partial_clone_lacks_is_fetched_again_and_not_said_to_be_lost(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.git("config", "uploadpack.allowFilter", "true")
    partial = tmp_path / "partial"
    made.git("clone", "--quiet", "--no-checkout", "--filter=blob:none", f"file://{made.folder}", str(partial))
    made.folder.rename(tmp_path / "gone")
    with pytest.raises(DeferredError, match="promisor remote"):
        read(partial, tmp_path)
    (tmp_path / "gone").rename(made.folder)
    monkeypatch.setattr(Repository, "blobs", lambda self, names: ((name, None) for name in names))
    assert {version.status for version in read(partial, tmp_path)} <= {"failed", "not_created", "deleted"}
    assert "missing" in {version.status for version in read(made.folder, tmp_path)}


def test_a_folder_of_a_repository_is_read_alone(made: Made, tmp_path: Path) -> None:
    found = read(made.folder / "docs", tmp_path, web="https://example.org/{path}")
    assert {version.topic for version in found} == {
        "a.md",
        "new page é.md",
        "bin.md",
        "empty.md",
        "move.md",
        "move.md (4)",
    }
    assert texts(found, "a.md") == ["a1", "a2", "a2", "deleted", "a3", "a3"]
    assert next(v.url for v in found if v.topic == "a.md" and v.url) == "https://example.org/docs/a.md"


def test_a_repository_under_the_users_home_is_found(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read("~/made", tmp_path) == read(made.folder, tmp_path)


def test_a_repository_without_any_fitting_file_says_so(made: Made, tmp_path: Path) -> None:
    with pytest.raises(DeferredError, match="no file of"):
        read(made.folder, tmp_path, patterns=["*.nothing"])


def test_variables_of_a_surrounding_git_command_do_not_change_what_is_read(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Made(tmp_path / "other")
    other.commit("2019-12-01", {"else.md": "other"})
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    assert "else.md" not in {version.topic for version in read(made.folder, tmp_path)}


@pytest.mark.parametrize(
    ("blob", "status", "text"),
    [
        ("née\r\n".encode(), "ok", "née\n"),
        ("\ufeffnée".encode(), "ok", "née"),
        ("“Café” – crème brûlée, déjà vu".encode("cp1252"), "garbled", None),
        ("An English text with one é in it. ".encode("latin-1") * 40, "garbled", None),
        ("née – text".encode("utf-16"), "ok", "née – text"),
        ("née – text".encode("utf-16-le"), "ok", "née – text"),
        ("née – text".encode("utf-16-be"), "ok", "née – text"),
        ("née – text".encode("utf-32"), "ok", "née – text"),
        (("é" * 150).encode() + b"\xff", "ok", "é" * 150 + "\ufffd"),
        (("é" * 50).encode() + b"\xff", "garbled", None),
        ("a \ufffd that stands in good UTF-8".encode(), "ok", "a \ufffd that stands in good UTF-8"),
        (b"\x00\x01", "binary", None),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "binary", None),
        (b"\x00" * 8, "binary", None),
        (b"x" * 7999 + b"\x00", "binary", None),
        (b"x" * 8000 + b"\x00", "ok", "x" * 8000 + "\x00"),
        (b"", "blank", None),
        (b"\xef\xbb\xbf \n", "blank", None),
        (git.POINTER.encode() + b"v1\noid sha256:0\n", "pointer", None),
    ],
)  # fmt: skip
def test_what_bytes_are_as_a_text(blob: bytes, status: str, text: str | None) -> None:
    found = git.text_of(blob)
    assert (found.status, found.text) == (status, text)
    assert (found.reason is None) == (status == "ok")


def test_odd_answers_of_git_lose_only_what_they_speak_of() -> None:
    whole = b"aa blob 3\nabc\nbb missing\ncc commit 2\nxy\ndd ambiguous\nee blob x\nff blob 5\nabc"
    assert git.parse_batch(whole) == {"aa": b"abc", "bb": None}
    assert git.parse_batch(b"") == {}


def test_a_path_that_holds_the_separator_ends_no_commit(tmp_path: Path) -> None:
    made = Made(tmp_path / "odd")
    made.commit("2019-12-20", {"a\x1eb.md": "text", "plain.md": "other"})
    made.commit("2019-12-21", {"plain.md": "later"})
    found = read(made.folder, tmp_path, MONTHS[:1])
    assert {version.topic: version.text for version in found} == {"a\x1eb.md": "text", "plain.md": "later"}


def test_git_is_quoted_whole_and_without_passwords(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(DeferredError, match="git rev-parse: fatal: not a git repository") as told:
        read(tmp_path / "plain", tmp_path)
    assert "\n" not in str(told.value)
    with pytest.raises(DeferredError) as refused:
        read("http://user:secret@127.0.0.1:9/x.git", tmp_path)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("fields", [":100644 100644 aa bb M", ":bad\0a.md", ":100644 100644 aa bb R100\0only one"])
def test_a_log_that_is_not_understood_is_an_error_with_words(fields: str) -> None:
    with pytest.raises(ValueError, match="not understood"):
        git.parse_log(f"\x1e{'a' * 40}\x001\x00\x00{fields}")


def test_a_commit_beyond_every_calendar_is_read() -> None:
    assert git.parse_log(f"\x1e{'a' * 40}\x0099999999999999\x00")[0].at.year == 9999


def test_the_home_of_nobody_is_a_mistake_in_words(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no user of that name"):
        read("~no-such-user-here/x", tmp_path)
