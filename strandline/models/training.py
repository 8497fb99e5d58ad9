"""Training corpora: what a model was trained on, as far as it is published, and which dumps went in.

The facts are Table 1 of the Dated Data paper and the corpora of its section 3.3. A dump's date says when it was taken,
not how old its texts are: a crawl of 2023 holds pages of 2016. Finding what is really inside belongs to ``corpus``.
"""

import csv
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from strandline.models.declared import PartialDate, Precision, parse_partial_date

# fmt: off
_MIX_COLUMNS = [
    "model", "family", "corpus", "part_of", "n_dumps",
    "dump_from", "dump_to", "upsampling", "is_verified", "note", "source",
]
"""The columns of ``data/training_corpora.csv``, in order."""

_CORPUS_COLUMNS = [
    "corpus", "kind", "dump_from", "dump_to", "size_gb", "n_tokens",
    "n_documents_note", "deduplication", "excludes", "is_public", "note", "source",
]
"""The columns of ``data/corpora.csv``, in order."""

# fmt: on


@dataclass(frozen=True)
class TrainingCorpus:
    """A corpus in a model's training mix: a row of ``models.training_corpora``.

    ``dump_from`` is the first day of the earliest dump's day, month or year as the source states it, ``dump_to`` the
    last day of the latest one; the precisions say which. ``is_verified`` is false where the training data are not
    public: such models are shown apart and nothing about them is confirmed by mining.
    """

    model: str
    family: str
    corpus: str
    corpus_kind: str
    part_of: str | None
    n_dumps: int | None
    dump_from: date | None
    dump_from_precision: Precision | None
    dump_to: date | None
    dump_to_precision: Precision | None
    upsampling: int | None
    deduplication: str | None
    excludes: str | None
    size_gb: int | None
    n_tokens: int | None
    is_verified: bool
    note: str | None
    source: str


def read_training_corpora(mixes: str | Path, corpora: str | Path) -> list[TrainingCorpus]:
    """Join the committed mixes (``training_corpora.csv``) with the described corpora (``corpora.csv``).

    A mix's own dump dates stand before those of the corpus. Raises ValueError, naming file and line, for an unknown
    corpus, a repeated row, a part whose whole is not in the mix, an impossible date or an end before its beginning.
    """
    described = {row["corpus"]: row for _, row in _rows(corpora, _CORPUS_COLUMNS)}
    found: dict[tuple[str, str], TrainingCorpus] = {}
    for line, row in _rows(mixes, _MIX_COLUMNS):
        where = f"{mixes}, line {line}"
        if row["corpus"] not in described:
            raise ValueError(f"{where}: no corpus {row['corpus']!r} is described in {corpora}")
        if (row["model"], row["corpus"]) in found:
            raise ValueError(f"{where}: {row['model']} and {row['corpus']} are given twice")
        found[row["model"], row["corpus"]] = _joined(row, described[row["corpus"]], where)
    for entry in found.values():
        if entry.part_of and (entry.model, entry.part_of) not in found:
            raise ValueError(
                f"{mixes}: {entry.corpus} of {entry.model} is part of {entry.part_of}, which is not in its mix"
            )
    return list(found.values())


def _rows(path: str | Path, columns: list[str]) -> list[tuple[int, dict[str, str]]]:
    with Path(path).open(encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines)
        if reader.fieldnames != columns:
            raise ValueError(f"{path}: the columns must be {', '.join(columns)}")
        rows = [(reader.line_num, row) for row in reader]
    broken = [line for line, row in rows if None in row or None in row.values()]
    if broken:
        raise ValueError(f"{path}, line {broken[0]}: the number of columns is wrong")
    return rows


def _joined(mix: dict[str, str], corpus: dict[str, str], where: str) -> TrainingCorpus:
    try:
        first = _date(mix["dump_from"] or corpus["dump_from"])
        last = _date(mix["dump_to"] or corpus["dump_to"])
        counts = {c: _count(mix.get(c) or corpus.get(c, "")) for c in ("n_dumps", "upsampling", "size_gb", "n_tokens")}
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    if first and last and first.first > last.last:
        raise ValueError(f"{where}: the dumps end before they begin")
    if mix["is_verified"] not in ("true", "false"):
        raise ValueError(f"{where}: is_verified must be true or false")
    return TrainingCorpus(
        model=mix["model"],
        family=mix["family"],
        corpus=mix["corpus"],
        corpus_kind=corpus["kind"],
        part_of=mix["part_of"] or None,
        dump_from=first.first if first else None,
        dump_from_precision=first.precision if first else None,
        dump_to=last.last if last else None,
        dump_to_precision=last.precision if last else None,
        deduplication=corpus["deduplication"] or None,
        excludes=corpus["excludes"] or None,
        is_verified=mix["is_verified"] == "true",
        note="; ".join(n for n in (mix["note"], corpus["n_documents_note"], corpus["note"]) if n) or None,
        source=mix["source"],
        **counts,
    )


def _date(text: str) -> PartialDate | None:
    return parse_partial_date(text) if text else None


def _count(text: str) -> int | None:
    return int(text) if text else None
