"""What ``make run`` does: one job after the other, from the committed facts to the tables of every method.

Only the order and the partitions are stated here; what a job materializes is declared in ``automation``.
"""

from dataclasses import dataclass

import dagster as dg

from assets.partitions import key_for

OWN_BENCHMARK = "tideline"
OWN_CORPUS = "environment"


@dataclass(frozen=True)
class Step:
    """One job of the sequence, for one partition where the job has partitions."""

    title: str
    job: str
    partition: str | None = None


def steps(model: str) -> list[Step]:
    """The sequence for one model of ``data/models.yaml``."""
    key = key_for(model)
    leak = dg.MultiPartitionKey({"model": key, "benchmark": key_for(OWN_BENCHMARK)})
    return [
        Step("what is known about models", "describe_models"),
        Step("dated releases and the questions made from them", "refresh_releases"),
        Step(f"release probe of {model}", "date_models", key),
        Step("versioned documents", "read_spans"),
        Step(f"perplexity of {model} and its effective cutoffs", "score_models", key),
        Step(f"the order of {OWN_BENCHMARK}", "read_benchmarks", key_for(OWN_BENCHMARK)),
        Step(f"contamination of {model} by {OWN_BENCHMARK}", "test_contamination", str(leak)),
        Step(f"what the corpus {OWN_CORPUS} holds", "mine_corpora", key_for(OWN_CORPUS)),
        Step("pictures", "draw_exhibits"),
    ]
