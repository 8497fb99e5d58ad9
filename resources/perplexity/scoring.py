"""Which texts a model has not scored yet, and their scoring: through compute, committed as they are finished.

A score counts for one text, limit, number format, set of weights and version of the scoring code; everything else is
missing. Texts of one topic go into one task, so that what they share is computed once, and a task's rows are stored
together: what a killed run leaves to do is whole tasks, which are computed again as an undisturbed run computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import monotonic

import polars as pl

from resources.compute.tasks import Compute, Task, WorkerSpec
from resources.endpoints.completions import remote_digest
from resources.models.weights import CACHE, LanguageModels, default_device, resolved_dtype
from resources.perplexity.path_store import PathStore
from resources.perplexity.worker import TextPayload, paths_name
from resources.warehouse.store import Warehouse, removal
from strandline.models import ModelSpec
from strandline.perplexity.plausible import plausible
from strandline.scoring.engine import SCORER_VERSION
from strandline.scoring.scores import SERVED

# The table that this module writes its scores to.
TABLE = "perplexity.scores"
TEXTS_A_TASK = 16
"""Texts of a task, give or take a topic. A trade-off: more of them fill a forward pass better, fewer are lost by a kill
and shared more evenly among workers."""

COMMIT_SECONDS = 1.0
"""Seconds between two commits of short tasks. A trade-off: a commit rewrites pages of the file, and a kill loses at
most this much work."""

_PENDING = """
with versions as (
    select
        text_sha256,
        max_tokens,
        resource || ' ' || topic as topic,
        kind = 'panel' and text_sha256 = arg_max(text_sha256, month) over (partition by resource, topic) as is_newest
    from spans.revisions
    join spans.resources using (resource)
    where text_sha256 is not null
),
wanted as (
    select
        text_sha256,
        max_tokens,
        min(topic) as topic,
        coalesce(list_sort(list(distinct topic) filter (is_newest)), []) as newest_of
    from versions
    group by all
),
done as (
    select text_sha256, max_tokens
    from perplexity.scores
    where model = ? and dtype = ? and weights_digest = ? and scorer_version = ?
)
select text_sha256, max_tokens, topic, newest_of
from wanted
anti join done using (text_sha256, max_tokens)
order by max_tokens, topic, text_sha256
"""
"""Texts without a score, with a topic that holds them and the topics whose newest version they are."""

_KNOWN = """
with near as (
    select text_sha256
    from spans.revisions
    join spans.resources using (resource)
    where text_sha256 is not null and max_tokens = ?
    group by text_sha256
    having list_contains(?, min(resource || ' ' || topic))
)
select
    token_digest,
    any_value({'n_tokens': n_tokens, 'mean_nll': mean_nll, 'dtype': computed_in, 'batch_tokens': batch_tokens,
        'method': method} order by text_sha256) as facts
from perplexity.scores
join near using (text_sha256)
where model = ? and dtype = ? and weights_digest = ? and scorer_version = ? and max_tokens = ?
    and status = 'ok' and token_digest is not null
group by token_digest
"""
"""Scores of the texts that a task's topics come first for, by their token ids. Only those: they are stored together, so
that a resumed run knows of none that an undisturbed one does not know."""

# Other weights or scorers whose scores of this model are stored.
_OTHER_WEIGHTS = """
select distinct weights_digest, scorer_version
from perplexity.scores
where model = ? and (weights_digest, scorer_version) is distinct from (?, ?)
"""

_OTHER_CONTEXT = """
select distinct dtype, max_tokens, n_tokens, is_context_limited
from (
    select *, max(n_tokens) over (partition by dtype, max_tokens) as longest
    from perplexity.scores
    where model = ?
)
where is_context_limited and n_tokens < longest
"""
"""Scores that were cut by a shorter context than others of the same limit: written before a context was part of what a
score counts for."""

# The tokens that stored scores computed and the tokens that they saved.
_SPENT = """
select
    coalesce(sum(scores.tokens_computed), 0) as computed,
    coalesce(sum(scores.tokens_saved), 0) as shared
