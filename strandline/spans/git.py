"""A git repository as versioned documents: each file as it stood on the default branch at each snapshot.

The claim: one log of the branch's first parents, with raw changes and renames, tells every file's state at every
instant; contents are then read by their blob ids, each once. A file keeps, as its topic, the first path it had in the
window, so that a rename does not break its series and a later month does not rename it.

What it cannot show: a file that was renamed and rewritten in one commit beyond the similarity asked for counts as
deleted and new. Running git is `resources.spans.git_repositories`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

CLEANER = "git-1"
RECORD = "\x1e"
LOG_FORMAT = f"--format={RECORD}%H%x00%ct%x00"
REGULAR = frozenset({"100644", "100755", "100664"})
POINTER = "version https://git-lfs.github.com/spec/"


@dataclass(frozen=True)
class FileChange:
    """One line of a raw diff: kind is A, M, D, R, C or T; `path` is the path afterwards, `before` the path it had."""

    kind: str
    mode: str
    blob: str
    path: str
    before: str | None = None


@dataclass(frozen=True)
class Commit:
    """A commit on the branch, with its committer's instant and what it changed against its first parent."""

    commit: str
    at: datetime
    changes: tuple[FileChange, ...]


@dataclass(frozen=True)
class FileState:
    """A file at a snapshot: under which path, with which content, since which commit."""

    path: str
    blob: str
    commit: str
    changed_at: datetime


def log_arguments(branch: str, similarity: int = 50) -> tuple[str, ...]:
    """The arguments of the one log that tells all states, oldest commit first."""
    return (
        "log", "--first-parent", "--reverse", "--diff-merges=first-parent", "--raw", "-z", "--no-abbrev", "--root",
        f"--find-renames={similarity}%", "-l2000", "--no-color", "--no-ext-diff", "--no-textconv",
        LOG_FORMAT, branch, "--",
    )  # fmt: skip


def parse_log(output: str) -> list[Commit]:
    """The commits of that log's output. Raises ValueError where a record is not of its form."""
    return [_commit(record) for record in output.split(RECORD)[1:]]


def states(
    commits: Sequence[Commit], instants: Sequence[datetime], patterns: Iterable[str], exclude: Iterable[str] = ()
) -> list[dict[str, FileState]]:
    """For each instant (ascending) the matching files by topic.

    An instant holds the state after the last commit, in the branch's order, that was made at or before it. A topic is
    the path that a file had at the first of the instants at which it was there; two files never share one.
    """
    wanted, unwanted = _matcher(patterns), _matcher(exclude)
    ends = [max((n for n, c in enumerate(commits, 1) if c.at <= instant), default=0) for instant in instants]
    tree, names = _Tree(), _Names()
    shots: list[dict[str, FileState]] = []
    done = 0
    for end in ends:
        for commit in commits[done:end]:
            tree.apply(commit)
        done = max(done, end)
        there = sorted(path for path in tree.files if wanted(path) and not unwanted(path))
        shots.append({names.topic(path, tree.births[path]): tree.files[path] for path in there})
    return shots


def matches(path: str, pattern: str) -> bool:
    """Whether a path fits a pattern: `*` and `?` stay within a folder, `**` crosses folders, case counts."""
    return re.fullmatch(_expression(pattern), path) is not None


def text_of(blob: bytes) -> tuple[str, str | None, str | None]:
    """A file's status, reason and text (UTF-8, bad bytes replaced); binary, empty and pointer files have no text."""
    if b"\x00" in blob[:8000]:
        return "binary", "the file is binary", None
    text = blob.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    if text.startswith(POINTER):
        return "pointer", "the file is a pointer to a large file kept elsewhere", None
    if not text.strip():
        return "blank", "the file is empty", None
    return "ok", None, text


def parse_batch(output: bytes) -> dict[str, bytes | None]:
    """The contents in the output of `git cat-file --batch`, by object id; None for those that are missing."""
    found: dict[str, bytes | None] = {}
    place = 0
    while place < len(output):
        end = output.index(b"\n", place)
        name, *rest = output[place:end].decode("ascii").split(" ")
        place = end + 1
        if rest[0] == "missing":
            found[name] = None
            continue
        size = int(rest[1])
        found[name] = output[place : place + size]
        place += size + 1
    return found


def _commit(record: str) -> Commit:
    name, stamp, changes = record.split("\0", 2)
    return Commit(name, datetime.fromtimestamp(int(stamp), UTC), tuple(_changes(changes.lstrip("\0\n").split("\0"))))


def _changes(fields: Sequence[str]) -> list[FileChange]:
    """`:modes ids KIND`, then one path, or two for a rename or a copy."""
    found, place = [], 0
    while place < len(fields) and fields[place].startswith(":"):
        _, mode, _, blob, kind = fields[place].split(" ")
        two = kind[0] in "RC"
        before = fields[place + 1] if two else None
        found.append(FileChange(kind[0], mode, blob, fields[place + 1 + two], before))
        place += 2 + two
    return found


class _Tree:
    """The files of the branch at a commit. `births` numbers each file from its first commit, across renames.

    A file deleted and later added again under the same path keeps its number.
    """

    def __init__(self) -> None:
        self.files: dict[str, FileState] = {}
        self.births: dict[str, int] = {}
        self._graves: dict[str, int] = {}
        self._born = 0

    def apply(self, commit: Commit) -> None:
        """Bring the tree from before a commit to after it; removals come first, so that two paths may be swapped."""
        moved = {
            c.before: self.births.get(c.before, 0) for c in commit.changes if c.kind == "R" and c.before is not None
        }
        for change in commit.changes:
            if change.kind == "R" and change.before is not None:
                self._remove(change.before, dead=False)
            elif change.kind == "D" or change.mode not in REGULAR:
                self._remove(change.path, dead=True)
        for change in commit.changes:
            if change.kind != "D" and change.mode in REGULAR:
                number = moved.get(change.before or "", 0) if change.kind == "R" else self.births.get(change.path, 0)
                self.births[change.path] = number or self._graves.pop(change.path, 0) or self._next()
                self.files[change.path] = FileState(change.path, change.blob, commit.commit, commit.at)

    def _remove(self, path: str, *, dead: bool) -> None:
        self.files.pop(path, None)
        number = self.births.pop(path, None)
        if dead and number:
            self._graves[path] = number

    def _next(self) -> int:
        self._born += 1
        return self._born


class _Names:
    """The topic of each file: the first path seen, made unique where an older file already had it."""

    def __init__(self) -> None:
        self._of: dict[int, str] = {}
        self._used: set[str] = set()

    def topic(self, path: str, birth: int) -> str:
        """The topic of the file with this birth number, which stands at `path` now."""
        if birth not in self._of:
            name = path if path not in self._used else f"{path} ({birth})"
            self._used.add(name)
            self._of[birth] = name
        return self._of[birth]


def _matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    expressions = [re.compile(_expression(pattern)) for pattern in patterns]
    return lambda path: any(expression.fullmatch(path) for expression in expressions)


def _expression(pattern: str) -> str:
    """A path pattern as a regular expression; `**/` also stands for no folder at all."""
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    meaning = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(meaning.get(piece, re.escape(piece)) for piece in pieces)
