"""Bytes on disk by name: replies that never change, kept so that a rerun or a rebuild asks nobody again."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path


class DownloadCache:
    """A folder of finished downloads. What lies there is complete: files are swapped in when they are whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read_or(self, name: str, fetch: Callable[[], bytes]) -> bytes:
        """The bytes of that name; fetched and put there where they are not there yet."""
        path = self._path(name)
        if path.exists():
            return path.read_bytes()
        content = fetch()
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        fresh.write_bytes(content)
        os.replace(fresh, path)
        return content

    def __contains__(self, name: str) -> bool:
        return self._path(name).exists()

    def _path(self, name: str) -> Path:
        digest = sha256(name.encode()).hexdigest()
        return self._folder / digest[:2] / digest
