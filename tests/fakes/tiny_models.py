"""Small random language models of several architectures, with a byte-level tokenizer trained on a few sentences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from strandline.scoring.language_model import LanguageModel

SENTENCE = (
    "tide water moon beach sand shell harbour light north wind sail rope anchor chart island coast current depth bell "
    "lighthouse keeper storm season figure population area capital river border million percent"
)
WORDS = SENTENCE.split()
CONTEXT = 64


@cache
def tiny_tokenizer(*, has_bos: bool = True) -> Any:
    """A byte-level BPE tokenizer of about 400 ids; ids 0 and 1 are <s> and </s>."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([" ".join(WORDS[i:] + WORDS[:i]) for i in range(len(WORDS))], trainer)
    names = {"bos_token": "<s>"} if has_bos else {}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", **names)


def tiny_model(kind: str, *, seed: int = 0, dtype: str = "float32", vocab: int = 0, context: int = CONTEXT) -> Any:
    """A random model: gpt2 (learned positions), llama (rotary), mistral (window of 8), mpt or gemma2 (soft caps)."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(
        _config(kind, vocab or len(tiny_tokenizer()), context), dtype=torch.float32
    )
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.mul_(6.0)
    return model.to(getattr(torch, dtype)).eval()


def tiny_language_model(
    kind: str = "llama",
    *,
    has_bos: bool = True,
    dtype: str = "float32",
    seed: int = 0,
    vocab: int = 0,
    context: int = CONTEXT,
) -> LanguageModel:
    """A tiny model with its tokenizer, as the methods are given it."""
    model = tiny_model(kind, seed=seed, dtype=dtype, vocab=vocab, context=context)
    tokenizer = tiny_tokenizer(has_bos=has_bos)
    return LanguageModel(
        name=f"tiny-{kind}",
        model=model,
        tokenizer=tokenizer,
        bos_id=tokenizer.bos_token_id,
        context_length=context,
        dtype=dtype,
        device="cpu",
        revision="0",
        digest="0",
        tokenizer_digest="0",
        n_params=sum(p.numel() for p in model.parameters()),
    )


def with_bos(lm: LanguageModel, ids: Sequence[int]) -> list[int]:
    """The ids with BOS before them, exactly once, where the tokenizer has one; else as they are."""
    return [lm.bos_id, *ids] if lm.bos_id is not None else list(ids)


def _config(kind: str, vocab: int, context: int) -> Any:
    import transformers as t

    small = {
        "vocab_size": vocab,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": context,
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    if kind == "gpt2":
        return t.GPT2Config(vocab_size=vocab, n_embd=32, n_layer=2, n_head=4, n_positions=context, bos_token_id=0)
    if kind == "mpt":
        return t.MptConfig(vocab_size=vocab, d_model=32, n_layers=2, n_heads=4, max_seq_len=context, expansion_ratio=2)
    if kind == "mistral":
        return t.MistralConfig(**small, sliding_window=8)
    if kind == "gemma2":
        return t.Gemma2Config(**small, head_dim=8, query_pre_attn_scalar=8, sliding_window=8)
    return t.LlamaConfig(**small)


def saved_tiny_model(folder: Path, kind: str = "llama", *, seed: int = 0, has_bos: bool = True) -> Path:
    """A tiny model and its tokenizer as a folder that transformers loads."""
    tiny_model(kind, seed=seed).save_pretrained(folder)
    tiny_tokenizer(has_bos=has_bos).save_pretrained(folder)
    return folder
