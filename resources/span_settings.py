"""The versioned resources that a user lists in ``data/spans.yaml``, and the topic lists that it names."""

from __future__ import annotations

import csv
from datetime import UTC, datetime

import dagster as dg

from resources.places import rooted
from resources.span_sources import known_options
from strandline.spans import Span
from strandline.spans.settings import spans_of
from strandline.yaml_text import read_yaml


class SpanListResource(dg.ConfigurableResource):
    """The resources listed in a settings file; those that are not enabled are left out."""

    path: str = "data/spans.yaml"

    def read(self, now: datetime | None = None) -> tuple[Span, ...]:
        """The enabled resources. ValueError names the file, the resource and the setting that is wrong."""
        file = rooted(self.path)
        try:
            raw = read_yaml(file.read_text(encoding="utf-8"))
            return spans_of(raw, known_options(), read_topics, now or datetime.now(UTC))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self.path}: {error}") from error


def read_topics(path: str) -> list[str]:
    """The topics in a file: the `title` or `topic` column of a CSV file, else one a line."""
    file = rooted(path)
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".csv":
        return text.splitlines()
    rows = csv.DictReader(text.splitlines())
    column = next((name for name in ("title", "topic") if name in (rows.fieldnames or ())), None)
    if column is None:
        raise ValueError(f"{path} has neither a column `title` nor `topic`")
    return [row[column] for row in rows]
