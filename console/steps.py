"""What ``make run`` does: one job after the other, from the committed facts to the tables of every method.

Only the order and the partitions are stated here; what a job materializes is declared in ``assets.jobs``.
"""

from dataclasses import dataclass

import dagster as dg

from assets.partitions import key_for
from assets.tables import needs_tag


@dataclass(frozen=True)
class Step:
    """One job of the sequence, for one partition where the job has partitions."""

    title: str
    job: str
    partition: str | None = None
    judged_by: str | None = None
    """A job that judges what stands where this one fails: what it has finished may then be built upon."""


def steps(model: str, benchmark: str | None, corpus: str | None) -> list[Step]:
    """The sequence for one listed model, with one listed benchmark and corpus where there are any."""
    key = key_for(model)
    return [
        Step("what is known about models", "describe_models"),
        Step("dated releases and the questions made from them", "refresh_releases"),
        Step(f"release probe of {model}", "date_models", key),
        Step("versioned documents", "read_spans", judged_by="check_spans"),
        Step(f"perplexity of {model} and its effective cutoffs", "score_models", key),
        *(_leak(key, model, benchmark) if benchmark else []),
        *([Step(f"what the corpus {corpus} holds", "mine_corpora", key_for(corpus))] if corpus else []),
        Step("pictures", "draw_exhibits"),
    ]


def without_a_model(repository: dg.RepositoryDefinition, benchmark: str | None, corpus: str | None) -> list[Step]:
    """The steps that fill tables from files, caches and sources alone, by the tags that say what their tables need."""
    every = steps("none", benchmark, corpus)
    tags = {
        step.job: {
            tag
            for key in repository.get_job(step.job).asset_layer.selected_asset_keys
            for tag in repository.asset_graph.get(key).tags
        }
        for step in every
    }
    return [step for step in every if needs_tag("model") not in tags[step.job]]


def _leak(key: str, model: str, benchmark: str) -> list[Step]:
    both = dg.MultiPartitionKey({"model": key, "benchmark": key_for(benchmark)})
    return [
        Step(f"the order of {benchmark}", "read_benchmarks", key_for(benchmark)),
        Step(f"contamination of {model} by {benchmark}", "test_contamination", str(both)),
    ]
