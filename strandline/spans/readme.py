"""READMEs of package releases: which release was in force at an instant, and the README in its metadata.

In force is what an installer would have chosen then: the highest stable version, in PEP 440 order, uploaded at or
before the instant; where a package had no stable version yet, the highest pre-release. Yanked releases are left out:
the index does not say since when. The README is the description in the release's core metadata.

What it cannot show: a README that was changed on a hosting site between two releases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from packaging.version import InvalidVersion, Version

CLEANER = "readme-2"
PLACEHOLDER = "UNKNOWN"

COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
BADGE = re.compile(
    r"\[!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])\](?:\([^)]*\)|\[[^\]]*\])|!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])"
)
LINK_TARGET = re.compile(r"^\[[^\]]+\]:\s*\S+.*$", re.MULTILINE)
RST_IMAGE = re.compile(r"^\s*\.\.\s+(?:\|[^|]+\|\s+)?image::[^\n]*\n(?:[ \t]+:[^\n]*\n?)*", re.MULTILINE)
RST_SUBSTITUTIONS = re.compile(r"^[ \t]*(?:\|[^|\n]+\|_{0,2}[ \t]*)+$", re.MULTILINE)
TAG = re.compile(
    r"</?(?:p|div|img|a|picture|source|br|h[1-6]|span|center|b|i|em|strong|sub|sup|kbd|code)(?:\s[^<>]*)?/?>", re.I
)
FILE_NAME = re.compile(r"[\w./-]+\.(?:md|rst|txt|markdown)", re.IGNORECASE)
BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True)
class Artifact:
    """A file of a release: where it lies and what it is. `metadata_url` is set where the index serves its metadata."""

    filename: str
    url: str
    size: int | None
    sha256: str | None
    metadata_url: str | None = None

    @property
    def is_wheel(self) -> bool:
        """Whether the file is a wheel, whose metadata is one member of a zip archive."""
        return self.filename.endswith(".whl")


@dataclass(frozen=True)
class Release:
    """A version with its first upload and its files. `yanked` only where all files are."""

    version: str
    uploaded_at: datetime | None
    yanked: bool = False
    artifacts: tuple[Artifact, ...] = ()


def release_in_force(releases: Iterable[Release], instant: datetime) -> Release | None:
    """The release that an installer would have chosen at that instant, or None before the first.

    Versions that are no PEP 440 versions ("2004d") and releases without a known upload are left out; they never fail
    the rest.
    """
    there = [r for r in releases if r.uploaded_at is not None and r.uploaded_at <= instant and not r.yanked]
    parsed = [(version, r) for r in there if (version := _parsed(r.version)) is not None]
    stable = [pair for pair in parsed if not pair[0].is_prerelease]
    return max(stable or parsed, key=lambda pair: pair[0], default=(None, None))[1]


def artifacts_to_try(release: Release, largest_sdist: int) -> tuple[Artifact, ...]:
    """The files that may tell the README, cheapest first: served metadata, the smallest wheel, then a small sdist."""
    served = sorted((a for a in release.artifacts if a.metadata_url), key=_size)
    wheels = sorted((a for a in release.artifacts if a.is_wheel), key=_size)
    sdists = [a for a in release.artifacts if a.filename.endswith(".tar.gz") and _size(a)[0] <= largest_sdist]
    return (*served[:1], *wheels[:1], *sorted(sdists, key=_size)[:1])


def readme_of(metadata: bytes) -> str | None:
    """The description in a METADATA or PKG-INFO document (body or header); None where the release has none.

    Raises ValueError where the document is no core metadata at all.
    """
    from packaging.metadata import parse_email

    fields, _ = parse_email(metadata)
    if not fields.get("name"):
        raise ValueError("the metadata names no project, so it is not core metadata")
    text = fields.get("description", "")
    if not text and b"\n\n" in metadata.replace(b"\r\n", b"\n"):
        text = metadata.replace(b"\r\n", b"\n").split(b"\n\n", 1)[1].decode("utf-8", "replace")
    text = _unfolded(text).strip()
    return None if not text or text == PLACEHOLDER else text


def clean(readme: str) -> str:
    """The prose of a README: badges, images, HTML wrappers, comments and link targets dropped, the markup kept.

    Badges fill the head of many READMEs and say nothing about its age; the first tokens, which are what is scored,
    then hold text.
    """
    text = readme.replace("\r\n", "\n").replace("\r", "\n")
    for pattern in (COMMENT, BADGE, RST_IMAGE, LINK_TARGET, RST_SUBSTITUTIONS, TAG):
        text = pattern.sub("", text)
    lines = (line.rstrip() for line in text.split("\n"))
    return BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()


def names_another_file(readme: str) -> bool:
    """Whether a README is nothing but the path of another file, as a packaging fault leaves it behind."""
    return FILE_NAME.fullmatch(readme.strip()) is not None


def archive_end(tail: bytes, total: int) -> tuple[int, int] | None:
    """Where a zip archive's directory lies, as (offset, length) in the file, from its last bytes; None if not told.

    The end record is the last one in `tail` whose comment runs exactly to the end of the file. ZIP64 archives say so in
    the record; their directory is then taken from the ZIP64 record just before.
    """
    place = tail.rfind(b"PK\x05\x06")
    while place >= 0:
        record = tail[place : place + 22]
        if len(record) == 22 and place + 22 + int.from_bytes(record[20:22], "little") == len(tail):
            length, offset = (int.from_bytes(record[at : at + 4], "little") for at in (12, 16))
            return _zip64_end(tail, place) if 0xFFFFFFFF in (length, offset) else (offset, min(length, total))
        place = tail.rfind(b"PK\x05\x06", 0, place)
    return None


def parse_index(payload: Any) -> tuple[Release, ...]:
    """The releases in a project page of the Simple API's JSON form, each with its files and first upload.

    Raises ValueError for anything else. Files whose name gives no version are left out.
    """
    from pypi_simple import ProjectPage, UnsupportedRepoVersionError

    if not isinstance(payload, Mapping) or "files" not in payload:
        raise ValueError(f"not a project page of a package index: {str(payload)[:80]!r}")
    grouped: dict[str, list[Any]] = {}
    try:
        page = ProjectPage.from_json_data(payload)
    except UnsupportedRepoVersionError as error:
        raise ValueError(f"a project page of a form that is not understood: {error}") from error
    for file in page.packages:
        if file.version is not None:
            grouped.setdefault(file.version, []).append(file)
    return tuple(_release(version, files) for version, files in grouped.items())


@dataclass(frozen=True)
class Member:
    """A file inside a zip archive: where its local header begins, how it is packed and how long it is packed."""

    name: str
    offset: int
    packed: int
    method: int


def metadata_member(directory: bytes) -> Member | None:
    """The `NAME.dist-info/METADATA` entry of a zip archive's directory, or None."""
    place = 0
    while directory[place : place + 4] == b"PK\x01\x02":
        method, packed = (int.from_bytes(directory[place + a : place + b], "little") for a, b in ((10, 12), (20, 24)))
        lengths = [int.from_bytes(directory[place + at : place + at + 2], "little") for at in (28, 30, 32)]
        offset = int.from_bytes(directory[place + 42 : place + 46], "little")
        name = directory[place + 46 : place + 46 + lengths[0]].decode("utf-8", "replace")
        if re.fullmatch(r"[^/]+\.dist-info/METADATA", name):
            return Member(name, offset, packed, method)
        place += 46 + sum(lengths)
    return None


