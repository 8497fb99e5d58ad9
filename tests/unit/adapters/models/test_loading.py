"""Weights that do not load whole are refused in one line that names them; none is ever a random one."""

from __future__ import annotations

import builtins
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from resources.models.checkpoint import checkpoint
from resources.models.files import ModelLoadError, gguf_facts
from resources.models.tokenizer_pairs import PAIRS
from resources.models.weights import LanguageModels
from resources.perplexity.tokenizers import tokenizer_encoder
from strandline.models import ModelSpec
from tests.fakes.tiny_gguf import tiny_gguf
from tests.fakes.tiny_models import saved_tiny_model, tiny_model, tiny_tokenizer

torch = pytest.importorskip("torch")

Weights = dict[str, Any]
LAST = "model.layers.1.mlp.down_proj.weight"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved_tiny_model(tmp_path / "tiny", "llama")


@pytest.fixture
def models(tmp_path: Path) -> Iterator[LanguageModels]:
    loader = LanguageModels(tmp_path / "cache")
    yield loader
    loader.release()


def spec_of(folder: Path) -> ModelSpec:
    return ModelSpec("tiny", "transformers", f"folder:{folder}")


def of_gguf(file: Path) -> ModelSpec:
    return ModelSpec("tiny", "transformers", f"gguf:{file}")


def refusal(models: LanguageModels, spec: ModelSpec) -> str:
    """The one line with which a model is refused; nothing of it is kept."""
    with pytest.raises(ModelLoadError) as refused:
        models.load(spec)
    said = str(refused.value)
    assert "\n" not in said
    assert "tiny" in said
    assert LanguageModels._held is None
    return said


def rewrite(folder: Path, change: Callable[[Weights], Weights], *, pickled: bool = False) -> None:
    """Save the folder's weights again, changed; as pytorch_model.bin where ``pickled``."""
    from safetensors.torch import load_file, save_file

    weights = change(load_file(folder / "model.safetensors"))
    (folder / "model.safetensors").unlink()
    if pickled:
        torch.save(weights, folder / "pytorch_model.bin")
    else:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def shard(folder: Path) -> None:
    """Save the folder's weights again as two files with an index."""
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(weights)
    parts = {"model-00001-of-00002.safetensors": names[:9], "model-00002-of-00002.safetensors": names[9:]}
    for file, held in parts.items():
        save_file({name: weights[name] for name in held}, folder / file, metadata={"format": "pt"})
    index = {"metadata": {}, "weight_map": {name: file for file, held in parts.items() for name in held}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize(
    "wrapping", ["_orig_mod.", "module.", "module._orig_mod.", "_orig_mod.module.", "_forward_module."]
)
def test_known_wrappings_are_taken_off_and_told(
    models: LanguageModels, folder: Path, wrapping: str, pickled: bool, caplog: pytest.LogCaptureFixture
) -> None:
    whole = {name: value.clone() for name, value in models.load(spec_of(folder)).model.state_dict().items()}
    rewrite(folder, lambda w: {wrapping + name: value for name, value in w.items()}, pickled=pickled)
    lm = models.load(spec_of(folder))
    assert all(torch.equal(value, whole[name]) for name, value in lm.model.state_dict().items())
    parts = [part for part in ("_orig_mod.", "module.", "_forward_module.") if part in wrapping.split(".")[0] + "."]
    assert lm.quantisation is not None
    assert all(part in lm.quantisation and part in caplog.text for part in parts)


def test_a_wrapping_inside_a_name_is_taken_off(models: LanguageModels, folder: Path) -> None:
    whole = models.load(spec_of(folder)).model.state_dict()[LAST].clone()
    rewrite(folder, lambda w: {k.replace(".mlp.", "._checkpoint_wrapped_module.mlp."): v for k, v in w.items()})
    assert torch.equal(models.load(spec_of(folder)).model.state_dict()[LAST], whole)


def test_sound_weights_have_nothing_to_tell(models: LanguageModels, folder: Path) -> None:
    assert models.load(spec_of(folder)).quantisation is None


@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda w: {k: v for k, v in w.items() if k != LAST}, f"missing: {LAST}"),
        (lambda w: w | {"model.layers.2.mlp.up_proj.weight": w[LAST].clone()}, "not the model's: model.layers.2"),
        (lambda w: w | {LAST: w[LAST][:, :40].contiguous()}, f"another shape: {LAST} (32, 40) for (32, 48)"),
        (lambda w: {f"net.{k}": v for k, v in w.items()}, "missing: lm_head.weight"),
        (lambda w: {k: v for k, v in w.items() if k != "lm_head.weight"}, "missing: lm_head.weight"),
        (lambda w: w | {f"module.{LAST}": w[LAST].clone()}, "one tensor under two names"),
    ],
)
def test_weights_that_do_not_fit_are_refused_by_name(
    models: LanguageModels, folder: Path, change: Callable[[Weights], Weights], said: str, pickled: bool
) -> None:
    rewrite(folder, change, pickled=pickled)
    assert said in refusal(models, spec_of(folder))


