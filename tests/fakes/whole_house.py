"""The whole product in a small world: every job runs once on made-up input, by the real definitions.

A git repository of notes that change month by month, a small model trained on one month of them, a corpus that holds
copies of it, a benchmark, the committed releases, and a scripted asker. Nothing leaves the machine.
"""

import json
import subprocess
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import yaml

from assets.partitions import add, benchmarks, corpora, key_for, models
from definitions import build_definitions
from resources.configured import (
    BenchmarkListResource,
    ComputeResource,
    ContaminationResource,
    CorpusListResource,
    ModelListResource,
    NetworkResource,
    ReferenceResource,
    SpanListResource,
    WarehouseResource,
)
from tests.fakes.contamination_house import Scripted, invented
from tests.fakes.order_scorer import ScriptedScorer
from tests.fakes.scripted_asker import ScriptedAsker, knows_until
from tests.fakes.spans import WrittenSpan, written_span
from tests.fakes.tiny_llama import train

MODEL, BENCHMARK, CORPUS, RESOURCE = "tiny", "quiz", "pages", "notes"
KNOWN_MONTH = 12
KNOWN_UNTIL = date(2021, 6, 1)


class WholeHouse:
    """Settings, files and resources of the small world under one folder; `run` executes a job of the product."""

    def __init__(self, folder: Path, topics: int = 12) -> None:
        self.folder = folder
        self.span = written_span(RESOURCE, topics=topics, seed=5)
        self._write_settings()
        self.warehouse = WarehouseResource(path=str(folder / "w.duckdb"), published=str(folder / "p.duckdb"))
        self.definitions = build_definitions(**self._resources())
        self.instance = dg.DagsterInstance.ephemeral()
        for partitions, name in ((models, MODEL), (benchmarks, BENCHMARK), (corpora, CORPUS)):
            add(self.instance, partitions, [name])

    def run(self, job: str, partition: str | None = None, **config: Mapping[str, Any]) -> dg.ExecuteInProcessResult:
        """Execute one job; ``config`` gives a step its configuration by the step's name."""
        return self.definitions.resolve_job_def(job).execute_in_process(
            instance=self.instance,
            partition_key=partition,
            run_config={"ops": {step: {"config": dict(settings)} for step, settings in config.items()}},
            raise_on_error=False,
        )

    def run_everything(self) -> dict[str, bool]:
        """Every job that dates, tests and mines, in the order of ``make run``; whether each went well."""
        both = str(dg.MultiPartitionKey({"model": key_for(MODEL), "benchmark": key_for(BENCHMARK)}))
        plan = [
            ("describe_models", None),
            ("refresh_releases", None),
            ("date_models", key_for(MODEL)),
            ("read_spans", None),
            ("score_models", key_for(MODEL)),
            ("read_benchmarks", key_for(BENCHMARK)),
            ("test_contamination", both),
            ("mine_corpora", key_for(CORPUS)),
            ("draw_exhibits", None),
        ]
        return {job: self.run(job, partition).success for job, partition in plan}

    def _resources(self) -> dict[str, Any]:
        folder = self.folder
        return {
            "warehouse": self.warehouse,
            "model_list": ModelListResource(path=str(folder / "models.yaml")),
            "network": NetworkResource(cache_dir=str(folder / "cache")),
            "span_list": SpanListResource(path=str(folder / "spans.yaml")),
            "asking": dg.ResourceDefinition.hardcoded_resource(ScriptedAsker(knows_until(KNOWN_UNTIL))),
            "compute": ComputeResource(workers=1),
            "benchmark_list": BenchmarkListResource(path=str(folder / "benchmarks.csv")),
            "contamination": ContaminationResource(order_permutations=99),
            "order_scoring": dg.ResourceDefinition.hardcoded_resource(Scripted(ScriptedScorer())),
            "references": ReferenceResource(path=str(folder / "references.yaml")),
            "corpus_list": CorpusListResource(
                path=str(folder / "corpora.yaml"), cache_dir=str(folder / "cache" / "corpora")
            ),
        }

    def _write_settings(self) -> None:
        folder, span = self.folder, self.span
        known = [versions[KNOWN_MONTH] for versions in span.texts.values()]
        train(known, [f"w{n}" for n in range(300)], folder / "model", steps=30)
        self._yaml("models", [{"name": MODEL, "backend": "transformers", "source": f"folder:{folder / 'model'}"}])
        write_repository(folder / "repository", span)
        months = {"first": f"{span.months[0]:%Y-%m}", "last": f"{span.months[-1]:%Y-%m}"}
        options = {"repository": str(folder / "repository"), "patterns": ["*.txt"]}
        self._yaml("spans", [{"resource": RESOURCE, "source": "git", "months": months, "options": options}])
        pages = [text for text in known for _ in range(3)]
        (folder / "pages.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in pages))
        parts = [{"files": str(folder / "pages.jsonl"), "subcorpus": "crawl"}]
        corpus = {"corpus": CORPUS, "resources": [RESOURCE], "models": [MODEL], "parts": parts}
        corpus["reported"] = {RESOURCE: span.months[-1].isoformat()}
        self._yaml("corpora", [corpus])
        self._yaml("references", [])
        lines = "".join(json.dumps({"text": text}) + "\n" for text in invented(60))
        (folder / "quiz.jsonl").write_text(lines)
        header = (Path("data") / "benchmarks.csv").read_text(encoding="utf-8").splitlines()[0]
        row = {"benchmark": BENCHMARK, "version": "1", "address": str(folder / "quiz.jsonl"), "format": "jsonl"}
        cells = [(row | {"text": "text"}).get(column, "") for column in header.split(",")]
        (folder / "benchmarks.csv").write_text(f"{header}\n{','.join(cells)}\n")

    def _yaml(self, name: str, entries: list[dict[str, Any]]) -> None:
        (self.folder / f"{name}.yaml").write_text(yaml.safe_dump({name: entries}), encoding="utf-8")


def write_repository(folder: Path, span: WrittenSpan) -> None:
    """A git repository with one file a topic and one commit a month, two days before the month begins."""
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(folder)], check=True)
    stream = "".join(_commit(span, place) for place in range(len(span.months)))
    subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, input=stream.encode(), check=True)


def _commit(span: WrittenSpan, place: int) -> str:
    day = datetime.combine(span.months[place], datetime.min.time(), UTC) - timedelta(days=2)
    who = f"A <a@example.org> {int(day.timestamp())} +0000"
    files = "".join(
        f"M 100644 inline {topic.replace(' ', '-')}.txt\n{_data(versions[place])}"
        for topic, versions in span.texts.items()
    )
    return f"commit refs/heads/main\nauthor {who}\ncommitter {who}\n{_data(str(day))}{files}\n"


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"
