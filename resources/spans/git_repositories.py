"""Git repositories as a source of versioned documents: the `git` source.

A remote repository is cloned once without file contents (blobless) and brought up to date when a month is open; a local
one, or a folder of one, is read where it lies. Contents are read by object id, many at once. A clone without the
commits before some date (shallow) says nothing of the months before it. What the log means is `strandline.spans.git`.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path

from resources.places import rooted
from resources.spans.source import Source
from strandline.spans import DeferredError, Span, Version, git
from strandline.spans.git import FileState, FileText
from strandline.spans.months import snapshot_instant
from strandline.spans.selection import Known
from strandline.spans.settings import SourceKind

PATTERNS = ("**/*.md", "**/*.rst", "**/*.txt", "**/*.adoc")
"""The kinds of files that hold prose in most repositories."""
BLOBS_AT_ONCE = 500
"""Contents read by one git process: its start costs as much as some hundred small files, and memory holds them all."""
SECONDS = 3600
"""The longest that one git command may take: a blobless clone of the largest public histories takes minutes."""
SAID = 1000
"""Characters of git's own words that are kept: its longest advice has about 600."""
INHERITED = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE", "GIT_COMMON_DIR")
"""Variables by which a surrounding git command (a hook) would make ours read its repository instead."""
SIMILARITY = 50
"""Per cent of a file that a renamed one must still have: git's own default."""


class GitError(RuntimeError):
    """Git refused or failed; the message is its own."""


