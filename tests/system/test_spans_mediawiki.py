"""The wikipedia source against a real MediaWiki: every odd case of a page's history, and a proxy that misbehaves."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from urllib.parse import urlencode

import polars as pl
import pytest

from resources.network.http import Http, Limits, MissingContactError
from resources.spans.mediawiki import WikipediaSource
from resources.spans.refresh import refresh
from resources.warehouse.store import Warehouse
from strandline.spans import Span
from strandline.spans.months import month_range, snapshot_instant
from strandline.spans.selection import Month
from tests.fakes.mediawiki import Edit, RealWiki, missing
from tests.fakes.web import Answer, Asked, WebServer, json_answer

pytestmark = [pytest.mark.system, pytest.mark.skipif(missing() is not None, reason=missing() or "")]

MONTHS = month_range(date(2020, 1, 1), date(2021, 12, 1))
NEXT = date(2022, 1, 1)
FIRST = datetime(2019, 12, 10, 8, 30, tzinfo=UTC)
LISTED = [
    "Steady", "Born late", "Redirected", "Blanked", "Hidden", "Suppressed", "Moved away", "Points at steady",
    "Never there", "Deleted", "lower_case name", "On the dot", "Reverted", "Busy", "Only markup", "Bad <title>",
]  # fmt: skip
NAIVE = 2 * len(LISTED) * len(MONTHS)


def prose(title: str, n: int) -> str:
    """A page of about a screen, different each month, with markup that must go."""
    body = " ".join(f"Sentence {k} of {title} speaks of month {n}.<ref>Source {k}</ref>" for k in range(12))
    markup = f"[[File:X{n}.jpg|thumb|135px|A caption]]\n[[Category:Things]]"
    return f"'''{title}''' is a page.\n\n== Part ==\n{body}\n\n{markup}"


def monthly(title: str, odd: Mapping[int, str] | None = None, since: int = 0) -> list[Edit]:
    """An edit in the middle of each month; `odd` replaces the text of some."""
    edits = [Edit(FIRST + timedelta(days=30.4 * n), (odd or {}).get(n, prose(title, n))) for n in range(24)]
    return edits[since:]


def pages() -> dict[str, list[Edit]]:
    on_the_dot = [
        Edit(snapshot_instant(m) + timedelta(seconds=s), f"Edit {s} of {m}. {prose('x', s)}")
        for m in MONTHS
        for s in (0, 1)
    ]
    busy = [
        Edit(datetime(2020, 6, 2, tzinfo=UTC) + timedelta(hours=3 * n), f"Edit {n} of a busy page.") for n in range(700)
    ]
    return {
        "Steady": monthly("Steady"),
        "Born late": monthly("Born late", since=10),
        "Redirected": monthly("Redirected", {7: "#REDIRECT [[Steady]]"}),
        "Blanked": monthly("Blanked", {5: "  \n"}),
        "Hidden": monthly("Hidden"),
        "Suppressed": monthly("Suppressed"),
        "Moved away": monthly("Moved away"),
        "Points at steady": [Edit(FIRST, "#REDIRECT [[Steady]]")],
        "Deleted": monthly("Deleted"),
        "Lower case name": monthly("Lower case name"),
        "On the dot": on_the_dot,
        "Reverted": monthly("Reverted", {n: prose("Reverted", n % 2) for n in range(24)}),
        "Busy": [Edit(FIRST, "The first edit of a busy page."), *busy],
        "Only markup": monthly("Only markup", dict.fromkeys(range(24), "{{Infobox}}\n[[Category:Things]]")),
    }  # fmt: skip


@dataclass
class Faults:
    """A proxy before the wiki: while `on`, it refuses, lags, drops and sends web pages before it serves."""

    target: str
    on: bool = False
    injected: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    def __call__(self, asked: Asked) -> Answer:
        if self.on and (fault := self._fault(next(self.numbers))):
            self.injected.append(fault[0])
            return fault[1]
        with urllib.request.urlopen(f"{self.target}?{urlencode(asked.query)}", timeout=60) as reply:
            return Answer(200, reply.read(), {"Content-Type": "application/json"})

    def _fault(self, number: int) -> tuple[str, Answer] | None:
        lag = json_answer({"error": {"code": "maxlag", "info": "Waiting for a database: 9 s lagged."}}, Retry_After="0")
        kinds = {
            0: ("429", Answer(429, b"<html>slow down</html>", {"Retry-After": "0"})),
            1: ("maxlag", lag),
            3: ("dropped", Answer(drop=True)),
            4: ("cut", Answer(body=b'{"query": {"pages": [' + b" " * 500, cut_at=20)),
            6: ("503", Answer(503)),
        }
        return kinds.get(number % 8)


@dataclass
class World:
    """The wiki behind its proxy, and warehouses to fill from it."""

    wiki: RealWiki
    faults: Faults
    proxy: WebServer
    folder: Path
    numbers: Iterator[int] = field(default_factory=count)

    @property
    def api(self) -> str:
        return self.proxy.url + "/api.php"

    def warehouse(self) -> Warehouse:
        folder = self.folder / f"warehouse-{next(self.numbers)}"
        return Warehouse(folder / "w.duckdb", folder / "p.duckdb")

    def refresh(
        self, store: Warehouse, months: Sequence[date] = MONTHS, faults: bool = False
    ) -> tuple[list[Month], int]:
        """Bring the span up to date; the months that were open and the requests that it took."""
        self.faults.on = faults
        limits = Limits(attempts=6, backoff=0.01)
        with Http(None, contact="operator@example.org", limits=limits) as http:
            span = Span(
                "wiki", "wikipedia", "panel", tuple(months), 512, topics=tuple(LISTED), options={"api": self.api}
            )
            done = refresh(
                store, span, WikipediaSource(http, self.folder), span.months, datetime(2022, 2, 1, tzinfo=UTC)
            )
            return done, http.counters["requests"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("wiki")
    with RealWiki(folder / "wiki", pages()) as wiki:
        wiki.move("Moved away", "Moved here")
        wiki.delete("Deleted")
        ids = wiki.revisions()
        wiki.hide(ids["Hidden", stamp(monthly("Hidden")[3])])
        wiki.hide(ids["Suppressed", stamp(monthly("Suppressed")[4])], suppressed=True)
        faults = Faults(wiki.api)
        with WebServer(faults) as proxy:
            yield World(wiki, faults, proxy, folder)


@pytest.fixture(scope="module")
def filled(world: World) -> tuple[Warehouse, list[Month], int]:
    store = world.warehouse()
    return store, *world.refresh(store)


def stamp(edit: Edit) -> str:
    return f"{edit.at:%Y%m%d%H%M%S}"


def rows(store: Warehouse, topic: str) -> dict[date, dict[str, object]]:
    found = store.query(
        "select * from spans.revisions left join spans.texts using (text_sha256) where topic = ?", [topic]
    )
    return {row["month"]: row for row in found.iter_rows(named=True)}


def in_force(edits: Sequence[Edit], month: date) -> Edit | None:
    return next((edit for edit in reversed(edits) if edit.at <= snapshot_instant(month)), None)


def statuses(store: Warehouse, topic: str) -> dict[str, list[int]]:
    """Status to the numbers of the months that have it."""
    held, found = rows(store, topic), dict[str, list[int]]()
    for n, month in enumerate(MONTHS):
        found.setdefault(str(held[month]["status"]), []).append(n)
    return found


def test_every_month_of_every_page_has_a_row_and_is_complete(filled: tuple[Warehouse, list[Month], int]) -> None:
    store, months, _ = filled
    assert [m.month for m in months] == list(MONTHS)
    assert {m.status for m in months} == {"ok"}
    assert store.query("select count(*) from spans.revisions").item() == len(LISTED) * len(MONTHS)
    assert store.query("select count(*) from spans.revisions where status in ('failed', 'deferred')").item() == 0


@pytest.mark.parametrize(
    ("topic", "title"),
    [(t, t) for t in ("Steady", "Born late", "Redirected", "Blanked", "On the dot", "Reverted", "Busy", "Only markup")]
    + [("lower_case name", "Lower case name"), ("Moved away", "Moved here")],
)
def test_the_revision_of_each_month_is_the_newest_at_or_before_its_instant(
    world: World, filled: tuple[Warehouse, list[Month], int], topic: str, title: str
) -> None:
    ids, found = world.wiki.revisions(), rows(filled[0], topic)
    edits = pages()["Moved away" if title == "Moved here" else title]
    for month in MONTHS:
        right = in_force(edits, month)
        expected = str(ids[title.replace(" ", "_"), stamp(right)]) if right else None
        assert found[month]["revision"] == expected, (topic, month)
        assert found[month]["revised_at"] == (right.at.replace(tzinfo=None) if right else None)


def test_odd_revisions_are_rows_with_their_status(filled: tuple[Warehouse, list[Month], int]) -> None:
    store = filled[0]
    assert statuses(store, "Born late")["not_created"] == list(range(10))
    assert statuses(store, "Redirected")["redirect"] == [7]
    assert statuses(store, "Blanked")["blank"] == [5]
    assert statuses(store, "Hidden")["hidden"] == [3]
    assert statuses(store, "Suppressed")["suppressed"] == [4]
    assert statuses(store, "Only markup") == {"blank": list(range(24))}
    every = list(range(24))
    assert statuses(store, "Never there") == statuses(store, "Deleted") == {"missing": every}
    assert statuses(store, "Points at steady") == {"duplicate": every}
    assert statuses(store, "Bad <title>") == {"invalid": every}
    assert store.query("select count(*) from spans.revisions where status <> 'ok' and reason is null").item() == 0


def test_texts_begin_with_the_title_and_hold_no_markup(filled: tuple[Warehouse, list[Month], int]) -> None:
    text = str(rows(filled[0], "Steady")[MONTHS[3]]["text"])
    assert text.startswith("Steady\n\nSteady is a page.\n\nPart\nSentence 0 of Steady speaks of month 3.")
    held = filled[0].query(
        "select * from spans.texts where regexp_matches(text, 'thumb|135px|Category:|<ref|Source|==|\\[\\[')"
    )
    assert held.height == 0


def test_requests_stay_under_a_tenth_of_one_lookup_and_one_read_each(
    filled: tuple[Warehouse, list[Month], int],
) -> None:
    assert filled[2] * 10 <= NAIVE


def test_answers_that_the_wiki_cut_short_were_continued(
    world: World, filled: tuple[Warehouse, list[Month], int]
) -> None:
    assert any("rvcontinue" in asked.query and "revids" in asked.query for asked in world.proxy.asked)


def test_equal_contents_are_read_once(filled: tuple[Warehouse, list[Month], int]) -> None:
    found = rows(filled[0], "Reverted").values()
    assert len({row["text_sha256"] for row in found}) == 2
    assert len({row["revision"] for row in found}) == 24


def test_a_second_run_asks_for_nothing(world: World, filled: tuple[Warehouse, list[Month], int]) -> None:
    assert world.refresh(filled[0]) == ([], 0)


def test_a_misbehaving_server_changes_nothing_in_the_tables(
    world: World, filled: tuple[Warehouse, list[Month], int]
) -> None:
    store = world.warehouse()
    world.refresh(store, faults=True)
    assert set(world.faults.injected) == {"429", "maxlag", "dropped", "cut", "503"}
    for table in ("spans.revisions", "spans.texts", "spans.months"):
        assert table_of(store, table).equals(table_of(filled[0], table)), table


def test_a_new_month_fetches_only_itself(world: World) -> None:
    store = world.warehouse()
    world.refresh(store)
    before = table_of(store, "spans.revisions")
    months, requests = world.refresh(store, (*MONTHS, NEXT))
    after = table_of(store, "spans.revisions")
    assert [m.month for m in months] == [NEXT]
    assert after.filter(pl.col("month") < NEXT).equals(before)
    assert after.height - before.height == len(LISTED)
    assert requests <= len(LISTED) + 3


def test_an_operator_who_does_not_say_who_they_are_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STRANDLINE_CONTACT", raising=False)
    span = Span("wiki", "wikipedia", "panel", MONTHS, 512, topics=("Steady",), options={"api": world.api})
    with Http(None) as http, pytest.raises(MissingContactError):
        refresh(world.warehouse(), span, WikipediaSource(http, world.folder), MONTHS, datetime.now(UTC))


def table_of(store: Warehouse, table: str) -> pl.DataFrame:
    return store.query(f"select * from {table} order by all")


def test_the_proxy_would_pass_a_plain_question_through(world: World) -> None:
    world.faults.on = False
    with urllib.request.urlopen(f"{world.api}?action=query&format=json&meta=siteinfo", timeout=30) as reply:
        assert json.load(reply)["query"]["general"]["generator"].startswith("MediaWiki")
