"""Probe runs between their records and the tables: what is stored, read back as it was, and what is written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime
from typing import Any

import polars as pl

from resources.places import tool_version
from resources.warehouse.store import Change, Merge, Reader, Replace, Warehouse
from strandline.models import ModelSpec
from strandline.probe import Answer, Question, RoundReply, StoredRound
from strandline.probe.boundaries import Boundary, Mass, Rates
from strandline.probe.calendar import Calendar, build_calendar
from strandline.probe.evidence import counted_flags
from strandline.probe.modelclock import VARIANTS, answer_weights
from strandline.probe.report import Header
from strandline.probe.runs import Settings, policy_for, run_id
from strandline.probe.session import Budget, Plan, Policy, answered, plan, spent

IDENTITY = ("name", "source", "revision", "sha256", "gguf_sha256", "served_name", "ask", "dtype")
"""What of a model's entry makes its answers what they are, and so is part of a run's name."""
LIMITS = ("context_length", "max_response_tokens")
"""Further fields that can change answers; they are part of the name where an entry sets them, so that the names of runs
of entries without them stay."""


@dataclass(frozen=True)
class Run:
    """One row of probe.runs, without its counts."""

    model: str
    run_id: str
    settings: Settings
    ask: str
    provider: str | None
    dataset_version: str
    code_version: str
    days: tuple[date, ...]
    started_at: datetime
    chosen_at: datetime

    @property
    def key(self) -> dict[str, str]:
        """What selects the run's rows in every probe table."""
        return {"model": self.model, "run_id": self.run_id}

    @property
    def calendar(self) -> Calendar:
        """The run's days without their releases: enough to date its answers."""
        return Calendar(self.dataset_version, self.days, ((),) * len(self.days))

    @property
    def header(self) -> Header:
        """Who was asked, as a report tells it."""
        return Header(self.model, self.provider, self.code_version, self.dataset_version, self.settings.policy)


def read_calendar(reader: Reader) -> Calendar:
    """The calendar of releases.probe_items; ValueError where there are no items yet."""
    rows = reader.query("select * from releases.probe_items order by position, salience_rank, project, version")
    if rows.is_empty():
        raise ValueError("releases.probe_items is empty: materialize it first")
    return build_calendar(rows.iter_rows(named=True))


def asked_how(spec: ModelSpec) -> dict[str, object]:
    """What makes a model and the way it is asked what they are: every field of its entry that can change an answer."""
    usual = {field.name: field.default for field in fields(ModelSpec)}
    limits = {name: getattr(spec, name) for name in LIMITS if getattr(spec, name) != usual[name]}
    return {name: getattr(spec, name) for name in IDENTITY} | limits


def new_run(spec: ModelSpec, settings: Settings, calendar: Calendar, code_version: str) -> Run:
    """The run that these settings mean for a model, starting now."""
    identity = run_id(settings, calendar.dataset_version, asked_how(spec))
    now = datetime.now(UTC).replace(tzinfo=None)
    return Run(
        spec.name,
        identity,
        settings,
        spec.ask,
        spec.provider,
        calendar.dataset_version,
        code_version,
        calendar.days,
        now,
        now,
    )


def resume_or_start(reader: Reader, run: Run) -> Run:
    """The run as it was started, where it was; chosen anew where another run was chosen since."""
    rows = reader.query("select * from probe.runs where model = ? and run_id = ?", [run.model, run.run_id])
    if rows.is_empty():
        return run
    before = _run(rows.row(0, named=True))
    current = current_run(reader, run.model)
    return before if current == before else replace(before, chosen_at=run.chosen_at)


def run_for_settings(reader: Reader, spec: ModelSpec, settings: Settings) -> tuple[Run, Policy, list[StoredRound]]:
    """The run that these settings mean for a model, its policy, and what it has asked so far."""
    calendar = read_calendar(reader)
    run = resume_or_start(reader, new_run(spec, settings, calendar, tool_version()))
    return run, policy_for(settings, calendar), stored_rounds(reader, run)


