"""Lineage is what is read: the tables in a step's SQL are its declared dependencies, both ways."""

from collections.abc import Iterator
from dataclasses import dataclass

import dagster as dg
import pytest

from tests.fakes.recorded_reads import ReadTables, recorded_reads
from tests.fakes.whole_house import CORPUS, WholeHouse

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("whole_house")]


@dataclass(frozen=True)
class Ran:
    """What the whole house came to: whether each job went well, and the tables that each step read."""

    house: WholeHouse
    outcomes: dict[str, bool]
    reads: dict[str, set[str]]


def steps_of(definitions: dg.Definitions) -> dict[str, dg.AssetsDefinition]:
    """Steps by the name of their function."""
    assets = definitions.get_repository_def().assets_defs_by_key.values()
    return {asset.op.name: asset for asset in assets if asset.is_executable}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    folder = tmp_path_factory.mktemp("house")
    with pytest.MonkeyPatch.context() as patch:
        house = WholeHouse(folder)
        with recorded_reads(patch) as reads:
            outcomes = house.run_everything()
        yield Ran(house, outcomes, dict(reads))


def test_every_job_of_the_product_goes_well_in_a_small_world(ran: Ran) -> None:
    assert [job for job, went_well in ran.outcomes.items() if not went_well] == []


def test_every_table_that_a_step_reads_is_a_declared_dependency_and_no_other_is(ran: Ran) -> None:
    wrong = {}
    for name, step in steps_of(ran.house.definitions).items():
        if name not in ran.reads:
            continue
        own = {".".join(key.path) for key in step.keys}
        declared = {".".join(d.asset_key.path) for spec in step.specs for d in spec.deps if len(d.asset_key.path) == 2}
        tables = {table for table in declared if table.split(".")[0] not in ("exhibits", "source")} - own
        read = ran.reads[name] - own
        if read != tables:
            wrong[name] = {"undeclared": sorted(read - tables), "not read": sorted(tables - read)}
    assert not wrong, "\n".join(f"{name}: {sides}" for name, sides in wrong.items())


def test_views_and_macros_count_as_the_tables_behind_them() -> None:
    expand = ReadTables()
    assert "models.declared_cutoffs" in expand.of("select warning from perplexity.warnings")
    assert expand.of("from perplexity.versions_of('m')") >= {"perplexity.scores", "spans.revisions"}
    assert expand.of("select 1") == set()


def test_the_corpus_of_the_small_world_is_explained(ran: Ran) -> None:
    rows = ran.house.warehouse.open().query("select sentence from corpus.explanations where corpus = ?", [CORPUS])
    assert rows.height >= 1
