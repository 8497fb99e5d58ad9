"""Mining over shards: hits depend neither on how a corpus is cut nor on how it is written, and damage is mended."""

import json
import random
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from resources.corpus import search_index
from resources.corpus.kept_frames import keep, kept
from resources.corpus.mining import index_corpus, match_corpus, profile_corpus
from resources.corpus.shards import Shard, shards
from resources.corpus.topics import Batch
from strandline.corpus import TopicVersions, topic_versions
from strandline.corpus.settings import CorpusPart, CorpusSpec, Mining

MONTHS = [date(2020, month, 1) for month in (1, 2, 3)]
COLUMNS = ("topic", "source_id", "bm25_rank", "bm25_score", "edits", "months", "weight")


class Topics:
    """Topics that are held in memory, one batch of them."""

    def __init__(self, topics: Sequence[TopicVersions]) -> None:
        self.topics = topics

    def batches(self) -> list[Batch]:
        return [Batch(tuple(topic.topic for topic in self.topics), "all")]

    def load(self, batch: Batch) -> list[TopicVersions]:
        return [topic for topic in self.topics if topic.topic in batch.topics]

    def __iter__(self) -> Iterator[TopicVersions]:
        return iter(self.topics)


def sentence(rng: random.Random, words: Sequence[str], size: int = 12) -> str:
    return " ".join(rng.choice(words) for _ in range(size)).capitalize() + "."


def world(letters: str, seed: int = 0) -> tuple[list[TopicVersions], list[str]]:
    """Three topics with three versions each, and a corpus of thirty copies among pages of other lengths."""
    rng = random.Random(seed)
    words = ["".join(rng.choice(letters) for _ in range(rng.randrange(2, 6))) for _ in range(400)]
    topics, corpus = [], []
    for number in range(3):
        lines = [sentence(rng, words) for _ in range(12)]
        texts = [(month, " ".join([*lines[place:], sentence(rng, words)])) for place, month in enumerate(MONTHS)]
        topics.append(topic_versions(f"topic {number}", texts, MONTHS[-1]))
        corpus += [texts[copy % 3][1] + f" {copy}" for copy in range(10)]
    for _ in range(60):
        corpus.append(" ".join(sentence(rng, words) for _ in range(rng.choice((1, 2, 30)))))
    rng.shuffle(corpus)
    return topics, corpus


