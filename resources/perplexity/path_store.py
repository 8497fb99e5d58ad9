"""Computed paths of topics on disk, so that a topic's next version costs only what changed in it.

A file a topic, for one set of weights in one number format under one limit. They are a saving and never a source of
truth: what is missing, damaged or beyond the limit on disk is computed again.
"""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from strandline.scoring.path_reuse import KnownPath

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from strandline.scoring.tree_forward import PathState


@dataclass(frozen=True)
class PathStore:
    """The paths in a folder of at most ``limit`` bytes. Full is full: a new topic then waits for room."""

    folder: Path
    limit: int
    _writing: ClassVar[threading.Lock] = threading.Lock()

    def within(self, name: str, version: str) -> PathStore:
        """Those of that name and version, with a limit of their own; what other versions left under the name goes."""
        place = self.folder / name
        for other in place.iterdir() if place.is_dir() else ():
            if other.name != version:
                shutil.rmtree(other, ignore_errors=True)
        return PathStore(place / version, self.limit)

    def find(self, topic: str, device: str) -> KnownPath | None:
        """The path of a topic, whose state is read to the device when it is opened; None where there is none."""
        from safetensors import SafetensorError, safe_open

        path = self._path(topic)
        try:
            file = safe_open(path, framework="pt", device=device)
            return KnownPath(tuple(file.get_tensor("ids").tolist()), partial(_state, file))
        except FileNotFoundError:
            return None
        except (SafetensorError, OSError):
            path.unlink(missing_ok=True)
            return None

    def keep(self, topic: str, ids: tuple[int, ...], state: PathState) -> None:
        """Put a topic's path in the place of its earlier one, where the folder and the disk have room for it."""
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        tensors = _tensors(ids, state)
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
        path = self._path(topic)
        whole = path.with_suffix(f".{os.getpid()}")
        with self._writing, suppress(OSError, SafetensorError):
            others = sum(file.stat().st_size for file in self.folder.glob("*.safetensors") if file != path)
            if others + size > self.limit:
                return
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                save_file(tensors, whole)
                whole.replace(path)
            finally:
                whole.unlink(missing_ok=True)

    def _path(self, topic: str) -> Path:
        return self.folder / f"{sha256(topic.encode()).hexdigest()[:32]}.safetensors"


def _tensors(ids: tuple[int, ...], state: PathState) -> dict[str, torch.Tensor]:
    import torch

    found = {
        "ids": torch.tensor(ids, dtype=torch.int64),
        "hidden": state.hidden,
        "log_normaliser": state.log_normaliser,
        "sums": torch.from_numpy(state.sums),
    }
    for layer, (key, value) in state.carried.items():
        found |= {f"key.{layer}": key, f"value.{layer}": value}
    return {name: tensor.detach().cpu().contiguous() for name, tensor in found.items()}


def _state(file: Any) -> PathState:
    from strandline.scoring.tree_forward import PathState

    names: list[str] = file.keys()
    layers = [int(name.removeprefix("key.")) for name in names if name.startswith("key.")]
    carried = {layer: (file.get_tensor(f"key.{layer}"), file.get_tensor(f"value.{layer}")) for layer in layers}
    sums: NDArray[np.float64] = file.get_tensor("sums").cpu().numpy()
    return PathState(carried, file.get_tensor("hidden"), file.get_tensor("log_normaliser"), sums)
