"""Every public function of corpus mining, given one hostile value at a time: finite, or ValueError in our words."""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from typing import Any

import numpy as np
import pytest

from strandline.corpus import topic_versions
from strandline.corpus.attribution import VersionMatcher, attribute_plainly, edits_allowed
from strandline.corpus.attribution_sentence import sentence
from strandline.corpus.bm25 import CorpusStatistics, query_words, score
from strandline.corpus.duplicates import classify, in_domains, span_hashes
from strandline.corpus.explanation import calendar, circular_shift_test, gap_shares, reweighted, typical_month
from strandline.corpus.histograms import Copy, monthly_weights, summed
from strandline.corpus.layouts import as_day, document_parts, layout, top_fields
from strandline.corpus.ngrams import NgramHasher, count_ngrams
from strandline.corpus.pairs_display import as_markdown, compare, shortened
from strandline.corpus.planted import Order, altered, histogram_error, plant
from strandline.corpus.settings import Mining, corpora_of
from strandline.corpus.signatures import shingle_hashes, signatures
from strandline.corpus.texts import paragraphs, search_words, sentences, without_citations, words
from strandline.corpus.truth import KnownDocument, compare_with_known
from strandline.spans.months import month_range

NAN, INF = float("nan"), float("inf")
NUMBERS: tuple[Any, ...] = (NAN, INF, -INF, -5, 0, 1e308, True, 1j, "x", None, 2.5, 10**400)
TEXTS: tuple[Any, ...] = ("", " ", "\0", "\ud800", "a" * 5000, None, 5, b"bytes", ["a"], NAN)
ROWS: tuple[Any, ...] = ([], [NAN, 1.0], [INF, 1.0], [True, False], [1j, 2.0], ["1", "2"], [[1.0], [2.0]], [1e308] * 12)
FOREIGN = ("unsupported", "could not convert", "cannot convert", "not iterable", "must be real", "zip()", "math domain")

MONTHS = list(month_range(date(2020, 1, 1), date(2020, 12, 1)))
COPIES = [Copy(f"d{n}", f"t{n % 4}", "crawl", (MONTHS[n % 3],), date(2020, 12, 3)) for n in range(12)]
TOPIC = topic_versions("t", [(MONTHS[0], "one text of a few words"), (MONTHS[1], "another text of some words")], None)
SERIES = [float(n % 5) for n in range(12)]
ODD_MONTHS: tuple[Any, ...] = (
    [],
    MONTHS[::-1],
    MONTHS[:1] * 3,
    MONTHS[6:],
    [date(2020, 1, 5)],
    [date(1, 1, 1)],
    [date(9999, 12, 1)],
    [None],
    ["2020-01"],
)


def copies(**change: Any) -> list[Copy]:
    return [
        *COPIES,
        Copy(**{"document_id": "x", "topic": "t0", "subcorpus": "crawl", "months": (MONTHS[0],), **change}),
    ]


ODD_COPIES: tuple[Any, ...] = (
    [],
    copies(months=()),
    copies(months=(date(1999, 1, 1),)),
    *(copies(weight=value) for value in (*NUMBERS, 1e308)),
    [Copy("x", "t", "crawl", (MONTHS[0],), weight=0.0)],
    [Copy(f"x{n}", "t", "crawl", (MONTHS[0],), weight=1e308) for n in range(9)],
    copies(crawled_on=date(1, 1, 1)),
    copies(crawled_on=date(9999, 12, 31)),
)

