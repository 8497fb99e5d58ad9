"""READMEs of package releases: which release was in force at an instant, and the README in its metadata.

In force is what an installer would have chosen then: the highest stable version, in PEP 440 order, uploaded at or
before the instant; where a package had no stable version yet, the highest pre-release. Yanked releases are left out:
the index does not say since when. The README is the description in the release's core metadata.

What it cannot show: a README that was changed on a hosting site between two releases.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from packaging.version import InvalidVersion, Version

from strandline.spans.commoncrawl import REPLACED_SHARE, decode
from strandline.spans.months import utc_instant

CLEANER = "readme-3"
"""Name and version of this cleaning; a change of it makes stored texts be made anew."""
CUT_LENGTHS = frozenset({65_535, 65_536})
"""Lengths at which registries cut a README without a word (64 KiB, with or without a closing zero)."""
FIRST_UPLOAD = datetime(2003, 1, 1, tzinfo=UTC)
"""The Python Package Index opened in 2003; an earlier upload is a placeholder such as the epoch."""
LARGEST_METADATA = 5_000_000
"""Bytes of unpacked metadata: the longest READMEs have some hundred thousand, and packed zeros grow a thousandfold."""
UNKNOWN = "UNKNOWN"
"""What distutils wrote for a field that was not given."""
PLACEHOLDERS = frozenset(
    {
        "none", "todo", "no readme data found", "no readme found", "no description", "no description available",
        "no description provided", "no long description provided", "no project description provided",
        "the author of this package has not provided a project description",
    }
)  # fmt: skip
"""What tools write where there is no README, in lower case and without punctuation around it."""

BADGE = re.compile(
    r"\[!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])\](?:\([^)]*\)|\[[^\]]*\])|!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])"
)
"""A picture of Markdown, with or without a link around it."""
LINK_TARGET = re.compile(r"^\[[^\]]+\]:\s*\S+.*$", re.MULTILINE)
"""Where a link of Markdown leads that is named elsewhere."""
RST_IMAGE = re.compile(r"^[ \t]*\.\.\s+(?:\|[^|]+\|\s+)?image::[^\n]*\n(?:[ \t]+:[^\n]*\n?)*", re.MULTILINE)
"""A picture of reStructuredText with its options, after the blank lines before it."""
RST_SUBSTITUTIONS = re.compile(r"^[ \t]*(?:\|[^|\n]+\|_{0,2}[ \t]*)+$", re.MULTILINE)
"""A line of reStructuredText that only names pictures."""
INLINE_TAG = re.compile(
    r"</?(?:img|a|picture|source|span|b|i|em|strong|sub|sup|kbd|code)(?:\s[^<>]*)?/?>", re.IGNORECASE
)
"""Tags within a line."""
BLOCK_TAGS = re.compile(r"(?:</?(?:p|div|br|h[1-6]|center)(?:\s[^<>]*)?/?>)+", re.IGNORECASE)
"""Tags at which a line ends."""
FILE_NAME = re.compile(r"[\w./-]+\.(?:md|rst|txt|markdown)", re.IGNORECASE)
"""A text that is nothing but the name of a file of text."""
BLANK_LINES = re.compile(r"\n{3,}")
"""More than one blank line."""


class NoReadmeError(ValueError):
    """A README that is no text to score; `status` is the word for it."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class Artifact:
    """A file of a release: where it lies and what it is.

    `metadata_url` is set where the index serves its metadata, `metadata_sha256` where it also tells its digest.
    """

    filename: str
    url: str
    size: int | None
    sha256: str | None
    metadata_url: str | None = None
    metadata_sha256: str | None = None
    uploaded_at: datetime | None = None

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


def why_none(releases: Sequence[Release], instant: datetime) -> tuple[str, str]:
    """Status and reason of an instant at which no release was in force.

    `not_created` only where the index dates its releases: one without dates does not say that there was none.
    """
    if not releases:
        return "missing", "the index lists no file of this package"
    if any(release.uploaded_at is None and not release.yanked for release in releases):
        return "undated", "the index does not say when the files of this package were uploaded; name one that does"
    if any(release.uploaded_at is not None and release.uploaded_at <= instant for release in releases):
        return "deleted", "every release of that time has been yanked, or bears no PEP 440 version"
    return "not_created", "no dated release was out yet"


