"""Reading ``data/models.yaml``: entries in, specifications or clear errors out.

What is checked here is what can be checked without a network or a file: fields, types, and whether a source is complete
and pinned. Whether the weights are there is found out by the resource that loads them.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from strandline.models import ModelSpec
from strandline.models.sources import source_of
from strandline.models.sources import wheel_member as wheel_member
from strandline.yaml_text import read_yaml

DTYPES = ("float32", "bfloat16", "float16", "auto")
"""Number formats of weights: the three that transformers loads and torch computes in, and the choice of one of them."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
"""As ``sha256sum`` writes it."""
_API_VERSION = re.compile(r"api-version=[\w.-]+")
"""The query of an Azure address, which holds no secret."""
_ENV_NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
"""What POSIX allows as a variable's name, in capitals as keys are named; a key itself does not look like this."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMBT])?", re.IGNORECASE)
"""A number and a unit: 135M, 1.7B."""

_SIZE_UNITS = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
"""What the letters stand for in sizes of models."""

_MOST_PARAMETERS = 10**15
"""A thousand times the largest models of 2025, and within the column's 64 bits: more is a slip of the unit."""

_MOST_TOKENS = 2**31 - 1
"""The largest value of the columns that hold counts of tokens; no context is near it."""

_TEXT_FIELDS = {"name", "backend", "source", "revision", "sha256", "gguf_sha256", "family", "ask", "dtype"} | {
    "served_name",
    "api_key_env",
    "provider",
}
"""Fields that are text; YAML reads an unquoted 1.0 or 2024 as a number."""

_REQUIRED = tuple(f.name for f in fields(ModelSpec) if f.default is MISSING)
"""Fields without a default."""


class ModelsFileError(ValueError):
    """Every fault found in a models file, one line each. Values of secret-looking fields are never repeated."""

    def __init__(self, where: str, errors: Iterable[str]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join([f"{where}: {len(self.errors)} fault(s)", *(f"  - {e}" for e in self.errors)]))


def read_models(path: str | Path) -> list[ModelSpec]:
    """The models that a user lists, in the order of the file.

    Raises ModelsFileError (a ValueError) naming every faulty entry and field; FileNotFoundError where there is no file.
    """
    return parse_models(Path(path).read_text(encoding="utf-8"), where=str(path))


def parse_models(text: str, where: str = "models.yaml") -> list[ModelSpec]:
    """The same from the file's text: a mapping with the one key ``models``, a list of entries."""
    entries = _entries(text, where)
    specs: list[ModelSpec] = []
    errors: list[str] = []
    for number, entry in enumerate(entries, 1):
        label = _label(number, entry)
        faults = _faults(entry)
        if not faults and entry["name"] in {s.name for s in specs}:
            faults = ["another entry has this name"]
        errors += [f"{label}: {fault}" for fault in faults]
        if not faults:
            specs.append(_spec(entry))
    if errors:
        raise ModelsFileError(where, errors)
    return specs


