"""The release probe: questions put to a model, and the boundary that its answers have.

Asking stores every exchange as it lands and resumes where it stopped; the same settings ask the same questions once.
Both estimators are computed from whatever a run has.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import cache
from typing import Any

import dagster as dg
from pydantic import Field

from assets import pictures
from assets.partitions import models, name_of
from assets.tables import materialized, table_multi_asset, version_of
from resources.configured import AskingResource, ModelListResource, WarehouseResource
from resources.probe.asking import Asker
from resources.probe.rows import (
    Recorder,
    boundary_changes,
    current_run,
    plan_at_its_price,
    run_for_settings,
    stored_rounds,
)
from strandline.models import ModelSpec
from strandline.probe import Question, RoundReply, StoredRound
from strandline.probe.boundaries import DATING_VERSION, ESTIMATORS, Estimator, date_run
from strandline.probe.figures import probe_figure
from strandline.probe.questions import WORDING_VERSION
from strandline.probe.report import report
from strandline.probe.runs import POLICIES, Settings
from strandline.probe.session import Budget, Policy, Session, Spent, parameters_used, run_session

Results = Iterator[dg.MaterializeResult[Any]]
# The tables that asking a model writes.
ASKED = ["probe.runs", "probe.rounds", "probe.answers"]
# The tables that dating its answers writes.
DATED = ["probe.posteriors", "probe.boundaries"]


class AskConfig(dg.Config):
    """How a model is asked. Another policy or seed is another run; ceilings count what earlier sessions used."""

    policy: str = Field(default="calibrated", description=f"What chooses the questions: {', '.join(POLICIES)}.")
    seed: int = Field(default=0, ge=0, description="Breaks ties and sets where the default policy explores.")
    max_questions: int | None = Field(default=None, description="Ceiling on the questions of this run.")
    max_tokens: int | None = Field(default=None, description="Ceiling on prompt and reply tokens of this run.")
    max_cost: float | None = Field(default=None, description="Ceiling on cost, where data/models.yaml has a price.")


class DateConfig(dg.Config):
    """Which estimators date a model's current run."""

    estimators: list[str] = Field(default=["calibrated", "modelclock"], description=f"{', '.join(ESTIMATORS)}.")

    def chosen(self) -> list[Estimator]:
        """The estimators by name; ValueError names one that there is not."""
        unknown = [name for name in self.estimators if name not in ESTIMATORS]
        if unknown or not self.estimators:
            what = f"no estimator is called {unknown[0]!r}" if unknown else "no estimator is named"
            raise ValueError(f"{what}; there are {', '.join(ESTIMATORS)}")
        return [name for name in ESTIMATORS if name in self.estimators]


@table_multi_asset(
    ASKED,
    deps=["releases.probe_items"],
    reads=["models_yaml", "models"],
    needs=["model", "money"],
    partitions_def=models,
    code_version=version_of("1", wording=WORDING_VERSION),
    pool="model",
)
def ask_model(
    context: dg.AssetExecutionContext,
    config: AskConfig,
    warehouse: WarehouseResource,
    model_list: ModelListResource,
    asking: AskingResource,
) -> Results:
    """Ask a model about dated releases, round by round, until the policy or a ceiling ends it."""
    store, spec = warehouse.open(), model_list.find(name_of(context.partition_key))
    budget = Budget(config.max_questions, config.max_tokens, config.max_cost)
    run, policy, stored = run_for_settings(store, spec, Settings(config.policy, config.seed))
    ahead = plan_at_its_price(spec, policy, stored, budget).text()
    context.log.info(f"plan for {spec.name}\n{ahead}")
    recorder = Recorder(store, run, stored)
    session = _ask(context, spec, asking, policy, recorder, budget)
    if not recorder.rounds:
        raise dg.Failure(f"{spec.name}: nothing was asked: {session.reason}", allow_retries=False)
    recorder.tell(session.status, session.reason)
    if session.status == "interrupted":
        raise dg.Failure(f"{spec.name}: {session.reason}. What was answered is kept; run it again to go on.")
    for name in ASKED:
        yield materialized(name, run_id=run.run_id, plan=ahead, rounds=len(session.rounds), standing=session.reason)


def _ask(
    context: dg.AssetExecutionContext,
    spec: ModelSpec,
    asking: AskingResource,
    policy: Policy,
    recorder: Recorder,
    budget: Budget,
) -> Session:
    """The session; the model is loaded, or its endpoint opened, when the first question is put."""
    negotiated = parameters_used(recorder.rounds)

    def progress(done: StoredRound, used: Spent) -> None:
        context.log.info(
            f"round {done.replicate + 1}.{done.number + 1}: {done.reply.status}; {used.questions:,} questions, "
            f"{used.tokens:,} tokens so far"
        )

    with ExitStack() as stack:

        @cache
        def asker() -> Asker:
            return stack.enter_context(closing(asking.open(spec, negotiated)))

        def ask(questions: list[Question]) -> RoundReply:
            return asker().ask(questions)

        return run_session(policy, ask, recorder.store, stored=recorder.rounds, budget=budget, progress=progress)


@table_multi_asset(
    DATED, deps=ASKED, partitions_def=models, code_version=version_of("1", dating=DATING_VERSION), follows=True
)
def date_answers(context: dg.AssetExecutionContext, config: DateConfig, warehouse: WarehouseResource) -> Results:
    """Date the answers of a model's current run with every estimator, show why, and what it does not mean."""
    store, model = warehouse.open(), name_of(context.partition_key)
    run = current_run(store, model)
    if run is None:
        raise dg.Failure(f"{model} has not been asked yet: materialize {ASKED[0]} for it first", allow_retries=False)
    stored = stored_rounds(store, run)
    dated = [date_run(name, run.calendar, stored, seed=run.settings.seed) for name in config.chosen()]
    boundaries, masses = [b for b, _ in dated], [m for _, m in dated]
    store.write(*boundary_changes(run, boundaries, masses))
    place, folder = ("probe", context.partition_key), warehouse.reports_folder()
    shown: dict[str, Any] = pictures.picture(probe_figure(model, boundaries, masses, stored), *place, folder=folder)
    text: dict[str, Any] = pictures.report_text(report(run.header, boundaries, stored), *place, folder=folder)
    labels: dict[str, Any] = {
        b.estimator: b.label if b.status in b.label else f"{b.label} ({b.status})" for b in boundaries
    }
    yield materialized("probe.posteriors", run_id=run.run_id, positions=len(run.days), **shown)
    yield materialized("probe.boundaries", run_id=run.run_id, **labels, **shown, **text)


# What the code location collects from this module.
ASSETS = [ask_model, date_answers]
