"""Scores token sequences and texts under a language model: negative log-likelihoods equal to a plain forward pass.

Which work is done once and which is shared is decided in ``prefix_tree``; how a slice is computed in ``tree_forward``;
here is the order of things: tree where the model allows it and a self-check agrees, plain batches elsewhere; half of
the batch where memory runs out; fp32, one document at a time, where half precision is not finite.
"""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from strandline.numeric_input import whole_number
from strandline.scoring.language_model import LanguageModel, ids_digest
from strandline.scoring.memory import is_out_of_memory
from strandline.scoring.path_reuse import PathReuse, Start, starts
from strandline.scoring.prefix_tree import PrefixTree, Request
from strandline.scoring.scores import (
    KnownScore,
    SequenceScore,
    TextScore,
    TokenizedText,
    known_score,
    text_score,
    tokenized,
    too_short,
)
from strandline.scoring.self_check import self_check

if TYPE_CHECKING:
    from strandline.scoring.tree_forward import PathState

SCORER_VERSION = "1"
"""Part of what every score counts for; raised when the scores of the same tokens change beyond rounding."""

SLICE_ROWS = 1024
"""Tokens in one forward pass. A trade-off: enough that matrix products run at full speed, few enough that the
activations of a slice stay small beside the weights."""

T = TypeVar("T")
Ids = tuple[int, ...]
"""The token ids of one sequence."""

Sums = NDArray[np.float64]
"""Running sums of negative log-likelihoods along a sequence, fp64."""

_ONE_COPY = threading.Lock()
"""Held while a copy in fp32 is in memory, so that several threads have one between them."""