from perplexity.scores
where model = ? and dtype = ?
"""

# What the same documents count when each copy of a text is scored by itself.
_COPIES = """
select coalesce(sum(scores.tokens_computed + scores.tokens_saved), 0) as tokens, count(*) as documents
from spans.revisions
join spans.resources using (resource)
join perplexity.scores
    on scores.text_sha256 = revisions.text_sha256 and scores.max_tokens = resources.max_tokens
where scores.model = ? and scores.dtype = ?
"""


@dataclass(frozen=True)
class Scoring:
    """What fixes a model's scores: who computes them, in which format, of which weights."""

    model: str
    dtype: str
    weights_digest: str
    worker: WorkerSpec

    @property
    def row_key(self) -> list[str]:
        """What its rows are found by."""
        return [self.model, self.dtype, self.weights_digest, SCORER_VERSION]


@dataclass(frozen=True)
class Progress:
    """How far scoring is: texts and input tokens finished, of how many texts, in how many seconds."""

    done: int
    total: int
    tokens: int
    seconds: float

    def text(self) -> str:
        """One line: share, rate, and time left."""
        rate = self.tokens / self.seconds if self.seconds else 0.0
        left = self.seconds / self.done * (self.total - self.done) if self.done else 0.0
        minutes, seconds = divmod(round(left), 60)
        return f"{self.done:,} of {self.total:,} texts; {rate:,.0f} tokens/s; {minutes}:{seconds:02d} left"


def local_scoring(
    spec: ModelSpec,
    dtype: str | None = None,
    slice_rows: int | None = None,
    cache: Path = CACHE,
    kept: PathStore | None = None,
) -> Scoring:
    """Scoring with weights that run on workers. Reads digests, not weights.

    ``kept`` are the computed paths of newest versions, from which the next ones go on.
    """
    chosen = resolved_dtype(dtype or spec.dtype, default_device())
    size = {} if slice_rows is None else {"slice_rows": slice_rows}
    worker = WorkerSpec(
        "resources.perplexity.worker:text_worker",
        {"spec": spec, "dtype": chosen, "cache": str(cache), "kept": kept, **size},
    )
    return Scoring(spec.name, chosen, LanguageModels(cache).digest(spec), worker)


def scoring_of(
    spec: ModelSpec, dtype: str | None = None, slice_rows: int | None = None, kept: PathStore | None = None
) -> Scoring:
    """How a listed model is scored: by weights on workers, or by an endpoint that returns prompt log-probabilities."""
    if spec.backend == "transformers":
        return local_scoring(spec, dtype, slice_rows, kept=kept)
    worker = WorkerSpec("resources.endpoints.completions:remote_text_worker", {"spec": spec})
    return Scoring(spec.name, SERVED, remote_digest(spec), worker)


def pending(store: Warehouse, scoring: Scoring) -> pl.DataFrame:
    """Texts without a score, with the limit in force and a topic that holds them, like topics together."""
    return store.query(_PENDING, scoring.row_key)


def score_pending(
    store: Warehouse, scoring: Scoring, compute: Compute, tell: Callable[[Progress], None] = lambda _: None
) -> Progress:
    """Score what is missing and commit it as it comes; the model is not even loaded where nothing is.

    Where tasks take longer than ``COMMIT_SECONDS`` each is committed at once, so that none waits for the next one; else
    they are committed together, once in that time. Scores of other weights under this name, of another context, or of
    an earlier version of the scoring code are deleted first: an interrupted run then leaves missing rows, never rows
    of two models. ``tell`` is called after each task.
    """
    _delete_other_scores(store, scoring)
    missing = pending(store, scoring)
    began = committed = monotonic()
    results = 0
    progress = Progress(0, missing.height, 0, 0.0)
    rows: list[dict[str, object]] = []
    finished: list[TextPayload] = []
    try:
        for task, scored in compute.run(scoring.worker, _tasks(store, scoring, missing)):
            rows += scored
            finished.append(task.payload)
            results += 1
            tokens = progress.tokens + sum(row["tokens_computed"] for row in scored)
            progress = Progress(progress.done + len(scored), missing.height, tokens, monotonic() - began)
            tell(progress)
            if max(monotonic() - committed, progress.seconds / results) > COMMIT_SECONDS:
                _commit(store, scoring, rows, finished)
                rows, finished, committed = [], [], monotonic()
    finally:
        _commit(store, scoring, rows, finished)
    return progress