def known_at(release: Release, instant: datetime) -> Release:
    """The release with those of its files that were there at an instant: a file added later may hold a later README."""
    there = tuple(a for a in release.artifacts if a.uploaded_at is None or a.uploaded_at <= instant)
    return replace(release, artifacts=there)


def content_name(package: str, whole: Release, there: Release) -> str:
    """The name of the content of a release; where files were added later, with how many there were."""
    name = f"{package}=={whole.version}"
    return name if there.artifacts == whole.artifacts else f"{name} of {len(there.artifacts)} files"


def artifacts_to_try(release: Release, largest_sdist: int) -> tuple[Artifact, ...]:
    """The files that may tell the README, cheapest first: served metadata, the smallest wheel, then a small sdist."""
    served = sorted((a for a in release.artifacts if a.metadata_url), key=_size)
    wheels = sorted((a for a in release.artifacts if a.is_wheel), key=_size)
    sdists = [a for a in release.artifacts if a.filename.endswith(".tar.gz") and _size(a)[0] <= largest_sdist]
    return (*served[:1], *wheels[:1], *sorted(sdists, key=_size)[:1])


def readme_of(metadata: bytes) -> str | None:
    """The description in a METADATA or PKG-INFO document (body or header); None where the release has none.

    Raises NoReadmeError where it is cut, cannot be read or only says that there is none, and ValueError where the
    document is no core metadata at all.
    """
    from packaging.metadata import parse_email

    fields, _ = parse_email(metadata)
    if not fields.get("name"):
        raise ValueError("the metadata names no project, so it is not core metadata")
    text = fields.get("description", "")
    if not text and b"\n\n" in metadata.replace(b"\r\n", b"\n"):
        text, _, replaced = decode(metadata.replace(b"\r\n", b"\n").split(b"\n\n", 1)[1])
        if replaced > REPLACED_SHARE:
            raise NoReadmeError("garbled", f"{replaced:.1%} of the README's characters cannot be read")
    if is_cut(text):
        raise NoReadmeError("truncated", "the README is cut at 64 KiB, where registries end what they keep")
    text = _unfolded(text).strip()
    if text == UNKNOWN:
        return None
    if is_placeholder(text):
        raise NoReadmeError("no_text", f"the README only says that there is none: {text[:80]!r}")
    return text or None


def is_cut(text: str) -> bool:
    """Whether a text is just as long, in characters or bytes, as what registries keep of one."""
    forms = (text, text.rstrip("\r\n"))
    return any(len(form) in CUT_LENGTHS or len(form.encode("utf-8", "replace")) in CUT_LENGTHS for form in forms)


def is_placeholder(text: str) -> bool:
    """Whether a README only says that there is none."""
    plain = re.sub(r"^\W+|\W+$", "", text[:200].casefold().strip()).removeprefix("error: ").removeprefix("warning: ")
    return len(text) <= 200 and " ".join(plain.split()) in PLACEHOLDERS


def clean(readme: str) -> str:
    """The prose of a README: badges, images, HTML wrappers, comments and link targets dropped, the markup kept.

    Badges fill the head of many READMEs and say nothing about its age; the first tokens, which are what is scored,
    then hold text. Some patterns take long on hostile texts, so run it where time and memory are capped.
    """
    text = _without_comments(readme.replace("\r\n", "\n").replace("\r", "\n"))
    text = _without_rst_images(BADGE.sub("", text))
    for pattern in (LINK_TARGET, RST_SUBSTITUTIONS, INLINE_TAG):
        text = pattern.sub("", text)
    text = BLOCK_TAGS.sub(_blank, text)
    lines = (line.rstrip() for line in text.split("\n"))
    return BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()


