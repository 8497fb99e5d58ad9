"""The catalogue of models: those that a user lists, and those about which facts are known.

Only the joining of committed facts is here. A listed model's own entry stands before any fact about it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

from strandline.models import ModelSpec
from strandline.models.changes import spec_digest
from strandline.models.declared import Claim, PartialDate, Precision, parse_partial_date
from strandline.models.keys import partition_key
from strandline.models.training import TrainingCorpus

T = TypeVar("T")
_FINEST: dict[Precision, int] = {"day": 0, "month": 1, "year": 2}
"""Of several release dates the one stated most exactly counts."""


@dataclass(frozen=True)
class CatalogueEntry:
    """A row of ``models.models``; ``is_listed`` where ``data/models.yaml`` lists it, so that it can be run."""

    model: str
    partition_key: str
    name: str
    is_listed: bool = False
    family: str | None = None
    n_params: int | None = None
    backend: str | None = None
    source: str | None = None
    revision: str | None = None
    ask: str | None = None
    dtype: str | None = None
    released_on: date | None = None
    released_precision: Precision | None = None
    context_length: int | None = None
    is_open: bool | None = None
    provider: str | None = None
    spec_digest: str | None = None


def catalogue(
    specs: Sequence[ModelSpec], claims: Sequence[Claim], corpora: Sequence[TrainingCorpus]
) -> list[CatalogueEntry]:
    """One entry a model: listed ones first, then those with claims, then suites known by their training mix.

    Facts come from the claims about the same model: the release date of the finest precision (the earliest of several),
    the first stated context length and openness.
    """
    by_model: dict[str, list[Claim]] = {}
    for claim in claims:
        by_model.setdefault(claim.model, []).append(claim)
    entries = {spec.name: _listed(spec, by_model.get(spec.name, [])) for spec in specs}
    for model in sorted(by_model):
        entries.setdefault(model, _known(model, by_model[model]))
    for corpus in corpora:
        entries.setdefault(corpus.model, _suite(corpus))
    return list(entries.values())


def _listed(spec: ModelSpec, claims: Sequence[Claim]) -> CatalogueEntry:
    released = _release(claims)
    return CatalogueEntry(
        model=spec.name,
        partition_key=partition_key(spec.name),
        name=claims[0].name if claims else spec.name,
        family=spec.family,
        n_params=spec.n_params,
        backend=spec.backend,
        source=spec.source,
        revision=spec.revision,
        ask=spec.ask,
        dtype=spec.dtype if spec.backend == "transformers" else None,
        released_on=spec.released_on or (released.first if released else None),
        released_precision="day" if spec.released_on else (released.precision if released else None),
        context_length=spec.context_length or _first(c.context_length for c in claims),
        is_open=spec.is_open if spec.is_open is not None else _first(c.is_open for c in claims),
        is_listed=True,
        provider=spec.provider or _first(c.provider for c in claims),
        spec_digest=spec_digest(spec),
    )


def _known(model: str, claims: Sequence[Claim]) -> CatalogueEntry:
    released = _release(claims)
    return CatalogueEntry(
        model=model,
        partition_key=partition_key(model),
        name=claims[0].name,
        released_on=released.first if released else None,
        released_precision=released.precision if released else None,
        context_length=_first(c.context_length for c in claims),
        is_open=_first(c.is_open for c in claims),
        provider=claims[0].provider,
    )


def _suite(corpus: TrainingCorpus) -> CatalogueEntry:
    return CatalogueEntry(corpus.model, partition_key(corpus.model), corpus.model, family=corpus.family)


def _release(claims: Sequence[Claim]) -> PartialDate | None:
    found: list[PartialDate] = []
    for claim in claims:
        try:
            found.append(parse_partial_date(claim.released_on))
        except ValueError:
            continue
    return min(found, key=lambda when: (_FINEST[when.precision], when.first), default=None)


def _first(values: Iterable[T | None]) -> T | None:
    return next((value for value in values if value is not None), None)
