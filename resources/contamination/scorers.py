"""What scores orderings: the perplexity engine on compute workers, here or on a cluster, or an endpoint."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from resources.compute.tasks import Compute, Task, WorkerSpec
from resources.contamination.order_scoring import Tokenization
from resources.contamination.worker import TokenizeTexts
from resources.endpoints.completions import remote_digest
from resources.models.weights import CACHE, LanguageModels, default_device, resolved_dtype
from strandline.contamination.order_batches import OrderBatch, Scored
from strandline.models import ModelSpec
from strandline.scoring.scores import SERVED


class ComputeScorer:
    """Orderings through compute: one task tokenizes, and each batch of orders is a task. See ``OrderScorer``."""

    def __init__(self, worker: WorkerSpec, weights: str, dtype: str, compute: Compute) -> None:
        self.weights, self.dtype = weights, dtype
        self._worker, self._compute = worker, compute

    def tokenize(self, texts: Sequence[str]) -> Tokenization:
        """Ids of each text without specials, and what belongs beside them."""
        [(_, made)] = self._compute.run(self._worker, [Task("tokenize", TokenizeTexts(tuple(texts)))])
        assert isinstance(made, Tokenization)
        return made

    def run(self, batches: Iterable[OrderBatch]) -> Iterator[Scored]:
        """Each batch with its scores, as they are finished."""
        tasks = (
            Task(batch.key, batch, f"orders {list(batch.orders)} of shard {batch.shard.index}") for batch in batches
        )
        for task, parts in self._compute.run(self._worker, tasks):
            yield task.payload, parts


def scorer_of(spec: ModelSpec, compute: Compute, dtype: str | None = None, cache: Path = CACHE) -> ComputeScorer:
    """The engine with weights that run on workers, or an endpoint that returns prompt log-probabilities.

    Reads digests, not weights, and asks an endpoint nothing yet.
    """
    if spec.backend != "transformers":
        worker = WorkerSpec("resources.contamination.worker:remote_order_worker", {"spec": spec})
        return ComputeScorer(worker, remote_digest(spec), SERVED, compute)
    chosen = resolved_dtype(dtype or spec.dtype, default_device())
    worker = WorkerSpec(
        "resources.contamination.worker:order_worker", {"spec": spec, "dtype": chosen, "folder": str(cache)}
    )
    return ComputeScorer(worker, LanguageModels(cache).digest(spec), chosen, compute)
