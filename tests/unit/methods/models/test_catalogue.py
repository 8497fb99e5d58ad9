"""Joining listed models with the facts about them."""

from dataclasses import replace
from datetime import date

from strandline.models import ModelSpec
from strandline.models.catalogue import catalogue
from strandline.models.declared import Claim
from strandline.models.training import TrainingCorpus

CLAIM = Claim("h/m", "h", "M", "reported", "2024", "year", "2024", "2024-11", None, None, "card", "https://x", None, "")
SPEC = ModelSpec("h/m", "transformers", "folder:x")
MIX = TrainingCorpus("S", "F", "C", "crawl", *[None] * 11, is_verified=True, note=None, source="paper")  # type: ignore[arg-type]


def test_an_entry_stands_before_the_facts_about_the_same_model() -> None:
    spec = replace(SPEC, released_on=date(2025, 1, 2), context_length=10, is_open=False, provider="house")
    (row,) = catalogue([spec], [replace(CLAIM, is_open=True, context_length=99)], [])
    assert (row.released_on, row.context_length, row.is_open, row.provider) == (date(2025, 1, 2), 10, False, "house")


def test_facts_fill_what_an_entry_leaves_out() -> None:
    claims = [CLAIM, replace(CLAIM, source="b", released_on="2024-11-20", is_open=True, context_length=99)]
    (row,) = catalogue([SPEC], claims, [])
    assert (row.released_on, row.released_precision) == (date(2024, 11, 20), "day")
    assert (row.context_length, row.is_open, row.provider, row.name) == (99, True, "h", "M")


def test_of_two_equally_fine_release_dates_the_earlier_counts_and_impossible_ones_never() -> None:
    days = ("2024-12-01", "2024-11-30", "2024-02-31")
    (row,) = catalogue([], [replace(CLAIM, source=d, released_on=d) for d in days], [])
    assert row.released_on == date(2024, 11, 30)


def test_listed_models_come_first_and_suites_last_each_once() -> None:
    rows = catalogue([replace(SPEC, name="z")], [CLAIM, replace(CLAIM, model="h/a")], [MIX, replace(MIX, corpus="D")])
    assert [(r.model, r.is_listed) for r in rows] == [("z", True), ("h/a", False), ("h/m", False), ("S", False)]
    assert [r.backend for r in rows] == ["transformers", None, None, None]
    assert len({r.partition_key for r in rows}) == 4
