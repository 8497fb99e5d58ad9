"""Versions as their ecosystems read them: PEP 440 for PyPI, semantic versions for npm, dotted numbers for the rest.

A version that its rules cannot read is kept as text and sorts before all that they can: one legacy version never
stops a list from being sorted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from packaging.version import Version as Pep440
from semantic_version import Version as SemVer

Scheme = Literal["pep440", "semver", "dotted"]
SCHEMES: dict[str, Scheme] = {"pypi": "pep440", "npm": "semver"}
"""Ecosystems with rules of their own; every other one's versions are dotted numbers."""

MAX_DIGITS = 20
"""Digits of one number of a version. Build numbers that count seconds or nanoseconds have up to 19; Python refuses to
read more than 4,300, and a text with longer ones is no version."""
# A number of at most `MAX_DIGITS` digits.
_NUMBER = rf"\d{{1,{MAX_DIGITS}}}"
# Numbers with dots between them, an optional v before them, and whatever follows.
_DOTTED = re.compile(rf"v?({_NUMBER}(?:\.{_NUMBER})*)(?!\d)(.*)", re.IGNORECASE | re.DOTALL | re.ASCII)
# Two to four numbers with dots and nothing else.
_PLAIN = re.compile(rf"{_NUMBER}(?:\.{_NUMBER}){{1,3}}", re.ASCII)
_FINAL_SUFFIX = re.compile(r"[-.+_]?(final|release|ga|stable|lts|post\d*|p\d+|\+.*)?", re.IGNORECASE)
"""What may follow the numbers of a final release; anything else makes a pre-release."""


class Parsed(NamedTuple):
    """A version that could be read. `numbers` are its release numbers; `order` compares within one scheme."""

    numbers: tuple[int, ...]
    is_prerelease: bool
    order: Any


def scheme_of(ecosystem: str) -> Scheme:
    """The rules by which an ecosystem reads its versions."""
    return SCHEMES.get(ecosystem, "dotted")


@lru_cache(maxsize=200_000)
def parse(text: str, scheme: Scheme = "dotted") -> Parsed | None:
    """Read a version, or None where the scheme's rules do not allow it. Post-releases are final, dev and rc are not."""
    if scheme == "pep440":
        return _pep440(text)
    if scheme == "semver":
        return _semver(text)
    return _dotted(text)


def sort_key(text: str, scheme: Scheme = "dotted") -> tuple[Any, ...]:
    """A key under which any list of versions sorts, oldest first; unreadable ones come first, by their text."""
    parsed = parse(text, scheme)
    return (0, natural(text), text) if parsed is None else (1, parsed.order, natural(text), text)


def numbers_of(text: str) -> tuple[int, ...]:
    """The release numbers that a version begins with, whatever suffix follows; () where it begins with none."""
    spelled = spelled_numbers(text)
    return tuple(map(int, spelled.split("."))) if spelled else ()


def spelled_numbers(text: str) -> str:
    """The same as it is written, leading zeros and all: '19.03.9' of 'v19.03.9-rc1'; '' where there is none."""
    match = _DOTTED.fullmatch(text.strip())
    return match[1] if match else ""


def canonical(text: str) -> tuple[int, ...] | None:
    """What identifies a version whatever its spelling: its release numbers without leading `v`, suffix and final zeros.

    '1.2', 'v1.2.0' and '1.2.0rc1' are alike here, so 'exists in any form' is membership in a set of these. None where
    the text does not begin with a number.
    """
    return _trimmed(numbers_of(text)) or None


def existing_forms(versions: Iterable[str]) -> set[tuple[int, ...]]:
    """The identities of all versions of a project, in every form in which any of them exists.

    A version also takes the shorter ones that begin it: where 24.4.1 exists, 24.4 is spoken for.
    """
    forms: set[tuple[int, ...]] = set()
    for numbers in map(numbers_of, versions):
        forms |= {_trimmed(numbers[:n]) for n in range(min(2, len(numbers)), len(numbers) + 1)}
    return forms - {()}


def is_plain(text: str) -> bool:
    """Whether a version is two to four numbers and nothing else, the form that questions are made of."""
    return _PLAIN.fullmatch(text) is not None


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Text with its numbers compared as numbers, however long, so that '4.9' comes before '4.10'."""
    parts = re.findall(r"[0-9]+|[^0-9]+", text)
    return tuple(_as_number(part) if part[0] in "0123456789" else (1, 0, part) for part in parts)


def _as_number(digits: str) -> tuple[int, int, str]:
    """What compares as the number of these digits does: how many there are after leading zeros, and which."""
    significant = digits.lstrip("0")
    return 0, len(significant), significant


def from_tag(tag: str, repository: str) -> str:
    """The version in a tag's name: 'v1.2', 'release-1.2', 'vite@1.2' of vite/vite and 'go1.2' give '1.2'.

    A tag with any other prefix (another package of the same repository) comes back as it is, and so does not parse.
    """
    name = re.escape(repository.rsplit("/", 1)[-1])
    match = re.fullmatch(rf"(?:(?:{name}|release|rel|version|ver|go|n)[-_/@ ]?)?v?(\d.*)", tag, re.IGNORECASE)
    return match[1].replace("_", ".") if match else tag


def _trimmed(numbers: tuple[int, ...]) -> tuple[int, ...]:
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers = numbers[:-1]
    return numbers


def _pep440(text: str) -> Parsed | None:
    try:
        version = Pep440(text)
    except ValueError:  # InvalidVersion, or a number of more digits than Python reads
        return None
    return Parsed(version.release, version.is_prerelease, version)


def _semver(text: str) -> Parsed | None:
    try:
        version = SemVer.coerce(text) if is_plain(text) and text.count(".") < 2 else SemVer(text)
    except ValueError:
        return None
    return Parsed((version.major, version.minor, version.patch), bool(version.prerelease), version.precedence_key)


def _dotted(text: str) -> Parsed | None:
    match = _DOTTED.fullmatch(text.strip())
    if match is None:
        return None
    numbers, suffix = tuple(map(int, match[1].split("."))), match[2]
    final = _FINAL_SUFFIX.fullmatch(suffix) is not None
    return Parsed(numbers, not final, (_trimmed(numbers), final, natural(suffix.lower())))