class Repository:
    """One repository, read through the git program. `branch` None is the repository's default branch."""

    def __init__(self, location: str, cache_dir: Path, branch: str | None = None) -> None:
        if location.startswith("-"):
            raise ValueError(f"{location!r} is no repository")
        self.location, self.branch = location, branch
        self.is_local = rooted(location).exists()
        name = sha256(location.encode()).hexdigest()[:24]
        self._folder = rooted(location) if self.is_local else cache_dir / "git" / f"{name}.git"

    def update(self) -> str:
        """Bring the clone up to date and name the commit to read from."""
        if self.is_local:
            return self._git("rev-parse", "--verify", f"{self.branch or 'HEAD'}^{{commit}}").decode().strip()
        if not self._folder.exists():
            self._refuse_shallow_origin()
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            fresh = self._folder.with_suffix(f".{os.getpid()}")
            _run("clone", "--bare", "--filter=blob:none", "--no-tags", "--quiet", "--", self.location, str(fresh))
            fresh.rename(self._folder)
        what = f"refs/heads/{self.branch}" if self.branch else "HEAD"
        self._git("fetch", "--filter=blob:none", "--no-tags", "--quiet", "origin", f"+{what}:refs/strandline/head")
        return self._git("rev-parse", "refs/strandline/head").decode().strip()

    def _refuse_shallow_origin(self) -> None:
        """GitError for a folder that is a shallow clone: git 2.39 asks one for its missing commits without an end."""
        origin = self.location.removeprefix("file://")
        if origin != self.location:
            shallow = _run("-C", origin, "rev-parse", "--is-shallow-repository", fails_quietly=True)
            if shallow.strip() == b"true":
                raise GitError(f"{self.location} is a shallow clone: git -C {origin} fetch --unshallow")

    def prefix(self) -> str:
        """Where the folder that was named lies within its repository, such as `docs/`; empty at the top."""
        is_inside = self._git("rev-parse", "--is-inside-work-tree").decode().strip() == "true"
        return self._git("rev-parse", "--show-prefix").decode("utf-8", "replace").strip("\n") if is_inside else ""

    def grafts(self) -> str:
        """The commits at which the history was cut off (a shallow clone), as git lists them; empty where it is whole.

        Also empty where there is no repository yet.
        """
        try:
            file = self._folder / self._git("rev-parse", "--git-path", "shallow").decode().strip()
        except GitError:
            return ""
        return file.read_text() if file.exists() else ""

    def lengthening(self) -> str:
        """The command that fetches the commits which a shallow clone lacks."""
        return f"git -C {self.location if self.is_local else self._folder} fetch --unshallow"

    def commits(self, tip: str, similarity: int) -> list[git.Commit]:
        """The branch's commits with their changes, oldest first; bytes of a path that are no UTF-8 are escaped."""
        output = self._git(*git.log_arguments(tip, similarity)).decode("utf-8", "backslashreplace")
        try:
            return git.parse_log(output)
        except ValueError as error:
            raise GitError(str(error)) from error

    def blobs(self, names: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        """The contents of these objects; those not here yet are fetched together first."""
        for start in range(0, len(names), BLOBS_AT_ONCE):
            batch = "\n".join(names[start : start + BLOBS_AT_ONCE]).encode() + b"\n"
            if not self.is_local:
                self._git(
                    "-c", "fetch.negotiationAlgorithm=noop", "fetch", "origin", "--no-tags", "--no-write-fetch-head",
                    "--recurse-submodules=no", "--filter=blob:none", "--quiet", "--stdin", given=batch,
                )  # fmt: skip
            yield from git.parse_batch(self._git("cat-file", "--batch", given=batch)).items()

    def is_partial(self) -> bool:
        """Whether this clone was made without all contents, so that one that is not here may still exist."""
        listed = self._git("config", "--get-regexp", r"^remote\..*\.promisor$", fails_quietly=True)
        return not self.is_local or b"true" in listed

    def _git(self, *arguments: str, given: bytes | None = None, fails_quietly: bool = False) -> bytes:
        return _run("-C", str(self._folder), *arguments, given=given, fails_quietly=fails_quietly)


@dataclass(frozen=True)
class _Text:
    """What a content came to: read now, or the stored version that has it."""

    read: FileText
    held: Version | None = None


class GitSource:
    """Files of a repository as they stood at each snapshot. Options: `repository` (address or folder), `branch`,
    `patterns`, `exclude`, `similarity` (of renames, in per cent), `web` (an address with `{commit}` and `{path}`)."""

    cleaner = git.CLEANER

    def __init__(self, http: object, cache_dir: Path) -> None:
        self._cache_dir = cache_dir

    def fingerprint(self, span: Span) -> str:
        """Changes when a shallow clone is made whole, as files may then be found under earlier names."""
        return self._repository(span).grafts()

    def versions(self, span: Span, months: Sequence[date], known: Known) -> Iterator[list[Version]]:
        """A batch a month. Raises DeferredError where the repository cannot be reached, and after the other months
        for those that lie before the beginning of a shallow clone."""
        if not months:
            return
        repository = self._repository(span)
        try:
            commits = repository.commits(repository.update(), int(span.options.get("similarity", SIMILARITY)))
            told = _told_months(span, commits, repository.grafts().split())
            shots = _shots(span, commits, told)
            if not any(shots.values()) and len(told) == len(span.months):
                raise DeferredError(f"no file of {repository.location} fits the patterns, or none had been made yet")
            wanted = {month: shot for month, shot in shots.items() if month in set(months)}
            texts = _texts(repository, wanted, known)
            prefix = repository.prefix()
        except GitError as error:
            raise DeferredError(str(error)) from error
        first_months = {topic: first for first, shot in reversed(shots.items()) for topic in shot}
        for month, shot in wanted.items():
            yield [
                _version(span, topic, month, shot.get(topic), first_months[topic], texts, prefix)
                for topic in sorted(first_months)
            ]
        if cut := [month for month in months if month not in told]:
            raise DeferredError(
                f"the clone is shallow and begins at {commits[0].at:%Y-%m-%d}: `{repository.lengthening()}`, or let "
                "months.first be later",
                months=frozenset(cut),
            )

    def _repository(self, span: Span) -> Repository:
        if not span.options.get("repository"):
            raise ValueError(f"resource {span.resource}: options.repository is not set")
        return Repository(str(span.options["repository"]), self._cache_dir, span.options.get("branch"))


def _told_months(span: Span, commits: Sequence[git.Commit], grafts: Sequence[str]) -> list[date]:
    """The months of which the history says something: all, or in a shallow clone those after its first commit."""
    if not commits or commits[0].commit not in grafts:
        return list(span.months)
    return [month for month in span.months if snapshot_instant(month, span.snapshot_day) >= commits[0].at]


def _shots(span: Span, commits: Sequence[git.Commit], months: Sequence[date]) -> dict[date, dict[str, FileState]]:
    """All months that are told, so that a topic's name does not depend on which months are open."""
    instants = [snapshot_instant(month, span.snapshot_day) for month in months]
    patterns = span.options.get("patterns", PATTERNS)
    states = git.states(commits, instants, patterns, span.options.get("exclude", ()))
    return dict(zip(months, states, strict=True))


def _texts(repository: Repository, shots: Mapping[date, Mapping[str, FileState]], known: Known) -> dict[str, _Text]:
    """What every content that these months hold came to."""
    names = sorted({state.blob for shot in shots.values() for state in shot.values()})
    held = {name: known.contents[name] for name in names if name in known.contents}
    texts = {name: _Text(FileText(version.status, version.reason), version) for name, version in held.items()}
    lost = None
    for name, content in repository.blobs([name for name in names if name not in texts]):
        if content is not None:
            texts[name] = _Text(git.text_of(content))
            continue
        lost = lost or _lost(repository)
        texts[name] = _Text(lost)
    return texts


def _lost(repository: Repository) -> FileText:
    """What a content that git does not have is: not fetched in a partial clone, else lost."""
    if repository.is_partial():
        return FileText("failed", f"the clone lacks this content: git -C {repository.location} fetch --refetch")
    return FileText("missing", "git has lost this content")


UNANSWERED = _Text(FileText("failed", "git did not give this content"))
"""For a content that the answer of git did not hold whole."""


def _version(
    span: Span,
    topic: str,
    month: date,
    state: FileState | None,
    first: date,
    texts: Mapping[str, _Text],
    prefix: str,
) -> Version:
    """A file in a month: with its text, or why it has none."""
    if state is None and month < first:
        return Version(topic, month, "not_created", "the file did not exist yet")
    if state is None:
        return Version(topic, month, "deleted", "the file was no longer there")
    found = texts.get(state.blob, UNANSWERED)
    web = span.options.get("web")
    return Version(
        topic,
        month,
        found.read.status,
        found.read.reason,
        revision=state.commit,
        revised_at=state.changed_at,
        document=state.path,
        content_id=state.blob,
        url=str(web).format(commit=state.commit, path=prefix + state.path) if web else None,
        text=found.read.text,
        text_sha256=found.held.text_sha256 if found.held else None,
        n_chars=found.held.n_chars if found.held else None,
        replaced_share=found.held.replaced_share if found.held else found.read.replaced_share,
    )


def _run(*arguments: str, given: bytes | None = None, fails_quietly: bool = False) -> bytes:
    """What git printed. GitError with all that it said where it fails, unless that is no fault."""
    inherited = {name: value for name, value in os.environ.items() if name not in INHERITED}
    environment = {**inherited, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", *arguments], input=given, capture_output=True, env=environment, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"git could not be run: {error}") from error
    if done.returncode and not fails_quietly:
        command = arguments[2] if arguments[0] == "-C" else arguments[0]
        raise GitError(f"git {command}: {_said(done.stderr) or f'failed with {done.returncode}'}")
    return done.stdout


def _said(output: bytes) -> str:
    """All that git said, on one line, without passwords in addresses."""
    lines = (line.strip() for line in output.decode("utf-8", "replace").splitlines())
    said = " ".join(line for line in lines if line)
    return re.sub(r"(?<=://)[^/@\s]+@", "", said)[:SAID]


GIT = Source(
    SourceKind(
        "git",
        frozenset({"repository", "branch", "patterns", "exclude", "similarity", "web"}),
        lists=frozenset({"patterns", "exclude"}),
        numbers={"similarity": (1, 100)},
    ),
    GitSource,
)
"""The record of this source."""