Call = tuple[Callable[..., Any], Mapping[str, Any], Mapping[str, tuple[Any, ...]]]
GAP = {"copies": COPIES, "months": MONTHS, "reported": MONTHS[9], "crawled": ["crawl"], "groups": {}, "seed": 0}
CALLS: list[Call] = [
    (edits_allowed, {"n_chars": 15, "limit": 0.2}, {"n_chars": NUMBERS, "limit": NUMBERS}),
    (VersionMatcher, {"topic": TOPIC, "limit": 0.2}, {"limit": NUMBERS}),
    (VersionMatcher(TOPIC).attribute, {"document": "one text of a few words"}, {"document": TEXTS}),
    (
        attribute_plainly,
        {"document": "one text", "texts": [(MONTHS[0], "one text")], "limit": 0.2},
        {"document": TEXTS, "limit": NUMBERS},
    ),
    (typical_month, {"weights": SERIES}, {"weights": (*ROWS, 5, None)}),
    (circular_shift_test, {"copies": SERIES, "curve": SERIES}, {"copies": ROWS, "curve": (*ROWS, [None] * 12, [1.0])}),
    (
        gap_shares,
        GAP,
        {"copies": ODD_COPIES, "months": ODD_MONTHS, "reported": (date.min, date.max, None, "x"), "seed": NUMBERS},
    ),
    (
        reweighted,
        {"copies": COPIES, "months": MONTHS, "groups_by_kind": {"exact": {}}},
        {"copies": ODD_COPIES, "months": ODD_MONTHS},
    ),
    (calendar, {"months": MONTHS}, {"months": ODD_MONTHS}),
    (gap_shares(**GAP).share, {"months": 3.0}, {"months": NUMBERS}),
    (monthly_weights, {"copies": COPIES, "months": MONTHS}, {"copies": ODD_COPIES, "months": ODD_MONTHS}),
    (
        summed,
        {"counted": {("c", MONTHS[0]): 1.0}, "months": MONTHS},
        {"counted": tuple({("c", MONTHS[0]): value} for value in NUMBERS), "months": ODD_MONTHS},
    ),
    (NgramHasher, {"size": 5}, {"size": NUMBERS}),
    (
        count_ngrams,
        {"topics": [TOPIC], "hits": [("c", "one text of a few words")], "size": 2, "hit_words": 512},
        {"hits": tuple([("c", text)] for text in TEXTS), "size": NUMBERS, "hit_words": NUMBERS, "topics": ([],)},
    ),
    (classify, {"left": "a b c", "right": "a b d", "threshold": 0.8}, {"left": TEXTS, "threshold": NUMBERS}),
    (span_hashes, {"text": "A. B. C.", "span": 3}, {"text": TEXTS, "span": NUMBERS}),
    (in_domains, {"url": "http://a.example", "domains": ["example"]}, {"url": ("", "http://[", "\0", None, "::::", 5)}),
    (signatures, {"texts": ["a b c"]}, {"texts": ([], *([text] for text in TEXTS))}),
    (shingle_hashes, {"text": "a b c"}, {"text": TEXTS}),
    (compare, {"left": "a b", "right": "a c", "least": 8}, {"left": TEXTS, "least": NUMBERS}),
    (shortened, {"pieces": compare("a" * 90, "a" * 90).left, "context": 9}, {"context": NUMBERS}),
    (
        as_markdown,
        {"display": compare("a b", "a c"), "left_title": "l", "right_title": "r"},
        {"left_title": ("", "\0|`*")},
    ),
    (
        altered,
        {"text": "A b. C d.", "kind": "exact", "rng": np.random.default_rng(0)},
        {"text": TEXTS, "kind": ("x", None)},
    ),
    (
        lambda copies: plant({"t": {MONTHS[0]: "A b."}}, [], [Order(MONTHS[0], "exact", "c", copies)], _rng()),
        {"copies": 2},
        {"copies": NUMBERS},
    ),
    (histogram_error, {"truth": SERIES, "mined": SERIES}, {"truth": ROWS, "mined": ROWS}),
    (
        topic_versions,
        {"topic": "t", "texts": [(MONTHS[0], "a")], "reported_month": None},
        {"texts": ([], [(MONTHS[0], 5)])},
    ),
    *((each, {"text": "A b. C d."}, {"text": TEXTS}) for each in (words, search_words, sentences, paragraphs)),
    (without_citations, {"text": "A b [1]."}, {"text": TEXTS}),
    (query_words, {"text": "a b", "most": 5}, {"text": TEXTS, "most": NUMBERS}),
    (
        score,
        {"words": ["a"], "query": {"a": 1}, "statistics": CorpusStatistics(3, 9, {"a": 1})},
        {"words": ([], ["b"])},
    ),
    (as_day, {"value": "2020-01-01"}, {"value": (*NUMBERS, *TEXTS, {}, date.min, -(10**30))}),
    (
        document_parts,
        {"record": {"text": "a"}, "chosen": layout("plain")},
        {"record": (*NUMBERS, *TEXTS, {}, {"text": NAN})},
    ),
    (layout, {"setting": "plain"}, {"setting": (*NUMBERS, {"text": 5}, {"text": [None]}, {1: "a"}, {}, {"text": ""})}),
    (top_fields, {"chosen": layout("c4")}, {}),
    *(
        (lambda value, name=name: Mining(**{name: value}), {"value": getattr(Mining(), name)}, {"value": NUMBERS})
        for name in ("limit", "near", "top", "query_words", "ngram", "hit_words")
    ),
    (corpora_of, {"raw": {"corpora": []}}, {"raw": (*NUMBERS, *TEXTS, {"corpora": [None, 5]}, {"corpora": [{}]})}),
    (
        compare_with_known,
        {
            "known": [KnownDocument("d", "t", "1")],
            "in_force": {"t": {"1": MONTHS[:1]}},
            "found": {("t", "d"): MONTHS[:1]},
        },
        {"in_force": ({}, {"t": {}}), "found": ({}, {("t", "d"): ()})},
    ),
    (
        lambda reported: sentence("c", "r", reported, gap_shares(**GAP)),
        {"reported": MONTHS[9]},
        {"reported": (None, date.min, date.max)},
    ),
]


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def not_finite(result: Any) -> list[float]:
    """Numbers in a result that are not finite."""
    if isinstance(result, float | np.floating):
        return [] if math.isfinite(result) else [float(result)]
    if is_dataclass(result) and not isinstance(result, type):
        return [bad for field in fields(result) for bad in not_finite(getattr(result, field.name))]
    if isinstance(result, Mapping):
        return [bad for item in result.values() for bad in not_finite(item)]
    if isinstance(result, list | tuple | np.ndarray):
        return [bad for item in result for bad in not_finite(item)]
    return []


CASES = [
    pytest.param(call, {**usual, name: value}, id=f"{number}-{getattr(call, '__name__', 'call')}-{name}-{place}")
    for number, (call, usual, hostile) in enumerate(CALLS)
    for name, values in hostile.items()
    for place, value in enumerate(values)
]


@pytest.mark.parametrize(("call", "usual"), [(call, usual) for call, usual, _ in CALLS])
def test_sound_values_are_answered(call: Callable[..., Any], usual: dict[str, Any]) -> None:
    assert not_finite(call(**usual)) == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("call", "arguments"), CASES)
def test_hostile_values_give_finite_numbers_or_a_refusal_in_our_words(
    call: Callable[..., Any], arguments: dict[str, Any]
) -> None:
    refusal = ""
    try:
        result = call(**arguments)
    except ValueError as error:
        result, refusal = None, str(error)
    assert not_finite(result) == []
    assert not any(each in refusal for each in FOREIGN), refusal
