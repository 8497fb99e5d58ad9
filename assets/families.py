"""The families of assets: a new noun is one new module and one line here."""

from collections.abc import Mapping, Sequence
from types import ModuleType

import dagster as dg

from assets import (
    calibration,
    contamination,
    corpus,
    corpus_exhibits,
    models,
    perplexity,
    perplexity_exhibits,
    perplexity_scores,
    probe,
    releases,
    spans,
    suites,
)
from resources.warehouse.validation import Expect, Suite

TABLES: tuple[ModuleType, ...] = (
    models,
    releases,
    probe,
    spans,
    perplexity_scores,
    perplexity,
    contamination,
    corpus,
    calibration,
)
"""The modules whose ``ASSETS`` are declared tables."""

EXHIBITS: tuple[ModuleType, ...] = (perplexity_exhibits, corpus_exhibits)
"""The modules whose ``ASSETS`` are pictures made from tables."""


def further_checks() -> list[dg.AssetChecksDefinition]:
    """Checks that a family adds to those of its suites: its module's ``CHECKS``, where it has any."""
    return [check for module in TABLES for check in getattr(module, "CHECKS", [])]


def all_suites() -> dict[str, Suite | Sequence[Expect]]:
    """The quality suites of all families by table."""
    merged: dict[str, Suite | Sequence[Expect]] = {}
    for module in suites.MODULES:
        of_tables: Mapping[str, Suite | Sequence[Expect]] = module.SUITES
        merged.update(of_tables)
    return merged
