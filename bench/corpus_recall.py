"""How much of what a full comparison finds mining finds too, whatever the files and the way letters are written.

A full comparison takes every document of a corpus for every topic. The corpus is made: copies of every class among
other pages of the same vocabulary, in Latin letters or in Korean, as one file, three or thirty, composed or decomposed.
Run `python bench/corpus_recall.py` (about a minute).
"""

import json
import sys
import tempfile
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from resources.corpus.mining import match_corpus
from resources.corpus.shards import shards
from resources.corpus.topics import Batch
from strandline.corpus import Document, Location, TopicVersions, topic_versions
from strandline.corpus.attribution import VersionMatcher
from strandline.corpus.histograms import Copy, monthly_weights, summed
from strandline.corpus.planted import CLASSES, Order, Planted, histogram_error, plant, recalls
from strandline.corpus.settings import CorpusPart, CorpusSpec, Mining
from strandline.spans.months import month_range

MONTHS = month_range(date(2020, 1, 1), date(2020, 12, 1))
LETTERS = {"Latin": "abcdefghijklmnopqrstuvwxyzäöüé", "Korean": "".join(map(chr, range(0xAC00, 0xAC00 + 28 * 60, 28)))}
FILES = {"one file": 1, "three files": 3, "thirty files": 30}
Months = dict[tuple[str, str], tuple[date, ...]]


class Topics(list[TopicVersions]):
    """Topics that are held in memory, as one batch."""

    def batches(self) -> list[Batch]:
        """All topics as one batch."""
        return [Batch(tuple(topic.topic for topic in self), "all")]

    def load(self, batch: Batch) -> list[TopicVersions]:
        """The topics of a batch."""
        return list(self)


def world(letters: str, copies: int) -> tuple[Topics, list[Planted]]:
    """Twelve topics of twelve versions, so many copies of each class and topic, and 800 other pages."""
    rng = np.random.default_rng(7)
    words = np.array(["".join(rng.choice(list(letters), size=size)) for size in rng.integers(2, 8, size=3000)])
    versions = {f"topic {number}": dict(_history(words, rng)) for number in range(12)}
    topics = Topics(topic_versions(name, list(texts.items()), MONTHS[-1]) for name, texts in versions.items())
    pages = [
        Document(_page(words, rng), Location("pages", "line", n), "web", source_id=f"page {n}") for n in range(800)
    ]
    orders = [Order(MONTHS[place % 12], kind, "web", copies) for place, kind in enumerate(CLASSES)]
    return topics, plant(versions, pages, orders, rng)


def _history(words: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[date, str]]:
    """A page of thirty sentences of which two are written anew each month."""
    lines = [_sentence(words, rng) for _ in range(30)]
    for month in MONTHS:
        for place in rng.choice(30, size=2, replace=False).tolist():
            lines[place] = _sentence(words, rng)
        yield month, " ".join(lines)


def _page(words: np.ndarray, rng: np.random.Generator) -> str:
    return " ".join(_sentence(words, rng) for _ in range(int(rng.integers(2, 60))))


def _sentence(words: np.ndarray, rng: np.random.Generator) -> str:
    ranks = np.minimum(rng.zipf(1.3, size=14), len(words)) - 1
    return " ".join(words[ranks]).capitalize() + "."


def full_comparison(topics: Topics, planted: Sequence[Planted]) -> Months:
    """The months of every document for every topic that it is near to."""
    found: Months = {}
    for topic in topics:
        matcher = VersionMatcher(topic)
        for each in planted:
            if (version := matcher.attribute(each.document.text)) is not None:
                found[topic.topic, str(each.document.source_id)] = version.months
    return found


def mined(topics: Topics, planted: Sequence[Planted], files: int, form: str, top: int) -> Months:
    """The same by mining a corpus of so many files."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(files):
            rows = [
                json.dumps({"text": unicodedata.normalize(form, each.document.text), "id": each.document.source_id})
                for each in planted[number::files]
            ]
            (Path(folder) / f"{number:05d}.jsonl").write_text("\n".join(rows), encoding="utf-8")
        here = shards(CorpusSpec("c", parts=(CorpusPart(files=(f"{folder}/*.jsonl",)),), resources=("r",)))
        hits = match_corpus(here, f"{folder}/cache", topics, Mining(top=top))  # type: ignore[arg-type]
    rows = hits.select("topic", "source_id", "months").iter_rows()
    return {(topic, name): tuple(months) for topic, name, months in rows if months}


def histogram(found: Months) -> list[float]:
    """How many copies date from each month."""
    copies = [Copy(name, topic, "web", months) for (topic, name), months in found.items()]
    return summed(monthly_weights(copies, MONTHS), MONTHS)


def compare(script: str, copies: int, top: int) -> None:
    """Print the recall of a corpus for every way in which it may lie there."""
    topics, planted = world(LETTERS[script], copies)
    whole = full_comparison(topics, planted)
    n_near = len(whole) // len(topics)
    print(f"\n{script}, {n_near} near copies a topic of {len(planted):,} documents, top {top}")
    for files, count in FILES.items():
        for form in ("NFC", "NFD"):
            found = mined(topics, planted, count, form, top)
            share = len(whole.keys() & found.keys()) / len(whole)
            dated = sum(found.get(key) == months for key, months in whole.items()) / len(whole)
            apart = histogram_error(histogram(whole), histogram(found))
            print(f"  {files:18s} {form}  found {share:7.2%}  dated alike {dated:7.2%}  histograms apart {apart:.3f}")
    by_class(planted, found)


def by_class(planted: Sequence[Planted], found: Months) -> None:
    """Print how many of each planted class were found, which a full comparison does not find all either."""
    names = {str(each.document.source_id): each.document.document_id for each in planted}
    rows = recalls(planted, {(topic, names[name]): months for (topic, name), months in found.items()})
    print("  planted and matched: " + ", ".join(f"{each.kind} {each.n_matched / each.n_planted:.0%}" for each in rows))


if __name__ == "__main__":
    for script in LETTERS:
        compare(script, copies=1, top=10)
    compare("Latin", copies=4, top=10)
    compare("Latin", copies=4, top=40)
