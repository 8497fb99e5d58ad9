"""transformers' loaders, held to their word: every weight comes from the files, or the model is refused.

By themselves they give random values to what is missing, pass over what they do not expect, and ask at the keyboard
before they run foreign code. Which files and which source is decided by ``files`` and ``weights``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from resources.models import ModelLoadError
from resources.models.checkpoint import WRAPPINGS, Checkpoint, named
from strandline.scoring.memory import is_out_of_memory
from strandline.scoring.tokens import without_trimming

# The share of the embedding rows that may be padding; the line below says why.
_FULLEST_PADDING = 0.1
_SMALL_PADDING = 256
"""How many more embedding rows than tokens are taken for padding: a tenth, or 256 where a byte-level model has a few
hundred in all. A judgement: rows are padded to multiples of 64 to 512, which in published models we know of is 2 or
3 %, while the vocabularies of two model families mostly differ by a third or more."""


Stored = Callable[[], Checkpoint | None]

_MASK = re.compile(r"\.attn(\.attention)?\.(masked_)?bias$")
"""Causal masks, which GPT-2 and GPT-Neo checkpoints of before 2023 hold beside their weights: computed, never learned.
They are told from a bias of that name by their shape, a square of positions or one number."""


def loaded_model(where: str | Path, name: str, dtype: Any, stored: Stored = lambda: None, **given: Any) -> Any:
    """The model of a folder, hub name or GGUF, in this number format, with every weight read from its files.

    Args:
        where: a folder, or the name on a hub.
        name: what messages call it.
        dtype: torch's number format.
        stored: gives the weights as they lie in their files, where that is known; asked once they are loaded.
        given: ``revision`` or ``gguf_file``, as transformers takes them.

    Raises ModelLoadError where tensors are missing, of another shape, or not the model's: tied weights may be stored
    once. Known wrappings of tensor names are taken off.
    """
    from transformers import AutoModelForCausalLM

    loader: Any = AutoModelForCausalLM
    wrappings = {} if "gguf_file" in given else {"key_mapping": WRAPPINGS}
    with _in_our_words(name), _quiet():
        model, loading = loader.from_pretrained(
            where,
            dtype=dtype,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            trust_remote_code=False,
            **wrappings,
            **given,
        )
    _refuse_gaps(name, loading, stored())
    return model


def loaded_tokenizer(where: str | Path, name: str, **given: Any) -> Any:
    """The tokenizer of a folder, hub name or GGUF, told to give every id of a text; ModelLoadError without one."""
    from transformers import AutoTokenizer

    with _in_our_words(f"the tokenizer of {name}"), _quiet():
        return without_trimming(AutoTokenizer.from_pretrained(where, trust_remote_code=False, **given))


def loaded_config(where: str | Path, name: str, **given: Any) -> Any:
    """The configuration of a folder's or a hub's model. ModelLoadError where there is none."""
    from transformers import AutoConfig

    with _in_our_words(name), _quiet():
        return AutoConfig.from_pretrained(where, trust_remote_code=False, **given)


def refuse_foreign_tokenizer(name: str, model: Any, tokenizer: Any) -> None:
    """ModelLoadError where the tokenizer's size shows that it belongs to another model.

    Every token that text can become needs an embedding; special tokens may lie beyond them (Gemma 3's image token
    does), for text never becomes one. Of two vocabularies of about one size this can tell nothing.
    """
    rows = int(model.get_input_embeddings().weight.shape[0])
    size = 1 + max(text_vocabulary(tokenizer).values(), default=-1)
    is_too_large = size > rows
    is_too_small = rows - size > max(_SMALL_PADDING, _FULLEST_PADDING * rows)
    if is_too_large or is_too_small:
        raise ModelLoadError(
            f"{name}: a tokenizer of {size:,} tokens does not belong to weights with {rows:,} embeddings"
        )


def text_vocabulary(tokenizer: Any) -> dict[str, int]:
    """The tokens that text can become, with their ids: all but special ones."""
    special = set(getattr(tokenizer, "all_special_tokens", ()))
    special |= {token.content for token in getattr(tokenizer, "added_tokens_decoder", {}).values() if token.special}
    return {token: i for token, i in tokenizer.get_vocab().items() if token not in special}


def _refuse_gaps(name: str, loading: Mapping[str, Any], stored: Checkpoint | None) -> None:
    """Refuse what the loader would have filled, passed over or left as it was."""
    unexpected = [str(key) for key in loading["unexpected_keys"] if not _is_mask(str(key), stored)]
    mismatched = [f"{key} {tuple(found)} for {tuple(wanted)}" for key, found, wanted in loading["mismatched_keys"]]
    faults = {"missing": loading["missing_keys"], "not the model's": unexpected}
    said = [f"{what}: {named(map(str, keys))}" for what, keys in faults.items() if keys]
    said += [f"of another shape: {named(mismatched)}"] if mismatched else []
    said += [str(message).splitlines()[0] for message in loading.get("error_msgs") or ()]
    if said:
        raise ModelLoadError(f"{name} is refused, for its weights do not fit its configuration: {'; '.join(said)}")


def _is_mask(key: str, stored: Checkpoint | None) -> bool:
    shape = stored.shape(key) if stored else None
    is_square = shape is None or len(shape) == 0 or (len(shape) == 4 and shape[-1] == shape[-2])
    return _MASK.search(key) is not None and is_square


@contextmanager
def _in_our_words(name: str) -> Iterator[None]:
    """Whatever a loader raises, as one line; memory that runs out stays what it is."""
    try:
        yield
    except ModelLoadError:
        raise
    except Exception as error:  # loaders raise whatever they like
        if is_out_of_memory(error):
            raise ModelLoadError(f"{name} cannot be loaded: memory ran out") from error
        if "trust_remote_code" in str(error):
            raise ModelLoadError(
                f"{name} cannot be loaded: it needs code of its own, which is not run here; take a model whose "
                "architecture transformers knows"
            ) from error
        line = next((text.strip() for text in str(error).splitlines() if text.strip()), type(error).__name__)
        raise ModelLoadError(f"{name} cannot be loaded: {line}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' own bars and reports: what they say is refused here in one line."""
    from transformers.utils import logging

    settings: Any = logging
    verbosity = settings.get_verbosity()
    settings.disable_progress_bar()
    settings.set_verbosity_error()
    try:
        yield
    finally:
        settings.set_verbosity(verbosity)
