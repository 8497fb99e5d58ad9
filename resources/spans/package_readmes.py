"""READMEs of package releases from the index that pip is configured with: the `readme` source.

A release's README is in its core metadata, which is read the cheapest way the index offers: served beside the file,
from the end of the smallest wheel by a range request (a wheel's directory is at its end, and mostly its metadata as
well), or from a small source archive. What is in force when, and what metadata says, is `strandline.spans.readme`.
"""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from hashlib import sha256
from pathlib import Path

from packaging.utils import canonicalize_name

from resources.network.download_cache import DownloadCache
from resources.network.http import FetchError, Http, PermanentError
from resources.releases.registries import configured
from resources.spans.sandbox import SandboxedFunction
from resources.spans.source import Source
from strandline.releases import pypi
from strandline.spans import DeferredError, Span, Version, readme
from strandline.spans.months import snapshot_instant
from strandline.spans.readme import Artifact, NoReadmeError, Release
from strandline.spans.selection import Known
from strandline.spans.settings import SourceKind

TAIL, LONG_TAIL, LARGE_WHEEL = 65_536, 262_144, 1_000_000
"""Bytes read from the end of a wheel, more of one above the third number: they hold the directory of some hundred or
thousand files, and mostly the metadata too."""
LARGEST_SDIST = 2_000_000
"""Bytes of a source archive that is read whole for one README: above it lie mostly data and vendored code."""
LARGEST_WHEEL_SENT_WHOLE = 8_000_000
"""Bytes of a wheel that is taken whole where the server knows no ranges."""
LARGEST_README = 500_000
"""Characters of a README that is cleaned: the longest in the shipped span has some 60,000, and a text ten times as long
is a change log or a fault of packaging."""
CLEANING_SECONDS = 5.0
"""CPU time for cleaning one README; an ordinary one takes milliseconds."""
FAILURES_IN_A_ROW = 5
"""Reads in a row that fail before the index is left alone: a busy server recovers in minutes, not in more tries."""
NOTHING_THERE = ("failed", "the index has none of the packages of this resource: is its address right?")
"""For all packages of a resource where the index knows none of them."""


class PackageIndex:
    """Reads of one package index: the files of a project, and the README of a release."""

    def __init__(self, http: Http, base: str, shelf: DownloadCache) -> None:
        self._http, self.base, self._shelf = http, base, shelf

    def releases(self, package: str) -> tuple[Release, ...]:
        """All releases of a package. PermanentError with status 404 where the index has no such package."""
        reply = self._http.get(pypi.url(package, self.base), headers={"Accept": pypi.ACCEPT}, revalidate=True)
        try:
            return readme.parse_index(reply.json())
        except ValueError as error:
            raise PermanentError(str(error), url=reply.url, status=reply.status) from error

    def readme(self, release: Release) -> str | None:
        """The README of a release, None where it has none. Each file that may tell is tried once.

        Raises PermanentError where no file of the release could be read, and NoReadmeError for one that is no text.
        """
        trouble: list[str] = []
        for artifact in readme.artifacts_to_try(release, LARGEST_SDIST):
            try:
                return readme.readme_of(self._metadata(artifact))
            except NoReadmeError:
                raise
            except (ValueError, PermanentError) as error:
                trouble.append(f"{artifact.filename}: {error}")
        raise PermanentError("; ".join(trouble) or "no file of this release is small enough to be read for its README")

    def _metadata(self, artifact: Artifact) -> bytes:
        def fetch() -> bytes:
            if artifact.metadata_url:
                return self._served_metadata(artifact.metadata_url, artifact.metadata_sha256)
            return self._wheel_metadata(artifact) if artifact.is_wheel else self._sdist_metadata(artifact)

        return self._shelf.read_or(artifact.sha256, fetch) if artifact.sha256 else fetch()

    def _served_metadata(self, url: str, digest: str | None) -> bytes:
        content = self._http.get(url, store=False, max_bytes=readme.LARGEST_METADATA).content
        if digest and sha256(content).hexdigest() != digest.lower():
            raise ValueError("the served metadata does not match its digest")
        return content

    def _wheel_metadata(self, artifact: Artifact) -> bytes:
        length = LONG_TAIL if (artifact.size or 0) > LARGE_WHEEL else TAIL
        reply = self._http.get(artifact.url, byte_range=f"bytes=-{length}", max_bytes=LARGEST_WHEEL_SENT_WHOLE)
        total = _total(reply.headers.get("content-range"), len(reply.content))
        start, tail = total - len(reply.content), reply.content
        place = readme.archive_end(tail, total)
        if place is None:
            raise ValueError("the file does not end like a wheel")
        directory = self._part(artifact, tail, start, *place)
        member = readme.metadata_member(directory)
        if member is None:
            raise ValueError("the wheel holds no METADATA")
        length = min(30 + len(member.name.encode()) + 1024 + member.packed, total - member.offset)
        return readme.member_bytes(self._part(artifact, tail, start, member.offset, length), member)

    def _part(self, artifact: Artifact, tail: bytes, start: int, offset: int, length: int) -> bytes:
        """A piece of the archive: from its end, which is here already, or by one more range request."""
        if offset >= start:
            return tail[offset - start : offset - start + length]
        wanted = f"bytes={offset}-{offset + length - 1}"
        return self._http.get(artifact.url, byte_range=wanted, max_bytes=LARGEST_WHEEL_SENT_WHOLE).content

    def _sdist_metadata(self, artifact: Artifact) -> bytes:
        archive = self._http.get(artifact.url, max_bytes=LARGEST_SDIST, store=False).content
        try:
            found = _package_info(archive)
        except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
            raise ValueError(f"the source archive cannot be unpacked ({error})") from error
        if found is None:
            raise ValueError("the source archive holds no PKG-INFO")
        return found


