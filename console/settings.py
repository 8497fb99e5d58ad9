"""Settings of steps given on the command line: ``key=value`` for a field that a step of the job declares."""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

import dagster as dg
import yaml

from console.location import CommandError


def run_config(job: dg.JobDefinition, assignments: Iterable[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """A given run configuration, in which the named fields have the given values.

    Args:
        job: the job that is to run.
        assignments: ``key=value`` for a field that one step has, ``step.key=value`` where several have it; the value
            is read as YAML, so that numbers, truth and lists are what they look like.
        given: what else is configured; it stays as it is.

    Raises:
        CommandError: no step has such a field, or several have it; the message lists what can be set.
    """
    fields = {(step, key): help_text for step, key, help_text in settable(job)}
    config = deepcopy(dict(given))
    for assignment in assignments:
        name, sign, value = assignment.partition("=")
        step, key = _field_named(name.strip(), sign, job.name, fields)
        try:
            config.setdefault("ops", {}).setdefault(step, {}).setdefault("config", {})[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise CommandError(f"--set {assignment}: the value is not readable as YAML; put it in quotes") from None
    return config


def settable(job: dg.JobDefinition) -> Iterator[tuple[str, str, str]]:
    """Every field of every step: the step, the field and its help."""
    for node in sorted(job.graph.node_defs, key=lambda node: node.name):
        schema = node.config_schema.config_type if isinstance(node, dg.OpDefinition) else None
        for key, field in getattr(schema, "fields", {}).items():
            yield node.name, key, field.description or ""


def _field_named(name: str, sign: str, job: str, fields: dict[tuple[str, str], str]) -> tuple[str, str]:
    """The one step and field that a name on the command line means."""
    matching = [(step, key) for step, key in fields if sign and name in (key, f"{step}.{key}")]
    if len(matching) == 1:
        return matching[0]
    if matching:
        named = " and ".join(f"{step}.{key}" for step, key in matching)
        raise CommandError(f"--set {name}: {named} are both meant; name the step too")
    known = "\n".join(f"  {step}.{key}: {help_text}" for (step, key), help_text in fields.items()) or "  nothing"
    raise CommandError(f"--set {name}: the job {job} has no such setting; it takes, as key=value:\n{known}")
