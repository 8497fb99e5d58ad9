"""Five release registries on one loopback server: documents in the forms that the real ones send."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from strandline.releases import Project
from strandline.releases.facts import PROJECT_COLUMNS
from tests.fakes.web import Answer, Asked, json_answer

NOT_FOUND = Answer(404, b'{"error": "not found"}', {"Content-Type": "application/json"})


def npm_document(name: str, times: dict[str, str], unpublished: dict[str, str] | None = None) -> dict[str, Any]:
    """A full package document; `unpublished` versions stand in `time` alone, with the time of their unpublishing."""
    return {
        "name": name,
        "dist-tags": {"latest": next(reversed(times), "0.0.0")},
        "versions": {version: {"name": name, "version": version} for version in times},
        "time": {
            "created": "2012-01-01T00:00:00.000Z",
            "modified": "2026-01-01T00:00:00.000Z",
            **times,
            **(unpublished or {}),
        },
    }


def simple_page(name: str, files: list[dict[str, Any]], versions: list[str] | None = None) -> dict[str, Any]:
    """A project page of the Simple API in JSON; each file needs `filename`, and may have `upload-time` and `yanked`."""
    rows = [{"url": f"files/{f['filename']}", "hashes": {}, "yanked": False, **f} for f in files]
    page: dict[str, Any] = {"meta": {"api-version": "1.1"}, "name": name, "files": rows}
    return page if versions is None else {**page, "versions": versions}


def github_release(tag: str, day: str, **more: Any) -> dict[str, Any]:
    """A release as GitHub lists it."""
    return {
        "tag_name": tag,
        "name": tag,
        "draft": False,
        "prerelease": False,
        "published_at": f"{day}T12:00:00Z",
        **more,
    }


class Registry:
    """A handler with documents by path; `asked` paths can be answered with a status instead (`faults`)."""

    def __init__(self, documents: dict[str, Any]) -> None:
        self.documents = documents
        self.faults: dict[str, Answer] = {}

    def __call__(self, asked: Asked) -> Answer:
        if asked.raw_path in self.faults:
            return self.faults[asked.raw_path]
        document = self.documents.get(asked.raw_path)
        if document is None:
            return NOT_FOUND
        value = document(asked) if isinstance(document, Callable) else document  # type: ignore[arg-type]
        etag = f'"{abs(hash(repr(value)))}"'
        if asked.headers.get("If-None-Match") == etag:
            return Answer(304, headers={"ETag": etag})
        return json_answer(value, ETag=etag, Cache_Control="max-age=300")


def paged(rows: list[Any]) -> Callable[[Asked], list[Any]]:
    """A document in pages, as `per_page` and `page` ask."""

    def page(asked: Asked) -> list[Any]:
        size, number = int(asked.query["per_page"]), int(asked.query["page"])
        return rows[(number - 1) * size : number * size]

    return page


def write_projects(folder: Path, projects: Iterable[Project]) -> None:
    """Write the `projects.csv` that a user would edit, the best known first."""
    with (folder / "projects.csv").open("w", newline="", encoding="utf-8") as lines:
        out = csv.writer(lines, lineterminator="\n")
        out.writerow(PROJECT_COLUMNS)
        for p in sorted(projects, key=lambda p: (p.salience_rank, p.project)):
            out.writerow([p.project, p.salience_rank, p.ecosystem, p.package, p.registry or "", p.name or ""])
