"""A git repository as versioned documents: each file as it stood on the default branch at each snapshot.

The claim: one log of the branch's first parents, with raw changes and renames, tells every file's state at every
instant; contents are then read by their blob ids, each once. A file keeps, as its topic, the first path it had in the
window, so that a rename does not break its series and a later month does not rename it.

What it cannot show: a file that was renamed and rewritten in one commit beyond the similarity asked for counts as
deleted and new; where a commit bears a wrong, later date than its successors, the months between keep the text
before it. Running git is `resources.spans.git_repositories`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate

from strandline.spans.commoncrawl import BYTE_ORDER_MARKS, REPLACED_SHARE, decode

CLEANER = "git-2"
"""Name and version of the reading of files; a change of it makes stored texts be read anew."""
RECORD = "\x1e"
"""ASCII's record separator, which git's log format lets us put before each commit."""
LOG_FORMAT = f"--format={RECORD}%H%x00%ct%x00"
"""Of each commit its id and its committer's time; the raw changes follow."""
BEGINNING = re.compile(RECORD + r"(?=[0-9a-f]{40,64}\0-?\d+\0)")
"""Where a commit begins: a path may hold the separator itself, but no id and time after it."""
REGULAR = frozenset({"100644", "100755", "100664"})
"""Git's modes of plain files (100664 in old repositories); links and submodules hold no text of their own."""
POINTER = "version https://git-lfs.github.com/spec/"
"""How a file begins that git-lfs keeps elsewhere, by its specification."""
CLOCK_SKEW = timedelta(days=1)
"""How far two clocks may differ: the slack that git itself allows where it walks a history by dates."""
BINARY_HEAD = 8000
"""Bytes in which a zero byte makes a file binary: the rule of git's own diff."""
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f]")
"""Characters that texts do not hold: control codes but for blanks and ends of lines and pages."""
WIDE_SHARE = 0.3
"""Share of zero bytes, all at even or all at odd places, from which a file without a mark is tried as UTF-16: text in
Latin letters has about half, and packed data has them at both."""


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
    """The arguments of the one log that tells all states of the present folder, oldest commit first."""
    return (
        "log", "--first-parent", "--reverse", "--diff-merges=first-parent", "--raw", "-z", "--no-abbrev", "--root",
        f"--find-renames={similarity}%", "-l2000", "--no-color", "--no-ext-diff", "--no-textconv",
        "--no-show-signature", "--relative",
        LOG_FORMAT, branch, "--",
    )  # fmt: skip


def parse_log(output: str) -> list[Commit]:
    """The commits of that log's output. Raises ValueError where a record is not of its form."""
    return [_commit(record) for record in BEGINNING.split(output)[1:]]


def instants_of(commits: Sequence[Commit], now: datetime) -> list[datetime]:
    """When each commit can be said to have been made, in the branch's order: never before a commit that it follows.

    Clocks run wrong. A date up to `CLOCK_SKEW` before that of an earlier commit counts as that one's; a date further
    back, or after `now`, says nothing, and the commit counts as made with the next one whose date can be right. So no
    text stands in a month before it was written.
    """
    earliest = datetime.min.replace(tzinfo=UTC)
    newest, told = earliest, list[datetime | None]()
    for commit in commits:
        told.append(max(newest, commit.at) if newest - commit.at <= CLOCK_SKEW and commit.at <= now else None)
        newest = max(newest, told[-1] or newest)
    for n in reversed(range(len(told) - 1)):
        told[n] = told[n] or told[n + 1]
    untold = now if newest == earliest else newest
    return list(accumulate((at or untold for at in told), max))


def states(
    commits: Sequence[Commit],
    instants: Sequence[datetime],
    patterns: Iterable[str],
    exclude: Iterable[str] = (),
    now: datetime | None = None,
) -> list[dict[str, FileState]]:
    """For each instant (ascending) the matching files by topic.

    An instant holds the state after the last commit that was made at or before it, by `instants_of` (`now` is the
    present unless given). A topic is the path that a file had at the first of the instants at which it was there; two
    files never share one.
    """
    wanted, unwanted = matcher(patterns), matcher(exclude)
    made = instants_of(commits, now or datetime.now(UTC))
    ends = [bisect_right(made, instant) for instant in instants]
    tree, names = _Tree(), _Names()
    shots: list[dict[str, FileState]] = []
    done = 0
    for end in ends:
        for commit, at in zip(commits[done:end], made[done:end], strict=True):
            tree.apply(commit, at)
        done = max(done, end)
        there = sorted(path for path in tree.files if wanted(path) and not unwanted(path))
        shots.append({names.topic(path, tree.births[path]): tree.files[path] for path in there})
    return shots


@dataclass(frozen=True)
class FileText:
    """What a file's bytes came to; `replaced_share` is the share of characters that could not be read."""

    status: str
    reason: str | None = None
    text: str | None = None
    replaced_share: float | None = None


