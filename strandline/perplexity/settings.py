"""The references that a user lists in ``data/references.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strandline.yaml_text import read_yaml


@dataclass(frozen=True)
class ReferenceSetting:
    """One entry: a scored model that serves as a reference, for all resources and models or only for those named."""

    model: str
    resources: tuple[str, ...] | None = None
    of: tuple[str, ...] | None = None

    def serves(self, model: str, resource: str) -> bool:
        """Whether it is a reference of that model on that resource; no model is its own."""
        named = (self.resources is None or resource in self.resources) and (self.of is None or model in self.of)
        return named and model != self.model


def read_references(path: Path) -> list[ReferenceSetting]:
    """The listed references in order of preference; none where the file is absent or empty.

    Raises:
        ValueError: naming the entry that has no model, an unknown key, or something other than names.
    """
    if not path.exists():
        return []
    try:
        loaded = read_yaml(path.read_text(encoding="utf-8")) or {}
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None
    entries = loaded.get("references") if isinstance(loaded, dict) and set(loaded) <= {"references"} else "none"
    if not isinstance(entries, list | None):
        raise ValueError(f"{path.name}: expected a list under 'references'")
    return [_setting(entry, number, path.name) for number, entry in enumerate(entries or [], start=1)]


def _setting(entry: Any, number: int, file: str) -> ReferenceSetting:
    where = f"{file}, entry {number}"
    if not isinstance(entry, dict) or not isinstance(entry.get("model"), str):
        raise ValueError(f"{where}: needs a 'model' by name")
    unknown = set(entry) - {"model", "resources", "of"}
    if unknown:
        raise ValueError(f"{where}: unknown key {', '.join(sorted(unknown))}")
    return ReferenceSetting(entry["model"], _names(entry, "resources", where), _names(entry, "of", where))


def _names(entry: dict[str, Any], key: str, where: str) -> tuple[str, ...] | None:
    names = entry.get(key)
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{where}: '{key}' is a list of names")
    return tuple(names)