class Scorer:
    """Scores under one loaded model. ``slice_rows`` is the number of tokens in one forward pass."""

    def __init__(self, lm: LanguageModel, slice_rows: int = SLICE_ROWS) -> None:
        self.lm = lm
        self._slice_rows = whole_number(slice_rows, "slice_rows", 1)
        self._method = self_check(lm).method

    def sequences(self, requests: Sequence[Request], paths: PathReuse | None = None) -> Iterator[SequenceScore]:
        """One score for each distinct request, as they are finished. Raises ValueError for ids that do not fit.

        With ``paths``, sequences go on from those that lie there, and leave there those that are wanted.
        """
        self._validate(requests)
        wanted: dict[Ids, list[Request]] = {}
        for request in dict.fromkeys(requests):
            wanted.setdefault(request.ids, []).append(request)
        failed: list[Request] = []
        for done in self._runs(list(requests), paths):
            for request in wanted[done.ids]:
                score = done.score(request, self.lm.dtype)
                if score.status == "ok":
                    yield score
                else:
                    failed.append(request)
        yield from self._repeated(failed)

    def batch(self, sequences: Sequence[Request], size: int) -> list[SequenceScore]:
        """Scores of at most ``size`` sequences of one length, in order, computed as a batch of exactly ``size``.

        The last of several batches is filled with a repeat of its first sequence, so that every batch has the same
        shape and a sequence's value does not depend on which batch it falls into. Nothing is shared within a batch.
        """
        if not 1 <= len(sequences) <= size or len({len(s.ids) for s in sequences}) != 1:
            raise ValueError(f"a batch of {size} takes 1 to {size} sequences of one length, got {len(sequences)}")
        self._validate(sequences)
        filled = [*sequences, *[sequences[0]] * (size - len(sequences))]
        rows = sum(len(request.ids) for request in filled)
        if self._method == "tree":
            done = [one for one, _ in self._along(PrefixTree(filled, share=False), rows)]
        else:
            done = self._in_memory(filled)
        scores = [one.score(request, self.lm.dtype) for one, request in zip(done, sequences, strict=False)]
        failed = [score.request for score in scores if score.status != "ok"]
        again = {score.request: score for score in self._repeated(failed)}
        return [again.get(score.request, score) for score in scores]

    def _runs(self, requests: list[Request], paths: PathReuse | None = None) -> Iterator[_Done]:
        if self._method != "tree":
            yield from self._batch_runs([request.ids for request in requests])
            return
        for start in starts(requests, paths.known if paths else ()):
            yield from self._from_path(start, paths)

    def _from_path(self, start: Start, paths: PathReuse | None) -> Iterator[_Done]:
        before, known = (start.path.ids, start.path.open()) if start.path else ((), None)
        if known is not None and start.is_on_path:
            for ids in {request.ids: None for request in start.requests}:
                yield _Done(ids, known.sums[: len(ids)], "tree", len(ids), 0)
            return
        tree = PrefixTree(start.requests, before=before)
        wanted = [place for place, ids in enumerate(tree.order) if paths and paths.is_wanted(ids)]
        for place in wanted:
            tree.expect_more(place)
        for done, state in self._along(tree, self._slice_rows, known, wanted):
            if paths and state is not None and math.isfinite(done.sums[-1]):
                paths.keep(done.ids, state)
            yield done

    def _along(
        self, tree: PrefixTree, rows: int, known: PathState | None = None, wanted: Collection[int] = ()
    ) -> Iterator[tuple[_Done, PathState | None]]:
        from strandline.scoring.tree_forward import TreeForward, tree_mode

        forward = TreeForward(self.lm)
        state, row = forward.start() if known is None else known.first(int(tree.depths[0])), 0
        with tree_mode(self.lm):
            while row < tree.n_rows:
                piece = tree.slice(row, rows)
                try:
                    finished, state = forward.step(tree, piece, state, wanted)
                except (RuntimeError, MemoryError) as error:
                    rows = _half(rows, error)
                    continue
                row = piece.end
                for done in finished:
                    ids = tree.order[done.index]
                    yield _Done(ids, done.sums, "tree", tree.shared(done.index), rows), done.state

    def _batch_runs(self, sequences: list[Ids]) -> Iterator[_Done]:
        from strandline.scoring.plain_forward import length_batches

        rows = self._slice_rows
        todo = list(dict.fromkeys(sequences))
        while todo:
            batch = next(length_batches(todo, rows if self._method == "batch" else 0))
            try:
                done = self._one_batch([Request(ids) for ids in batch])
            except (RuntimeError, MemoryError) as error:
                rows = _half(rows, error)
                if len(batch) == 1:
                    raise
                continue
            yield from done
            todo = [ids for ids in todo if ids not in set(batch)]

    def _in_memory(self, requests: Sequence[Request]) -> list[_Done]:
        """The batch at once, or in halves where memory runs out."""
        try:
            return self._one_batch(requests)
        except (RuntimeError, MemoryError) as error:
            half = _half(len(requests), error)
        return [*self._in_memory(requests[:half]), *self._in_memory(requests[half:])]

    def _one_batch(self, requests: Sequence[Request]) -> list[_Done]:
        from strandline.scoring.plain_forward import batch_losses, document_losses

        batch = [request.ids for request in requests]
        if self._method == "batch":
            losses = batch_losses(self.lm, batch)
        else:
            losses = [document_losses(self.lm.model, ids) for ids in batch]
        rows = len(batch) * max(map(len, batch))
        return [
            _Done(ids, np.concatenate([[0.0], np.cumsum(loss)]), self._method, 0, rows)
            for ids, loss in zip(batch, losses, strict=True)
        ]

    def _repeated(self, failed: Sequence[Request]) -> Iterator[SequenceScore]:
        """What was not finite, once more and each alone, so that one overflow cannot be another's; then in fp32."""
        scores = [self._alone(request) for request in dict.fromkeys(failed)]
        left = [score for score in scores if score.status != "ok"]
        yield from (score for score in scores if score.status == "ok")
        if self.lm.dtype == "float32":
            yield from left
        elif left:
            yield from self._in_fp32(left)

    def _in_fp32(self, left: Sequence[SequenceScore]) -> Iterator[SequenceScore]:
        """The same under an fp32 copy, of which there is one at a time; as they are where memory does not hold it."""
        with _ONE_COPY:
            wide = _unless_full(lambda: Scorer(_fp32_copy(self.lm), self._slice_rows))
            for score in left:
                yield (_unless_full(partial(wide._alone, score.request)) if wide else None) or score

    def _alone(self, request: Request) -> SequenceScore:
        return next(iter(self._runs([request]))).score(request, self.lm.dtype)

    def _validate(self, requests: Sequence[Request]) -> None:
        """Refuse what the model would answer with an index error or with nonsense."""
        n_ids = self.lm.model.get_input_embeddings().weight.shape[0]
        limit = self.lm.context_length
        for request in requests:
            if limit is not None and len(request.ids) > limit:
                raise ValueError(f"{len(request.ids)} tokens exceed the context of {self.lm.name}: {limit}")
            if max(request.ids) >= n_ids or min(request.ids) < 0:
                raise ValueError(f"a token id lies outside the {n_ids} embeddings of {self.lm.name}")