def spent(store: Warehouse, scoring: Scoring) -> dict[str, float | int]:
    """Input tokens computed and saved by this model's scores, and what scoring every version's copy would take."""
    key = [scoring.model, scoring.dtype]
    spent, copies = store.query(_SPENT, key).row(0, named=True), store.query(_COPIES, key).row(0, named=True)
    computed = int(spent["computed"])
    return {
        "tokens_computed": computed,
        "tokens_saved_by_prefixes": int(spent["shared"]),
        "tokens_of_every_copy": int(copies["tokens"]),
        "documents": int(copies["documents"]),
        "times_fewer_tokens": round(int(copies["tokens"]) / computed, 2) if computed else 0.0,
    }


def _delete_other_scores(store: Warehouse, scoring: Scoring) -> None:
    """Delete the model's scores that were made otherwise than this scoring makes them."""
    key = [scoring.model, scoring.weights_digest, SCORER_VERSION]
    others = store.query(_OTHER_WEIGHTS, key).rows(named=True)
    others += store.query(_OTHER_CONTEXT, [scoring.model]).rows(named=True)
    if others:
        store.write(*(removal(TABLE, {"model": scoring.model, **other}) for other in others))


def _tasks(store: Warehouse, scoring: Scoring, missing: pl.DataFrame) -> Iterator[Task]:
    """Tasks of whole topics with about ``TEXTS_A_TASK`` texts each; texts are read when their task is drawn."""
    for max_tokens, rows in _groups(missing):
        digests = rows["text_sha256"].to_list()
        texts = store.query("select text_sha256, text from spans.texts where list_contains(?, text_sha256)", [digests])
        by_digest = dict(texts.iter_rows())
        known = store.query(_KNOWN, [max_tokens, rows["topic"].unique().to_list(), *scoring.row_key, max_tokens])
        payload: TextPayload = {
            "texts": {digest: by_digest[digest] for digest in digests},
            "max_tokens": max_tokens,
            "known": dict(known.iter_rows()),
            "topics": rows["topic"].unique().sort().to_list(),
            "newest": {
                digest: topics for digest, topics in rows.select("text_sha256", "newest_of").iter_rows() if topics
            },
        }
        named = "\n".join([scoring.weights_digest, scoring.dtype, str(max_tokens), *digests])
        yield Task(sha256(named.encode()).hexdigest(), payload, f"texts of {', '.join(payload['topics'])}")


def _groups(missing: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    """The limit and the rows of each task."""
    group: list[pl.DataFrame] = []
    limit = 0
    for (max_tokens, _), rows in missing.group_by(["max_tokens", "topic"], maintain_order=True):
        if group and (sum(part.height for part in group) >= TEXTS_A_TASK or max_tokens != limit):
            yield limit, pl.concat(group)
            group = []
        group.append(rows)
        limit = int(str(max_tokens))
    if group:
        yield limit, pl.concat(group)


def _commit(store: Warehouse, scoring: Scoring, rows: list[dict[str, object]], finished: list[TextPayload]) -> None:
    """Store the rows of whole tasks; only then may the paths that they went on from go."""
    if not rows:
        return
    store.merge(TABLE, [plausible(row) for row in rows])
    kept: PathStore | None = scoring.worker.kwargs.get("kept")
    if kept is None:
        return
    for payload in finished:
        topics = [topic for topics in payload.get("newest", {}).values() for topic in topics]
        kept.settle(paths_name(scoring.model, scoring.dtype, payload["max_tokens"]), topics)