def _package_info(archive: bytes) -> bytes | None:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as members:
        for member in members:
            if member.isfile() and member.name.count("/") == 1 and member.name.endswith("/PKG-INFO"):
                if member.size > readme.LARGEST_METADATA:
                    raise ValueError(f"{member.name} is larger than {readme.LARGEST_METADATA} bytes")
                source = members.extractfile(member)
                return source.read() if source is not None else None
    return None


class ReadmeSource:
    """READMEs of the packages that are the span's topics. Options: `index`, an address instead of pip's own."""

    cleaner = readme.CLEANER

    def __init__(self, http: Http, cache_dir: Path) -> None:
        self._http, self._shelf = http, DownloadCache(cache_dir / "metadata")
        self._failures = 0
        self._absent: dict[str, list[date]] = {}
        self._answered = False

    def versions(self, span: Span, months: Sequence[date], known: Known) -> Iterator[list[Version]]:
        """A batch for each package with an open month; nothing is asked about the others.

        Packages that the index does not have come last, as `missing` where it has any of the span: an index without a
        single one has most likely a wrong address, and they are `failed`.
        """
        self._absent, self._answered = {}, any(version.status == "ok" for version in known.versions.values())
        todo = {topic: left for topic in span.topics if (left := known.open_months(topic, months))}
        if not todo:
            return
        index = PackageIndex(self._http, str(span.options.get("index") or configured().pypi), self._shelf)
        first = {canonicalize_name(topic): topic for topic in reversed(span.topics)}
        with SandboxedFunction("strandline.spans.readme:clean", CLEANING_SECONDS) as self._cleaner:
            for package, left in todo.items():
                if (owner := first[canonicalize_name(package)]) != package:
                    yield [Version(package, month, "duplicate", f"is the same package as {owner}") for month in left]
                else:
                    yield self._package(index, span, package, left, known)
        for package, left in self._absent.items():
            status, reason = ("missing", "the index has no such package") if self._answered else NOTHING_THERE
            yield [Version(package, month, status, reason) for month in left]

    def _package(
        self, index: PackageIndex, span: Span, package: str, months: list[date], known: Known
    ) -> list[Version]:
        """The versions of one package; none yet where the index does not have it."""
        try:
            releases = index.releases(package)
            self._answered = True
        except FetchError as error:
            if error.status == 404:
                self._absent[package] = months
                return []
            status, reason = self._failed(error)
            return [Version(package, month, status, reason) for month in months]
        held: dict[str, Version] = dict(known.contents)
        versions = []
        for month in months:
            instant = snapshot_instant(month, span.snapshot_day)
            release = readme.release_in_force(releases, instant)
            if release is None:
                versions.append(Version(package, month, *readme.why_none(releases, instant)))
            else:
                there = readme.known_at(release, instant)
                name = readme.content_name(package, release, there)
                versions.append(self._version(index, package, month, there, name, held))
        return versions

    def _version(
        self, index: PackageIndex, package: str, month: date, release: Release, name: str, held: dict[str, Version]
    ) -> Version:
        """The version of one month; a release already read for another month is not read again."""
        if name in held:
            return replace(held[name], month=month)
        status, reason, text = self._text(index, release)
        version = Version(
            package, month, status, reason, revision=release.version, revised_at=release.uploaded_at, document=package,
            content_id=name, url=pypi.page(package, release.version, index.base), text=text,
        )  # fmt: skip
        held[name] = version
        return version

    def _text(self, index: PackageIndex, release: Release) -> tuple[str, str | None, str | None]:
        """Status, reason and text of a release's README as the index gave it."""
        try:
            found = index.readme(release)
            self._failures = 0
        except NoReadmeError as error:
            return error.status, str(error), None
        except PermanentError as error:
            return "unreadable", str(error), None
        except FetchError as error:
            return *self._failed(error), None
        return self._cleaned(found) if found else ("no_text", "the release has no README", None)

    def _cleaned(self, found: str) -> tuple[str, str | None, str | None]:
        """Status, reason and text of a README, from what it holds."""
        if len(found) > LARGEST_README:
            return "unparsed", f"the README has {len(found)} characters, more than {LARGEST_README}", None
        outcome = self._cleaner.call(found)
        if outcome.status != "ok":
            return "unparsed", f"cleaning {outcome.reason}", None
        text = str(outcome.value)
        if readme.names_another_file(text):
            return "redirect", f"the README only names another file: {text.strip()[:200]}", None
        return ("ok", None, text) if text else ("no_text", "the release has no README", None)

    def _failed(self, error: FetchError) -> tuple[str, str]:
        self._failures += 1
        if self._failures >= FAILURES_IN_A_ROW:
            raise DeferredError(f"{self._failures} reads failed in a row, the last with: {error}") from error
        return "failed", str(error)


def _total(content_range: str | None, received: int) -> int:
    """The whole file's length from `bytes 5-9/10`; a server that sent everything told no range."""
    total = (content_range or "").rpartition("/")[2]
    return int(total) if total.isdecimal() else received


README = Source(SourceKind("readme", frozenset({"index"}), is_listed=True), ReadmeSource)
"""The record of this source."""
