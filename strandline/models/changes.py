"""What changed in ``data/models.yaml``: the pure half of the sensor that dates a model once after it was added.

Nothing is launched and no state is kept here. Dagster remembers a run key for ever, so the key holds a digest of what
was asked for: the same entry never runs twice, a changed entry runs again, and a failed run can be asked for anew.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date

from strandline.models import ModelSpec
from strandline.models.keys import partition_key
from strandline.numeric_input import whole_number

_DESCRIBES_ONLY = {"api_key_env", "cost_per_million_tokens", "released_on", "is_open", "family", "n_params", "provider"}
"""Settings that describe a model, or open its door, and change no answer of it."""

_FAILED = {"FAILURE", "CANCELED"}
"""Dagster's words for runs that ended without a result; any other run is done or under way."""


@dataclass(frozen=True)
class ModelRun:
    """A model to date now: its partition, the key under which the run is remembered, and why."""

    model: str
    partition_key: str
    run_key: str
    reason: str


@dataclass(frozen=True)
class Changes:
    """What one look at the file leads to. ``skipped`` gives every listed model that is not run its reason."""

    to_register: tuple[str, ...]
    to_run: tuple[ModelRun, ...]
    skipped: Mapping[str, str]

    @property
    def reason(self) -> str:
        """One sentence for a tick that launches nothing."""
        if not self.skipped:
            return "data/models.yaml lists no model"
        return "; ".join(f"{model}: {why}" for model, why in self.skipped.items())


def spec_digest(spec: ModelSpec) -> str:
    """Twelve hexadecimal digits that change when an entry's results could change.

    Facts that only describe the model (family, size, cost, release date, provider, the name of the key) do not count.
    """
    fields = {k: v for k, v in asdict(spec).items() if k not in _DESCRIBES_ONLY}
    text = json.dumps(fields, sort_keys=True, ensure_ascii=False, default=_iso)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def run_key(spec: ModelSpec, attempt: int = 1) -> str:
    """``<partition key>:<digest>``, and ``#2`` and so on for a run that is asked for again after a failure."""
    attempt = whole_number(attempt, "the attempt", 1)
    key = f"{partition_key(spec.name)}:{spec_digest(spec)}"
    return key if attempt == 1 else f"{key}#{attempt}"


def changes(
    specs: Sequence[ModelSpec], known_keys: Iterable[str], past_runs: Mapping[str, str], max_attempts: int = 1
) -> Changes:
    """Compare the file with the registered partition keys and the past runs.

    Args:
        specs: the models that the file lists.
        known_keys: partition keys that exist.
        past_runs: run key to Dagster's run status (``SUCCESS``, ``FAILURE``, ``STARTED``, …) of earlier runs.
        max_attempts: how many runs an unchanged entry may have while they fail; a value above the number of
            failures so far asks for a failed run again.

    A model without a partition is ``new``; one with a partition whose digest never ran is ``changed`` where another
    digest of it ran, else ``new``. A run that is queued or going counts as done: it is never doubled.
    """
    max_attempts = whole_number(max_attempts, "max_attempts", 1)
    known = set(known_keys)
    runs: list[ModelRun] = []
    skipped: dict[str, str] = {}
    for spec in specs:
        attempts = _attempts(spec, past_runs)
        if attempts and attempts[-1] not in _FAILED:
            skipped[spec.name] = f"unchanged, and its run is {attempts[-1].lower()}"
        elif len(attempts) >= max_attempts:
            skipped[spec.name] = (
                f"unchanged, and its run failed {len(attempts)} time(s): re-execute it or change the entry"
            )
        else:
            runs.append(_run(spec, len(attempts), past_runs))
    keys = [partition_key(spec.name) for spec in specs]
    return Changes(tuple(k for k in keys if k not in known), tuple(runs), skipped)


def _attempts(spec: ModelSpec, past_runs: Mapping[str, str]) -> list[str]:
    statuses: list[str] = []
    while (status := past_runs.get(run_key(spec, len(statuses) + 1))) is not None:
        statuses.append(status)
    return statuses


def _run(spec: ModelSpec, failures: int, past_runs: Mapping[str, str]) -> ModelRun:
    key = partition_key(spec.name)
    ran_before = any(past.startswith(f"{key}:") for past in past_runs)
    reason = (
        f"its run failed {failures} time(s)" if failures else "its entry changed" if ran_before else "new in the file"
    )
    return ModelRun(spec.name, key, run_key(spec, failures + 1), reason)


def _iso(value: object) -> str:
    if isinstance(value, date):
        return value.isoformat()
    raise ValueError(f"{value!r} is no value of a model's setting")
