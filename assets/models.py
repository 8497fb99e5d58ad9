"""The model tables: what can be dated, what others claim about it, and what it was trained on.

All three are read from committed files that users edit; no network and no model is needed.
"""

from dataclasses import asdict
from datetime import UTC, datetime

import dagster as dg

from assets import partitions
from assets.tables import materialized, table_asset, version_of
from resources.configured import ModelListResource, WarehouseResource
from resources.places import ROOT
from strandline.models.catalogue import catalogue
from strandline.models.declared import CLAIMS_VERSION, DeclaredCutoff, judge, read_claims
from strandline.models.training import read_training_corpora

CLAIMS = ROOT / "data" / "declared_cutoffs.csv"
"""What others say about cutoffs, a line a statement."""

MIXES = ROOT / "data" / "training_corpora.csv"
"""Which corpora went into which model suite."""

CORPORA = ROOT / "data" / "corpora.csv"
"""What each corpus is."""


@table_asset(
    "models.models",
    reads=["models_yaml", "declared_cutoffs_csv", "training_corpora_csv"],
    code_version="1",
)
def read_models(
    context: dg.AssetExecutionContext, warehouse: WarehouseResource, model_list: ModelListResource
) -> dg.MaterializeResult[None]:
    """Join ``data/models.yaml`` with the committed facts, and give every listed model its partition."""
    specs = model_list.read()
    entries = catalogue(specs, read_claims(CLAIMS), read_training_corpora(MIXES, CORPORA))
    warehouse.open().replace("models.models", [asdict(e) for e in entries])
    new = partitions.add(context.instance, partitions.models, [spec.name for spec in specs])
    return materialized("models.models", models=len(entries), listed=len(specs), new_partitions=new)


@table_asset(
    "models.declared_cutoffs", reads=["declared_cutoffs_csv"], code_version=version_of("1", claims=CLAIMS_VERSION)
)
def judge_declared_cutoffs(warehouse: WarehouseResource) -> dg.MaterializeResult[None]:
    """Judge every claim of ``data/declared_cutoffs.csv``; conflicting claims stay separate rows."""
    judged = judge(read_claims(CLAIMS), datetime.now(UTC).date())
    warehouse.open().replace("models.declared_cutoffs", [_claim_row(j) for j in judged])
    return materialized(
        "models.declared_cutoffs",
        claims=len(judged),
        models_with_a_cutoff=len({j.model for j in judged if j.is_valid}),
        impossible=sum(j.value is not None and not j.is_valid for j in judged),
        conflicting=sum("conflict" in j.flags for j in judged),
    )


@table_asset("models.training_corpora", reads=["training_corpora_csv"], code_version="1")
def store_training_corpora(warehouse: WarehouseResource) -> dg.MaterializeResult[None]:
    """Table 1 of the paper and the corpora of its section 3.3; models with closed data are marked unverified."""
    rows = read_training_corpora(MIXES, CORPORA)
    warehouse.open().replace("models.training_corpora", [asdict(r) for r in rows])
    return materialized("models.training_corpora", rows=len(rows), models=len({r.model for r in rows}))


def _claim_row(judged: DeclaredCutoff) -> dict[str, object]:
    flags = ", ".join(judged.flags) or None
    return asdict(judged) | {"flags": flags, "is_conflicting": "conflict" in judged.flags}


ASSETS = [read_models, judge_declared_cutoffs, store_training_corpora]
"""The steps of this noun."""
