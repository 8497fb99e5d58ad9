"""How records are laid out: published layouts, a user's own, and days that are read or missing, never guessed."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from strandline.corpus.layouts import LAYOUTS, Layout, as_day, document_parts, layout


@pytest.mark.parametrize(
    ("name", "record", "expected"),
    [
        (
            "c4",
            {"text": "t", "timestamp": "2019-04-25T12:57:54Z", "url": "https://a.example/x"},
            ("t", "https://a.example/x", None, date(2019, 4, 25)),
        ),
        ("pile", {"text": "t", "meta": {"pile_set_name": "Wikipedia (en)"}}, ("t", None, "Wikipedia (en)", None)),
        (
            "redpajama",
            {"text": "t", "meta": {"url": "https://a.example", "timestamp": "20230320", "source": "wikipedia"}},
            ("t", "https://a.example", "wikipedia", date(2023, 3, 20)),
        ),
        (
            "redpajama",
            {
                "raw_content": "t",
                "url": "https://a.example",
                "date_download": "2019-12-07T05:49:20Z",
                "digest": "sha1:x",
            },
            ("t", "https://a.example", None, date(2019, 12, 7)),
        ),
        (
            "redpajama",
            {"text": "t", "source": "cc/2023-06/en_head_0000.json.gz/line401859"},
            ("t", None, "cc/2023-06", date(2023, 2, 6)),
        ),
        (
            "dolma",
            {"id": "http://a.example/p", "text": "t", "source": "common-crawl", "created": "2020-03-29T09:04:10Z"},
            ("t", "http://a.example/p", "common-crawl", date(2020, 3, 29)),
        ),
        (
            "fineweb",
            {"text": "t", "id": "<urn:uuid:1>", "dump": "CC-MAIN-2013-20", "url": "https://a.example"},
            ("t", "https://a.example", "CC-MAIN-2013-20", date(2013, 5, 13)),
        ),
        (
            "refinedweb",
            {"content": "t", "url": "https://a.example", "timestamp": datetime(2013, 5, 18, tzinfo=UTC), "dump": "d"},
            ("t", "https://a.example", "d", date(2013, 5, 18)),
        ),
    ],
)
def test_published_layouts_are_understood(name: str, record: Any, expected: Any) -> None:
    found = document_parts(record, LAYOUTS[name])
    assert (found.text, found.url, found.subcorpus, found.crawled_on) == expected


def test_a_user_names_fields_of_their_own_and_a_mistake_is_named() -> None:
    own = layout({"text": "body.content", "url": ["link", "address"]})
    assert document_parts({"body": {"content": "t"}, "address": "https://a.example"}, own).url == "https://a.example"
    assert document_parts({"meta": '{"url": "https://b.example"}', "text": "t"}, layout({"url": "meta.url"})).url
    with pytest.raises(ValueError, match="no layout named 'c5'; there are plain, c4"):
        layout("c5")
    with pytest.raises(ValueError, match="no part txt"):
        layout({"txt": "content"})


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ([1], "a list, not an object"),
        ("text", "a string, not an object"),
        ({"body": "t"}, "no field text"),
        ({"text": None}, "no field text"),
        ({"text": 3}, "a number, not a string"),
        ({"text": ["t"]}, "a list, not a string"),
    ],
)
def test_a_record_without_a_text_says_why(record: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        document_parts(record, Layout())


@pytest.mark.parametrize(
    ("value", "day"),
    [
        ("2020-03-29T09:04:10Z", date(2020, 3, 29)),
        ("2020-03-29T23:30:00-05:00", date(2020, 3, 30)),
        ("2020-03-29", date(2020, 3, 29)),
        ("20200329", date(2020, 3, 29)),
        (20200329, date(2020, 3, 29)),
        ("20200329091500", date(2020, 3, 29)),
        (1585472650, date(2020, 3, 29)),
        (1585472650000, date(2020, 3, 29)),
        ("crawl-data/CC-MAIN-2020-16/segments/x", date(2020, 4, 13)),
        ("yesterday", None),
        ("", None),
        (None, None),
        (True, None),
        (-5, None),
        (float("nan"), None),
        (10**30, None),
        ("1823-01-01", None),
        ({"day": 1}, None),
    ],
)
def test_a_day_is_read_or_missing_never_guessed(value: Any, day: date | None) -> None:
    assert as_day(value) == day
