"""YAML as users write it, read strictly: a key given twice is refused, and every fault is one line that says where."""

from typing import Any

import yaml


def read_yaml(text: str) -> Any:
    """The document that a settings file holds.

    Raises:
        ValueError: with the line; it is not YAML, gives a key twice, or holds a value that is none.
    """
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}" if error.problem_mark else "somewhere"
        raise ValueError(f"{line}: not YAML that can be used: {error.problem}") from None
    except yaml.YAMLError:
        raise ValueError("not YAML: a character that YAML does not allow") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"holds a value that is none, such as an impossible date: {error}") from None


class _StrictLoader(yaml.SafeLoader):
    """Refuses a key that is given twice, where plain YAML lets the last one win without a word."""


def _mapping(loader: _StrictLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    pairs = [(loader.construct_object(k, deep=True), loader.construct_object(v, deep=True)) for k, v in node.value]
    keys = [k for k, _ in pairs]
    twice = sorted({str(k) for k in keys if keys.count(k) > 1})
    if twice:
        raise yaml.constructor.ConstructorError(problem=f"{', '.join(twice)} given twice", problem_mark=node.start_mark)
    return dict(pairs)


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
