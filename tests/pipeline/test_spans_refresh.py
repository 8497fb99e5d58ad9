"""Spans through Dagster: months as partitions, one bad month, nothing new, settings that change."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import dagster as dg
import pytest
import yaml

from assets.asset_checks import checks
from assets.partitions import months as month_partitions
from assets.partitions import months_of
from assets.spans import ASSETS, CHECKS
from assets.suites.spans import SUITES, resources_suite
from resources.configured import NetworkResource, SpanListResource, WarehouseResource
from resources.spans import sources as span_sources
from resources.spans.source import Source
from resources.warehouse.store import Warehouse
from strandline.spans import DeferredError, Span, Version
from strandline.spans.months import month_range
from strandline.spans.selection import Known
from strandline.spans.settings import SourceKind

YEAR = month_range(date(2021, 1, 1), date(2021, 12, 1))
TOPICS = ["alpha", "beta"]


class Scripted:
    """A source that fails where it is told to and remembers what it was asked for."""

    cleaner = "scripted-1"
    asked: Sequence[tuple[str, date]] = ()
    bad: frozenset[date] = frozenset()
    stop_after: int | None = None

    def __init__(self, http: object, cache_dir: Path) -> None:
        pass

    def versions(self, span: Span, months: Sequence[date], known: Known) -> Iterator[list[Version]]:
        for n, topic in enumerate(span.topics):
            if n == Scripted.stop_after:
                raise DeferredError("the server asked us to stay away")
            left = known.open_months(topic, months)
            Scripted.asked = [*Scripted.asked, *((topic, month) for month in left)]
            yield [self._version(topic, month) for month in left]

    def _version(self, topic: str, month: date) -> Version:
        if month in Scripted.bad and topic == "beta":
            return Version(topic, month, "failed", "the connection was dropped")
        moment = datetime(month.year, month.month, 1, tzinfo=UTC)
        return Version(
            topic, month, revision=f"{month:%Y%m}", revised_at=moment, text=f"{topic} in {(month.month + 1) // 2}"
        )


class House:
    """The span assets over a warehouse and a settings file of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checks: list[dg.AssetChecksDefinition] = []
        self.instance = dg.DagsterInstance.ephemeral()
        self.warehouse = WarehouseResource(
            path=str(folder / "w.duckdb"), published=str(folder / "p.duckdb"), reports=str(folder / "reports")
        )
        self.settle(TOPICS)

    @property
    def store(self) -> Warehouse:
        return self.warehouse.open()

    def settle(self, topics: Sequence[str], last: str = "2021-12", **more: object) -> None:
        entry = {"resource": "panel", "source": "scripted", "months": {"first": "2021-01", "last": last}, **more}
        text = yaml.safe_dump({"spans": [{**entry, "topics": list(topics)}]})
        (self.folder / "spans.yaml").write_text(text)

    def run(self, *partitions: str) -> dg.ExecuteInProcessResult:
        Scripted.asked = ()
        edges = zip(("start", "end"), (partitions[:1], partitions[-1:]), strict=True)
        tags = {f"dagster/asset_partition_range_{edge}": key for edge, keys in edges for key in keys}
        return dg.materialize(
            [*ASSETS, *CHECKS, *self.checks],
            instance=self.instance,
            resources={
                "warehouse": self.warehouse,
                "network": NetworkResource(cache_dir=str(self.folder / "cache")),
                "span_list": SpanListResource(path=str(self.folder / "spans.yaml")),
            },
            tags=tags,
            raise_on_error=False,
        )

    def statuses(self) -> dict[str, str]:
        found = self.instance.get_status_by_partition(
            dg.AssetKey(["spans", "revisions"]), [m.isoformat() for m in YEAR], month_partitions
        )
        return {key: status.value if status else "" for key, status in (found or {}).items()}


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with its tables and nothing in them, to be copied."""
    folder = tmp_path_factory.mktemp("empty")
    Warehouse(folder / "w.duckdb", folder / "p.duckdb").query("select 1")
    return folder / "w.duckdb"


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty: Path) -> House:
    shutil.copy(empty, tmp_path / "w.duckdb")
    scripted = Source(SourceKind("scripted", frozenset({"api"}), is_listed=True), Scripted)
    monkeypatch.setattr(span_sources, "SOURCES", (*span_sources.SOURCES, scripted))
    Scripted.asked, Scripted.bad, Scripted.stop_after = (), frozenset(), None
    return House(tmp_path)


def failure(result: dg.ExecuteInProcessResult) -> str:
    events = [event for event in result.all_events if event.is_step_failure]
    assert len(events) == 1
    return str(events[0].step_failure_data.user_failure_data.description)


def test_a_run_without_a_partition_completes_all_months_and_a_second_one_asks_for_nothing(house: House) -> None:
    assert house.run().success
    assert len(Scripted.asked) == 24
    before = [house.store.digest(table) for table in ("spans.months", "spans.revisions", "spans.texts")]
    assert set(house.statuses().values()) == {"MATERIALIZED"}
    assert house.run().success
    assert not Scripted.asked
    assert [house.store.digest(table) for table in ("spans.months", "spans.revisions", "spans.texts")] == before


def test_texts_are_stored_once_by_content(house: House) -> None:
    house.run()
    assert house.store.query("select count(*) from spans.texts").item() == 12
    assert house.store.query("select count(*) from spans.documents").item() == 24


def test_month_7_failing_keeps_the_others_and_is_reported_alone_by_name(house: House) -> None:
    Scripted.bad = frozenset({date(2021, 7, 1)})
    result = house.run("2021-01-01", "2021-12-01")
    assert not result.success
    assert failure(result) == (
        "1 of 12 months are not complete: panel: 2021-07 (failed: beta: the connection was dropped)"
    )
    assert house.statuses() == {m.isoformat(): "FAILED" if m.month == 7 else "MATERIALIZED" for m in YEAR}
    rows = house.store.query("select month, n_ok from spans.months order by month")
    assert [n for _, n in rows.iter_rows()] == [2] * 6 + [1] + [2] * 5


def test_a_failed_month_is_fetched_again_and_only_its_missing_document(house: House) -> None:
    Scripted.bad = frozenset({date(2021, 7, 1)})
    house.run()
    Scripted.bad = frozenset()
    assert house.run().success
    assert Scripted.asked == [("beta", date(2021, 7, 1))]
    assert set(house.statuses().values()) == {"MATERIALIZED"}


def test_a_fault_of_one_month_fails_no_run_of_another(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.checks = checks(ASSETS, {**SUITES, "spans.resources": resources_suite(["scripted"])})
    house.settle(TOPICS, last="2021-03")
    Scripted.bad = frozenset({date(2021, 1, 1)})
    assert not house.run("2021-01-01").success
    assert house.run("2021-03-01").success
    late = datetime(2021, 2, 1, 0, 0, 1, tzinfo=UTC)
    with monkeypatch.context() as patched:
        patched.setattr(
            Scripted, "_version", lambda self, topic, month: Version(topic, month, revised_at=late, text=topic)
        )
        assert not house.run("2021-02-01").success
    house.settle(TOPICS, last="2021-04")
    assert house.run("2021-04-01").success
    assert not house.run().success


@pytest.mark.parametrize(
    ("tags", "months"),
    [
        ({}, None),
        ({"dagster/partition": "2021-03-01"}, [date(2021, 3, 1)]),
        ({"dagster/partition": "some-model"}, None),
        (
            {
                "dagster/asset_partition_range_start": "2021-12-01",
                "dagster/asset_partition_range_end": "2022-01-01",
            },
            [date(2021, 12, 1), date(2022, 1, 1)],
        ),
    ],
)
def test_which_months_a_run_is_for(tags: dict[str, str], months: list[date] | None) -> None:
    assert months_of(tags) == months


def test_a_partition_fetches_only_its_own_month(house: House) -> None:
    assert house.run("2021-03-01").success
    assert Scripted.asked == [(topic, date(2021, 3, 1)) for topic in TOPICS]


def test_a_new_month_fetches_only_itself(house: House) -> None:
    house.run()
    house.settle(TOPICS, last="2022-01")
    assert house.run().success
    assert Scripted.asked == [(topic, date(2022, 1, 1)) for topic in TOPICS]


def test_a_source_that_must_stop_keeps_what_it_gave_and_defers_the_months(house: House) -> None:
    Scripted.stop_after = 1
    result = house.run()
    assert not result.success
    assert "deferred: the server asked us to stay away" in failure(result)
    assert house.store.query("select distinct topic from spans.revisions").to_series().to_list() == ["alpha"]
    Scripted.stop_after = None
    assert house.run().success
    assert {topic for topic, _ in Scripted.asked} == {"beta"}


def test_a_topic_added_later_is_the_only_one_fetched_and_one_taken_out_leaves_the_tables(house: House) -> None:
    house.run()
    house.settle([*TOPICS, "gamma"])
    assert house.run().success
    assert {topic for topic, _ in Scripted.asked} == {"gamma"}
    house.settle(["alpha", "gamma"])
    assert house.run().success
    assert not Scripted.asked
    topics = house.store.query("select distinct topic from spans.revisions order by topic").to_series().to_list()
    assert topics == ["alpha", "gamma"]


@pytest.mark.parametrize("setting", [{"snapshot_day": 2}, {"options": {"api": "https://other.example.org/api.php"}}])
def test_what_was_found_under_other_settings_is_found_anew(house: House, setting: dict[str, object]) -> None:
    house.run()
    house.settle(TOPICS, **setting)
    assert house.run().success
    assert len(Scripted.asked) == 24
    assert house.run().success
    assert not Scripted.asked


def test_months_taken_out_of_the_settings_leave_the_tables(house: House) -> None:
    house.run()
    house.settle(TOPICS, last="2021-06")
    assert house.run().success
    assert not Scripted.asked
    held = "select max(month) as last, count(distinct month) as n from "
    for table in ("spans.revisions", "spans.months"):
        assert house.store.query(held + table).row(0) == (date(2021, 6, 1), 6)


def test_a_new_cleaning_makes_every_text_be_made_anew(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.run()
    monkeypatch.setattr(Scripted, "cleaner", "scripted-2")
    assert house.run().success
    assert len(Scripted.asked) == 24


def test_a_version_younger_than_its_month_stops_what_is_downstream(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Version(
        "alpha", date(2021, 5, 1), revision="x", revised_at=datetime(2021, 5, 1, 0, 0, 1, tzinfo=UTC), text="t"
    )
    monkeypatch.setattr(Scripted, "_version", lambda self, topic, month: late)
    result = house.run()
    assert not all(e.passed for e in result.get_asset_check_evaluations())


def test_a_wrong_setting_is_named_before_anything_is_fetched(house: House) -> None:
    house.settle(TOPICS, snapshot_day=31)
    result = house.run()
    assert not result.success
    assert not Scripted.asked


def test_a_source_from_outside_the_tree_is_one_record(house: House) -> None:
    assert sorted(span_sources.known_kinds()) == ["git", "news", "readme", "scripted", "wikipedia"]
    assert house.run().success
    assert house.store.query("select source, kind from spans.resources").row(0) == ("scripted", "panel")
    house.settle([], options={"web": "x"})
    with pytest.raises(ValueError, match="no topics"):
        SpanListResource(path=str(house.folder / "spans.yaml")).read()
    house.settle(TOPICS, options={"web": "x"})
    with pytest.raises(ValueError, match="unknown option web; known are api"):
        SpanListResource(path=str(house.folder / "spans.yaml")).read()
