"""With a real model the scores are those of the plain forward pass and of an independent harness, in fp32 and bf16."""

import json
import lzma
import math
from itertools import islice

import pytest

from resources.models.files import ModelLoadError
from resources.models.weights import LanguageModels
from resources.perplexity.path_store import PathStore
from strandline.models.spec import read_models
from strandline.scoring.engine import score_texts
from strandline.scoring.path_reuse import PathReuse
from strandline.scoring.self_check import self_check
from tests.fakes.tiny_models import with_bos

pytestmark = pytest.mark.slow
torch = pytest.importorskip("torch")
LIMIT = 64


@pytest.fixture(scope="module")
def spec(root):
    return read_models(root / "data" / "models.yaml")[0]


@pytest.fixture(scope="module")
def models(spec):
    loader = LanguageModels()
    try:
        loader.load(spec)
    except ModelLoadError as error:
        pytest.skip(f"the default model cannot be had here: {error}")
    yield loader
    loader.release()


@pytest.fixture(scope="module")
def versions(root):
    """Seven versions of each of four countries."""
    path = root / "tests" / "data" / "factbook.jsonl.xz"
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in islice(lines, 59 * 4)]
    by_topic = {}
    for row in rows:
        by_topic.setdefault(row["topic"], {}).setdefault(row["text"], row["month"])
    chosen = [text for held in by_topic.values() for text in list(held)[:7]]
    return {str(number): text for number, text in enumerate(chosen)}


@pytest.fixture(scope="module")
def texts(versions):
    """Twenty documents."""
    assert len(versions) >= 20
    return dict(islice(versions.items(), 20))


def plain_mean(lm, text):
    """Tokenize the whole text, put BOS first, run it alone, average the losses of all that follows BOS."""
    ids = lm.tokenizer(text, add_special_tokens=False)["input_ids"][:LIMIT]
    given = torch.tensor([[lm.bos_id, *ids]])
    with torch.inference_mode():
        logits = lm.model(given).logits[0, :-1].double()
    return torch.nn.functional.cross_entropy(logits, given[0, 1:]).item()


def test_the_default_model_is_scored_along_the_tree(models, spec):
    lm = models.load(spec)
    assert (lm.bos_id, lm.context_length, lm.n_params) == (1, 8192, 134_515_008)
    assert self_check(lm).method == "tree"
    assert self_check(lm).difference < 1e-4


def test_scores_equal_the_plain_forward_pass(models, spec, texts):
    lm = models.load(spec)
    found = {score.text_sha256: score for score in score_texts(lm, texts, LIMIT)}
    for key, text in texts.items():
        assert found[key].mean_nll == pytest.approx(plain_mean(lm, text), abs=1e-4)
        assert found[key].n_tokens == LIMIT


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("bfloat16", 0.02)])
def test_going_on_from_what_was_kept_of_the_version_before_changes_no_score(
    models, spec, texts, tmp_path, dtype, tolerance
):
    lm, files = models.load(spec, dtype), PathStore(tmp_path, 10**9)
    before = None
    for digest, text in islice(texts.items(), 7):
        known = [path for path in [files.find("country", lm.device)] if path]
        (score,) = score_texts(lm, {digest: text}, 256, paths=PathReuse(known, {digest: ["country"]}, files.keep))
        (alone,) = score_texts(lm, {digest: text}, 256)
        assert score.mean_nll == pytest.approx(alone.mean_nll, abs=tolerance)
        ids = with_bos(lm, lm.token_ids([text], 256)[0])
        if before:
            shared = next((n for n, (old, new) in enumerate(zip(before, ids, strict=False)) if old != new), len(ids))
            assert score.tokens_computed == len(ids) - shared
        before = ids


def test_bfloat16_is_close_to_fp32(models, spec, texts):
    exact = {score.text_sha256: score.mean_nll for score in score_texts(models.load(spec), texts, 256)}
    for score in score_texts(models.load(spec, "bfloat16"), texts, 256):
        assert score.mean_nll == pytest.approx(exact[score.text_sha256], abs=0.02)


def test_scores_equal_the_harness_rolling_log_likelihood(models, spec, versions):
    pytest.importorskip("lm_eval")
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    lm = models.load(spec)
    harness = HFLM(pretrained=lm.model, tokenizer=lm.tokenizer, batch_size=1, max_length=512, prefix_token_id=lm.bos_id)
    cut = {key: lm.tokenizer.decode(lm.token_ids([text], LIMIT)[0]) for key, text in versions.items()}
    whole = {key: text for key, text in cut.items() if len(lm.token_ids([text])[0]) == LIMIT}
    same = dict(islice(whole.items(), 20))
    assert len(same) == 20
    asked = [Instance("loglikelihood_rolling", {}, (text,), n) for n, text in enumerate(same.values())]
    expected = dict(zip(same, harness.loglikelihood_rolling(asked, disable_tqdm=True), strict=True))
    for score in score_texts(lm, same, LIMIT):
        assert -score.mean_nll * score.n_tokens == pytest.approx(expected[score.text_sha256], abs=1e-4 * LIMIT)
        assert score.perplexity == pytest.approx(math.exp(score.mean_nll))
