"""Declared cutoffs: parsing, validity, conflicts, and the committed facts."""

import csv
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.models.declared import Claim, DeclaredCutoff, judge, parse_partial_date, read_claims

TODAY = date(2026, 11, 29)
CLAIM = Claim(
    model="house/m-1",
    provider="house",
    name="M 1",
    kind="reported",
    value="2024-04",
    precision="month",
    stated="April 2024",
    released_on="2024-11-05",
    is_open=True,
    context_length=8192,
    source="card",
    url="https://example.org/card",
    retrieved_on=None,
    note="",
)


def judged(*claims: Claim) -> list[DeclaredCutoff]:
    """The claims, judged on a fixed day."""
    return judge(claims, TODAY)


@pytest.mark.parametrize(
    ("text", "first", "last", "precision"),
    [
        ("2024", date(2024, 1, 1), date(2024, 12, 31), "year"),
        ("2024-02", date(2024, 2, 1), date(2024, 2, 29), "month"),
        ("2023-12", date(2023, 12, 1), date(2023, 12, 31), "month"),
        ("2024-02-29", date(2024, 2, 29), date(2024, 2, 29), "day"),
        (" 2024-04 ", date(2024, 4, 1), date(2024, 4, 30), "month"),
    ],
)
def test_a_partial_date_means_every_day_of_its_precision(text: str, first: date, last: date, precision: str) -> None:
    when = parse_partial_date(text)
    assert (when.first, when.last, when.precision) == (first, last, precision)


@pytest.mark.parametrize("text", ["2023-02-29", "2024-13", "2024-00", "2024-04-31", "0000", "0000-01", "2024-04-00"])
def test_impossible_dates_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="impossible date"):
        parse_partial_date(text)


@pytest.mark.parametrize("text", ["", "early 2023", "04/2024", "2024-4", "24-04", "2024-04-01T00:00", "Unknown"])
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no date of the form"):
        parse_partial_date(text)


@given(st.text(alphabet="0123456789-", max_size=12))
def test_any_text_gives_a_range_in_order_or_an_error(text: str) -> None:
    try:
        when = parse_partial_date(text)
    except ValueError:
        return
    assert when.first <= when.last
    assert text.strip().startswith(f"{when.first.year:04d}")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"value": "2024-12"}, "after the release 2024-11-05"),
        ({"value": "2025", "precision": "year"}, "after the release"),
        ({"value": "2024-02-30", "precision": "day"}, "no date can be read from '2024-02-30'"),
        ({"value": "", "stated": ""}, "no cutoff is stated"),
        ({"value": "", "stated": "sometime"}, "no date can be read from 'sometime'"),
        ({"value": "2027-01", "released_on": ""}, "future"),
        ({"value": "2026-06", "released_on": "", "retrieved_on": date(2026, 3, 1)}, "future"),
        ({"value": "1970-01", "released_on": ""}, "older than language models"),
        ({"value": "2024", "precision": "month"}, "precision"),
    ],
)
def test_an_impossible_claim_is_kept_and_says_why(changes: dict[str, object], reason: str) -> None:
    (row,) = judged(replace(CLAIM, **changes))  # type: ignore[arg-type]
    assert not row.is_valid
    assert row.reason is not None
    assert reason in row.reason


@pytest.mark.parametrize("value", ["2024-11", "2024", "2024-11-05", "2023-12"])
def test_a_claim_that_could_lie_before_the_release_is_valid(value: str) -> None:
    (row,) = judged(replace(CLAIM, value=value, precision=""))
    assert row.is_valid


def test_a_release_known_to_its_month_is_taken_to_its_last_day() -> None:
    (row,) = judged(replace(CLAIM, value="2024-11-20", precision="day", released_on="2024-11"))
    assert row.is_valid
    assert row.flags == ("same_month_as_release",)


def test_conflicting_claims_stay_two_rows_and_both_say_so() -> None:
    rows = judged(CLAIM, replace(CLAIM, source="blog", value="2024-06"))
    assert [r.flags for r in rows] == [("conflict",), ("conflict",)]
    assert [r.is_valid for r in rows] == [True, True]
    assert rows[0].reason == "blog states 2024-06 instead, 32 days away"


@pytest.mark.parametrize(
    "changes",
    [
        {"value": "2024-04-30", "precision": "day"},
        {"value": "2024", "precision": "year"},
        {"value": "2023-10", "kind": "reliable_knowledge"},
        {"value": "2024-08", "kind": "fine_tuning"},
        {"value": "2024-12"},
        {"value": ""},
        {"model": "house/m-2", "value": "2023-01"},
    ],
)
def test_what_may_mean_the_same_or_something_else_is_no_conflict(changes: dict[str, object]) -> None:
    rows = judged(CLAIM, replace(CLAIM, source="blog", **changes))  # type: ignore[arg-type]
    assert all("conflict" not in r.flags for r in rows)


def test_training_data_is_compared_with_what_is_merely_reported() -> None:
    rows = judged(CLAIM, replace(CLAIM, source="blog", kind="training_data", value="2023-10"))
    assert all("conflict" in r.flags for r in rows)


def test_a_release_date_that_contradicts_the_name_is_flagged() -> None:
    rows = judged(
        replace(CLAIM, model="house/m-2512"),
        replace(CLAIM, model="house/m-2024-11-05"),
        replace(CLAIM, model="house/m-20250301"),
        replace(CLAIM, model="house/m-3507b"),
    )
    assert ["release_contradicts_name" in r.flags for r in rows] == [True, False, True, False]


