"""The engine equals a plain one-document forward pass, whatever is batched, shared, padded or cut."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Never

import numpy as np
import pytest

from strandline.scoring import engine
from strandline.scoring.engine import Scorer, score_texts
from strandline.scoring.language_model import LanguageModel
from strandline.scoring.prefix_tree import Request
from strandline.scoring.scores import text_score, tokenized
from strandline.scoring.self_check import self_check
from tests.fakes.tiny_models import CONTEXT, WORDS, tiny_language_model, with_bos

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
@pytest.mark.parametrize("slice_rows", [2, 7, 50, 5000])
def test_every_sequence_equals_the_plain_forward_pass(kind, slice_rows) -> None:
    lm = tiny_language_model(kind)
    requests = versions(8 if slice_rows == 2 else 24)
    found = scored(lm, requests, slice_rows=slice_rows)
    assert set(found) == set(requests)
    for request, total in found.items():
        assert total == pytest.approx(plain_sum(lm, request), abs=1e-4 * (len(request.ids) - request.score_from))


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "mpt"])
def test_these_architectures_are_scored_along_the_tree(kind) -> None:
    assert self_check(tiny_language_model(kind)).method == "tree"


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", ["gpt2", "mpt"])
def test_neither_companions_nor_their_order_nor_the_padding_side_change_a_score(kind, side) -> None:
    lm = tiny_language_model(kind)
    lm.tokenizer.padding_side = side
    requests = versions(16, seed=3)
    together, reversed_order = scored(lm, requests), scored(lm, requests[::-1], slice_rows=33)
    for request in requests[:6]:
        alone = scored(lm, [request])[request]
        n = len(request.ids) - request.score_from
        assert together[request] == pytest.approx(alone, abs=1e-4 * n)
        assert reversed_order[request] == pytest.approx(alone, abs=1e-4 * n)


@pytest.mark.parametrize("has_bos", [True, False])
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@pytest.mark.parametrize("over", [-1, 0, 1, 40])
def test_texts_at_one_under_and_over_the_limit_are_scored_on_exactly_the_first_ids(kind, has_bos, over) -> None:
    lm = tiny_language_model(kind, has_bos=has_bos)
    limit = 20
    text = next(t for t in growing() if len(lm.token_ids([t])[0]) == limit + over)
    (score,) = score_texts(lm, {"a": text}, limit)
    ids = lm.token_ids([text])[0][:limit]
    expected = plain_sum(lm, Request(tuple(with_bos(lm, ids))))
    assert score.n_tokens == len(ids) - (not has_bos)
    assert score.mean_nll == pytest.approx(expected / score.n_tokens, abs=1e-4)
    assert score.perplexity == pytest.approx(math.exp(score.mean_nll), rel=1e-12)
    assert score.prefix_token == lm.bos_id
    assert not score.is_context_limited


@pytest.mark.parametrize("has_bos", [True, False])
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_model_is_never_given_more_than_its_context_and_the_row_says_so(has_bos, over) -> None:
    lm = tiny_language_model("gpt2", has_bos=has_bos, context=24)
    room = 24 - has_bos
    text = next(t for t in growing() if len(lm.token_ids([t])[0]) == room + over)
    (score,) = score_texts(lm, {"a": text}, 512)
    assert score.is_context_limited == (over > 0)
    assert score.n_tokens == min(room, room + over) - (not has_bos)


def growing():
    """Texts that grow by a character, so that every number of tokens occurs."""
    whole = " ".join(WORDS * 3)
    return (whole[:n] for n in range(1, len(whole)))


@pytest.mark.parametrize("has_bos", [True, False])
def test_empty_and_one_token_texts_are_too_short(has_bos) -> None:
    lm = tiny_language_model(has_bos=has_bos)
    assert len(lm.token_ids(["x"])[0]) == 1
    for score in score_texts(lm, {"a": "", "b": "x"}, 512):
        assert (score.status, score.mean_nll, score.perplexity, score.n_tokens) == ("too_short", None, None, 0)
        assert "two are needed" in score.reason


def test_bos_stands_once_even_where_the_text_contains_its_string() -> None:
    lm = tiny_language_model()
    ids = lm.token_ids(["<s>tide water"])[0]
    (score,) = score_texts(lm, {"a": "<s>tide water"}, 512)
    expected = plain_sum(lm, Request((lm.bos_id, *ids)))
    assert score.mean_nll == pytest.approx(expected / len(ids), abs=1e-4)


def test_texts_that_begin_with_the_same_ids_are_computed_once() -> None:
    lm = tiny_language_model()
    text = " ".join(WORDS)
    rows = {s.text_sha256: s for s in score_texts(lm, {"a": text, "b": text + " tide", "c": text + " water"}, 16)}
    assert sorted(row.tokens_computed for row in rows.values()) == [0, 0, 17]
    assert {row.tokens_computed + row.tokens_saved for row in rows.values()} == {17}
    assert len({row.mean_nll for row in rows.values()}) == 1


def test_embeddings_and_logits_are_as_before_also_where_the_vocabulary_is_padded() -> None:
    lm = tiny_language_model("llama", vocab=512)
    ids = torch.tensor([[0, 5, 9, 30]])
    with torch.no_grad():
        before = lm.model(ids).logits.clone()
    size, n_tokens = lm.model.get_input_embeddings().weight.shape, len(lm.tokenizer)
    requests = versions(6)
    found = scored(lm, requests)
    assert found[requests[0]] == pytest.approx(plain_sum(lm, requests[0]), abs=1e-2)
    assert (lm.model.get_input_embeddings().weight.shape, len(lm.tokenizer)) == (size, n_tokens)
    with torch.no_grad():
        assert torch.equal(lm.model(ids).logits, before)


def test_ids_that_the_model_does_not_have_and_inputs_beyond_its_context_are_errors() -> None:
    lm = tiny_language_model(context=32)
    with pytest.raises(ValueError, match="embeddings"):
        list(Scorer(lm).sequences([Request((0, 100_000))]))
    with pytest.raises(ValueError, match="exceed the context"):
        list(Scorer(lm).sequences([Request(tuple(range(2, 35)))]))


def test_where_memory_runs_out_the_batch_is_halved_and_nothing_is_lost(monkeypatch) -> None:
    from strandline.scoring import tree_forward

    lm = tiny_language_model()
    requests = versions(12)
    expected = scored(lm, requests)
    sizes = []
    real = tree_forward.TreeForward._hidden

    def hungry(self, piece):
        sizes.append(piece.end - piece.begin)
        if sizes[-1] > 20:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")
        return real(self, piece)

    monkeypatch.setattr(tree_forward.TreeForward, "_hidden", hungry)
    rows = list(Scorer(lm, slice_rows=64).sequences(requests))
    assert {row.request: row.sum_nll for row in rows} == pytest.approx(expected, abs=1e-4)
    assert sizes[:3] == [64, 32, 16]
    assert {row.batch_rows for row in rows} == {16}


def test_where_memory_runs_out_a_batch_of_equal_lengths_is_halved_too(monkeypatch) -> None:
    from strandline.scoring import plain_forward

    lm = tiny_language_model("mpt")
    rng = np.random.default_rng(0)
    sequences = [Request((0, *rng.permutation(np.arange(5, 35)).tolist())) for _ in range(7)]
    scorer, sizes, real = Scorer(lm), [], plain_forward.batch_losses

    def hungry(lm, batch):
        sizes.append(len(batch))
        if sizes[-1] > 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")
        return real(lm, batch)

    monkeypatch.setattr(plain_forward, "batch_losses", hungry)
    rows = scorer.batch(sequences, 8)
    assert [row.sum_nll for row in rows] == pytest.approx([plain_sum(lm, s) for s in sequences], abs=1e-3)
    assert sizes == [8, 4, 2, 2, 4, 2, 2]
    assert {row.batch_rows for row in rows} == {2 * 31}


def test_other_errors_are_not_taken_for_lack_of_memory(monkeypatch) -> None:
    from strandline.scoring import tree_forward

    lm = tiny_language_model()
    self_check(lm)

    def broken(self, piece) -> Never:
        raise RuntimeError("shapes cannot be multiplied")

    monkeypatch.setattr(tree_forward.TreeForward, "_hidden", broken)
    with pytest.raises(RuntimeError, match="shapes"):
        list(Scorer(lm).sequences(versions(3)))


def overflowing(dtype):
    """A model whose first feed-forward layer exceeds half precision wherever token 7 stands, and only there."""
    lm = tiny_language_model("llama")
    first = lm.model.model.layers[0].mlp
    with torch.no_grad():
        lm.model.model.embed_tokens.weight[:, 0] = 0.0
        lm.model.model.embed_tokens.weight[7] = torch.eye(32)[0] * 100
        first.gate_proj.weight[:, 0] = 60.0
        first.up_proj.weight[:, 0] = 60.0
    return replace(lm, model=lm.model.to(getattr(torch, dtype)), dtype=dtype, cache={})


def test_what_is_not_finite_in_half_precision_is_repeated_in_fp32() -> None:
    lm = overflowing("float16")
    bad, sibling, good = Request((0, 7, 9, 11)), Request((0, 8, 9, 11)), Request((3, 8, 9, 11))
    rows = {s.request: s for s in Scorer(lm).sequences([bad, sibling, good])}
    assert (rows[bad].status, rows[bad].dtype) == ("ok", "float32")
    assert (rows[good].status, rows[good].dtype) == ("ok", "float16")
    assert (rows[sibling].status, rows[sibling].dtype) == ("ok", "float16")
    reference = overflowing("float16")
    reference.model.float()
    for request in (bad, sibling):
        assert rows[request].sum_nll == pytest.approx(plain_sum(reference, request), abs=1e-2)
    assert next(lm.model.parameters()).dtype == torch.float16


def test_where_memory_does_not_hold_an_fp32_copy_the_others_are_scored_and_the_text_says_why(monkeypatch) -> None:
    tried = []

    def full(lm) -> Never:
        tried.append(lm)
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(engine, "_fp32_copy", full)
    lm = overflowing("float16")
    bad, worse, sibling = Request((0, 7, 9, 11)), Request((0, 7, 7, 11)), Request((0, 8, 9, 11))
    rows = {s.request: s for s in Scorer(lm).sequences([bad, worse, sibling])}
    assert len(tried) == 1
    assert rows[worse].status == "nonfinite"
    assert (rows[bad].status, rows[bad].dtype) == ("nonfinite", "float16")
    assert (rows[sibling].status, rows[sibling].dtype) == ("ok", "float16")
    row = text_score(tokenized("", bad.ids[1:], 30, 0, None), rows[bad], 30, 0, is_copy=False)
    assert "memory does not hold the model in fp32" in row.reason


def test_what_is_not_finite_in_fp32_is_marked_and_touches_no_other_document() -> None:
    lm = tiny_language_model("llama")
    with torch.no_grad():
        lm.model.model.embed_tokens.weight[7] = math.nan
    bad, good = Request((0, 9, 7, 11)), Request((0, 9, 8, 11))
    rows = {s.request: s for s in Scorer(lm).sequences([bad, good])}
    assert (rows[bad].status, rows[bad].sum_nll) == ("nonfinite", None)
    assert rows[good].sum_nll == pytest.approx(plain_sum(lm, good), abs=1e-3)


def test_half_precision_is_close_and_recorded() -> None:
    full, half = tiny_language_model("llama"), tiny_language_model("llama", dtype="bfloat16")
    requests = versions(10)
    exact = scored(full, requests)
    for row in Scorer(half).sequences(requests):
        assert row.dtype == "bfloat16"
        assert row.mean_nll == pytest.approx(exact[row.request] / row.n_scored, abs=0.2)


@pytest.mark.parametrize("kind", ["llama", "mpt"])
def test_a_batch_gives_every_sequence_the_value_that_it_has_in_any_other_batch(kind) -> None:
    lm = tiny_language_model(kind)
    rng = np.random.default_rng(0)
    sequences = [Request((0, *rng.permutation(np.arange(5, 35)).tolist())) for _ in range(7)]
    scorer = Scorer(lm)
    one = [s.sum_nll for start in (0, 4) for s in scorer.batch(sequences[start : start + 4], 4)]
    other = [s.sum_nll for start in (0, 4) for s in scorer.batch(sequences[::-1][start : start + 4], 4)]
    assert one == pytest.approx(other[::-1], abs=1e-4)
    assert one == pytest.approx([plain_sum(lm, s) for s in sequences], abs=1e-3)


def test_a_batch_takes_sequences_of_one_length_that_fit() -> None:
    scorer = Scorer(tiny_language_model())
    short, long = Request((0, 5, 6)), Request((0, 5, 6, 7))
    for wrong in ([], [short, long], [short] * 5):
        with pytest.raises(ValueError, match="a batch of 4"):
            scorer.batch(wrong, 4)


def test_several_threads_may_score_with_one_model() -> None:
    from concurrent.futures import ThreadPoolExecutor

    lm = tiny_language_model()
    parts = [versions(8, seed=seed) for seed in range(6)]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda part: scored(lm, part, slice_rows=20), parts))
    for part, scores in zip(parts, found, strict=True):
        assert scores == pytest.approx(scored(lm, part), abs=1e-4)
    assert lm.model.config._attn_implementation != "strandline_tree"


def test_the_model_is_as_before_after_scoring_also_where_scoring_was_left_half_way() -> None:
    lm = tiny_language_model()
    before = lm.model.config._attn_implementation
    running = Scorer(lm, slice_rows=8).sequences(versions(8))
    next(running)
    running.close()
    assert lm.model.config._attn_implementation == before
    assert all("forward" not in vars(module) for module in lm.model.modules())


def test_a_large_vocabulary_never_meets_many_rows() -> None:
    from strandline.scoring.projection import Projection

    class Head(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.config = type("C", (), {"get_text_config": lambda self: self})()
            self.layer = torch.nn.Linear(16, 250_000, bias=False)

        def get_output_embeddings(self):
            return self.layer

    projection, hidden = Projection(Head()), torch.randn(8 * 512, 16)
    one_fp32_logits_tensor = 8 * 512 * 250_000 * 4
    with torch.inference_mode(), torch.profiler.profile(profile_memory=True) as profile:
        projection.log_normaliser(hidden[:200])
    largest = max(event.self_cpu_memory_usage for event in profile.events())
    assert 0 < 4 * largest < one_fp32_logits_tensor / 10
