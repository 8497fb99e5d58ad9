"""Fixtures that every test may use. Scripted servers live in ``tests/fakes``."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's root folder."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the project; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("STRANDLINE_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip("the folder with the real data is not beside the project (set STRANDLINE_SHARED)")
    return folder
