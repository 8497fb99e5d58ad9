"""The engine against the plain loop: how many times faster, and whether the scores are equal.

Data: the World Factbook by month as committed for the tests, 31 documents in 59 months, 512 tokens: 1,829 copies;
``--data`` takes another file of that form. The plain loop scores one document at a time over every copy: it tokenizes
the text, runs the model in fp32 and takes the cross-entropy. It is timed on a stated subset (topics and months at even
distances, so that every size of document is in it) and scaled to all copies; the engine does all of them. Both use all
cores, or ``--threads`` of them. Wall time and processor time are both printed: the second, with one thread, is steadier
where other programs run.

Then a month is added to the others: changed texts once from their first change on, from what was kept of the versions
before them, and once from nothing.

    python bench/perplexity_engine.py                           # fp32 and bf16
    python bench/perplexity_engine.py --topics 16 --threads 1   # quicker, and steady on a busy machine
"""

import argparse
import json
import lzma
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from resources.compute.tasks import LocalCompute, Task, WorkerSpec
from resources.models.weights import CACHE, LanguageModels
from resources.perplexity.path_store import PathStore
from strandline.models import ModelSpec
from strandline.models.spec import read_models

ROOT = Path(__file__).resolve().parent.parent
MAX_TOKENS = 512
TARGETS = {"float32": (10, 1e-4), "bfloat16": (25, 0.02)}


def main() -> None:
    """Measure and print."""
    options = parser().parse_args()
    keep_to_cores(options.threads)
    copies = factbook(options.data, options.topics)
    spec = read_models(ROOT / "data" / "models.yaml")[0]
    chosen = subset(copies, options.plain_topics, options.plain_months)
    print(f"{len(copies)} topics, {sum(map(len, copies))} copies; plain loop timed on {len(chosen)} of them")
    plain = plain_loop(spec, chosen)
    n_copies = sum(map(len, copies))
    wall, cpu = (seconds / len(chosen) * n_copies for seconds in plain.seconds)
    print(f"plain loop, fp32: {wall:,.0f} s for all copies (processor {cpu:,.0f} s)")
    for dtype in options.dtypes:
        report(spec, dtype, copies, (wall, cpu), plain.means)
    add_month(spec, copies)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--data", type=Path, default=ROOT / "tests" / "data" / "factbook.jsonl.xz")
    made.add_argument("--topics", type=int, default=64)
    made.add_argument("--threads", type=int, default=None, help="cores that both may use; default: all")
    made.add_argument("--plain-topics", type=int, default=8)
    made.add_argument("--plain-months", type=int, default=6)
    made.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    return made


def keep_to_cores(count: int | None) -> None:
    """Let this process, plain loop and engine alike, use only so many cores."""
    if count is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def factbook(path: Path, n_topics: int) -> list[list[str]]:
    """The texts of every month, by topic."""
    by_topic: dict[str, list[tuple[str, str]]] = {}
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            by_topic.setdefault(row["topic"], []).append((row["month"], row["text"]))
    return [[text for _, text in sorted(by_topic[topic])] for topic in _spread(sorted(by_topic), n_topics)]


