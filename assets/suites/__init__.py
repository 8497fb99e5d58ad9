"""What each table must satisfy beyond its DDL, one module a noun: ``SUITES`` by table."""

from types import ModuleType

from assets.suites import (
    calibration,
    contamination,
    corpus,
    models,
    perplexity,
    perplexity_scores,
    probe,
    releases,
    spans,
)

# The modules of suites, one for each family of tables.
MODULES: tuple[ModuleType, ...] = (
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