def test_one_source_cannot_claim_the_same_thing_twice() -> None:
    with pytest.raises(ValueError, match="two claims of kind reported"):
        judged(CLAIM, replace(CLAIM, value="2024-05"))


def test_judging_does_not_depend_on_the_order_of_the_claims() -> None:
    claims = [replace(CLAIM, source=s, value=v) for s, v in (("a", "2024-04"), ("b", "2024-06"), ("c", "2024"))]
    assert {r.source: r.flags for r in judge(claims, TODAY)} == {r.source: r.flags for r in judge(claims[::-1], TODAY)}


def test_the_committed_facts_name_200_models_with_a_cutoff_and_a_source_each(root: Path) -> None:
    claims = read_claims(root / "data" / "declared_cutoffs.csv")
    rows = judge(claims, TODAY)
    assert len({r.model for r in rows if r.value}) >= 200
    assert len({r.model for r in rows if r.is_valid}) >= 200
    assert all(c.url.startswith("https://") for c in claims)


def test_the_committed_facts_hold_the_known_impossible_and_conflicting_claims(root: Path) -> None:
    rows = judge(read_claims(root / "data" / "declared_cutoffs.csv"), TODAY)
    impossible = {r.model for r in rows if r.value and not r.is_valid}
    assert {"perplexity/sonar", "openai/gpt-4-turbo", "mistral/codestral-latest"} <= impossible
    conflicts = {r.model for r in rows if "conflict" in r.flags}
    assert {"google/gemini-2.0-flash", "openai/gpt-4", "anthropic/claude-opus-4-5-20251101"} <= conflicts


def test_every_fact_that_was_collected_is_in_the_committed_file(root: Path, shared: Path) -> None:
    committed = {(c.name, c.value) for c in read_claims(root / "data" / "declared_cutoffs.csv")}
    with (shared / "data" / "model_facts.csv").open(encoding="utf-8", newline="") as lines:
        facts = list(csv.DictReader(lines))
    assert len(facts) > 300
    assert [
        f for f in facts if f["reported_cutoff"] and (f["display_name"], f["reported_cutoff"]) not in committed
    ] == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("m,p,n,guess,2024,year,2024,,true,1,s,u,,", "kind must be one of"),
        ("m,p,n,reported,2024,year,2024,,perhaps,1,s,u,,", "is_open must be"),
        ("m,p,n,reported,2024,year,2024,,true,many,s,u,,", "invalid literal"),
        ("m,p,n,reported,2024,year,2024,,true,1,s,u,yesterday,", "Invalid isoformat"),
        (",p,n,reported,2024,year,2024,,true,1,s,u,,", "model and source"),
        ("m,p,n", "number of columns"),
        ("m,p,n,reported,2024,year,2024,,true,1,s,u,,,,", "number of columns"),
    ],
)
def test_a_faulty_line_is_named(tmp_path: Path, root: Path, line: str, message: str) -> None:
    header = (root / "data" / "declared_cutoffs.csv").read_text(encoding="utf-8").splitlines()[0]
    file = tmp_path / "claims.csv"
    file.write_text(f"{header}\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=message) as caught:
        read_claims(file)
    assert "line 2" in str(caught.value)


def test_a_file_with_other_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "claims.csv").write_text("model,cutoff\n", encoding="utf-8")
    with pytest.raises(ValueError, match="the columns must be"):
        read_claims(tmp_path / "claims.csv")


@pytest.mark.parametrize(
    ("value", "released_on", "retrieved_on", "today", "is_valid"),
    [
        ("2024-04-30", "2024-04-30", None, date(2025, 1, 1), True),
        ("2024-05-01", "2024-04-30", None, date(2025, 1, 1), False),
        ("2024-04", "2024-04-01", None, date(2025, 1, 1), True),
        ("2024-05", "2024-04", None, date(2025, 1, 1), False),
        ("2024-04-30", "", None, date(2024, 4, 30), True),
        ("2024-04-30", "", None, date(2024, 4, 29), False),
        ("2024-04-30", "", date(2024, 4, 30), date(2025, 1, 1), True),
        ("2024-04-30", "", date(2024, 4, 29), date(2025, 1, 1), False),
        ("2010-01-01", "", None, date(2025, 1, 1), True),
        ("2009-12-31", "", None, date(2025, 1, 1), False),
        ("2009", "", None, date(2025, 1, 1), False),
        ("2010", "", None, date(2025, 1, 1), True),
    ],
)
def test_a_claim_is_judged_at_the_edges_of_each_rule(
    value: str, released_on: str, retrieved_on: date | None, today: date, is_valid: bool
) -> None:
    stated = Claim("m", "p", "n", "reported", value, "", "x", released_on, None, None, "s", "u", retrieved_on, "")
    [judged] = judge([stated], today)
    assert judged.is_valid is is_valid
    assert (judged.reason is None) is is_valid


@pytest.mark.parametrize(("released_on", "is_odd"), [("2024-10-07", False), ("2024-10-08", True)])
def test_a_release_is_odd_from_the_63rd_day_after_the_one_in_the_name(released_on: str, is_odd: bool) -> None:
    stated = Claim(
        "m-2024-08-06", "p", "n", "reported", "2024-01", "", "x", released_on, None, None, "s", "u", None, ""
    )
    [judged] = judge([stated], date(2025, 1, 1))
    assert ("release_contradicts_name" in judged.flags) is is_odd
