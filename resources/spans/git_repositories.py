"""Git repositories as a source of versioned documents: the `git` source.

A remote repository is cloned once without file contents (blobless) and brought up to date when a month is open; a local
one is read where it lies. Contents are read by object id, many at once. What the log means is `strandline.spans.git`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from hashlib import sha256
from pathlib import Path

from strandline.spans import DeferredError, Span, Version, git
from strandline.spans.git import FileState
from strandline.spans.months import snapshot_instant
from strandline.spans.selection import Known

PATTERNS = ("**/*.md", "**/*.rst", "**/*.txt", "**/*.adoc")
BLOBS_AT_ONCE = 500
SECONDS = 3600


class GitError(RuntimeError):
    """Git refused or failed; the message is its own."""


class Repository:
    """One repository, read through the git program. `branch` None is the repository's default branch."""

    def __init__(self, location: str, cache_dir: Path, branch: str | None = None) -> None:
        if location.startswith("-"):
            raise ValueError(f"{location!r} is no repository")
        self.location, self.branch = location, branch
        self.is_local = Path(location).expanduser().exists()
        name = sha256(location.encode()).hexdigest()[:24]
        self._folder = Path(location).expanduser() if self.is_local else cache_dir / "git" / f"{name}.git"

    def update(self) -> str:
        """Bring the clone up to date and name the commit to read from."""
        if self.is_local:
            return self._git("rev-parse", "--verify", f"{self.branch or 'HEAD'}^{{commit}}").decode().strip()
        if not self._folder.exists():
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            fresh = self._folder.with_suffix(f".{os.getpid()}")
            _run("clone", "--bare", "--filter=blob:none", "--no-tags", "--quiet", "--", self.location, str(fresh))
            fresh.rename(self._folder)
        what = f"refs/heads/{self.branch}" if self.branch else "HEAD"
        self._git("fetch", "--filter=blob:none", "--no-tags", "--quiet", "origin", f"+{what}:refs/strandline/head")
        return self._git("rev-parse", "refs/strandline/head").decode().strip()

    def commits(self, tip: str, similarity: int) -> list[git.Commit]:
        """The branch's commits with their changes, oldest first; bytes of a path that are no UTF-8 are escaped."""
        return git.parse_log(self._git(*git.log_arguments(tip, similarity)).decode("utf-8", "backslashreplace"))

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

    def _git(self, *arguments: str, given: bytes | None = None) -> bytes:
        return _run("-C", str(self._folder), *arguments, given=given)


class GitSource:
    """Files of a repository as they stood at each snapshot. Options: `repository` (address or folder), `branch`,
    `patterns`, `exclude`, `similarity` (of renames, in per cent), `web` (an address with `{commit}` and `{path}`)."""

    cleaner = git.CLEANER
    options = frozenset({"repository", "branch", "patterns", "exclude", "similarity", "web"})

    def __init__(self, http: object, cache_dir: Path) -> None:
        self._cache_dir = cache_dir

    def versions(self, span: Span, months: Sequence[date], known: Known) -> Iterator[list[Version]]:
        """A batch a month. Raises DeferredError where the repository cannot be reached."""
        if not months:
            return
        if not span.options.get("repository"):
            raise ValueError(f"resource {span.resource}: options.repository is not set")
        repository = Repository(str(span.options["repository"]), self._cache_dir, span.options.get("branch"))
        try:
            commits = repository.commits(repository.update(), int(span.options.get("similarity", 50)))
            shots = _shots(span, commits)
            wanted = {month: shot for month, shot in shots.items() if month in set(months)}
            texts = _texts(repository, wanted, known)
        except GitError as error:
            raise DeferredError(str(error)) from error
        topics = {topic: first for first, shot in reversed(shots.items()) for topic in shot}
        for month, shot in wanted.items():
            yield [_version(span, topic, month, shot.get(topic), topics[topic], texts) for topic in sorted(topics)]


def _shots(span: Span, commits: Sequence[git.Commit]) -> dict[date, dict[str, FileState]]:
    """All months of the span, so that a topic's name does not depend on which months are open."""
    instants = [snapshot_instant(month, span.snapshot_day) for month in span.months]
    patterns = span.options.get("patterns", PATTERNS)
    states = git.states(commits, instants, patterns, span.options.get("exclude", ()))
    return dict(zip(span.months, states, strict=True))


def _texts(
    repository: Repository, shots: Mapping[date, Mapping[str, FileState]], known: Known
) -> dict[str, tuple[str, str | None, str | None, Version | None]]:
    """Status, reason, text and stored version of every content that these months hold."""
    names = sorted({state.blob for shot in shots.values() for state in shot.values()})
    texts: dict[str, tuple[str, str | None, str | None, Version | None]] = {}
    for name in names:
        if held := known.contents.get(name):
            texts[name] = (held.status, held.reason, None, held)
    for name, content in repository.blobs([name for name in names if name not in texts]):
        found = ("missing", "git has lost this content", None) if content is None else git.text_of(content)
        texts[name] = (*found, None)
    return texts


def _version(
    span: Span,
    topic: str,
    month: date,
    state: FileState | None,
    first: date,
    texts: Mapping[str, tuple[str, str | None, str | None, Version | None]],
) -> Version:
    if state is None and month < first:
        return Version(topic, month, "not_created", "the file did not exist yet")
    if state is None:
        return Version(topic, month, "deleted", "the file was no longer there")
    status, reason, text, held = texts[state.blob]
    web = span.options.get("web")
    return Version(
        topic,
        month,
        status,
        reason,
        revision=state.commit,
        revised_at=state.changed_at,
        document=state.path,
        content_id=state.blob,
        url=str(web).format(commit=state.commit, path=state.path) if web else None,
        text=text,
        text_sha256=held.text_sha256 if held else None,
        n_chars=held.n_chars if held else None,
    )


def _run(*arguments: str, given: bytes | None = None) -> bytes:
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", *arguments], input=given, capture_output=True, env=environment, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"git could not be run: {error}") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitError(
            f"git {arguments[0] if arguments[0] != '-C' else arguments[2]}: {said[-1] if said else 'failed'}"
        )
    return done.stdout
