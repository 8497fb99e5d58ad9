"""BM25 over shards: scores that mean something, safe queries, ties by document id, and matches merged over shards."""

import json
import random
from collections.abc import Iterable, Iterator
from math import log
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.compute.tasks import Task, WorkerSpec
from resources.corpus.mining import CorpusTexts, index_corpus, profile_corpus, profile_shard
from resources.corpus.search_index import SearchIndex, build
from resources.corpus.shards import shards
from strandline.corpus import BrokenRecord, Document, Location
from strandline.corpus.hits import merged_hits, weighted
from strandline.corpus.settings import CorpusPart, CorpusSpec


def documents(texts: list[str]) -> list[Document]:
    return [Document(text, Location("f.jsonl", "line", n), "c4") for n, text in enumerate(texts, 1)]


@pytest.fixture
def index_of(tmp_path: Path):
    made = iter(range(1000))

    def make(texts: list[str]) -> SearchIndex:
        folder = tmp_path / f"index-{next(made)}"
        build(folder, documents(texts))
        return SearchIndex(folder)

    return make


def okapi(query: list[str], texts: list[list[str]]) -> list[float]:
    mean = sum(map(len, texts)) / len(texts)
    scores = []
    for words in texts:
        total = 0.0
        for word in query:
            n = sum(word in other for other in texts)
            frequency = words.count(word)
            idf = log(1 + (len(texts) - n + 0.5) / (n + 0.5))
            total += idf * frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * len(words) / mean))
        scores.append(total)
    return scores


def test_scores_are_okapi_bm25_with_an_idf_that_is_never_negative(index_of):
    rng = random.Random(3)
    texts = [[rng.choice("abcdefgh") for _ in range(rng.randrange(5, 25))] for _ in range(40)]
    query = ["a", "b", "b", "h"]
    expected = okapi(query, texts)
    found = index_of([" ".join(words) for words in texts]).search(" ".join(query), top=40)
    for score, document in found:
        assert score == pytest.approx(expected[document.location.position - 1], rel=1e-3, abs=1e-3)
    assert [score for score, _ in found] == sorted((score for score, _ in found), reverse=True)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_an_exact_match_ranks_first_with_a_positive_score_in_a_tiny_corpus(index_of, size):
    texts = ["the river floods its banks in spring", *["the river is low in the town"] * (size - 1)]
    found = index_of(texts).search(texts[0])
    assert found[0][1].text == texts[0]
    assert found[0][0] > 0
    assert len(found) == size


def test_words_in_every_document_still_count(index_of):
    found = index_of(["same words", "same words", "same words"]).search("same words")
    assert len(found) == 3
    assert all(score > 0 for score, _ in found)


@pytest.mark.parametrize("texts", [[], ["", "", ""], ["   ", "\n"]])
def test_an_empty_corpus_or_empty_documents_give_nothing(index_of, texts):
    assert index_of(texts).search("anything at all") == []


@pytest.mark.parametrize("query", ["", "   ", "!!! ??? ...", "\x00", "😀"])
def test_a_query_without_words_gives_nothing(index_of, query):
    assert index_of(["some text here"]).search(query) == []


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
def test_no_character_of_a_query_has_a_meaning_of_its_own(tmp_path_factory, query):
    folder = tmp_path_factory.getbasetemp() / "fixed-index"
    build(folder, documents(["alpha beta", 'text:alpha AND "beta" OR -gamma^2 +delta~1 [a TO b] (x) \\ /re.*/']))
    found = SearchIndex(folder).search(query)
    assert len(found) <= 2


@pytest.mark.parametrize(
    "query", ["alpha AND beta", '"alpha', "alpha:beta", "alpha^^^", "(alpha", "+alpha -beta", "alpha*"]
)
def test_operators_are_read_as_words(index_of, query):
    assert {d.text for _, d in index_of(["alpha one", "beta two"]).search(query)} >= {"alpha one"}


def test_fewer_documents_than_asked_for_are_all_that_there_are(index_of):
    assert len(index_of(["a b", "a c", "a d"]).search("a", top=10)) == 3


def test_only_the_first_words_of_a_query_are_used(index_of):
    index = index_of(["needle here", "hay stack"])
    assert index.search("hay " * 512 + "needle")[0][1].text == "hay stack"
    assert len(index.search("hay " * 512 + "needle")) == 1
    assert len(index.search("hay " * 511 + "needle")) == 2