def text_of(blob: bytes) -> FileText:
    """A file as text: UTF-8, or a marked or evident UTF-16.

    Binary, empty and pointer files have no text, nor have those in another encoding or in which more than
    `REPLACED_SHARE` of the characters cannot be read (`garbled`).
    """
    text, share = _read(blob)
    if "\0" in text[:BINARY_HEAD]:
        return FileText("binary", "the file is binary")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if text.startswith(POINTER):
        return FileText("pointer", "the file is a pointer to a large file kept elsewhere")
    if not text.strip():
        return FileText("blank", "the file is empty")
    if share > REPLACED_SHARE:
        what = "the file is not UTF-8" if share == 1 else f"{share:.1%} of the characters cannot be read as UTF-8"
        return FileText("garbled", what, replaced_share=share)
    return FileText("ok", None, text, share)


def parse_batch(output: bytes) -> dict[str, bytes | None]:
    """The contents in the output of `git cat-file --batch`, by object id; None for those that git does not have.

    What is no whole content of a file (an answer that is cut short, an object of another kind) is left out.
    """
    contents: dict[str, bytes | None] = {}
    place = 0
    while (end := output.find(b"\n", place)) >= 0:
        name, *rest = output[place:end].decode("ascii", "replace").split(" ")
        place = end + 1
        if rest == ["missing"]:
            contents[name] = None
        if len(rest) != 2 or not rest[1].isdecimal():
            continue
        content = output[place : place + int(rest[1])]
        place += int(rest[1]) + 1
        if rest[0] == "blob" and len(content) == int(rest[1]):
            contents[name] = content
    return contents


def _read(blob: bytes) -> tuple[str, float]:
    """Text, and the share of characters that cannot be read as UTF-8: 1 where its letters are mostly of another
    encoding, which git does not name and short files do not tell."""
    if (wide := _wide(blob)) is not None:
        return wide, 0.0
    if blob.startswith(tuple(mark for mark, _ in BYTE_ORDER_MARKS)):
        text, _, share = decode(blob)
        return text, share
    text = blob.decode("utf-8", "replace")
    if _is_utf8(blob):
        return text, 0.0
    bad, beyond_ascii = text.count("\ufffd"), sum(character > "\x7f" for character in text)
    return text, bad / len(text) if bad < beyond_ascii - bad else 1.0


def _is_utf8(blob: bytes) -> bool:
    try:
        blob.decode()
    except UnicodeDecodeError:
        return False
    return True


def _wide(blob: bytes) -> str | None:
    """UTF-16 without a mark, told by where its zero bytes stand and that it holds no control characters; else None."""
    head = blob[:BINARY_HEAD]
    even, odd = head[::2].count(0), head[1::2].count(0)
    if not head or len(blob) % 2 or min(even, odd) or max(even, odd) < WIDE_SHARE * len(head):
        return None
    text = blob.decode("utf-16-le" if odd else "utf-16-be", "replace")
    return None if CONTROL.search(text) else text


def _commit(record: str) -> Commit:
    fields = record.split("\0", 2)
    name, stamp, changes = (*fields, "")[:3]
    return Commit(name, _instant(int(stamp)), tuple(_changes(changes.lstrip("\0\n").split("\0"))))


def _instant(seconds: int) -> datetime:
    """An instant; one that no calendar holds is the latest there is, which counts as unknown."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.max.replace(tzinfo=UTC)


def _changes(fields: Sequence[str]) -> list[FileChange]:
    """`:modes ids KIND`, then one path, or two for a rename or a copy. ValueError where the line is another."""
    changes, place = [], 0
    while place < len(fields) and fields[place].startswith(":"):
        head = fields[place].split(" ")
        two = len(head) == 5 and head[4][:1] in {"R", "C"}
        paths = fields[place + 1 : place + 2 + two]
        if len(head) != 5 or len(paths) != 1 + two:
            raise ValueError(f"git's log holds a change that is not understood: {' '.join(head)!r:.80}")
        changes.append(FileChange(head[4][0], head[1], head[3], paths[-1], paths[0] if two else None))
        place += 2 + two
    return changes


class _Tree:
    """The files of the branch at a commit. `births` numbers each file from its first commit, across renames.

    A file deleted and later added again under the same path keeps its number.
    """

    def __init__(self) -> None:
        self.files: dict[str, FileState] = {}
        self.births: dict[str, int] = {}
        self._graves: dict[str, int] = {}
        self._born = 0

    def apply(self, commit: Commit, at: datetime) -> None:
        """Bring the tree from before a commit, made at that instant, to after it.

        Removals come first, so that two paths may be swapped.
        """
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
                self.files[change.path] = FileState(change.path, change.blob, commit.commit, at)

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


def matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether a path fits one of the patterns: `*` and `?` stay within a folder, `**` crosses folders, case counts."""
    expressions = [re.compile(_expression(pattern)) for pattern in patterns]
    return lambda path: any(expression.fullmatch(path) for expression in expressions)


def _expression(pattern: str) -> str:
    """A path pattern as a regular expression; `**/` also stands for no folder at all."""
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    meaning = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(meaning.get(piece, re.escape(piece)) for piece in pieces)