def member_bytes(local: bytes, member: Member) -> bytes:
    """Unpack a member from the bytes that begin at its local header. Raises ValueError where they are not enough."""
    import zlib

    if local[:4] != b"PK\x03\x04":
        raise ValueError(f"{member.name}: no local header where the archive's directory points")
    start = 30 + int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
    packed = local[start : start + member.packed]
    if len(packed) < member.packed:
        raise ValueError(f"{member.name}: only {len(packed)} of {member.packed} packed bytes are there")
    if member.method == 0:
        return packed
    if member.method != 8:
        raise ValueError(f"{member.name}: packed by method {member.method}, which is not understood")
    try:
        return zlib.decompress(packed, -15)
    except zlib.error as error:
        raise ValueError(f"{member.name}: cannot be unpacked ({error})") from error


def _zip64_end(tail: bytes, place: int) -> tuple[int, int] | None:
    at = tail.rfind(b"PK\x06\x06", 0, place)
    if at < 0:
        return None
    length, offset = (int.from_bytes(tail[at + n : at + n + 8], "little") for n in (40, 48))
    return offset, length


def _release(version: str, files: Sequence[Any]) -> Release:
    uploads = [file.upload_time for file in files if file.upload_time is not None]
    artifacts = tuple(
        Artifact(f.filename, f.url, f.size, f.digests.get("sha256"), f.metadata_url if f.has_metadata else None)
        for f in files
        if not f.is_yanked
    )
    return Release(version, min(uploads, default=None), not artifacts, artifacts)


def _parsed(version: str) -> Version | None:
    try:
        return Version(version)
    except InvalidVersion:
        return None


def _size(artifact: Artifact) -> tuple[float, str]:
    return (float("inf") if artifact.size is None else artifact.size, artifact.filename)


def _unfolded(text: str) -> str:
    """Old metadata folds the description into a header, each line indented by eight blanks or a bar."""
    lines: Sequence[str] = text.split("\n")
    folded = [line for line in lines[1:] if line.strip()]
    if folded and all(line.startswith("        ") for line in folded):
        return "\n".join([lines[0], *(line[8:] for line in lines[1:])])
    return text
