"""Log-likelihoods of the spans' texts under a model: the one table from which every perplexity result is made.

Only what is missing is computed; finished texts are committed as they come, so that a killed run goes on where it was.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

import dagster as dg
from pydantic import Field
from tqdm import tqdm

from assets.partitions import models, name_of
from assets.tables import materialized, table_asset, version_of
from resources.configured import ComputeResource, ModelListResource, WarehouseResource
from resources.endpoints.completions import RemoteRefusedError
from resources.models.files import ModelLoadError
from resources.perplexity.path_store import PathStore
from resources.perplexity.scoring import Progress, pending, score_pending, scoring_of, spent
from strandline.scoring.engine import SCORER_VERSION

LOG_SECONDS = 30.0
"""Seconds between two lines of progress in the log: seldom enough to read, often enough to see that it goes on."""


class ScoreConfig(dg.Config):
    """How texts are scored; another number format is another set of scores."""

    dtype: str | None = Field(
        default=None, description="float32, bfloat16, float16 or auto; None is the model's own entry."
    )
    tokens_per_pass: int | None = Field(default=None, ge=1, description="Tokens in one forward pass; None: 1024.")
    kept_gigabytes: float = Field(
        default=1.0,
        ge=0,
        description="Disk, for each model and limit, for what was computed of newest versions, so that the next month "
        "costs only what changed; 0 keeps nothing.",
    )


@table_asset(
    "perplexity.scores",
    deps=["spans.revisions", "spans.texts", "spans.resources"],
    reads=["models_yaml", "models"],
    needs=["model", "money"],
    partitions_def=models,
    code_version=version_of("1", scorer=SCORER_VERSION),
    pool="model",
)
def score_versions(
    context: dg.AssetExecutionContext,
    config: ScoreConfig,
    warehouse: WarehouseResource,
    model_list: ModelListResource,
    compute: ComputeResource,
) -> dg.MaterializeResult[None]:
    """Score every distinct text that the model has not scored yet, under each resource's token limit."""
    store, spec = warehouse.open(), model_list.find(name_of(context.partition_key))
    with _refusals_in_one_line():
        kept = PathStore(store.path.parent / "paths", int(config.kept_gigabytes * 1e9))
        scoring = scoring_of(spec, config.dtype, config.tokens_per_pass, kept if kept.limit else None)
        missing = pending(store, scoring).height
        context.log.info(f"{spec.name}: {missing:,} texts to score in {scoring.dtype}")
        with tqdm(total=missing, desc=spec.name, unit=" texts", disable=None) as bar:
            done = score_pending(store, scoring, compute.open(), _teller(context, bar))
    rate = round(done.tokens / done.seconds, 1) if done.seconds else 0.0
    facts = spent(store, scoring)
    return materialized(
        "perplexity.scores", facts, scored_now=done.done, tokens_now=done.tokens, tokens_per_second=rate
    )


@contextmanager
def _refusals_in_one_line() -> Iterator[None]:
    """A model that cannot be had, or a server that cannot be trusted, fails the step with its one sentence, once."""
    try:
        yield
    except (ModelLoadError, RemoteRefusedError) as error:
        raise dg.Failure(str(error), allow_retries=False) from error


def _teller(context: dg.AssetExecutionContext, bar: tqdm) -> Callable[[Progress], None]:  # type: ignore[type-arg]
    """Moves the bar with every finished text, and says in the log now and then how far it is."""
    last = [monotonic()]

    def tell(progress: Progress) -> None:
        bar.update(progress.done - bar.n)
        bar.set_postfix_str(f"{progress.tokens / max(progress.seconds, 1e-6):,.0f} tokens/s", refresh=False)
        if monotonic() - last[0] > LOG_SECONDS:
            last[0] = monotonic()
            context.log.info(progress.text())

    return tell


# What the code location collects from this module.
ASSETS = [score_versions]