def _without_comments(text: str) -> str:
    """The text without HTML comments; one that is never closed stays."""
    kept, place = [], 0
    while (start := text.find("<!--", place)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        kept.append(text[place:start])
        place = end + 3
    return "".join(kept) + text[place:]


def _without_rst_images(text: str) -> str:
    """The text without pictures of reStructuredText and without the blank lines before each."""
    kept, place = [], 0
    for image in RST_IMAGE.finditer(text):
        start = image.start()
        while start > place and text[start - 1].isspace():
            start -= 1
        if start > place or (place and text[place - 1] != "\n"):
            start = text.find("\n", start, image.start()) + 1 or image.start()
        kept.append(text[place:start])
        place = image.end()
    return "".join(kept) + text[place:]


def _blank(tags: re.Match[str]) -> str:
    """What stays of tags that end a line: a blank where words stand on both sides of them, else nothing.

    An end of line would break the row of a table.
    """
    before, after = tags.string[max(0, tags.start() - 1) : tags.start()], tags.string[tags.end() : tags.end() + 1]
    return " " if before.strip() and after.strip() else ""


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

    Raises ValueError for anything else. Files whose name gives no version are left out; what else is odd about a file
    (a time that is none, a digest of another form) counts as not told.
    """
    from pypi_simple import ProjectPage, UnsupportedRepoVersionError

    if not isinstance(payload, Mapping) or not isinstance(payload.get("files"), list):
        raise ValueError(f"not a project page of a package index: {str(payload)[:80]!r}")
    files = [_file(entry) for entry in payload["files"] if isinstance(entry, Mapping)]
    files = [entry for entry in files if isinstance(entry["filename"], str) and isinstance(entry["url"], str)]
    if payload["files"] and not files:
        raise ValueError(f"not a project page of a package index: {str(payload)[:80]!r}")
    grouped: dict[str, list[Any]] = {}
    told = {key: value for key, value in payload.items() if key in {"meta", "name"}}
    try:
        page = ProjectPage.from_json_data({"meta": {"api-version": "1.0"}, "name": "", **told, "files": files})
    except UnsupportedRepoVersionError as error:
        raise ValueError(f"a project page of a form that is not understood: {error}") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a project page of a package index: {error!r:.80}") from error
    for file in page.packages:
        if file.version is not None:
            grouped.setdefault(file.version, []).append(file)
    return tuple(_release(version, files) for version, files in grouped.items())


def _file(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What a project page says of a file, without what has another form than it should."""
    kinds: dict[str, type | tuple[type, ...]] = {"size": int, "yanked": (bool, str), "core-metadata": (bool, dict)}
    known = {key: entry[key] for key, kind in kinds.items() if isinstance(entry.get(key), kind)}
    served = known.get("core-metadata")
    if isinstance(served, dict):
        known["core-metadata"] = _digests(served) or True
    if (moment := _upload(entry.get("upload-time"))) is not None:
        known["upload-time"] = moment.isoformat()
    hashes = _digests(entry.get("hashes"))
    return {"filename": entry.get("filename"), "url": entry.get("url"), "hashes": hashes, **known}


def _digests(value: Any) -> dict[str, str]:
    pairs = value.items() if isinstance(value, Mapping) else ()
    return {str(name): text for name, text in pairs if isinstance(text, str)}


def _upload(value: Any) -> datetime | None:
    """An upload's instant; None where it is none that a package index can have seen."""
    try:
        moment = utc_instant(value) if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None
    return moment if moment is not None and moment >= FIRST_UPLOAD else None


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
    unpacker = zlib.decompressobj(-15)
    try:
        unpacked = unpacker.decompress(packed, LARGEST_METADATA)
    except zlib.error as error:
        raise ValueError(f"{member.name}: cannot be unpacked ({error})") from error
    if not unpacker.eof:
        raise ValueError(f"{member.name}: is cut, or larger than {LARGEST_METADATA} bytes")
    return unpacked


def _zip64_end(tail: bytes, place: int) -> tuple[int, int] | None:
    at = tail.rfind(b"PK\x06\x06", 0, place)
    if at < 0:
        return None
    length, offset = (int.from_bytes(tail[at + n : at + n + 8], "little") for n in (40, 48))
    return offset, length


def _release(version: str, files: Sequence[Any]) -> Release:
    uploads = [file.upload_time for file in files if file.upload_time is not None]
    artifacts = tuple(
        Artifact(
            file.filename,
            file.url,
            file.size,
            file.digests.get("sha256"),
            file.metadata_url if file.has_metadata else None,
            (file.metadata_digests or {}).get("sha256"),
            file.upload_time,
        )
        for file in files
        if not file.is_yanked
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