def test_ties_stand_in_order_of_document_id_whatever_the_order_of_the_corpus(index_of):
    texts = [f"common words number{n}" for n in range(30)]
    expected = sorted(texts, key=lambda text: Document(text, Location("f", "line", 1), "c").document_id)[:10]
    for seed in range(4):
        shuffled = random.Random(seed).sample(texts, len(texts))
        assert [document.text for _, document in index_of(shuffled).search("common words")] == expected


def test_everything_known_of_a_document_comes_back(tmp_path: Path):
    from datetime import date

    document = Document(
        "naïve \U0001f600 text",
        Location("a/b c.jsonl:x", "line", 7, 123),
        "cc",
        date(2020, 3, 1),
        "id",
        "http://x",
        "1.0",
        0.25,
    )
    build(tmp_path / "index", [document, BrokenRecord(Location("f", "line", 2), "json", "no JSON")])
    index = SearchIndex(tmp_path / "index")
    assert index.search("naïve")[0][1] == document
    assert index.document(document.document_id) == document
    assert index.document("no such") is None
    assert list(index.documents()) == [document]


def test_an_index_is_built_once_and_a_failed_build_leaves_nothing(tmp_path: Path):
    def failing():
        yield from documents(["one"])
        raise OSError("the connection broke")

    with pytest.raises(OSError, match="connection broke"):
        build(tmp_path / "index", failing())
    assert list(tmp_path.iterdir()) == []
    first = build(tmp_path / "index", documents(["one", "two"]))
    assert build(tmp_path / "index", failing()) == first
    assert first.documents == {"c4": 2}


def test_the_best_hits_are_merged_over_shards_and_ranked():
    def frame(*rows: tuple[str, str, float]) -> pl.DataFrame:
        return pl.DataFrame(rows, schema=["topic", "document_id", "bm25_score"], orient="row")

    merged = merged_hits([frame(("t", "b", 2.0), ("t", "d", 1.0)), frame(("t", "a", 2.0), ("u", "c", 0.5))], 2)
    assert merged.select("topic", "document_id", "bm25_rank").rows() == [("t", "a", 1), ("t", "b", 2), ("u", "c", 1)]


def test_a_document_counts_once_for_its_nearest_topic_and_topics_that_tie_share_it():
    hits = pl.DataFrame(
        {
            "document_id": ["x", "x", "y", "y", "z"],
            "edits": [3, 7, 2, 2, None],
            "distance": [0.03, 0.07, 0.02, 0.02, None],
        }
    )
    assert weighted(hits)["weight"].to_list() == [1, 0, 0.5, 0.5, 0]
    assert weighted(hits, every_topic=True)["weight"].to_list() == [1, 1, 1, 1, 0]


def test_texts_are_found_again_in_the_shard_that_holds_them(tmp_path: Path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"text": f"the text of {name}"}) + "\n", encoding="utf-8")
    spec = CorpusSpec("c", parts=(CorpusPart(files=(str(tmp_path / "*.jsonl"),)),), resources=("r",))
    here = shards(spec)
    index_corpus(here, str(tmp_path / "cache"))
    texts = CorpusTexts(here, str(tmp_path / "cache"))
    wanted = Document("the text of two", Location(str(tmp_path / "two.jsonl"), "line", 1), "all")
    assert texts(wanted.document_id) == "the text of two"
    with pytest.raises(KeyError):
        texts(f"0000@{tmp_path}/one.jsonl:9")
    elsewhere = CorpusTexts(here, str(tmp_path / "a machine that indexed nothing"))
    assert elsewhere(wanted.document_id) == "the text of two"


def test_what_another_machine_profiled_is_kept_here_and_not_asked_for_again(tmp_path: Path):
    class Elsewhere:
        """A machine whose folders are its own."""

        def __init__(self) -> None:
            self.done = 0

        def run(self, worker: WorkerSpec, tasks: Iterable[Task]) -> Iterator[tuple[Task, Any]]:
            for task in tasks:
                self.done += 1
                yield task, profile_shard(task.payload[0], str(tmp_path / "elsewhere"))

    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"text": f"the text of {name}"}) + "\n", encoding="utf-8")
    part = CorpusPart(files=(str(tmp_path / "*.jsonl"),))
    here, machine = shards(CorpusSpec("c", parts=(part,), resources=("r",))), Elsewhere()
    for _ in range(2):
        assert len(profile_corpus(here, str(tmp_path / "here"), machine).ids) == 2
    assert machine.done == 2
