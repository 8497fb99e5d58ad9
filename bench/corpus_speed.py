"""How fast mining is on one core, beside the same libraries used plainly, and whether memory stays flat.

Run `python bench/corpus_speed.py` (about two minutes) or with `--gigabytes 2` for the memory run on a generated corpus.
Rates are in processor seconds of this process with all its threads, so that a busy machine changes little.
"""

import argparse
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("POLARS_MAX_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from resources.corpus.search_index import SearchIndex, build
from strandline.corpus import Document, Location, topic_versions
from strandline.corpus.attribution import VersionMatcher, attribute_plainly
from strandline.corpus.signatures import band_keys, signatures
from strandline.spans.months import month_range

MONTHS = month_range(date(2016, 4, 1), date(2023, 4, 1))
CHARS = 3000


def timed(work: Callable[[], object]) -> float:
    """Processor seconds of one call."""
    started = time.process_time()
    work()
    return time.process_time() - started


def report(what: str, rate: float, unit: str, plain: float | None, goal: float) -> None:
    """One line: the rate, the ratio to the plain use of the library, and the goal."""
    ratio = "" if plain is None else f"  {rate / plain:6.1f} times the plain use ({plain:,.0f})"
    print(f"{what:52s} {rate:12,.0f} {unit}{ratio}  {'ok' if rate >= goal else 'BELOW'} (goal {goal:,.0f})")


def vocabulary(rng: np.random.Generator, size: int = 20_000) -> np.ndarray:
    """Words of two to nine letters."""
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    return np.array(["".join(rng.choice(letters, size=length)) for length in rng.integers(2, 10, size=size)])


def pages(count: int, seed: int = 0, mean_words: int = 300) -> Iterator[str]:
    """Pages of words with the frequencies of natural text, all of one vocabulary."""
    rng = np.random.default_rng(seed)
    words = vocabulary(np.random.default_rng(0))
    shares = 1 / np.arange(1, len(words) + 1) ** 1.05
    shares /= shares.sum()
    for length in (rng.lognormal(np.log(mean_words), 0.6, size=count).astype(int) + 20).tolist():
        yield " ".join(words[rng.choice(len(words), size=length, p=shares)])


def edited(text: str, edits: int, rng: np.random.Generator) -> str:
    """The text with so many letters changed, dropped or added."""
    letters = list(text)
    for place, kind in zip(rng.integers(0, len(letters), size=edits), rng.integers(0, 3, size=edits), strict=True):
        letters[place] = ("z", "", letters[place] + "y")[kind]
    return "".join(letters)


def attribution(edits: int, versions: int) -> None:
    """Documents of 3,000 characters against all months of their topic."""
    rng = np.random.default_rng(edits)
    topics, documents = [], []
    for text in pages(60, seed=1, mean_words=900):
        monthly = [text[:CHARS].ljust(CHARS, ".")]
        for _ in range(versions - 1):
            monthly.append(edited(monthly[-1], 30, rng))
        texts = [(month, monthly[place * versions // len(MONTHS)]) for place, month in enumerate(MONTHS)]
        topics.append((VersionMatcher(topic_versions("t", texts, None)), texts))
        documents.append(edited(monthly[int(rng.integers(versions))], edits, rng))
    repeats = 20
    fast = timed(lambda: [m.attribute(d) for _ in range(repeats) for (m, _), d in zip(topics, documents, strict=True)])
    plain = timed(lambda: [attribute_plainly(d, t) for (_, t), d in zip(topics[:10], documents, strict=False)])
    same = all(m.attribute(d) == attribute_plainly(d, t) for (m, t), d in zip(topics[:10], documents, strict=False))
    rate = len(documents) * repeats / fast
    what = f"attribution, {edits} edits, {versions} distinct of {len(MONTHS)} versions"
    report(what, rate, "documents/s", 10 / plain, 10_000)
    report(
        f"  the same as comparisons with a month's text{'' if same else ' DIFFERENT'}",
        rate * len(MONTHS),
        "/s",
        None,
        10_000,
    )


def search(count: int = 30_000, queries: int = 400) -> None:
    """Indexing and searching one shard."""
    documents = [Document(text, Location("f.jsonl", "line", n), "c4") for n, text in enumerate(pages(count), 1)]
    long = [" ".join(p.split()[:512]) for p in pages(queries, seed=9, mean_words=900)]
    with tempfile.TemporaryDirectory() as folder:
        ours = timed(lambda: build(Path(folder) / "index", documents))
        index = _plain_index(Path(folder) / "plain")
        plain = timed(lambda: _fill_plainly(index, documents))
        report(f"indexing {count:,} documents with text and place", count / ours, "documents/s", count / plain, 5_000)
        found = SearchIndex(Path(folder) / "index")
        ours = timed(lambda: [found.search(query) for query in long])
        index.reload()
        searcher = index.searcher()
        plain = timed(lambda: [searcher.search(index.parse_query(query, ["text"]), 10) for query in long])
        report("BM25 queries of 512 words, hits with texts", queries / ours, "queries/s", queries / plain, 120)


def _plain_index(folder: Path) -> Any:
    import tantivy

    folder.mkdir()
    return tantivy.Index(tantivy.SchemaBuilder().add_text_field("text", stored=True).build(), path=str(folder))


def _fill_plainly(index: Any, documents: list[Document]) -> None:
    import tantivy

    writer = index.writer(64_000_000, 1)
    for document in documents:
        writer.add_document(tantivy.Document(text=document.text))
    writer.commit()
    writer.wait_merging_threads()


def minhash(count: int = 20_000) -> None:
    """Signatures and bands of pages of 2,000 characters."""
    from datasketch import MinHash

    texts = list(pages(count, seed=3, mean_words=240))
    signatures(texts[:500])
    ours = timed(lambda: band_keys(signatures(texts)))

    def plainly() -> None:
        for text in texts[:300]:
            words = text.lower().split()
            signature = MinHash(num_perm=128)
            signature.update_batch([" ".join(words[n : n + 5]).encode() for n in range(len(words) - 4)])

    plain = timed(plainly)
    size = sum(map(len, texts)) // count
    report(f"MinHash of {count:,} documents of {size:,} characters", count / ours, "documents/s", 300 / plain, 15_000)


def memory(gigabytes: float) -> None:
    """Index a generated file of JSON lines and say how much memory that took at each fifth."""
    import json

    from resources.corpus.shards import read_shard, shards
    from strandline.corpus.settings import CorpusPart, CorpusSpec

    with tempfile.TemporaryDirectory() as folder:
        file, base = Path(folder) / "corpus.jsonl", list(pages(4000, seed=5))
        with file.open("w", encoding="utf-8") as out:
            n = 0
            while out.tell() < gigabytes * 1e9:
                out.write(json.dumps({"text": f"{n} {base[n % 4000]} {base[n * 7 % 4000]}"}) + "\n")
                n += 1
        (shard,) = shards(CorpusSpec("c", parts=(CorpusPart(files=(str(file),)),), resources=("r",)))
        marks = [_peak()]
        count = 0

        def watched() -> Iterator[object]:
            nonlocal count
            for record in read_shard(shard):
                count += 1
                if count % (n // 5) == 0:
                    marks.append(_peak())
                yield record

        seconds = timed(lambda: build(Path(folder) / "index", watched()))  # type: ignore[arg-type]
        shutil.rmtree(Path(folder) / "index")
        grown = ", ".join(f"{mark:.0f}" for mark in marks)
        rate, size = n / seconds, file.stat().st_size / 1e9
        print(f"indexing {size:.1f} GB: {n:,} documents, {rate:,.0f} documents/s, resident MB at each fifth {grown}")


def _peak() -> float:
    """Resident memory in MB now."""
    in_use = int(Path("/proc/self/statm").read_text().split()[1]) if Path("/proc/self/statm").exists() else 0
    return in_use * resource.getpagesize() / 1e6 or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main() -> None:
    """Run the benchmarks that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=0.2, help="size of the corpus of the memory run")
    options = parser.parse_args()
    for edits, versions in ((10, 1), (60, 1), (10, 12), (60, 12)):
        attribution(edits, versions)
    search()
    minhash()
    memory(options.gigabytes)


if __name__ == "__main__":
    main()
