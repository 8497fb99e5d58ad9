"""What scores orderings: the perplexity engine on compute workers, here or on a cluster, or an endpoint."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from resources.compute.tasks import Compute, Task, WorkerSpec
from resources.contamination.order_scoring import OrderBatch, Scored
from resources.endpoints.completions import SERVED, remote_digest
from resources.models.weights import CACHE, LanguageModels, default_device, resolved_dtype
from strandline.models import ModelSpec


class ComputeScorer:
    """Orderings through compute: one task tokenizes, and each batch of orders is a task. See ``OrderScorer``."""

    def __init__(self, worker: WorkerSpec, weights: str, dtype: str, compute: Compute) -> None:
        self.weights, self.dtype = weights, dtype
        self.device, self.libraries = "unknown", None
        self._worker, self._compute = worker, compute

    def tokenize(self, texts: Sequence[str]) -> tuple[list[list[int]], int | None, int | None, float | None]:
        """Ids of each text without specials; BOS, context length, and tokens a second of one worker."""
        [(_, found)] = self._compute.run(self._worker, [Task("tokenize", {"texts": list(texts)})])
        self.device, self.libraries = found["device"], found["libraries"]
        return found["ids"], found["bos_id"], found["context_length"], found["tokens_per_second"]

    def run(self, batches: Iterable[OrderBatch]) -> Iterator[Scored]:
        """Each batch with its scores, as they are finished."""
        waiting: dict[str, OrderBatch] = {}
        for task, parts in self._compute.run(self._worker, self._tasks(batches, waiting)):
            yield waiting.pop(task.key), parts

    def _tasks(self, batches: Iterable[OrderBatch], waiting: dict[str, OrderBatch]) -> Iterator[Task]:
        for batch in batches:
            waiting[batch.key] = batch
            payload: dict[str, Any] = {"windows": batch.windows, "size": batch.size, "dtype": batch.dtype}
            yield Task(batch.key, payload)


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
