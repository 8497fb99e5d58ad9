"""The families of assets: a new noun is one new module and one line here."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import dagster as dg

from assets import suites as suite_package
from resources.validation import Expect, Suite

_TABLES = ("models", "releases", "probe", "spans", "scoring", "perplexity", "contamination", "corpus", "calibration")
_EXHIBITS = ("exhibits", "corpus_exhibits")


def tables() -> list[ModuleType]:
    """The modules whose ``ASSETS`` are declared tables."""
    return [import_module(f"assets.{name}") for name in _TABLES]


def exhibits() -> list[ModuleType]:
    """The modules whose ``ASSETS`` are pictures made from tables."""
    return [import_module(f"assets.{name}") for name in _EXHIBITS]


def further_checks() -> list[dg.AssetChecksDefinition]:
    """Checks that a family adds to those of its suites: its module's ``CHECKS``, where it has any."""
    return [check for module in tables() for check in getattr(module, "CHECKS", [])]


def suites() -> dict[str, Suite | Sequence[Expect]]:
    """The quality suites of all families by table."""
    merged: dict[str, Suite | Sequence[Expect]] = {}
    for module in iter_modules(suite_package.__path__):
        found: Mapping[str, Suite | Sequence[Expect]] = import_module(f"assets.suites.{module.name}").SUITES
        merged.update(found)
    return merged