def _spread(topics: list[str], most: int) -> list[str]:
    """At most so many topics, evenly over the alphabet: neighbours in it are of one region."""
    return topics[:: max(1, len(topics) // most)][:most]


def subset(copies: Sequence[Sequence[str]], n_topics: int, n_months: int) -> list[str]:
    """Copies at even distances over topics and months."""
    topics = copies[:: max(1, len(copies) // n_topics)][:n_topics]
    return [text for months in topics for text in months[:: max(1, len(months) // n_months)][:n_months]]


class Plain:
    """What the plain loop took, wall and processor, and what it found."""

    def __init__(self, seconds: tuple[float, float], means: dict[str, float]) -> None:
        self.seconds, self.means = seconds, means


def plain_loop(spec: ModelSpec, texts: Sequence[str]) -> Plain:
    """One document at a time: tokenize, forward pass, cross-entropy."""
    import torch
    from torch.nn.functional import cross_entropy

    lm = LanguageModels().load(spec, "float32")
    torch.set_num_threads(len(os.sched_getaffinity(0)))

    def score(text: str) -> float:
        ids = lm.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"][:MAX_TOKENS]
        given = torch.tensor([[*([] if lm.bos_id is None else [lm.bos_id]), *ids]])
        with torch.inference_mode():
            logits = lm.model(given).logits[0, :-1]
            return cross_entropy(logits.float(), given[0, 1:]).item()

    score(texts[0])
    began = clocks()
    scored = [(digest(text), score(text)) for text in texts]
    wall, cpu = (end - start for start, end in zip(began, clocks(), strict=True))
    return Plain((wall, cpu), dict(scored))


def report(
    spec: ModelSpec,
    dtype: str,
    copies: Sequence[Sequence[str]],
    plain: tuple[float, float],
    means: dict[str, float],
) -> None:
    """Score every copy with the engine and print ratio and equality."""
    from strandline.scoring.self_check import self_check

    self_check(LanguageModels().load(spec, dtype))
    worker = WorkerSpec("resources.perplexity.worker:text_worker", {"spec": spec, "dtype": dtype, "cache": str(CACHE)})
    tasks = [
        Task(str(n), {"texts": {digest(text): text for text in months}, "max_tokens": MAX_TOKENS})
        for n, months in enumerate(copies)
    ]
    began = clocks()
    rows = [row for _, found in LocalCompute().run(worker, tasks) for row in found]
    wall, cpu = (end - start for start, end in zip(began, clocks(), strict=True))
    found = {row["text_sha256"]: row for row in rows}
    computed = sum(row["tokens_computed"] for row in found.values())
    every = sum(found[digest(t)]["tokens_computed"] + found[digest(t)]["tokens_saved"] for ts in copies for t in ts)
    target, tolerance = TARGETS[dtype]
    difference = max(abs(found[key]["mean_nll"] - mean) for key, mean in means.items())
    print(
        f"engine, {dtype}: {wall:,.0f} s (processor {cpu:,.0f} s); {len(found)} distinct texts, {computed:,} tokens "
        f"computed of {every:,} ({every / computed:.1f} times fewer), {computed / wall:,.0f} tokens/s\n"
        f"  {plain[0] / wall:.1f} times faster by the clock, {plain[1] / cpu:.1f} by processor time (target {target}); "
        f"largest difference of mean_nll {difference:.1e} (limit {tolerance:g})"
    )


def add_month(spec: ModelSpec, copies: Sequence[Sequence[str]]) -> None:
    """Score every topic's last version but one, then the last with and without what was kept; print the ratio.

    Versions are told apart by the tokens that are scored.
    """
    lm = LanguageModels().load(spec, "float32")
    changed = []
    for n, months in enumerate(copies):
        ids = lm.token_ids(months, MAX_TOKENS)
        last = next((i for i in range(len(months) - 1, 0, -1) if ids[i] != ids[i - 1]), None)
        if last is not None:
            changed.append((n, months[last - 1], months[last]))
    with tempfile.TemporaryDirectory() as folder:
        worker = WorkerSpec(
            "resources.perplexity.worker:text_worker",
            {"spec": spec, "dtype": "float32", "cache": str(CACHE), "kept": PathStore(Path(folder), 10**10)},
        )
        plain = WorkerSpec(worker.factory, {**worker.kwargs, "kept": None})
        run(worker, [(n, before) for n, before, _ in changed])
        kept = sum(file.stat().st_size for file in Path(folder).rglob("*.safetensors"))
        added = [(n, after) for n, _, after in changed]
        nothing, resumed = run(plain, added), run(worker, added)
    difference = max(abs(resumed.means[key] - mean) for key, mean in nothing.means.items())
    print(
        f"a new month, {len(changed)} changed texts, float32: {resumed.tokens:,} tokens computed instead of "
        f"{nothing.tokens:,}; {nothing.cpu / resumed.cpu:.1f} times faster by processor time ({resumed.cpu:.1f} s "
        f"instead of {nothing.cpu:.1f} s), {kept / 1e6:,.0f} MB kept; largest difference {difference:.1e}"
    )


class Run:
    """Tokens and processor seconds of some texts, and their means."""

    def __init__(self, rows: Sequence[dict[str, Any]], cpu: float) -> None:
        self.tokens, self.cpu = sum(row["tokens_computed"] for row in rows), cpu
        self.means = {row["text_sha256"]: row["mean_nll"] for row in rows}


def run(worker: WorkerSpec, texts: Sequence[tuple[int, str]]) -> Run:
    """Score one text of each topic."""
    tasks = []
    for n, text in texts:
        key = digest(text)
        payload = {"texts": {key: text}, "max_tokens": MAX_TOKENS, "topics": [str(n)], "newest": {key: [str(n)]}}
        tasks.append(Task(str(n), payload))
    began = clocks()[1]
    rows = [row for _, found in LocalCompute().run(worker, tasks) for row in found]
    return Run(rows, clocks()[1] - began)


def clocks() -> tuple[float, float]:
    """Wall and processor seconds."""
    return time.perf_counter(), time.process_time()


def digest(text: str) -> str:
    """The name of a text."""
    return sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    main()
