"""Every variable of the product's own stands in one list, and README names it."""

import re
from pathlib import Path

import pytest

from resources.environment import VARIABLES, Variable
from strandline.releases.sources import SOURCES

OF_METHODS = {"STRANDLINE_RELEASES"}
"""Read by `strandline.releases.facts`, which knows no adapter."""


def of_registries() -> set[str]:
    settings = [setting for source in SOURCES for setting in (source.setting, source.page_setting) if setting]
    return {name for setting in settings for name in re.findall(r"STRANDLINE_\w+", repr(setting))}


def test_no_adapter_reads_a_variable_that_the_list_lacks(root: Path) -> None:
    named: set[str] = set()
    for folder in ("resources", "assets", "console", "strandline"):
        for file in (root / folder).rglob("*.py"):
            named |= set(re.findall(r"STRANDLINE_[A-Z_]*[A-Z]", file.read_text(encoding="utf-8")))
    assert named == {variable.name for variable in VARIABLES} | of_registries() | OF_METHODS


def test_readme_names_every_variable(root: Path) -> None:
    readme = (root / "README.md").read_text(encoding="utf-8")
    assert [variable.name for variable in VARIABLES if variable.name not in readme] == []


@pytest.mark.parametrize(("told", "value"), [("", None), ("   ", None), (" a b ", "a b")])
def test_blanks_are_no_value(monkeypatch: pytest.MonkeyPatch, told: str, value: str | None) -> None:
    variable = Variable("STRANDLINE_TIDE", "how high it is")
    monkeypatch.delenv(variable.name, raising=False)
    assert variable.value() is None
    monkeypatch.setenv(variable.name, told)
    assert variable.value() == value
