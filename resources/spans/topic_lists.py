"""The versioned resources that a user lists in ``data/spans.yaml``, and the topic lists that it names."""

from __future__ import annotations

import csv

from resources.places import rooted


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
