"""The weights of a model folder as transformers will read them: which files, which tensors, whether they are whole.

Only headers are read. What is seen here is refused before a loader can repair it: transformers gives a tensor that it
does not find random values and goes on. Loading itself belongs to ``weights``.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from resources.models import ModelLoadError

WRAPPINGS = {
    r"_orig_mod\.": "",
    r"_fsdp_wrapped_module\.": "",
    r"_checkpoint_wrapped_module\.": "",
    r"^_forward_module\.": "",
    r"^module\.": "",
}
"""What torch.compile, FSDP, activation checkpointing, DeepSpeed and data-parallel training put into tensor names, as
patterns for transformers' ``key_mapping``: only the name changes, never a value."""

_SINGLE = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
"""In the order in which transformers looks for them: where two copies of the weights lie side by side, one is read."""

_LONGEST_HEADER = 100_000_000
"""Bytes; the safetensors format allows no longer header, so a greater length is damage."""

_LFS = b"version https://git-lfs.github.com/spec/"
"""How a git-lfs pointer begins: the text file that stands in a clone for a file that was not fetched."""

_SHOWN = 3
"""Tensor names that a message lists: enough to see what kind they are, few enough for one line."""


@dataclass(frozen=True)
class Checkpoint:
    """The weights of a folder: the files that are read, and the tensors in them by the name that they are stored under.

    ``shapes`` holds no tensor twice, ``shared`` those that another one's storage already holds (tied weights in a
    ``.bin`` file).
    """

    files: tuple[Path, ...]
    shapes: Mapping[str, tuple[int, ...]]
    shared: frozenset[str] = frozenset()

    @property
    def elements(self) -> int:
        """The number of weights: what they take in memory, counted once."""
        return sum(math.prod(shape) for name, shape in self.shapes.items() if name not in self.shared)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The shape of a tensor by its name in the model, which may stand before or after the model's own prefix."""
        bare = ((unwrapped(stored), shape) for stored, shape in self.shapes.items())
        return next((shape for stored, shape in bare if stored.endswith(name) or name.endswith(stored)), None)

    @property
    def wrappings(self) -> tuple[str, ...]:
        """The known wrappings in its names, as they are written there."""
        found = (re.findall(pattern, name) for name in self.shapes for pattern in WRAPPINGS)
        return tuple(dict.fromkeys(part for parts in found for part in parts))


def checkpoint(folder: Path) -> Checkpoint:
    """The weights that transformers would read from this folder.

    Raises ModelLoadError, naming the file, where there are none, where a file is missing, cut, unreadable or a git-lfs
    pointer, where an index and its files disagree, or where the folder holds an adapter instead of a whole model.
    """
    _refuse_pointers(folder)
    if (folder / "adapter_config.json").is_file():
        raise ModelLoadError(
            f"{folder} holds an adapter (adapter_config.json), which is not applied here: merge it into its model first"
        )
    chosen = _weights_file(folder)
    files = _indexed(chosen) if chosen.name.endswith(".index.json") else (chosen,)
    shapes: dict[str, tuple[int, ...]] = {}
    shared: set[str] = set()
    for file in files:
        found, tied = _tensors(file)
        shapes |= found
        shared |= tied
    if chosen not in files:
        _compare_with_index(chosen, shapes)
    _refuse_doubles(folder, shapes)
    return Checkpoint(files, shapes, frozenset(shared))


def named(tensors: Iterable[str]) -> str:
    """Some tensor names for a message: the first few in order, and how many more there are."""
    names = sorted(tensors)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def refuse_pointer(file: Path) -> None:
    """ModelLoadError where a file is only git-lfs's pointer to it."""
    with file.open("rb") as stream:
        if stream.read(len(_LFS)) == _LFS:
            raise ModelLoadError(
                f"{file.name} in {file.parent} is a git-lfs pointer, not the file itself: run 'git lfs pull' there"
            )


def _refuse_pointers(folder: Path) -> None:
    for file in sorted(folder.iterdir()):
        if file.is_file():
            refuse_pointer(file)


def _weights_file(folder: Path) -> Path:
    """The file with the weights, or the index of several, that transformers takes first."""
    named_by_config = _json(folder / "config.json").get("transformers_weights")
    names = (named_by_config,) if isinstance(named_by_config, str) else _SINGLE
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise ModelLoadError(f"{folder} holds no weights (none of {', '.join(names)})")


