"""The commands behind ``make``: loopback by default, warnings and errors in words, exit statuses."""

import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import launch
from resources.configured import WarehouseResource


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    calls: list[list[str]] = []

    def call(command: list[str], **_: Any) -> int:
        calls.append(command)
        return 0

    monkeypatch.setattr(subprocess, "call", call)
    return calls


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> WarehouseResource:
    resource = WarehouseResource(path=str(tmp_path / "w.duckdb"), published=str(tmp_path / "p.duckdb"))
    monkeypatch.setattr("resources.configured.WarehouseResource", lambda: resource)
    return resource


def test_the_ui_binds_loopback_and_says_nothing(served: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert launch.main(["ui"]) == 0
    assert served[0][1:] == ["dev", "-w", "workspace.yaml", "--host", "127.0.0.1", "--port", "3000"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "example.org"])
def test_another_host_needs_the_flag_and_prints_a_warning(
    served: list[list[str]], capsys: pytest.CaptureFixture[str], host: str
) -> None:
    assert launch.main(["ui", "--host", host]) == 0
    assert "no login" in capsys.readouterr().err
    assert host in served[0]


def test_a_read_only_ui_starts_the_web_server_alone(served: list[list[str]]) -> None:
    assert launch.main(["ui", "--read-only"]) == 0
    assert Path(served[0][0]).name == "dagster-webserver"
    assert served[0][-1] == "--read-only"


def test_a_query_answers_from_the_published_copy(
    published: WarehouseResource, capsys: pytest.CaptureFixture[str]
) -> None:
    store = published.open()
    store.replace("spans.texts", pl.DataFrame({"text_sha256": ["a"], "text": ["tide"]}))
    store.publish()
    assert launch.main(["query", "select text from spans.texts"]) == 0
    assert "tide" in capsys.readouterr().out


def test_a_query_before_anything_was_published_is_one_line_and_a_failure(
    published: WarehouseResource, capsys: pytest.CaptureFixture[str]
) -> None:
    assert launch.main(["query", "select 1"]) == 1
    error = capsys.readouterr().err
    assert "make run" in error
    assert error.count("\n") == 1


def test_a_faulty_query_is_an_error_in_words_not_a_traceback(
    published: WarehouseResource, capsys: pytest.CaptureFixture[str]
) -> None:
    published.open().publish()
    assert launch.main(["query", "select nothing from nowhere"]) == 1
    assert "nowhere" in capsys.readouterr().err


def test_rebuild_starts_from_the_published_copy(
    published: WarehouseResource, capsys: pytest.CaptureFixture[str]
) -> None:
    store = published.open()
    store.replace("spans.texts", pl.DataFrame({"text_sha256": ["a"], "text": ["tide"]}))
    store.publish()
    store.path.write_bytes(b"broken" * 100)
    assert launch.main(["rebuild"]) == 0
    assert "make run" in capsys.readouterr().out
    assert published.open().query("select text from spans.texts").item() == "tide"