def plan_at_its_price(
    spec: ModelSpec, policy: Policy, stored: Sequence[StoredRound], budget: Budget | None = None
) -> Plan:
    """What finishing a run takes at most, at the entry's price; weights that run here cost nothing a token."""
    price = spec.cost_per_million_tokens if spec.backend == "openai" else 0.0
    reply_tokens = spec.max_response_tokens if spec.ask == "chat" else 0
    return plan(policy, stored, budget, reply_tokens=reply_tokens, price=price)


def current_run(reader: Reader, model: str) -> Run | None:
    """The model's run that was chosen last."""
    rows = reader.query("select * from probe.runs where model = ? order by chosen_at desc, run_id limit 1", [model])
    return _run(rows.row(0, named=True)) if rows.height else None


def _run(row: Mapping[str, Any]) -> Run:
    return Run(
        model=row["model"],
        run_id=row["run_id"],
        settings=Settings(row["policy"], row["seed"]),
        ask=row["ask"],
        provider=row["provider"],
        dataset_version=row["dataset_version"],
        code_version=row["code_version"],
        days=tuple(row["days"]),
        started_at=row["started_at"],
        chosen_at=row["chosen_at"],
    )


def stored_rounds(reader: Reader, run: Run) -> list[StoredRound]:
    """Every exchange of a run as it was stored, in the order asked."""
    where = "where model = ? and run_id = ?"
    key = list(run.key.values())
    answers: dict[tuple[int, int], list[tuple[Question, Answer]]] = {}
    rows = reader.query(f"select * from probe.answers {where} order by replicate, round, question", key)
    for row in rows.iter_rows(named=True):
        question = Question(row["position"], row["released_on"], row["project"], row["version"], row["kind"])
        answer = Answer(row["question"], row["answer"], row["p_yes"], row["parse_status"])
        answers.setdefault((row["replicate"], row["round"]), []).append((question, answer))
    rounds = reader.query(f"select * from probe.rounds {where} order by replicate, round", key)
    return [_stored(row, answers.get((row["replicate"], row["round"]), [])) for row in rounds.iter_rows(named=True)]


def _stored(row: Mapping[str, Any], pairs: Sequence[tuple[Question, Answer]]) -> StoredRound:
    reply = RoundReply(
        answers=tuple(answer for _, answer in pairs),
        messages=tuple(json.loads(row["messages"] or "[]")),
        reply_text=row["reply"],
        usage=json.loads(row["usage"] or "{}"),
        status=row["status"],
        reason=row["reason"],
    )
    return StoredRound(row["replicate"], row["round"], tuple(question for question, _ in pairs), reply)


def round_changes(run: Run, rounds: Sequence[StoredRound]) -> list[Change]:
    """What to write when the last of `rounds` has landed: the run's counts, the exchange, its answers."""
    last = rounds[-1]
    place = run.key | {"replicate": last.replicate, "round": last.number}
    exchange = {
        "messages": json.dumps([dict(m) for m in last.reply.messages], ensure_ascii=False),
        "reply": last.reply.reply_text,
        "usage": json.dumps(dict(last.reply.usage), ensure_ascii=False, default=str),
        "status": last.reply.status,
        "reason": last.reply.reason,
        "asked_at": datetime.now(UTC),
    }
    counted = counted_flags([*answered(rounds[:-1]), last])[-1]
    weights = answer_weights(last.questions, last.reply.answers, VARIANTS.get(run.settings.policy))
    answers = [
        place | _answer(i, question, answer, weight, counts)
        for i, (question, answer, weight, counts) in enumerate(
            zip(last.questions, last.reply.answers, weights, counted, strict=True)
        )
    ]
    return [
        run_change(run, rounds, "running", "rounds are being asked"),
        Merge("probe.rounds", [place | exchange]),
        Merge("probe.answers", answers),
    ]


