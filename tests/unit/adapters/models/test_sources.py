"""A new kind of source is one record in one tuple: here one from outside the tree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from resources.models.files import ModelFolder, ModelLoadError
from resources.models.weights import LanguageModels
from strandline.models import ModelSpec, sources
from strandline.models.sources import SOURCES, WeightsSource, source_of
from strandline.models.spec import ModelsFileError, parse_models
from tests.fakes.tiny_models import saved_tiny_model

pytest.importorskip("torch")

ENTRY = 'models: [{name: tiny, backend: transformers, source: "shelf:tiny"}]'


def shelf_fault(where: str, entry: Mapping[str, Any]) -> str | None:
    return None if where.isalpha() else "a shelf has a name of letters"


def shelf_folder(spec: ModelSpec, where: str, cache: Path) -> ModelFolder:
    """What the record names: a folder beside the cache."""
    return ModelFolder(cache.parent / where)


SHELF = WeightsSource("shelf", shelf_fault, "tests.unit.adapters.models.test_sources:shelf_folder")


def test_a_kind_from_outside_is_one_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelsFileError, match="hub:, folder:, gguf: or pypi:"):
        parse_models(ENTRY)
    monkeypatch.setattr(sources, "SOURCES", (*SOURCES, SHELF))
    saved_tiny_model(tmp_path / "tiny")
    [spec] = parse_models(ENTRY)
    models = LanguageModels(tmp_path / "cache")
    lm = models.load(spec)
    assert lm.digest == models.digest(spec)
    models.release()
    with pytest.raises(ModelsFileError, match="a shelf has a name of letters"):
        parse_models(ENTRY.replace("shelf:tiny", "shelf:7"))


@pytest.mark.parametrize("source", ["", "tiny", "folder:", "folder: ", ":x", "cloud:x"])
def test_a_source_of_no_kind_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="must begin with"):
        source_of(source)


def test_a_hub_has_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="pinned revision"):
        LanguageModels(tmp_path).digest(ModelSpec("m", "transformers", "hub:a/b"))
