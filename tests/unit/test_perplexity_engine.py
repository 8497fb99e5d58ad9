"""The engine equals a plain one-document forward pass, whatever is batched, shared, padded or cut."""

from collections.abc import Sequence

import numpy as np
import pytest

from strandline.perplexity.engine import Scorer
from strandline.perplexity.language_model import LanguageModel
from strandline.perplexity.prefix_tree import Request
from strandline.perplexity.self_check import self_check
from tests.fakes.tiny_models import CONTEXT, tiny_language_model

torch = pytest.importorskip("torch")
KINDS = ("gpt2", "llama", "mistral", "gemma2", "mpt")


def plain_sum(lm: LanguageModel, request: Request) -> float:
    """The definition, written again: one document, the model's own logits, fp64 sum."""
    with torch.no_grad():
        logits = lm.model(torch.tensor([request.ids])).logits[0].double()
    losses = -torch.log_softmax(logits, -1)[:-1].gather(-1, torch.tensor(request.ids[1:])[:, None])[:, 0]
    return float(losses[request.score_from - 1 :].sum())


def versions(n: int, seed: int = 0, longest: int = CONTEXT) -> list[Request]:
    """Sequences that share beginnings, repeat, contain one another and differ in length."""
    rng = np.random.default_rng(seed)
    base = rng.integers(2, 300, longest).tolist()
    made = []
    for _ in range(n):
        cut = int(rng.integers(1, longest))
        tail = rng.integers(2, 300, int(rng.integers(0, longest - cut + 1))).tolist()
        ids = tuple(base[:cut] + tail)
        if len(ids) > 1:
            made.append(Request(ids, int(rng.integers(1, len(ids)))))
    return made + made[:3]


def scored(lm: LanguageModel, requests: Sequence[Request], **settings: int) -> dict[Request, float]:
    return {s.request: s.sum_nll for s in Scorer(lm, **settings).sequences(requests)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("slice_rows", [1, 7, 50, 5000])
def test_every_sequence_equals_the_plain_forward_pass(kind, slice_rows):
    lm = tiny_language_model(kind)
    requests = versions(8 if slice_rows == 1 else 24)
    found = scored(lm, requests, slice_rows=slice_rows)
    assert set(found) == set(requests)
    for request, total in found.items():
        assert total == pytest.approx(plain_sum(lm, request), abs=1e-4 * (len(request.ids) - request.score_from))


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "mpt"])
def test_these_architectures_are_scored_along_the_tree(kind):
    assert self_check(tiny_language_model(kind)).method == "tree"
