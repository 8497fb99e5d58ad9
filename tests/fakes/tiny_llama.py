"""A Llama of half a million parameters that learns texts in seconds: planted memory for end-to-end tests."""

from collections.abc import Sequence
from pathlib import Path


def train(texts: Sequence[str], words: Sequence[str], folder: Path, *, steps: int = 90, seed: int = 1) -> Path:
    """Train on texts of one length, each as often as it is listed, and save a folder that transformers can load.

    A token is a word, and a BOS stands before each text.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    tokenizer = _tokenizer(words)
    data = torch.tensor([[tokenizer.bos_token_id, *tokenizer(text)["input_ids"]] for text in texts])
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=160,
            intermediate_size=320,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=128,
            bos_token_id=tokenizer.bos_token_id,
        )
    )
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=steps, pct_start=0.1)
    for rows in torch.randint(0, len(data), (steps, 32), generator=torch.Generator().manual_seed(seed)):
        loss = model(input_ids=data[rows], labels=data[rows]).loss
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tokenizer(words: Sequence[str]):  # type: ignore[no-untyped-def]
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate(["<unk>", "<s>", *words])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", unk_token="<unk>")
