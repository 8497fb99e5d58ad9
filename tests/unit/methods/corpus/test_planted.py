"""Planted truth on real text: Factbook versions among other pages, found by class, month and sub-corpus."""

import json
import lzma
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from resources.corpus.mining import index_corpus, match_shard
from resources.corpus.shards import shards
from strandline.corpus import Document, Location, TopicVersions, topic_versions
from strandline.corpus.histograms import Copy, monthly_weights, summed
from strandline.corpus.hits import merged_hits, weighted
from strandline.corpus.layouts import LAYOUTS
from strandline.corpus.ngrams import count_ngrams
from strandline.corpus.planted import CLASSES, COVERED, Order, Planted, altered, histogram_error, plant, recalls
from strandline.corpus.settings import CorpusPart, CorpusSpec, Mining
from tests.fakes.documents import find_duplicates

CHARS = 5000
DUMP, OLD, OLDER = date(2025, 6, 1), date(2023, 3, 1), date(2022, 2, 1)
ORDERS = [
    Order(DUMP, "exact", "wikipedia"),
    Order(OLD, "exact", "crawl", copies=2, crawled_on=date(2025, 5, 20)),
    *(Order(OLD, kind, "crawl") for kind in ("whitespace", "citation_numbers", "mirror")),
    Order(OLDER, "edited", "c4"),
    Order(OLDER, "partial", "c4"),
    Order(OLDER, "shuffled", "c4"),
]
REACHED = ("exact", "whitespace", "citation_numbers", "edited", "mirror", "partial")
"""Classes that some duplicate detector reaches; shuffled short sentences share neither spans nor enough shingles."""


