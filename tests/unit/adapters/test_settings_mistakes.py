"""What users write into the settings files: whatever it is, it is taken or refused in one line that names the place."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from resources.spans.sources import known_kinds
from resources.spans.topic_lists import read_topics
from strandline.corpus.settings import corpora_of
from strandline.models.spec import ModelsFileError, parse_models
from strandline.perplexity.settings import read_references
from strandline.spans.settings import spans_of
from strandline.yaml_text import read_yaml

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ODD: tuple[Any, ...] = (None, "x", "", 0, -1, 3.5, True, [], [1], ["a", None], {}, {"a": 1}, [[1]], NOW)
SPAN = {
    "spans": [
        {
            "resource": "r",
            "source": "git",
            "months": {"first": "2024-01", "last": "latest"},
            "options": {"patterns": ["*.md"]},
        }
    ]
}


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in inner:
        yield from places(value, (*path, key))


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = deepcopy(document)
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return copy


def everything_on(text: str) -> Any:
    return yaml.safe_load(text.replace("enabled: false", "enabled: true"))


def refusals(document: Any, read: Callable[[Any], object]) -> int:
    """How many of all odd values at all places are refused; anything but a ValueError fails the test."""
    said: list[str] = []
    for path in places(document):
        for value in ODD:
            try:
                read(replaced(document, path, value))
            except ModelsFileError as error:
                said += error.errors
            except ValueError as error:
                said.append(str(error))
    assert [message for message in said if "\n" in message] == []
    return len(said)


def test_any_value_anywhere_in_the_span_settings_is_taken_or_refused_in_one_line(root: Path) -> None:
    document = everything_on((root / "data/spans.yaml").read_text())
    document["spans"][0]["topics"] = document["spans"][0]["topics"][:2]
    assert refusals(document, lambda d: spans_of(d, known_kinds(), read_topics, NOW)) > 200


def test_any_value_anywhere_in_the_corpus_settings_is_taken_or_refused_in_one_line(root: Path) -> None:
    assert refusals(everything_on((root / "data/corpora.yaml").read_text()), corpora_of) > 200


def test_any_value_anywhere_in_the_list_of_models_is_taken_or_refused(root: Path) -> None:
    document = yaml.safe_load((root / "data/models.yaml").read_text())
    assert refusals(document, lambda d: parse_models(yaml.safe_dump(d))) > 100


def test_any_value_anywhere_in_the_references_is_taken_or_refused_in_one_line(tmp_path: Path) -> None:
    def read(document: Any) -> object:
        (tmp_path / "r.yaml").write_text(yaml.safe_dump(document))
        return read_references(tmp_path / "r.yaml")

    assert refusals({"references": [{"model": "a", "resources": ["x"], "of": ["y"]}]}, read) > 40
    assert read({"references": None}) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"options": {"pattern": "*.md"}}, "r: unknown option pattern; known are branch, exclude, patterns"),
        ({"options": "*.md"}, r"r: options is '\*.md'; it must be a mapping"),
        ({"enabled": "no"}, "`enabled` true or false"),
        ({"topics": "requests"}, "r: topics is 'requests'; it must be a list"),
        ({"topics_file": "no/such.csv"}, "r: topics_file no/such.csv: No such file"),
        ({"source": "readme", "options": {}}, "r: no topics; list them"),
    ],
)
def test_a_slip_in_a_span_never_passes_without_a_word(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        spans_of({"spans": [SPAN["spans"][0] | changes]}, known_kinds(), read_topics, NOW)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "line 3: .*c given twice"),
        ("a:\n\t- 1\n", "line 2: not YAML that can be used"),
        ("a:\n  - b: 1\n c: 2\n", "line 3: not YAML that can be used"),
        ("a: [1, 2\n", "not YAML that can be used"),
        ("a: 2024-02-31\n", "a value that is none"),
        ("a: \x00\n", "a character that YAML does not allow"),
    ],
)
def test_what_is_no_yaml_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        read_yaml(text)
    assert "\n" not in str(caught.value)
