"""Language models whose weights run here, loaded with transformers from wherever a model's entry says they are.

The number format is passed explicitly and recorded; memory is estimated before anything is read; no token is added and
no embedding resized. One model is in memory at a time.
"""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from resources.models import ModelLoadError
from resources.models.checkpoint import Checkpoint, checkpoint
from resources.models.files import (
    ModelFolder,
    file_digest,
    folder_digest,
    require_memory,
)
from resources.models.loading import loaded_config, loaded_model, loaded_tokenizer, refuse_foreign_tokenizer
from resources.models.tokenizer_pairs import refuse_other_tokenizer
from resources.places import ROOT, rooted
from strandline.models import ModelSpec
from strandline.models.digests import value_digest
from strandline.models.sources import HUB, source_of
from strandline.models.spec import number_format
from strandline.scoring.language_model import LanguageModel

# This module's messages; the caller decides where they go.
_LOG = logging.getLogger(__name__)

CACHE = ROOT / "data" / "cache" / "models"
"""Beside the other caches, which git ignores and a user may delete."""

_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes that a weight takes in memory."""

_MARGIN = 1.15
"""Memory beyond the weights themselves, for the activations of a slice and the loader's buffers. A judgement: less
would let the system end the process, more would refuse models that fit."""

_CONTEXT_NAMES = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_sequence_length")
"""What the configurations of transformers' architectures call the longest input."""


class LanguageModels:
    """Loads models and keeps the last one, so that a second request for it costs nothing.

    Asking for another model, format or device lets go of the one in memory first; that holds for the whole process.
    """

    _one_at_a_time: ClassVar[threading.RLock] = threading.RLock()
    _held: ClassVar[tuple[Any, LanguageModel] | None] = None

    def __init__(self, cache: Path = CACHE, device: str | None = None) -> None:
        self._cache, self._device = cache, device

    def load(self, spec: ModelSpec, dtype: str | None = None) -> LanguageModel:
        """The model of an entry; ``dtype`` overrides the entry's. ModelLoadError says in one line why not."""
        if spec.backend != "transformers":
            raise ModelLoadError(f"{spec.name} is served by an endpoint; its weights are not here")
        device = self._device or default_device()
        wanted = (spec, resolved_dtype(dtype or spec.dtype, device), device, self._cache)
        with self._one_at_a_time:
            held, stamp = LanguageModels._held, _stamp(spec)
            if held is None or held[0] != (wanted, stamp):
                self.release()
                with _named(spec):
                    held = LanguageModels._held = ((wanted, stamp), _load(*wanted))
            return held[1]

    def digest(self, spec: ModelSpec) -> str:
        """What names an entry's weights, without loading them: equal to the loaded model's ``digest``."""
        with _named(spec):
            return _digest(spec, self._cache)

    def tokenizer(self, spec: ModelSpec) -> Any:
        """An entry's tokenizer, without its weights. ModelLoadError where it has none here."""
        if spec.backend != "transformers":
            raise ModelLoadError(f"{spec.name} is served by an endpoint; its tokenizer is not here")
        with _named(spec):
            return loaded_tokenizer(_place(spec, self._cache), spec.name, **_given(spec))

    def release(self) -> None:
        """Let go of the model in memory."""
        with self._one_at_a_time:
            if LanguageModels._held is not None:
                LanguageModels._held = None
                gc.collect()


@contextmanager
def _named(spec: ModelSpec) -> Iterator[None]:
    """Errors about a file say whose it is."""
    try:
        yield
    except (ModelLoadError, OSError) as error:
        if isinstance(error, ModelLoadError) and spec.name in str(error):
            raise
        raise ModelLoadError(f"{spec.name}: {error}") from error


def default_device() -> str:
    """The accelerator where torch sees one, else the CPU."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def resolved_dtype(dtype: str, device: str) -> str:
    """The format that is computed in: what was asked for, where this device computes in it.

    ``auto`` is bfloat16 where the hardware computes in it, else float32. ``float16`` on a processor is float32, which
    holds every value of it: hardly a processor computes in float16, and its sums overflow at 65,504.

    Raises ValueError for a format of another name.
    """
    number_format(dtype)
    if dtype == "float16" and not device.startswith("cuda"):
        return "float32"
    if dtype != "auto":
        return dtype
    import torch

    if device.startswith("cuda"):
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    flags = Path("/proc/cpuinfo")
    known = flags.read_text() if flags.exists() else ""
    return "bfloat16" if "avx512_bf16" in known or "amx_bf16" in known else "float32"


def _load(spec: ModelSpec, dtype: str, device: str, cache: Path) -> LanguageModel:
    """The model of an entry, checked before, while and after it is read."""
    purpose = f"loading {spec.name} in {dtype}"
    if spec.source.startswith("hub:"):
        weights = f"{spec.source}@{_pinned(spec)}"
        if spec.n_params is not None:
            require_memory(int(spec.n_params * _BYTES[dtype] * _MARGIN), purpose)
        return _assembled(spec, dtype, device, cache, weights, lambda: _hub_checkpoint(spec))
    folder = _folder(spec, cache)
    stored = checkpoint(folder.path)
    require_memory(int(stored.elements * _BYTES[dtype] * _MARGIN), purpose)
    weights = folder.digest or " ".join(file_digest(file) for file in stored.files)
    return _assembled(spec, dtype, device, cache, weights, lambda: stored, folder.quantisation)


def _digest(spec: ModelSpec, cache: Path, config: Any = None) -> str:
    """What names the entry's numbers: its weights, and its context where that is shorter than theirs."""
    own = None
    if spec.context_length is not None:
        own = _own_context(config or loaded_config(_place(spec, cache), spec.name, **_given(spec)))
    if spec.source.startswith("hub:"):
        return value_digest(spec, f"{spec.source.removeprefix('hub:')}@{_pinned(spec)}", own)
    folder = _folder(spec, cache)
    return value_digest(spec, folder.digest or folder_digest(folder.path), own)