@pytest.fixture(scope="module")
def versions(root: Path) -> dict[str, dict[date, str]]:
    """The first characters of twelve Factbook pages in all their months."""
    found: dict[str, dict[date, str]] = {}
    with lzma.open(root / "tests" / "data" / "factbook.jsonl.xz", "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            found.setdefault(row["name"], {})[date.fromisoformat(f"{row['month']}-01")] = row["text"][:CHARS]
    chosen = [name for name, monthly in found.items() if {DUMP, OLD, OLDER} <= set(monthly)][::2]
    return {name: found[name] for name in chosen[:12]}


@pytest.fixture(scope="module")
def background(versions: dict[str, dict[date, str]]) -> list[Document]:
    """Other pages: of the words of the Factbook pages, as often as they stand there, and of some of their own."""
    rng = np.random.default_rng(5)
    words = " ".join(monthly[DUMP] for monthly in versions.values()).split()
    own = [f"w{number}" for number in range(4000)]
    pages = []
    for number in range(1020):
        pool = np.array([*rng.choice(words, size=150), *rng.choice(own, size=150)])
        sentences = [" ".join(rng.choice(pool, size=14)).capitalize() + "." for _ in range(int(rng.integers(2, 60)))]
        place = Location("pages.jsonl", "line", number + 1)
        pages.append(Document(" ".join(sentences), place, ("c4", "crawl")[number % 2], source_id=f"page {number}"))
    return pages


@pytest.fixture(scope="module")
def planted(versions, background) -> list[Planted]:
    return plant(versions, background, ORDERS, np.random.default_rng(8))


@pytest.fixture(scope="module")
def topics(versions) -> list[TopicVersions]:
    return [topic_versions(name, list(monthly.items()), DUMP) for name, monthly in versions.items()]


def mine(planted: list[Planted], topics: list[TopicVersions], folder: Path, files: int) -> pl.DataFrame:
    """The planted corpus written as so many files, mined as users do."""
    for number in range(files):
        rows = [
            {"text": each.document.text, "id": each.document.source_id, "url": each.document.url,
             "part": each.document.subcorpus, "date": str(each.document.crawled_on)}
            for each in planted[number::files]
        ]  # fmt: skip
        text = "\n".join(json.dumps(row) for row in rows)
        (folder / f"part-{number}.jsonl").write_text(text, encoding="utf-8")
    part = CorpusPart(files=(f"{folder}/*.jsonl",), layout=LAYOUTS["plain"].__class__(subcorpus=("part",)))
    here = shards(CorpusSpec("planted", parts=(part,), resources=("factbook",)))
    cache = str(folder / "cache")
    index_corpus(here, cache)
    frames = [match_shard(shard, cache, topics, "all", Mining()) for shard in here]
    return weighted(merged_hits(frames, 10))


@pytest.fixture(scope="module")
def mined(planted, topics, tmp_path_factory):
    return mine(planted, topics, tmp_path_factory.mktemp("planted"), files=3)


def test_neither_the_number_of_shards_nor_the_order_of_the_corpus_changes_what_is_found(
    planted, topics, mined, tmp_path
):
    columns = ("topic", "source_id", "months", "edits", "weight")
    other = mine(planted[::-1], topics, tmp_path, files=1)
    one, three = (frame.filter(pl.col("weight") > 0).select(columns).sort(columns) for frame in (other, mined))
    assert one.equals(three)


def found_months(planted, mined):
    """By topic and the planted document's id, what mining attributed; documents are known by their source id."""
    ids = {each.document.source_id: each.document.document_id for each in planted if each.topic}
    rows = mined.select("topic", "source_id", "months").iter_rows()
    return {(topic, ids[name]): tuple(months) for topic, name, months in rows if months and name in ids}


def test_copies_of_the_covered_classes_are_found_and_dated(planted, mined):
    by_kind = {each.kind: each for each in recalls(planted, found_months(planted, mined))}
    assert set(by_kind) == {order.kind for order in ORDERS}
    for kind in COVERED:
        each = by_kind[kind]
        assert each.n_matched / each.n_planted >= 0.95, kind
        assert each.n_dated / each.n_planted >= 0.95, kind


def test_shuffled_and_partial_copies_are_not_versions_by_edit_distance(planted, mined):
    by_kind = {each.kind: each for each in recalls(planted, found_months(planted, mined))}
    assert by_kind["shuffled"].n_matched == 0
    assert by_kind["partial"].n_matched == 0


def test_no_other_page_is_taken_for_a_version(planted, mined):
    own = {each.document.source_id for each in planted if each.topic}
    strangers = mined.filter(mined["edits"].is_not_null() & ~mined["source_id"].is_in(list(own)))
    assert strangers.height == 0


def test_the_mined_histogram_is_that_which_was_planted(planted, mined, topics):
    months = sorted({month for topic in topics for month in topic.months})
    copies = [
        Copy(name, topic, part, tuple(attributed))
        for name, topic, part, attributed in mined.filter(mined["weight"] > 0)
        .select("document_id", "topic", "subcorpus", "months")
        .iter_rows()
    ]
    in_force = {(topic.topic, month): v.months for topic in topics for v in topic.versions for month in v.months}
    truth = [
        Copy(each.document.document_id, each.topic, each.document.subcorpus, in_force[each.topic, each.month])
        for each in planted
        if each.topic and each.kind in COVERED
    ]
    counted, expected = (monthly_weights(group, months) for group in (copies, truth))
    assert histogram_error(summed(expected, months), summed(counted, months)) < 0.02
    for part in ("wikipedia", "crawl", "c4"):
        ours = [counted[part, month] for month in months]
        assert histogram_error([expected[part, month] for month in months], ours) < 0.05, part


def test_n_grams_count_shuffled_copies_that_edit_distance_ignores(planted, topics):
    shuffled = [(each.document.subcorpus, each.document.text) for each in planted if each.kind == "shuffled"]
    counts = {count.month: count.weight for count in count_ngrams(topics, shuffled)}
    assert max(counts, key=lambda month: counts[month]) in {
        month for topic in topics for v in topic.versions if OLDER in v.months for month in v.months
    }
    assert counts[OLDER] > 1.5 * counts[DUMP]


@pytest.mark.parametrize("kind", CLASSES)
def test_n_grams_of_every_class_are_most_in_the_months_that_were_planted(planted, topics, kind):
    for month in {order.month for order in ORDERS if order.kind == kind}:
        hits = [("all", each.document.text) for each in planted if each.kind == kind and each.month == month]
        counts = {count.month: count.weight for count in count_ngrams(topics, hits)}
        assert counts[month] >= 0.99 * max(counts.values())
        assert counts[month] > 1.1 * min(counts.values())


def test_n_grams_of_other_pages_hardly_count(planted, topics):
    hits = [("copy" if each.topic else "other", each.document.text) for each in planted]
    weights = {"copy": 0.0, "other": 0.0}
    for count in count_ngrams(topics, hits):
        weights[count.subcorpus] += count.weight
    assert weights["other"] < 0.01 * weights["copy"]


def test_a_pair_has_the_name_of_how_its_documents_were_planted(planted):
    copies = {each.document.document_id: each for each in planted if each.topic}
    pairs = find_duplicates([each.document for each in copies.values()])
    named = {
        "exact": {"exact"},
        "whitespace": {"exact", "whitespace"},
        "citation_numbers": {"exact", "whitespace", "citation_numbers"},
    }
    for pair in pairs:
        left, right = copies[pair.left_id], copies[pair.right_id]
        if pair.kind != "three_sentence_span":
            assert left.topic == right.topic, pair.kind
        if pair.kind in named:
            assert {left.kind, right.kind} <= named[pair.kind]
            assert left.month == right.month


def test_each_duplicate_class_is_found_with_its_name_and_no_stranger(planted):
    copies = [each for each in planted if each.topic]
    pages = [each for each in planted if each.kind == "background"][:400]
    kind_of = {each.document.document_id: each for each in copies}
    pairs = find_duplicates([each.document for each in copies + pages])
    linked: dict[str, set[str]] = {}
    strangers = 0
    for pair in pairs:
        left, right = kind_of.get(pair.left_id), kind_of.get(pair.right_id)
        if left and right and left.topic == right.topic:
            for each in (left, right):
                linked.setdefault(each.document.document_id, set()).add(pair.kind)
        elif left or right:
            strangers += pair.kind != "three_sentence_span"
    expected = {
        "whitespace": {"whitespace"},
        "citation_numbers": {"citation_numbers"},
        "mirror": {"near", "three_sentence_span"},
        "edited": {"near", "three_sentence_span"},
        "partial": {"near", "three_sentence_span"},
        "exact": {"exact", "near", "whitespace", "citation_numbers", "three_sentence_span"},
    }
    for kind in REACHED:
        of_kind = [each for each in copies if each.kind == kind]
        named = [bool(linked.get(each.document.document_id, set()) & expected[kind]) for each in of_kind]
        assert sum(named) / len(named) >= 0.95, kind
    assert strangers == 0


def test_alterations_are_what_they_are_called(versions):
    text = next(iter(versions.values()))[OLD]
    rng = np.random.default_rng(1)
    assert altered(text, "exact", rng) == text
    assert altered(text, "whitespace", rng).split() == text.split()
    assert sorted(altered(text, "shuffled", rng).split()) == sorted(text.split())
    assert len(altered(text, "partial", rng)) < 0.7 * len(text)
    assert text in altered(text, "mirror", rng)
    assert set(CLASSES) >= set(COVERED)
    with pytest.raises(ValueError, match="no class of copies named 'inverted'"):
        altered(text, "inverted", rng)


def test_histogram_error_is_a_total_variation_distance():
    assert histogram_error([1, 1, 0], [10, 10, 0]) == 0
    assert histogram_error([1, 0], [0, 1]) == 1
    with pytest.raises(ValueError, match="cannot be compared"):
        histogram_error([0, 0], [1, 0])
