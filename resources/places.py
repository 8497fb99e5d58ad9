"""Where things are: the project's root, and paths as users write them in settings."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def rooted(path: str) -> Path:
    """A path as users write it, relative to the project's root unless absolute; ``~`` is the user's home."""
    return ROOT / Path(path).expanduser()
