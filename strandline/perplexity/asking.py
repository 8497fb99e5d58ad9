"""Token log-likelihoods as a measuring instrument for other methods: fixed-shape batches, and choices among answers.

No text is generated. Questions that share their beginning share its computation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from strandline.perplexity.engine import Scorer
from strandline.perplexity.language_model import LanguageModel
from strandline.perplexity.prefix_tree import Request
from strandline.perplexity.windows import window_requests

Choices = Mapping[str, Sequence[Sequence[int]]]


def sequence_logprobs(
    lm: LanguageModel, sequences: Sequence[Sequence[int]], batch_size: int | None = None, stride: int | None = None
) -> Iterator[float | None]:
    """The sum of log-probabilities of each sequence's tokens (all after BOS where there is one), in order.

    ``sequences`` are ids without BOS, all of one length, as orderings of one shard are. ``batch_size`` is the same for
    every batch of the run, the last being filled up, so that no sequence is computed in another shape than the rest;
    None chooses about a thousand tokens. Sequences longer than the context are scored in rolling windows of ``stride``
    (half the context by default), every token once. None where a sum is not finite. fp64.
    """
    if not sequences:
        return
    if len({len(ids) for ids in sequences}) != 1:
        raise ValueError("sequences to compare must have the same number of tokens")
    windows = [window_requests(ids, lm.context_length, stride, lm.bos_id) for ids in sequences]
    if not windows[0]:
        raise ValueError("sequences are too short to be scored")
    size = batch_size or max(1, 1024 // len(windows[0][0].ids))
    scorer = Scorer(lm)
    for start in range(0, len(windows), size):
        batch = windows[start : start + size]
        sums: list[list[float | None]] = [[] for _ in batch]
        for requests in zip(*batch, strict=True):
            for row, score in zip(sums, scorer.batch(requests, size), strict=True):
                row.append(score.sum_nll)
        for row in sums:
            yield None if any(part is None for part in row) else -math.fsum(part for part in row if part is not None)


def choice_probabilities(
    lm: LanguageModel, prefix_ids: Sequence[int], questions: Sequence[Sequence[int]], choices: Choices
) -> list[dict[str, float] | None]:
    """The probability of each choice after prefix and question, normalised over the choices; one result a question.

    ``choices`` gives each choice its spellings as token ids; a choice's mass is the sum over its spellings, a
    spelling's the product over its tokens. BOS is put first where the tokenizer has one. None where a likelihood is
    not finite. Raises ValueError where a prompt with its answer is longer than the model's context, or a spelling is
    empty.

    It is the probability among these choices, not the probability that the model would say one of them.
    """
    spellings = [(name, tuple(ids)) for name, spelled in choices.items() for ids in spelled]
    if not spellings or any(not ids for _, ids in spellings):
        raise ValueError("every choice needs at least one spelling of at least one token")
    prompts = [lm.with_bos([*prefix_ids, *question]) for question in questions]
    wanted = [[Request((*prompt, *ids), len(prompt)) for _, ids in spellings] for prompt in prompts]
    scores = {score.request: score.sum_nll for score in Scorer(lm).sequences([r for rs in wanted for r in rs])}
    names = [name for name, _ in spellings]
    return [_normalised(names, [scores[request] for request in requests]) for requests in wanted]


def _normalised(names: Sequence[str], losses: Sequence[float | None]) -> dict[str, float] | None:
    """Probabilities from negative log-likelihoods, equal names added up."""
    known = [loss for loss in losses if loss is not None]
    if len(known) < len(losses):
        return None
    least = min(known)
    masses: dict[str, float] = {}
    for name, loss in zip(names, known, strict=True):
        masses[name] = masses.get(name, 0.0) + math.exp(least - loss)
    total = math.fsum(masses.values())
    return {name: mass / total for name, mass in masses.items()}
