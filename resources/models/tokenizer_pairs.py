"""Which tokenizer each set of weights was first used with: another one beside the same weights is refused.

A tokenizer of about the right size but of another model gives ids that all have embeddings, and numbers without
meaning. The first use of some weights cannot be judged this way; every later one can.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock

from resources.models import ModelLoadError
from resources.models.loading import text_vocabulary

PAIRS = "tokenizer_pairs.json"
"""In the model cache: digest of weights to digest of a vocabulary. Lost with the cache, and then begun anew."""


def refuse_other_tokenizer(name: str, weights: str, tokenizer: Any, cache: Path) -> None:
    """Remember the vocabulary of weights that are new; ModelLoadError where known ones come with another vocabulary.

    Only what text can become is compared, not special tokens, and not how a library writes a tokenizer down, which
    changes with its version.
    """
    vocabulary = _digest(json.dumps(sorted(text_vocabulary(tokenizer).items()), ensure_ascii=True))
    file, key = cache / PAIRS, _digest(weights)
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_suffix(".lock")):
        pairs = _read(file)
        known = pairs.setdefault(key, vocabulary)
        if known == vocabulary:
            _write(file, pairs)
            return
    raise ModelLoadError(
        f"{name}: its tokenizer is not the one that these weights were used with before; put that one back, or delete "
        f"the entry {key} of {file} where the new one is right"
    )


def _read(file: Path) -> dict[str, str]:
    try:
        pairs = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return pairs if isinstance(pairs, dict) else {}


def _write(file: Path, pairs: dict[str, str]) -> None:
    """Replace the file by one that is whole; nothing is written where nothing is new."""
    if _read(file) != pairs:
        fresh = file.with_name(f".{file.name}.{os.getpid()}")
        fresh.write_text(json.dumps(pairs, indent=1, sort_keys=True), encoding="utf-8")
        os.replace(fresh, file)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