def test_the_message_of_other_shapes_is_ours(models: LanguageModels, folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": 64}))
    assert "ignore_mismatched_sizes" not in refusal(models, spec_of(folder))


@pytest.mark.parametrize(
    ("name", "shape", "is_mask"),
    [
        ("attn.bias", (1, 1, 64, 64), True),
        ("attn.masked_bias", (), True),
        ("attn.attention.bias", (1, 1, 64, 64), True),
        ("attn.bias", (96,), False),
        ("attn.bias", (1, 1, 64, 32), False),
        ("self_attn.bias", (1, 1, 64, 64), False),
    ],
)
def test_masks_of_old_checkpoints_are_no_weights(
    models: LanguageModels, folder: Path, name: str, shape: tuple[int, ...], is_mask: bool
) -> None:
    rewrite(folder, lambda w: w | {f"model.layers.0.{name}": torch.ones(shape)}, pickled=True)
    if is_mask:
        models.load(spec_of(folder))
    else:
        assert f"not the model's: model.layers.0.{name}" in refusal(models, spec_of(folder))


@pytest.fixture
def hub(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[ModelSpec, Path]:
    """A model in a hub's cache at a commit, which needs no network; and the folder that it lies in there."""
    from huggingface_hub import constants

    commit = "a" * 40
    files = tmp_path / "hub" / "models--org--tiny" / "snapshots" / commit
    shutil.copytree(folder, files)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return ModelSpec("tiny", "transformers", "hub:org/tiny", revision=commit, context_length=16), files


def test_a_hub_model_is_held_to_the_same(models: LanguageModels, hub: tuple[ModelSpec, Path]) -> None:
    spec, files = hub
    rewrite(files, lambda w: {f"_orig_mod.{name}": value for name, value in w.items()})
    lm = models.load(spec)
    assert lm.quantisation == "names unwrapped from _orig_mod."
    assert lm.digest == models.digest(spec) == f"org/tiny@{'a' * 40} context=16"
    models.release()
    rewrite(files, lambda w: {name: value for name, value in w.items() if LAST not in name})
    assert f"missing: {LAST}" in refusal(models, spec)


def test_a_tied_head_may_be_stored_once(models: LanguageModels, tmp_path: Path) -> None:
    folder = tmp_path / "tied"
    saved_tiny_model(folder, "gpt2")
    assert "lm_head.weight" not in checkpoint(folder).shapes
    lm = models.load(spec_of(folder))
    assert torch.equal(lm.model.lm_head.weight, lm.model.transformer.wte.weight)


def test_shards_load_whole_or_not_at_all(models: LanguageModels, folder: Path) -> None:
    shard(folder)
    models.load(spec_of(folder))
    models.release()
    (folder / "model-00002-of-00002.safetensors").unlink()
    assert "model-00002-of-00002.safetensors" in refusal(models, spec_of(folder))


def test_a_tensor_that_the_index_names_and_no_file_holds_is_named(models: LanguageModels, folder: Path) -> None:
    shard(folder)
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    index["weight_map"]["model.layers.7.weight"] = "model-00001-of-00002.safetensors"
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "model.layers.7.weight" in refusal(models, spec_of(folder))


@pytest.mark.parametrize("kept", [10, 400, -1000, -1])
def test_a_cut_file_is_named(models: LanguageModels, folder: Path, kept: int) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    assert "model.safetensors" in refusal(models, spec_of(folder))


def test_a_cut_pickle_is_named(models: LanguageModels, folder: Path) -> None:
    rewrite(folder, dict, pickled=True)
    file = folder / "pytorch_model.bin"
    file.write_bytes(file.read_bytes()[:-2000])
    assert "pytorch_model.bin" in refusal(models, spec_of(folder))


def test_a_trainers_checkpoint_is_no_model(models: LanguageModels, folder: Path) -> None:
    rewrite(folder, lambda w: {"state_dict": w, "epoch": 3}, pickled=True)
    assert "holds epoch, state_dict instead of tensors alone" in refusal(models, spec_of(folder))


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_git_lfs_pointer_is_named_as_such(models: LanguageModels, folder: Path, name: str) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 269060552\n"
    (folder / name).write_text(pointer)
    assert f"{name} in {folder} is a git-lfs pointer" in refusal(models, spec_of(folder))


def test_an_adapter_is_not_taken_for_its_model(models: LanguageModels, folder: Path) -> None:
    (folder / "adapter_config.json").write_text("{}")
    assert "merge it" in refusal(models, spec_of(folder))


def test_a_folder_without_weights_says_what_it_looked_for(models: LanguageModels, folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    assert "pytorch_model.bin" in refusal(models, spec_of(folder))


def test_custom_code_is_refused_before_anybody_is_asked(
    models: LanguageModels, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtins, "input", lambda *_: pytest.fail("a question at the keyboard"))
    config = json.loads((folder / "config.json").read_text())
    foreign = {"model_type": "submarine", "auto_map": {"AutoConfig": "c.C", "AutoModelForCausalLM": "c.M"}}
    (folder / "config.json").write_text(json.dumps(config | foreign))
    (folder / "c.py").write_text("raise SystemExit('foreign code ran')\n")
    assert "code of its own" in refusal(models, spec_of(folder))


def test_weights_are_counted_once(folder: Path) -> None:
    whole = checkpoint(folder).elements
    weights = tiny_model("llama").state_dict()
    assert whole == sum(value.numel() for value in weights.values())
    torch.save(weights, folder / "pytorch_model.bin")
    assert checkpoint(folder).elements == whole
    (folder / "model.safetensors").unlink()
    assert checkpoint(folder).elements == whole


def test_tied_weights_of_a_pickle_are_counted_once(tmp_path: Path) -> None:
    folder = saved_tiny_model(tmp_path / "tied", "gpt2")
    whole = checkpoint(folder).elements
    (folder / "model.safetensors").unlink()
    torch.save(tiny_model("gpt2").state_dict(), folder / "pytorch_model.bin")
    assert checkpoint(folder).elements == whole


def vocabulary(folder: Path, change: Callable[[dict[str, int]], dict[str, int]]) -> None:
    """Rewrite the vocabulary of the folder's tokenizer."""
    stored = json.loads((folder / "tokenizer.json").read_text())
    stored["model"]["vocab"] = change(stored["model"]["vocab"])
    (folder / "tokenizer.json").write_text(json.dumps(stored))


def test_a_tokenizer_with_more_tokens_than_embeddings_is_refused(models: LanguageModels, folder: Path) -> None:
    rows = len(tiny_tokenizer())
    vocabulary(folder, lambda v: v | {f"more{i}": rows + i for i in range(5)})
    assert f"{rows + 5} tokens does not belong to weights with {rows} embeddings" in refusal(models, spec_of(folder))


@pytest.mark.parametrize(("rows", "is_refused"), [(656, False), (657, True)])
def test_padding_of_the_embeddings_has_an_end(
    models: LanguageModels, tmp_path: Path, rows: int, is_refused: bool
) -> None:
    size = len(tiny_tokenizer())
    folder = tmp_path / "padded"
    tiny_model("llama", vocab=rows - 400 + size).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    if is_refused:
        assert "does not belong" in refusal(models, spec_of(folder))
    else:
        models.load(spec_of(folder))


def test_special_tokens_beyond_the_embeddings_are_no_sign_of_another_model(
    models: LanguageModels, folder: Path
) -> None:
    tokenizer = tiny_tokenizer().__class__.from_pretrained(folder)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    tokenizer.save_pretrained(folder)
    models.load(spec_of(folder))


def test_another_tokenizer_beside_known_weights_is_refused(
    models: LanguageModels, folder: Path, tmp_path: Path
) -> None:
    models.load(spec_of(folder))
    models.release()
    moved = tmp_path / "tiny-moved"
    shutil.copytree(folder, moved)
    turned = dict(zip(range(300, 390), reversed(range(300, 390)), strict=True))
    vocabulary(moved, lambda v: {token: turned.get(i, i) for token, i in v.items()})
    said = refusal(models, spec_of(moved))
    assert "tokenizer is not the one" in said
    assert PAIRS in said
    models.load(spec_of(folder))


def test_a_whole_gguf_loads(models: LanguageModels, tmp_path: Path) -> None:
    lm = models.load(of_gguf(tiny_gguf(tmp_path / "tiny.gguf")))
    assert lm.quantisation == "GGUF F32, expanded to fp32"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"hyper_parameters": False}, "lacks hyper-parameters (llama.block_count, llama.embedding_length)"),
        ({"without": ["blk.1.ffn_down.weight"]}, "model.layers.1.mlp.down_proj.weight"),
        ({"without": ["token_embd.weight", "blk.0.ffn_up.weight"]}, "incomplete"),
        ({"extra": {"blk.2.ffn_up.weight": (48, 32)}}, "blk.2.ffn_up.weight"),
        ({"extra": {"rope_freqs.weight": (4,)}}, "rope_freqs.weight"),
        ({"rope_scaling": True}, "scales positions"),
    ],
)
def test_a_gguf_that_would_not_be_read_whole_is_refused(
    models: LanguageModels, tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    assert said in refusal(models, of_gguf(tiny_gguf(tmp_path / "tiny.gguf", **changed)))
    assert not [path for path in (tmp_path / "cache" / "expanded").iterdir() if path.is_dir()]


@pytest.mark.parametrize("kept", [8, 500, -100])
def test_a_cut_gguf_is_one_line(models: LanguageModels, tmp_path: Path, kept: int) -> None:
    file = tiny_gguf(tmp_path / "tiny.gguf")
    file.write_bytes(file.read_bytes()[:kept])
    assert "tiny.gguf" in refusal(models, of_gguf(file))


def test_a_pointer_to_a_gguf_is_named_as_such(tmp_path: Path) -> None:
    file = tmp_path / "tiny.gguf"
    file.write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(ModelLoadError, match="git-lfs pointer"):
        gguf_facts(file)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "expanded_from.json"])
def test_a_damaged_expansion_is_made_anew(models: LanguageModels, tmp_path: Path, name: str) -> None:
    spec = of_gguf(tiny_gguf(tmp_path / "tiny.gguf"))
    first = models.load(spec).model.state_dict()[LAST].clone()
    models.release()
    [folder] = [path for path in (tmp_path / "cache" / "expanded").iterdir() if path.is_dir()]
    (folder / name).write_bytes((folder / name).read_bytes()[:-40])
    assert torch.equal(models.load(spec).model.state_dict()[LAST], first)


def test_a_home_folder_is_where_a_source_says(
    models: LanguageModels, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    assert models.load(ModelSpec("tiny", "transformers", "folder:~/tiny")).n_params > 0
    assert tokenizer_encoder(ModelSpec("tiny", "transformers", "folder:~/tiny")).vocabulary == len(tiny_tokenizer())