def parameter_count(value: int | str) -> int:
    """A count of parameters from an integer or from a size such as ``135M`` or ``1.7B``; ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("n_params is a whole number or a size such as 135M or 1.7B")
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    count = float(match[1]) * _SIZE_UNITS.get((match[2] or "").upper(), 1) if match else value
    if isinstance(count, str) or not 1 <= count <= _MOST_PARAMETERS:
        raise ValueError("n_params is a positive whole number or a size such as 135M or 1.7B, at most 1000T")
    return round(count)


def number_format(value: object) -> str:
    """A ``dtype`` wherever it is given: in the file, in a resource or in a run's configuration.

    Raises ValueError, one sentence, for anything but the names in ``DTYPES``.
    """
    if isinstance(value, str) and value in DTYPES:
        return value
    raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, not {value!r}")


def _entries(text: str, where: str) -> list[Any]:
    try:
        document = read_yaml(text)
    except ValueError as error:
        raise ModelsFileError(where, [str(error)]) from None
    if not isinstance(document, Mapping) or set(document) != {"models"} or not isinstance(document["models"], list):
        raise ModelsFileError(where, ["the file holds one key, models, with a list of entries"])
    return document["models"]


def _label(number: int, entry: object) -> str:
    name = entry.get("name") if isinstance(entry, Mapping) else None
    return f"entry {number} ({name})" if isinstance(name, str) and name else f"entry {number}"


def _faults(entry: object) -> list[str]:
    if not isinstance(entry, Mapping):
        return ["is not a mapping of fields"]
    known = {f.name for f in fields(ModelSpec)}
    faults = [f"{field} is required" for field in _REQUIRED if entry.get(field) in (None, "")]
    faults += [_unknown_field(str(field)) for field in entry if field not in known]
    faults += [fault for field in known & set(entry) if (fault := _field_fault(field, entry[field]))]
    return sorted(faults) or _source_faults(entry)


def _unknown_field(field: str) -> str:
    if "key" in field.lower() or "token" in field.lower() or "secret" in field.lower():
        return f"unknown field {field}: a key never stands in this file; api_key_env names the variable that holds it"
    return f"unknown field {field}"


def _field_fault(field: str, value: object) -> str | None:
    if value is None:
        return None
    if field in _TEXT_FIELDS and not isinstance(value, str):
        return f"{field} must be text: put it in quotes"
    check = _CHECKS.get(field)
    return check(value) if check else None


def _name_fault(value: str) -> str | None:
    is_fit = value == value.strip() and value.isprintable() and len(value) <= 200
    return None if is_fit else "name must be printable, at most 200 characters, without blanks around it"


def _fault_of(read: Callable[[Any], object], value: object) -> str | None:
    """What a reader of values says against one, None where it takes it."""
    try:
        read(value)
    except ValueError as error:
        return str(error)
    return None


def _whole_fault(field: str) -> Any:
    def check(value: object) -> str | None:
        is_count = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_TOKENS
        return None if is_count else f"{field} must be a positive whole number of at most {_MOST_TOKENS:,}"

    return check


def _cost_fault(value: object) -> str | None:
    is_cost = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")
    return None if is_cost else "cost_per_million_tokens must be a number, zero or more"


def _choice_fault(field: str, choices: tuple[str, ...]) -> Any:
    return lambda value: None if value in choices else f"{field} must be one of {', '.join(choices)}"


def _sha256_fault(field: str) -> Any:
    return lambda value: None if _SHA256.fullmatch(value) else f"{field} must be 64 lower-case hexadecimal digits"


_CHECKS: dict[str, Any] = {
    "name": _name_fault,
    "backend": _choice_fault("backend", ("transformers", "openai")),
    "ask": _choice_fault("ask", ("chat", "likelihood")),
    "dtype": lambda value: _fault_of(number_format, value),
    "sha256": _sha256_fault("sha256"),
    "gguf_sha256": _sha256_fault("gguf_sha256"),
    "n_params": lambda value: _fault_of(parameter_count, value),
    "context_length": _whole_fault("context_length"),
    "max_response_tokens": _whole_fault("max_response_tokens"),
    "cost_per_million_tokens": _cost_fault,
    "is_open": lambda value: None if isinstance(value, bool) else "is_open must be true or false",
    "released_on": lambda value: None if type(value) is date else "released_on must be a date, as 2025-02-07",
    "api_key_env": lambda value: (
        None
        if _ENV_NAME.fullmatch(value)
        else "api_key_env must be the NAME of an environment variable (capitals, digits, _), never the key itself"
    ),
}
"""What else a field must satisfy: each check gives a fault in words, or None."""


def _source_faults(entry: Mapping[str, Any]) -> list[str]:
    is_remote = entry["source"].startswith(("http://", "https://"))
    if is_remote != (entry["backend"] == "openai"):
        return [
            "backend openai takes an http(s) base address as source; backend transformers hub:, folder:, gguf: or pypi:"
        ]
    faults = _endpoint_faults(entry) if is_remote else _weights_faults(entry)
    return [fault for fault in faults if fault]


def _endpoint_faults(entry: Mapping[str, Any]) -> list[str | None]:
    try:
        parts = urlsplit(entry["source"])
        query = "" if _API_VERSION.fullmatch(parts.query) else parts.query
        has_host, has_secret = bool(parts.hostname), bool(parts.username or parts.password or query)
    except ValueError:
        return ["source is not an address"]
    return [
        None if has_host else "source has no host",
        "source must hold neither user name, password nor query: a key is named by api_key_env" if has_secret else None,
        "ask must be chat: an endpoint's token probabilities of a choice are not read"
        if entry.get("ask") == "likelihood"
        else None,
    ]


def _weights_faults(entry: Mapping[str, Any]) -> list[str | None]:
    try:
        kind, where = source_of(entry["source"])
    except ValueError as error:
        return [str(error)]
    only_remote = [f"{f} belongs to backend openai" for f in ("served_name", "api_key_env") if entry.get(f)]
    return [*only_remote, kind.fault(where, entry)]


def _spec(entry: Mapping[str, Any]) -> ModelSpec:
    given = {k: v for k, v in entry.items() if v is not None}
    if "n_params" in given:
        given["n_params"] = parameter_count(given["n_params"])
    given.setdefault("ask", "chat" if entry["backend"] == "openai" else "likelihood")
    return ModelSpec(**given)
