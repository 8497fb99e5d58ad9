"""Which models of data/models.yaml are to be dated now."""

from dataclasses import replace
from datetime import date

import pytest

from strandline.models import ModelSpec
from strandline.models.changes import changes, run_key, spec_digest

A = ModelSpec("org/a", "transformers", "folder:a")
B = ModelSpec("b", "openai", "http://127.0.0.1:1/v1")


def test_a_new_model_is_registered_and_run_once() -> None:
    first = changes([A, B], [], {})
    assert first.to_register == ("org%2Fa", "b")
    assert [r.model for r in first.to_run] == ["org/a", "b"]
    assert {r.reason for r in first.to_run} == {"new in the file"}
    again = changes([A, B], first.to_register, {r.run_key: "STARTED" for r in first.to_run})
    assert again.to_register == ()
    assert again.to_run == ()
    assert again.reason == "org/a: unchanged, and its run is started; b: unchanged, and its run is started"


def test_a_changed_entry_runs_again_under_another_key() -> None:
    done = {run_key(A): "SUCCESS"}
    (run,) = changes([replace(A, revision="v2")], ["org%2Fa"], done).to_run
    assert run.run_key not in done
    assert run.reason == "its entry changed"


@pytest.mark.parametrize(
    "described",
    [
        {"family": "F"},
        {"api_key_env": "K"},
        {"n_params": 7},
        {"released_on": date(2025, 1, 1)},
        {"cost_per_million_tokens": 1.0},
    ],
)
def test_facts_that_change_no_result_ask_for_no_run(described: dict[str, object]) -> None:
    assert spec_digest(replace(A, **described)) == spec_digest(A)  # type: ignore[arg-type]


@pytest.mark.parametrize("field", ["source", "revision", "sha256", "ask", "dtype", "served_name"])
def test_whatever_could_change_a_result_changes_the_digest(field: str) -> None:
    assert spec_digest(replace(A, **{field: "x"})) != spec_digest(A)  # type: ignore[arg-type]


def test_a_failed_run_waits_until_it_is_asked_for_and_then_has_its_own_key() -> None:
    failed = {run_key(A): "FAILURE"}
    waiting = changes([A], ["org%2Fa"], failed)
    assert waiting.to_run == ()
    assert "failed 1 time(s)" in waiting.reason
    (again,) = changes([A], ["org%2Fa"], failed, max_attempts=2).to_run
    assert again.run_key == run_key(A, 2) != run_key(A)
    assert changes([A], ["org%2Fa"], failed | {again.run_key: "SUCCESS"}, max_attempts=5).to_run == ()


@pytest.mark.parametrize("status", ["QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING", "SUCCESS"])
def test_a_run_under_way_is_never_doubled(status: str) -> None:
    assert changes([A], [], {run_key(A): status}, max_attempts=9).to_run == ()


def test_an_empty_list_has_a_reason_too() -> None:
    assert changes([], [], {}).reason == "data/models.yaml lists no model"


def test_five_thousand_models_take_one_call() -> None:
    specs = [ModelSpec(f"org/m-{i}", "transformers", f"folder:{i}") for i in range(5000)]
    assert len(changes(specs, [], {}).to_register) == 5000