def _answer(index: int, q: Question, a: Answer, weight: float | None, counted: bool) -> dict[str, Any]:
    return {
        "question": index,
        "position": q.position,
        "released_on": q.released_on,
        "project": q.project,
        "version": q.version,
        "kind": q.kind,
        "answer": a.answer,
        "p_yes": a.p_yes,
        "weight": weight,
        "counted": counted,
        "parse_status": a.parse_status,
    }


def run_change(run: Run, rounds: Sequence[StoredRound], status: str, reason: str) -> Change:
    """The row of probe.runs after these exchanges."""
    used = spent(rounds)
    row = run.key | {
        "policy": run.settings.policy,
        "seed": run.settings.seed,
        "ask": run.ask,
        "provider": run.provider,
        "dataset_version": run.dataset_version,
        "code_version": run.code_version,
        "days": list(run.days),
        "rounds": used.rounds,
        "questions": used.questions,
        "tokens": used.tokens,
        "cost": used.cost,
        "started_at": run.started_at,
        "chosen_at": run.chosen_at,
        "status": status,
        "reason": reason,
    }
    return Merge("probe.runs", [row])


class Recorder:
    """Keeps a run's exchanges: each is in the warehouse when `store` returns."""

    def __init__(self, warehouse: Warehouse, run: Run, stored: Sequence[StoredRound]) -> None:
        self._warehouse, self._run = warehouse, run
        self.rounds = list(stored)

    def store(self, done: StoredRound) -> None:
        """Keep one exchange, in place of a failed attempt at the same round."""
        place = (done.replicate, done.number)
        self.rounds = [*(r for r in self.rounds if (r.replicate, r.number) != place), done]
        self._warehouse.write(*round_changes(self._run, self.rounds))

    def tell(self, status: str, reason: str) -> None:
        """Keep how the run stands."""
        self._warehouse.write(run_change(self._run, self.rounds, status, reason))


def boundary_changes(run: Run, boundaries: Sequence[Boundary], masses: Sequence[Sequence[Mass]]) -> list[Change]:
    """The run's posteriors and boundaries, in place of what stood there for it."""
    mass_rows = [
        run.key
        | {
            "estimator": boundary.estimator,
            "replicate": m.replicate,
            "position": m.position,
            "released_on": m.released_on,
            "probability": m.probability,
        }
        for boundary, mass in zip(boundaries, masses, strict=True)
        for m in mass
    ]
    rows = [_boundary(run, boundary) for boundary in boundaries]
    return [
        Replace("probe.posteriors", mass_rows, run.key),
        Replace("probe.boundaries", rows, run.key),
    ]


# The fields of a boundary that are dates, named like their columns.
_DATES = ("estimate_from", "estimate_to", "low80", "high80", "low95", "high95")
# The fields of a boundary's rates, named like their columns.
_RATES = ("real_yes", "real_total", "decoy_yes", "decoy_total")
# The other fields of a boundary, stored as they are.
_PLAIN = ("label", "replicates", "rounds", "questions", "status", "reason")


def _boundary(run: Run, b: Boundary) -> dict[str, Any]:
    return run.key | {
        "estimator": b.estimator,
        "policy": run.settings.policy,
        "provider": run.provider,
        "dataset_version": run.dataset_version,
        "code_version": run.code_version,
        **{name: getattr(b, name) for name in (*_DATES, *_PLAIN)},
        **{name: getattr(b.rates, name) for name in _RATES},
        "details": json.dumps(b.details),
    }


def stored_boundaries(rows: pl.DataFrame) -> list[Boundary]:
    """Rows of probe.boundaries as records, in the rows' order."""
    return [
        Boundary(
            estimator=row["estimator"],
            rates=Rates(*(row[name] for name in _RATES)),
            details=json.loads(row["details"] or "{}"),
            **{name: row[name] for name in (*_DATES, *_PLAIN)},
        )
        for row in rows.iter_rows(named=True)
    ]
