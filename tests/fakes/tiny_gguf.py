"""A small random Llama as a GGUF file, whole or with parts left out or added."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from tests.fakes.tiny_models import CONTEXT, tiny_tokenizer

HIDDEN, INNER, LAYERS, HEADS, GROUPS = 32, 48, 2, 4, 2


def tiny_gguf(
    path: Path,
    *,
    without: Collection[str] = (),
    extra: Mapping[str, tuple[int, ...]] | None = None,
    hyper_parameters: bool = True,
    rope_scaling: bool = False,
) -> Path:
    """Write it: ``without`` these tensors, with ``extra`` ones of these shapes, with or without hyper-parameters."""
    from gguf import GGUFWriter, RopeScalingType

    writer = GGUFWriter(str(path), "llama")
    writer.add_name("tiny")
    if hyper_parameters:
        writer.add_block_count(LAYERS)
        writer.add_embedding_length(HIDDEN)
        writer.add_feed_forward_length(INNER)
        writer.add_head_count(HEADS)
        writer.add_head_count_kv(GROUPS)
        writer.add_context_length(CONTEXT)
        writer.add_layer_norm_rms_eps(1e-6)
        writer.add_rope_freq_base(10000.0)
    if rope_scaling:
        writer.add_rope_scaling_type(RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(4.0)
    _add_tokenizer(writer)
    rng = np.random.default_rng(0)
    for name, shape in (_shapes() | dict(extra or {})).items():
        if name not in without:
            writer.add_tensor(name, rng.normal(size=shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _shapes() -> dict[str, tuple[int, ...]]:
    rows, narrow = len(tiny_tokenizer()), HIDDEN * GROUPS // HEADS
    layer: dict[str, tuple[int, ...]] = {
        "attn_norm.weight": (HIDDEN,),
        "attn_q.weight": (HIDDEN, HIDDEN),
        "attn_k.weight": (narrow, HIDDEN),
        "attn_v.weight": (narrow, HIDDEN),
        "attn_output.weight": (HIDDEN, HIDDEN),
        "ffn_norm.weight": (HIDDEN,),
        "ffn_gate.weight": (INNER, HIDDEN),
        "ffn_up.weight": (INNER, HIDDEN),
        "ffn_down.weight": (HIDDEN, INNER),
    }
    layers = {f"blk.{i}.{name}": shape for i in range(LAYERS) for name, shape in layer.items()}
    return {"token_embd.weight": (rows, HIDDEN), "output_norm.weight": (HIDDEN,)} | layers


def _add_tokenizer(writer: object) -> None:
    from gguf import GGUFWriter

    assert isinstance(writer, GGUFWriter)
    stored = json.loads(tiny_tokenizer().backend_tokenizer.to_str())
    vocabulary = tiny_tokenizer().get_vocab()
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(sorted(vocabulary, key=vocabulary.__getitem__))
    writer.add_token_types([3 if i < 2 else 1 for i in range(len(vocabulary))])
    writer.add_token_merges([" ".join(pair) for pair in stored["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
