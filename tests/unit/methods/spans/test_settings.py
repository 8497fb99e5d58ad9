"""Settings of versioned resources, and what a refresh has to fetch."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from resources.configured import SpanListResource, read_topics
from resources.warehouse import schema
from strandline.spans import STATUSES, DeferredError, Span, Version, text_digest
from strandline.spans.months import month_range
from strandline.spans.selection import (
    MONTH_STATUSES,
    Known,
    Month,
    Stored,
    describe_failures,
    judge_month,
    open_months,
    plan,
    settings_digest,
    settle,
    version_digest,
)
from strandline.spans.settings import SourceKind, spans_of

NOW = datetime(2024, 3, 1, 12, tzinfo=UTC)
ENTRY: dict[str, Any] = {
    "resource": "r",
    "source": "readme",
    "months": {"first": "2024-01", "last": "2024-02"},
    "topics": ["a"],
}
SOURCES = {
    "readme": SourceKind("readme", frozenset({"index"}), is_listed=True),
    "news": SourceKind(
        "news",
        frozenset({"per_month", "near", "files", "site"}),
        kind="unpaired",
        max_tokens=256,
        lists=frozenset({"files"}),
        numbers={"per_month": (1, 9), "near": (0.1, 1.0)},
    ),
}
MONTHS = month_range(date(2024, 1, 1), date(2024, 3, 1))
SPAN = Span("r", "readme", "panel", MONTHS, 512, topics=("a", "b"))


def read(**changes: Any) -> Span:
    return spans_of({"spans": [{**ENTRY, **changes}]}, SOURCES, lambda path: ["x", path, "x"], NOW)[0]


def test_what_is_not_said_has_a_default() -> None:
    span = read()
    assert span == Span("r", "readme", "panel", (date(2024, 1, 1), date(2024, 2, 1)), 512, topics=("a",))
    assert read(source="news").kind == "unpaired"
    assert read(source="news").max_tokens == 256


def test_latest_is_the_newest_month_whose_instant_has_passed() -> None:
    months = {"first": "2023-12", "last": "latest"}
    assert read(months=months).months[-1] == date(2024, 3, 1)
    assert read(months=months, snapshot_day=2).months[-1] == date(2024, 2, 1)


def test_months_may_be_written_as_yaml_reads_them() -> None:
    assert read(months={"first": date(2024, 1, 1), "last": "2024-02-20"}).months == (date(2024, 1, 1), date(2024, 2, 1))


def test_topics_come_from_the_list_and_the_file_each_once_in_order() -> None:
    assert read(topics_file="y").topics == ("a", "x", "y")
    assert read(topics_file="y", first_topics=2).topics == ("a", "x")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": "gopher"}, "source is 'gopher'"),
        ({"resource": ""}, "without a name"),
        ({"tokens": 3}, "unknown setting tokens"),
        ({"months": {"first": "2024-02", "last": "2024-01"}}, "r: months end"),
        ({"months": "2024-01"}, "months must be given"),
        ({"months": {"first": "soon", "last": "latest"}}, "'soon' is not a month"),
        ({"months": {"first": "2031-01", "last": "2031-02"}}, "has come yet"),
        ({"snapshot_day": 31}, "between 1 and 28"),
        ({"max_tokens": 1}, "max_tokens is 1"),
        ({"max_tokens": "many"}, "max_tokens is 'many'"),
        ({"first_topics": True}, "first_topics is True"),
    ],
)
def test_every_mistake_names_the_resource_and_the_setting(changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(**changes)


def test_a_resource_set_twice_and_a_file_without_a_list_are_refused() -> None:
    with pytest.raises(ValueError, match="r is set twice"):
        spans_of({"spans": [ENTRY, ENTRY]}, SOURCES, read_topics, NOW)
    with pytest.raises(ValueError, match="under `spans`"):
        spans_of([ENTRY], SOURCES, read_topics, NOW)


def test_the_shipped_settings_hold_a_readme_span_and_the_5000_titles() -> None:
    spans = SpanListResource().read(NOW.replace(year=2026))
    assert [span.resource for span in spans] == ["readme"]
    assert len(spans[0].topics) >= 24
    assert len(spans[0].months) >= 24
    titles = read_topics("data/wikispan_topics.csv")
    assert (len(titles), len(set(titles))) == (5000, 5000)
    assert titles[:2] == ["List of WWE personnel", "George W. Bush"]


def test_every_shipped_resource_is_valid_once_switched_on(tmp_path: Path, root: Path) -> None:
    text = (root / "data/spans.yaml").read_text().replace("enabled: false", "enabled: true")
    (tmp_path / "spans.yaml").write_text(text)
    spans = {span.resource: span for span in SpanListResource(path=str(tmp_path / "spans.yaml")).read(NOW)}
    assert (len(spans["wikispan"].months), len(spans["newsspan"].months)) == (85, 55)
    assert spans["newsspan"].max_tokens == 256
    assert spans["newsspan"].options["per_month"] == 500


def test_topics_are_read_from_a_column_or_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('rank,title\n1,"One, two"\n')
    (tmp_path / "b.txt").write_text("One\nTwo\n")
    (tmp_path / "c.csv").write_text("rank,name\n1,x\n")
    assert read_topics(str(tmp_path / "a.csv")) == ["One, two"]
    assert read_topics(str(tmp_path / "b.txt")) == ["One", "Two"]
    with pytest.raises(ValueError, match="neither a column"):
        read_topics(str(tmp_path / "c.csv"))


def test_a_month_is_open_until_it_is_complete_under_the_same_settings() -> None:
    digest = settings_digest(SPAN, "c-1")
    done = {MONTHS[0]: ("ok", digest), MONTHS[1]: ("failed", digest)}
    assert open_months(SPAN, done, digest) == MONTHS[1:]
    assert open_months(SPAN, done, settings_digest(SPAN, "c-2")) == MONTHS
    assert open_months(SPAN, {MONTHS[2]: ("short", digest)}, digest) == MONTHS[:2]


def test_the_digest_sees_what_changes_texts_and_nothing_else() -> None:
    digest = settings_digest(SPAN, "c")
    same = replace(SPAN, description="words", max_tokens=256, months=MONTHS[:1], topics=("b", "a"))
    assert settings_digest(same, "c") == digest
    for other in (replace(SPAN, snapshot_day=2), replace(SPAN, topics=("a",)), replace(SPAN, options={"api": "x"})):
        assert settings_digest(other, "c") != digest
    politer = replace(SPAN, options={"maxlag": 1, "pause": 9})
    assert settings_digest(politer, "c") == settings_digest(replace(SPAN, options={}), "c")


def test_a_topic_keeps_its_texts_whatever_else_is_listed_but_not_under_other_settings() -> None:
    digest = version_digest(SPAN, "c")
    assert version_digest(replace(SPAN, topics=("a",)), "c") == digest
    for other in (replace(SPAN, snapshot_day=2), replace(SPAN, options={"api": "x"})):
        assert version_digest(other, "c") != digest


def version(topic: str, status: str = "ok", month: date = MONTHS[0], **more: Any) -> Version:
    text = f"text of {topic}" if status == "ok" else None
    return Version(topic, month, status, None if status == "ok" else "because", text=text, **more)


def test_transient_versions_are_as_good_as_unknown() -> None:
    known = Known.of([version("a"), version("b", "failed"), version("c", "missing"), version("d", "deferred")])
    assert {topic for topic, _ in known.versions} == {"a", "c"}
    assert known.open_months("b", MONTHS) == list(MONTHS)
    assert known.open_months("a", MONTHS) == list(MONTHS[1:])


def test_which_of_two_names_is_the_double_is_told_anew_by_each_run() -> None:
    known = Known.of([version("a"), version("b", "duplicate")])
    assert known.open_months("b", MONTHS) == list(MONTHS)


def test_the_last_name_of_a_document_is_remembered() -> None:
    later = version("a", month=MONTHS[2], document="2")
    assert Known.of([later, version("a", document="1")]).documents == {"a": "2"}


def test_a_month_is_judged_by_its_worst() -> None:
    good, bad = [version("a"), version("b", "redirect")], [version("a"), version("z", "failed"), version("y", "failed")]
    assert judge_month(MONTHS[0], good, None) == Month(MONTHS[0], "ok", None, 2, 1)
    assert judge_month(MONTHS[0], good, 5).status == "short"
    assert judge_month(MONTHS[0], bad, None).reason == "y: because and 1 more"
    assert judge_month(MONTHS[0], good, None, "stay away").status == "deferred"


def test_failures_are_named_month_by_month_and_causes_told_once() -> None:
    months = [Month(m, "deferred", "busy", 0, 0) for m in MONTHS[:2]] + [Month(MONTHS[2], "ok", None, 1, 1)]
    assert describe_failures(months) == "2024-01, 2024-02 (deferred: busy)"
    assert describe_failures(months[2:]) is None
    year = [Month(m, "failed", "gone", 0, 0) for m in month_range(date(2023, 1, 1), date(2023, 12, 1))]
    assert describe_failures([*year, *months]) == "2023-01 to 2023-12 (failed: gone); 2024-01, 2024-02 (deferred: busy)"


def test_what_no_file_can_hold_is_replaced_before_it_is_stored() -> None:
    broken = json.loads(r'"half \ud83d of it, \ud83d\ude00 whole"')
    made = Version(broken, MONTHS[0], url=broken, text=broken)
    assert made.text == made.topic == made.url == "half \ufffd of it, \U0001f600 whole"
    assert made.text_sha256 == text_digest(str(made.text))


def test_a_version_has_a_text_exactly_where_it_is_ok() -> None:
    assert version("a").text_sha256 == text_digest("text of a")
    assert version("a").n_chars == 9
    with pytest.raises(ValueError, match="do not fit"):
        Version("a", MONTHS[0])
    with pytest.raises(ValueError, match="do not fit"):
        Version("a", MONTHS[0], "missing", "gone", text="x")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"per_month": 1, "near": 0.1}, None),
        ({"per_month": 9, "near": 1}, None),
        ({"per_month": 0}, "options.per_month is 0; it must be a whole number between 1 and 9"),
        ({"per_month": 10}, "between 1 and 9"),
        ({"per_month": 5.0}, "whole number"),
        ({"per_month": True}, "whole number"),
        ({"per_month": "many"}, "options.per_month is 'many'"),
        ({"near": 0.09}, "options.near is 0.09; it must be a number between 0.1 and 1.0"),
        ({"near": 1.01}, "between"),
        ({"near": float("nan")}, "between"),
        ({"files": "a*.jsonl"}, None),
        ({"files": ["a", "b"]}, None),
        ({"files": 7}, "options.files is 7; it must be a list of texts"),
        ({"files": ["a", None]}, "list of texts"),
        ({"crawl": "x"}, "unknown option crawl"),
        ([], "must be a mapping"),
    ],
)
def test_every_option_is_of_its_form(options: Any, message: str | None) -> None:
    if message is None:
        read(source="news", options=options)
        return
    with pytest.raises(ValueError, match=re.escape(message)):
        read(source="news", options=options)


def test_one_text_in_the_place_of_a_list_is_a_list_of_one() -> None:
    assert read(source="news", options={"files": "*.md"}).options == {"files": ["*.md"]}


@pytest.mark.parametrize(
    ("statuses", "expected", "stopped", "status"),
    [
        ((), None, None, "ok"),
        ((), 1, None, "short"),
        (("ok",), 1, None, "ok"),
        (("ok",), 2, None, "short"),
        (("ok", "ok"), 1, None, "ok"),
        (("ok", "failed"), 1, None, "failed"),
        (("ok", "deferred"), 1, None, "failed"),
        (("missing", "redirect"), None, None, "ok"),
        (("ok", "failed"), 1, "stay away", "deferred"),
        (("ok",), 1, "stay away", "deferred"),
    ],
)
def test_the_status_of_a_month_at_the_edges_of_its_rules(
    statuses: tuple[str, ...], expected: int | None, stopped: str | None, status: str
) -> None:
    versions = [version(str(n), word) for n, word in enumerate(statuses)]
    month = judge_month(MONTHS[0], versions, expected, stopped)
    assert month.status == status
    assert (month.reason is None) == (status == "ok")


DIGEST = settings_digest(SPAN, "c")


def test_a_plan_holds_the_open_months_asked_for_and_those_to_forget() -> None:
    gone, later = date(2023, 12, 1), date(2024, 9, 1)
    stored = Stored({MONTHS[0]: ("ok", DIGEST), gone: ("ok", DIGEST)}, {later: frozenset({"a"})}, [version("a")])
    todo = plan(SPAN, stored, MONTHS[:2], DIGEST)
    assert (todo.open, todo.forgotten) == (MONTHS[1:2], (gone, later))
    assert set(todo.known.versions) == {("a", MONTHS[0])}


def test_what_a_refresh_came_to_is_told_month_by_month() -> None:
    stored = Stored(
        documents={MONTHS[0]: frozenset({"a", "gone"}), MONTHS[1]: frozenset({"gone"})}, versions=[version("a")]
    )
    todo = plan(SPAN, stored, MONTHS, DIGEST)
    fresh = [version("b"), version("a", month=MONTHS[1]), version("b", "failed", MONTHS[1])]
    whole = settle(SPAN, todo, stored, fresh)
    assert [(m.status, m.n_documents, m.n_ok) for m in whole.months] == [("ok", 2, 2), ("failed", 2, 1), ("ok", 0, 0)]
    assert {month: len(rows) for month, rows in whole.replaced.items()} == {MONTHS[0]: 2, MONTHS[1]: 2}
    partly = settle(SPAN, todo, stored, fresh, DeferredError("cut", months=frozenset(MONTHS[1:])))
    assert [month.status for month in partly.months] == ["ok", "deferred", "deferred"]
    assert set(partly.replaced) == {MONTHS[0]}
    none = settle(SPAN, todo, stored, fresh, DeferredError("cut"))
    assert [month.status for month in none.months] == ["deferred"] * 3
    assert none.replaced == {}


def test_a_document_that_is_no_longer_listed_is_not_counted_from_what_was_known() -> None:
    stored = Stored(versions=[version("a"), version("c")])
    todo = plan(SPAN, stored, MONTHS[:1], DIGEST)
    assert settle(SPAN, todo, stored, []).months[0].n_documents == 1


def test_the_words_of_the_tables_are_those_of_the_methods() -> None:
    status = schema.table("spans.revisions").column("status")
    assert status is not None
    assert status.comment.partition(": ")[2].split(", ") == list(STATUSES[1:])
    checked = re.search(r"check \(status in \((.*)\)\)", (schema.SCHEMA_DIR / "spans.sql").read_text())
    assert checked is not None
    assert re.findall(r"'(\w+)'", checked[1]) == list(MONTH_STATUSES)
    with pytest.raises(ValueError, match="no status of a version"):
        Version("a", MONTHS[0], "odd", "x")
    with pytest.raises(ValueError, match="no status of a month"):
        Month(MONTHS[0], "odd", "x", 0, 0)
