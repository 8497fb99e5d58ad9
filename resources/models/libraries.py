"""The libraries whose versions can change a model's numbers, as they are stored beside them."""

from importlib.metadata import version

LIBRARIES = ("torch", "transformers", "tokenizers")
"""What computes, what builds the model, and what cuts text into tokens."""


def library_versions() -> str:
    """Name and version of each, in one line."""
    return " ".join(f"{name} {version(name)}" for name in LIBRARIES)
