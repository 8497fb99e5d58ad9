"""Where things are: the project's root, paths as users write them in settings, and which version of it runs."""

import subprocess
from importlib.metadata import version
from pathlib import Path

# The repository's folder, two above this file.
ROOT = Path(__file__).resolve().parent.parent


def rooted(path: str) -> Path:
    """A path as users write it, relative to the project's root unless absolute; ``~`` is the user's home.

    ValueError where it is the home of a user who does not exist.
    """
    try:
        return ROOT / Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"{path}: there is no user of that name, so no home folder") from None


def tool_version() -> str:
    """Version of this product, with the commit where it runs from a git checkout."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return version("strandline")
    return f"{version('strandline')}+{done.stdout.strip()}"