def mined(folder: Path, topics: Sequence[TopicVersions], files: Sequence[Sequence[tuple[int, str]]]) -> pl.DataFrame:
    """What is mined of a corpus that lies in these files, without what names the files."""
    folder.mkdir()
    for number, rows in enumerate(files):
        lines = [json.dumps({"text": text, "id": f"document {name}"}) for name, text in rows]
        (folder / f"{number}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    here = shards_of(folder)
    found = match_corpus(here, str(folder / "cache"), Topics(topics), Mining())  # type: ignore[arg-type]
    return found.select(COLUMNS).sort("topic", "bm25_score", "source_id", descending=[False, True, False])


def shards_of(folder: Path) -> list[Shard]:
    return shards(CorpusSpec("c", parts=(CorpusPart(files=(f"{folder}/*.jsonl",)),), resources=("r",)))


CUTS: dict[str, Callable[[list[tuple[int, str]]], list[list[tuple[int, str]]]]] = {
    "three files": lambda rows: [rows[number::3] for number in range(3)],
    "a file for each length": lambda rows: [
        [row for row in rows if low <= len(row[1]) < high] for low, high in ((0, 500), (500, 1500), (1500, 1 << 30))
    ],
    "a file a document": lambda rows: [[row] for row in rows],
    "copies apart": lambda rows: [[row for row in rows if row[1][-1].isdigit()], [r for r in rows if r[1][-1] == "."]],
}


@pytest.mark.parametrize("cut", CUTS)
def test_hits_scores_and_copies_do_not_depend_on_how_a_corpus_is_cut_into_files(cut: str, tmp_path: Path) -> None:
    topics, corpus = world("abcdefghij")
    rows = list(enumerate(corpus))
    one = mined(tmp_path / "one", topics, [rows])
    assert one["weight"].sum() == 30
    other = mined(tmp_path / "other", topics, CUTS[cut](rows)).drop("bm25_rank")
    assert other.equals(one.drop("bm25_rank"))


@pytest.mark.parametrize(
    ("letters", "form"),
    [
        ("\uac00\ub098\ub2e4\ub77c\ub9c8\ubc14\uc0ac\uc544", "NFD"),
        ("\u00e9\u00e0\u00f1\u00f6\u0169\u1ec7c\u00e7", "NFD"),
        ("abcdefgh", "NFC"),
        ("\u0438\u0439\u0456\u0457\u0435\u0451", "NFD"),
    ],
    ids=["Korean", "Latin", "plain", "Cyrillic"],
)
def test_copies_are_found_however_their_letters_are_written(letters: str, form: str, tmp_path: Path) -> None:
    topics, corpus = world(letters)
    written = [unicodedata.normalize(form, text) for text in corpus]
    columns = ("topic", "source_id", "bm25_score", "edits", "months", "weight")
    as_composed = mined(tmp_path / "composed", topics, [list(enumerate(corpus))]).select(columns)
    as_written = mined(tmp_path / "written", topics, [list(enumerate(written))]).select(columns)
    assert as_composed["weight"].sum() == 30
    assert as_written.equals(as_composed)


def test_a_copy_without_blanks_is_found_where_its_lines_are_broken_elsewhere(tmp_path: Path) -> None:
    rng = random.Random(1)
    text = "".join(chr(rng.randrange(0x4E00, 0x9000)) for _ in range(600))
    topics = [topic_versions("one", [(MONTHS[0], text)], MONTHS[0])]
    broken = "\n".join(text[place : place + 37] for place in range(0, 600, 37))
    other = "".join(chr(rng.randrange(0x4E00, 0x9000)) for _ in range(600))
    found = mined(tmp_path / "c", topics, [[(0, broken), (1, other)]])
    assert found.filter(pl.col("weight") > 0)["source_id"].to_list() == ["document 0"]


def damage(file: Path, way: str) -> None:
    data = bytearray(file.read_bytes())
    if way == "cut":
        data = data[: len(data) // 2]
    elif way == "empty":
        data = bytearray()
    elif data:
        data[len(data) // 2] ^= 0xFF
    file.write_bytes(bytes(data))


@pytest.mark.parametrize("way", ["flipped", "cut", "empty", "gone"])
def test_every_damaged_file_of_the_cache_is_made_again(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics, corpus = world("abcdefghij")
    first = mined(tmp_path / "c", topics, [list(enumerate(corpus))])
    here, cache = shards_of(tmp_path / "c"), tmp_path / "c" / "cache"
    profiled = profile_corpus(here, str(cache)).ids

    def files() -> list[Path]:
        found = [file for file in cache.rglob("*") if file.is_file() and not file.name.endswith(".lock")]
        return sorted(found, key=lambda file: (file.parent.name, file.suffix, file.name))

    assert len(files()) > 8
    for place in range(len(files())):
        file = files()[place]
        monkeypatch.setattr(search_index, "_CHECKED", set())
        if way == "gone":
            file.unlink()
        else:
            damage(file, way)
        (outcome,) = index_corpus(here, str(cache))
        assert outcome.reason is None, file
        assert outcome.report is not None
        assert outcome.report.documents == {"all": len(corpus)}
        found = match_corpus(here, str(cache), Topics(topics), Mining())  # type: ignore[arg-type]
        again = found.select(COLUMNS).sort("topic", "bm25_score", "source_id", descending=[False, True, False])
        assert again.equals(first), file
        assert profile_corpus(here, str(cache)).ids == profiled


def test_an_index_of_another_format_is_made_again(tmp_path: Path) -> None:
    topics, corpus = world("abcdefghij")
    mined(tmp_path / "c", topics, [list(enumerate(corpus))])
    (shard,) = shards_of(tmp_path / "c")
    report = tmp_path / "c" / "cache" / shard.key / "index" / "report.json"
    about = json.loads(report.read_text(encoding="utf-8"))
    for other in ({"documents": {}}, {**about, "format": 1}, [], None):
        report.write_text(json.dumps(other), encoding="utf-8")
        (outcome,) = index_corpus([shard], str(tmp_path / "c" / "cache"))
        assert outcome.report is not None
        assert outcome.report.documents == {"all": len(corpus)}
    assert not [file for file in report.parent.parent.iterdir() if file.name.startswith(".")]


def test_a_frame_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"a": [1]})

    def full(self: Path, data: bytes) -> int:
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        keep(tmp_path / "f.frame", frame)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []
    assert kept(tmp_path / "f.frame") is None
    assert keep(tmp_path / "f.frame", frame).equals(frame)
    assert kept(tmp_path / "f.frame").equals(frame)  # type: ignore[union-attr]
