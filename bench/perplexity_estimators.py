"""How long the cutoff estimators and the n-gram reference take: perplexity_estimators.py [factbook.jsonl.xz]

Times are of this machine, the median of five; nothing is asserted.
"""

import json
import lzma
import re
import sys
from hashlib import sha256
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from strandline.perplexity.curves import lowest_month, panel_curve
from strandline.perplexity.panel_with_reference import panel_cutoff
from strandline.perplexity.panel_without_reference import noref_cutoff
from strandline.perplexity.planted import planted_panel, planted_series, planted_topics
from strandline.perplexity.reference import Document, crossfit_scores
from strandline.perplexity.rise import rise_cutoff
from strandline.perplexity.topic import topic_cutoffs


def timed(name: str, call, repeats: int = 5) -> None:  # type: ignore[no-untyped-def]
    """Print the median time of a call."""
    seconds = []
    for _ in range(repeats):
        began = perf_counter()
        call()
        seconds.append(perf_counter() - began)
    print(f"{name:<58}{median(seconds):8.3f} s")


def estimators(n_topics: int) -> None:
    """Every estimator on one planted world of 59 months."""
    panel = planted_panel("sharp", "wiki", np.random.default_rng(1), n_topics=n_topics)
    topics = planted_topics("wiki", np.random.default_rng(1), n_topics=n_topics)
    size = f"{n_topics} topics, 59 months"
    timed(f"panel, {size}, 1,000 replicates", lambda: panel_cutoff(panel.target, panel.reference))
    timed(f"panel_noref, {size}", lambda: noref_cutoff(panel.target))
    timed(f"trimmed95_minmax, {size}, 300 replicates", lambda: lowest_month(panel.target))
    timed(f"curve with band, {size}, 200 replicates", lambda: panel_curve(panel.target))
    timed(f"topic, {size}, 299 permutations", lambda: topic_cutoffs(topics.target - topics.reference, topics.distances))


def ngram(file: Path) -> None:
    """The cross-fitted reference on every fourth Factbook topic, the first 64, 512 words each."""
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    chosen = set(sorted({row["topic"] for row in rows})[::4][:64])
    vocabulary: dict[str, int] = {}
    documents = [
        Document(
            row["topic"],
            sha256(row["text"].encode()).hexdigest(),
            [vocabulary.setdefault(w, len(vocabulary)) for w in re.findall(r"\w+|[^\w\s]", row["text"][:8000])[:512]],
        )
        for row in rows
        if row["topic"] in chosen
    ]
    timed(f"n-gram reference, 64 topics, {len(documents):,} versions", lambda: crossfit_scores(documents), 3)


if __name__ == "__main__":
    estimators(100)
    estimators(1000)
    series = planted_series("step", np.random.default_rng(1))
    timed("rise, 54 months, 999 replicates", lambda: rise_cutoff(series.values))
    if len(sys.argv) > 1:
        ngram(Path(sys.argv[1]))
