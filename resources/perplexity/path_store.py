"""Computed paths of topics on disk, so that a topic's next version costs only what changed in it.

A file a path, for one set of weights in one number format under one limit. They are a saving and never a source of
truth: what is missing, damaged or beyond the limit on disk is computed again. A new path lies beside the one before it
until the scores that were computed with it are stored (``settle``): a run that is killed in between leaves the earlier
path, and the next run goes on from that one, as an undisturbed run does.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from strandline.scoring.language_model import ids_digest
from strandline.scoring.path_reuse import KnownPath

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from strandline.scoring.tree_forward import PathState

Ids = tuple[int, ...]


@dataclass(frozen=True)
class PathStore:
    """The paths in a folder of at most ``limit`` bytes. When the limit is reached, new topics are not kept."""

    folder: Path
    limit: int
    _writing: ClassVar[threading.Lock] = threading.Lock()

    def within(self, name: str, version: str) -> PathStore:
        """The folder for one model, format and limit; folders of other code versions are deleted."""
        place = self.folder / name
        for other in place.iterdir() if place.is_dir() else ():
            if other.name != version:
                shutil.rmtree(other, ignore_errors=True)
        return PathStore(place / version, self.limit)

    def find(self, topic: str, device: str, usable: Callable[[Ids], bool] = lambda _: True) -> KnownPath | None:
        """The topic's last path whose token ids are usable, or None; its state is read when the path is opened."""
        for path in self._paths(topic):
            known = _known_path(path, device)
            if known is not None and usable(known.ids):
                return known
        return None

    def keep(self, topic: str, ids: Ids, state: PathState) -> None:
        """Put a path beside the topic's earlier one, where the folder and the disk have room for it."""
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        tensors = _tensors(ids, state)
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
        path = self._path(topic, ids)
        whole = path.with_suffix(f".{os.getpid()}")
        with self._writing, suppress(OSError, SafetensorError):
            own = set(self._paths(topic))
            others = sum(file.stat().st_size for file in self.folder.glob("*.safetensors") if file not in own)
            if others + size > self.limit:
                return
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                save_file(tensors, whole)
                whole.replace(path)
            finally:
                whole.unlink(missing_ok=True)

    def settle(self, name: str, topics: Iterable[str]) -> None:
        """Delete all but the last path of each topic, now that what was computed with it is stored."""
        place = self.folder / name
        for version in place.iterdir() if place.is_dir() else ():
            for topic in topics:
                for older in PathStore(version, self.limit)._paths(topic)[1:]:
                    with suppress(OSError):
                        older.unlink(missing_ok=True)

    def _paths(self, topic: str) -> list[Path]:
        """The files of a topic, the last written first."""
        files = [file for file in self.folder.glob(f"{_stem(topic)}.*.safetensors") if file.is_file()]
        return sorted(files, key=lambda file: (file.stat().st_mtime_ns, file.name), reverse=True)

    def _path(self, topic: str, ids: Ids) -> Path:
        return self.folder / f"{_stem(topic)}.{ids_digest(ids)}.safetensors"


def _stem(topic: str) -> str:
    return sha256(topic.encode()).hexdigest()[:32]


def _known_path(path: Path, device: str) -> KnownPath | None:
    """The path in a file; None where it is gone or damaged, and then the file goes too."""
    from safetensors import SafetensorError, safe_open

    try:
        file: Any = safe_open(path, framework="pt", device=device)
        return KnownPath(tuple(file.get_tensor("ids").tolist()), partial(_state, file))
    except FileNotFoundError:
        return None
    except (SafetensorError, OSError):
        path.unlink(missing_ok=True)
        return None


def _tensors(ids: Ids, state: PathState) -> dict[str, torch.Tensor]:
    import torch

    tensors = {
        "ids": torch.tensor(ids, dtype=torch.int64),
        "hidden": state.hidden,
        "log_normaliser": state.log_normaliser,
        "sums": torch.from_numpy(state.sums),
    }
    for layer, (key, value) in state.carried.items():
        tensors |= {f"key.{layer}": key, f"value.{layer}": value}
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def _state(file: Any) -> PathState:
    from strandline.scoring.tree_forward import PathState

    names: list[str] = file.keys()
    layers = [int(name.removeprefix("key.")) for name in names if name.startswith("key.")]
    carried = {layer: (file.get_tensor(f"key.{layer}"), file.get_tensor(f"value.{layer}")) for layer in layers}
    sums: NDArray[np.float64] = file.get_tensor("sums").cpu().numpy()
    return PathState(carried, file.get_tensor("hidden"), file.get_tensor("log_normaliser"), sums)