def _indexed(index: Path) -> tuple[Path, ...]:
    """The files of an index, each of which must be there."""
    files = tuple(index.parent / name for name in dict.fromkeys(_weight_map(index).values()))
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise ModelLoadError(f"{index.parent} is incomplete: {named(missing)} of {index.name} is missing")
    return files


def _weight_map(index: Path) -> dict[str, str]:
    mapping = _json(index).get("weight_map")
    is_map = isinstance(mapping, dict) and mapping and all(isinstance(file, str) for file in mapping.values())
    if not is_map or not isinstance(mapping, dict):
        raise ModelLoadError(f"{index.name} in {index.parent} is no index of weights (no weight_map)")
    return mapping


def _compare_with_index(index: Path, shapes: Mapping[str, tuple[int, ...]]) -> None:
    missing = set(_weight_map(index)) - set(shapes)
    if missing:
        raise ModelLoadError(f"{index.parent} is incomplete: {named(missing)} of {index.name} is in none of its files")


def _refuse_doubles(folder: Path, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """A tensor that is there both wrapped and bare has two values; which of them counts cannot be told."""
    bare: dict[str, str] = {}
    for name in shapes:
        other = bare.setdefault(unwrapped(name), name)
        if other != name:
            raise ModelLoadError(f"{folder} holds one tensor under two names: {named([other, name])}")


def unwrapped(name: str) -> str:
    """The name of a tensor without known wrappings."""
    for pattern, replacement in WRAPPINGS.items():
        name = re.sub(pattern, replacement, name)
    return name


def _tensors(file: Path) -> tuple[dict[str, tuple[int, ...]], set[str]]:
    """The shapes in one file, and which of its tensors lie in another one's storage."""
    if file.suffix == ".safetensors":
        return dict(_safetensors_shapes(file)), set()
    return _pickled_shapes(file)


def _safetensors_shapes(file: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    with file.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        try:
            header = json.loads(stream.read(size if size <= _LONGEST_HEADER else 0))
            tensors = {name: tensor for name, tensor in header.items() if name != "__metadata__"}
            ends = [int(tensor["data_offsets"][1]) for tensor in tensors.values()]
            shapes = {name: tuple(int(n) for n in tensor["shape"]) for name, tensor in tensors.items()}
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            raise ModelLoadError(f"{file.name} in {file.parent} is not a readable safetensors file") from None
    length, whole = file.stat().st_size, 8 + size + max(ends, default=0)
    if length != whole:
        raise ModelLoadError(f"{file.name} in {file.parent} is cut or damaged: {length:,} bytes of {whole:,}")
    yield from shapes.items()


def _pickled_shapes(file: Path) -> tuple[dict[str, tuple[int, ...]], set[str]]:
    import torch

    try:
        if zipfile.is_zipfile(file):
            stored = torch.load(file, map_location="cpu", weights_only=True, mmap=True)
        else:  # torch's older format cannot be mapped into memory
            stored = torch.load(file, map_location="meta", weights_only=True)
    except Exception as error:  # a damaged pickle raises whatever it likes
        raise ModelLoadError(f"{file.name} in {file.parent} holds no readable weights: {_line(error)}") from None
    entries = stored.items() if isinstance(stored, dict) else ()
    strange = [str(name) for name, value in entries if not isinstance(value, torch.Tensor)]
    if strange or not isinstance(stored, dict):
        raise ModelLoadError(
            f"{file.name} in {file.parent} holds {named(strange) or 'something else'} instead of tensors alone: "
            "a trainer's checkpoint must be saved as a model first"
        )
    shapes = {str(name): tuple(tensor.shape) for name, tensor in stored.items()}
    first: dict[tuple[int, tuple[int, ...]], str] = {}
    for name, tensor in stored.items():
        if tensor.data_ptr():
            first.setdefault((tensor.data_ptr(), tuple(tensor.shape)), str(name))
    return shapes, (set(shapes) - set(first.values())) if first else set()


def _json(file: Path) -> dict[str, object]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelLoadError(f"{file.name} in {file.parent} cannot be read: {_line(error)}") from None
    if not isinstance(document, dict):
        raise ModelLoadError(f"{file.name} in {file.parent} is no JSON object")
    return document


def _line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