def _place(spec: ModelSpec, cache: Path) -> str:
    """Where transformers finds the model: a hub's name or a folder."""
    is_hub = spec.source.startswith("hub:")
    return spec.source.removeprefix("hub:") if is_hub else str(_folder(spec, cache).path)


def _given(spec: ModelSpec) -> dict[str, str]:
    return {"revision": _pinned(spec)} if spec.source.startswith("hub:") else {}


def _folder(spec: ModelSpec, cache: Path) -> ModelFolder:
    """The local folder of a model that does not come from a hub, made where it is not there yet."""
    try:
        kind, where = source_of(spec.source)
    except ValueError as error:
        raise ModelLoadError(f"the source {spec.source!r} of {spec.name} is of no known kind: {error}") from None
    module, _, function = (kind.folder or "").partition(":")
    if not module:
        raise ModelLoadError(f"{spec.source} of {spec.name} has no folder here")
    folder = getattr(import_module(module), function)(spec, where, cache)
    assert isinstance(folder, ModelFolder)
    return folder


def _stamp(spec: ModelSpec) -> tuple[tuple[str, int, int], ...]:
    """Names, sizes and times of the files of a local model, so that one that was trained on is read again."""
    kind, _, where = spec.source.partition(":")
    path = rooted(where)
    is_local = kind != HUB.kind and path.exists()
    files = sorted(path.iterdir()) if is_local and path.is_dir() else [path] if is_local else []
    return tuple((f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files if f.is_file())


def _pinned(spec: ModelSpec) -> str:
    if not spec.revision:
        raise ModelLoadError(f"{spec.name}: a hub model needs a pinned revision")
    return spec.revision


def _assembled(
    spec: ModelSpec,
    dtype: str,
    device: str,
    cache: Path,
    weights: str,
    stored: Callable[[], Checkpoint | None],
    quantisation: str | None = None,
) -> LanguageModel:
    """Weights and tokenizer in memory; ``weights`` names the weights alone, whatever stands beside them."""
    import torch

    place, name = _place(spec, cache), spec.name
    model = loaded_model(place, name, getattr(torch, dtype), stored, **_given(spec))
    tokenizer = loaded_tokenizer(place, name, **_given(spec))
    refuse_foreign_tokenizer(name, model, tokenizer)
    refuse_other_tokenizer(name, weights, tokenizer, cache)
    model = model.to(device).eval().requires_grad_(False)
    digest = _digest(spec, cache, model.config)
    return LanguageModel(
        name=name,
        model=model,
        tokenizer=tokenizer,
        bos_id=bos_id(model, tokenizer),
        context_length=_context_length(spec, model.config),
        dtype=dtype,
        device=device,
        revision=spec.revision or digest[:16],
        digest=digest,
        tokenizer_digest=tokenizer_digest(tokenizer),
        n_params=sum(parameter.numel() for parameter in model.parameters()),
        quantisation=_wrapped_note(name, stored()) or quantisation,
    )


def _wrapped_note(name: str, stored: Checkpoint | None) -> str | None:
    """Which wrappings were taken off the names of tensors, also as a warning; None where there were none."""
    if stored is None or not stored.wrappings:
        return None
    note = f"names unwrapped from {', '.join(stored.wrappings)}"
    _LOG.warning("%s: its weights were saved from inside a training wrapper; %s", name, note)
    return note


def _hub_checkpoint(spec: ModelSpec) -> Checkpoint | None:
    """A hub's weights as they lie in the hub's own cache once they are loaded; None where they lie elsewhere."""
    from transformers.utils.hub import cached_file

    try:
        config = cached_file(spec.source.removeprefix("hub:"), "config.json", local_files_only=True, **_given(spec))
        return checkpoint(Path(config).parent) if config else None
    except (OSError, ModelLoadError):
        return None


def bos_id(model: Any, tokenizer: Any) -> int | None:
    """The id of the tokenizer's BOS where it defines one that the model has an embedding for; end-of-text never."""
    found = tokenizer.bos_token_id
    rows = model.get_input_embeddings().weight.shape[0]
    return found if isinstance(found, int) and 0 <= found < rows else None


def _context_length(spec: ModelSpec, config: Any) -> int | None:
    """The smaller of what the entry and the model's configuration say."""
    lengths = [length for length in (_own_context(config), spec.context_length) if length is not None]
    return min(lengths, default=None)


def _own_context(config: Any) -> int | None:
    """The longest input that the model's configuration allows, None where it does not say."""
    known = [getattr(config.get_text_config(), name, None) for name in _CONTEXT_NAMES]
    return min((length for length in known if isinstance(length, int) and length > 0), default=None)


def tokenizer_digest(tokenizer: Any) -> str:
    """The sha256 of a tokenizer as its library writes it down."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    stored = backend.to_str() if backend is not None else repr(sorted(tokenizer.get_vocab().items()))
    return sha256(stored.encode()).hexdigest()