@dataclass(frozen=True)
class _Done:
    """A computed sequence: running sums of negative log-likelihoods along it, whichever way they were computed."""

    ids: Ids
    sums: Sums
    method: str
    shared: int
    batch_rows: int

    def score(self, request: Request, dtype: str) -> SequenceScore:
        total = float(self.sums[-1] - self.sums[request.score_from - 1])
        finite = math.isfinite(total)
        return SequenceScore(
            request=request,
            sum_nll=total if finite else None,
            status="ok" if finite else "nonfinite",
            dtype=dtype,
            method=self.method,
            computed=len(self.ids) - self.shared,
            saved=self.shared,
            batch_rows=self.batch_rows,
        )


def score_texts(
    lm: LanguageModel,
    texts: Mapping[str, str],
    max_tokens: int,
    slice_rows: int = SLICE_ROWS,
    known: Mapping[str, KnownScore] | None = None,
    paths: PathReuse | None = None,
) -> Iterator[TextScore]:
    """Score texts by their digest, each distinct token sequence once; rows come as they are finished.

    ``known`` are earlier scores of the same model by the digest of their token ids: versions that differ only after
    their first ``max_tokens`` tokens are not computed again. ``paths`` are computed paths that texts may go on from.
    """
    known = known or {}
    by_request: dict[Request, list[TokenizedText]] = {}
    for digest, ids in zip(texts, lm.token_ids(list(texts.values()), max_tokens), strict=True):
        text = tokenized(digest, ids, max_tokens, lm.bos_id, lm.context_length)
        if text.request is None:
            yield too_short(text, max_tokens, lm.dtype, lm.bos_id)
        elif (found := known.get(ids_digest(text.ids))) is not None:
            yield known_score(text, found, max_tokens, lm.bos_id)
        else:
            by_request.setdefault(text.request, []).append(text)
            if paths:
                paths.see(digest, text.request.ids)
    for score in Scorer(lm, slice_rows).sequences(list(by_request), paths):
        for place, text in enumerate(by_request[score.request]):
            yield text_score(text, score, max_tokens, lm.bos_id, is_copy=place > 0)


def _fp32_copy(lm: LanguageModel) -> LanguageModel:
    model = copy.deepcopy(lm.model).float()
    if "attention" in lm.cache:
        model.set_attn_implementation(lm.cache["attention"])
    return replace(lm, model=model, dtype="float32", cache={})


def _unless_full(work: Callable[[], T]) -> T | None:
    """What the work gives; None where memory runs out."""
    try:
        return work()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        return None


def _half(rows: int, error: BaseException) -> int:
    """Half of the rows after memory ran out; any other error, or a single row that does not fit, is raised."""
    if not is_out_of_memory(error) or rows <= 1:
        raise error
    return rows // 2
