"""What the header of a GGUF file says, and whether transformers would read all of it.

transformers passes over what it does not know in a GGUF and gives random values to what it does not find there; what
would be lost that way is refused here by name, before any weights are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from resources.models import ModelLoadError
from resources.models.checkpoint import named, refuse_pointer

_NEEDED = ("block_count", "embedding_length")
"""Hyper-parameters without which transformers would build its architecture's default size, of billions of weights."""

_TIED_ANYWAY = ("falcon", "bloom")
"""Architectures whose output layer transformers ties to the embeddings even where the file stores it apart."""

_BLOCK = re.compile(r"blk\.(\d+)\.")
"""The layer that a tensor of a GGUF belongs to."""


@dataclass(frozen=True)
class GgufFacts:
    """What a GGUF's header says: architecture, number of weights, and the formats they are stored in.

    ``tensors`` holds the number of weights of each tensor, ``numbers`` the fields that are single numbers, ``texts``
    those that are one text, without the architecture's name at their front.
    """

    architecture: str
    elements: int
    quantisation: str
    tensors: Mapping[str, int] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


def gguf_facts(path: Path) -> GgufFacts:
    """Facts from the header; ModelLoadError where it is no GGUF or transformers cannot expand its architecture."""
    from gguf import GGUFReader
    from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES

    refuse_pointer(path)
    try:
        reader = GGUFReader(str(path))
        values = {key: found.contents() for key, found in reader.fields.items() if _is_short(found)}
        tensors = {tensor.name: int(tensor.n_elements) for tensor in reader.tensors}
        formats = sorted({tensor.tensor_type.name for tensor in reader.tensors})
    except Exception as error:  # a damaged header raises whatever it likes
        line = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise ModelLoadError(f"{path.name} is not a readable GGUF file: {line}") from error
    architecture = str(values.get("general.architecture", ""))
    supported = {_plain(name) for name in GGUF_SUPPORTED_ARCHITECTURES}
    if _plain(architecture) not in supported:
        raise ModelLoadError(
            f"the GGUF architecture {architecture!r} of {path.name} cannot be expanded by transformers"
        )
    short = {key.removeprefix(f"{architecture}."): value for key, value in values.items()}
    numbers = {k: float(v) for k, v in short.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    texts = {key: value for key, value in short.items() if isinstance(value, str)}
    return GgufFacts(architecture, sum(tensors.values()), "+".join(formats), tensors, numbers, texts)


def refuse_unreadable(path: Path, facts: GgufFacts) -> int:
    """The number of weights of the model that the header describes, once it is sure to be the one in the file.

    Raises ModelLoadError where hyper-parameters are missing, where the file is one part of several, where it describes
    more weights than it holds, and where it holds tensors, or a scaling of positions, that transformers would not read.
    """
    missing = [f"{facts.architecture}.{key}" for key in _NEEDED if key not in facts.numbers]
    if missing:
        raise ModelLoadError(f"{path.name} lacks hyper-parameters ({named(missing)}): which model it holds is not said")
    if facts.numbers.get("split.count", 1) > 1:
        raise ModelLoadError(f"{path.name} is one part of several: merge them (llama-gguf-split --merge) first")
    described, config = _described(path)
    if described - max(facts.tensors.values(), default=0) > facts.elements:
        raise ModelLoadError(
            f"{path.name} describes a model of {described:,} weights and holds {facts.elements:,}: it is incomplete"
        )
    _refuse_unread(path, facts, described)
    _refuse_lost_scaling(path, facts, config)
    return described


def _described(path: Path) -> tuple[int, Any]:
    """The number of weights of the described model, which is laid out without memory, and its configuration."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    loader: Any = AutoModelForCausalLM
    try:
        config = AutoConfig.from_pretrained(path.parent, gguf_file=path.name, trust_remote_code=False)
        with torch.device("meta"):
            model = loader.from_config(config)
    except Exception as error:  # hyper-parameters that contradict each other raise whatever they like
        line = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise ModelLoadError(f"{path.name} describes no model that transformers can build: {line}") from error
    tensors = {id(tensor): tensor.numel() for tensor in model.state_dict(keep_vars=True).values()}
    return sum(tensors.values()), config


def _refuse_unread(path: Path, facts: GgufFacts, described: int) -> None:
    """More weights than the model has places for: the rest would be passed over."""
    tied = facts.tensors.get("output.weight", 0) if facts.architecture in _TIED_ANYWAY else 0
    if facts.elements - tied <= described:
        return
    layers = facts.numbers["block_count"]
    beyond = [name for name in facts.tensors if (block := _BLOCK.match(name)) and int(block[1]) >= layers]
    unread = beyond or [name for name in facts.tensors if name.startswith("rope_")]
    raise ModelLoadError(
        f"{path.name} holds weights that transformers would not read ({named(unread) or 'more than the model has'}): "
        "take the model as safetensors"
    )


def _refuse_lost_scaling(path: Path, facts: GgufFacts, config: Any) -> None:
    """Positions that the file scales and transformers' configuration does not would give other numbers."""
    kind = facts.texts.get("rope.scaling.type", "none")
    scaled = kind not in ("none", "") and facts.numbers.get("rope.scaling.factor", 1.0) != 1.0
    given = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    if scaled and given.get("rope_type", "default") == "default":
        raise ModelLoadError(
            f"{path.name} scales positions ({kind}), which transformers does not read from a GGUF: take the model as "
            "safetensors"
        )


def _is_short(found: Any) -> bool:
    """Whether a field is one value: vocabularies of a hundred thousand words are not looked at."""
    return len(found.data) == 1 and found.types and found.types[0].name != "ARRAY"


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "")
