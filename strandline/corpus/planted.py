"""Corpora with known truth: versions of topics planted among other pages, as copies of every class, and how well they
are found again.

Texts in, documents with their truth out; nothing is searched here. The classes are the ways in which copies of one text
differ in real corpora, and two that the paper's rule is not meant to find: `shuffled` sentences and `partial` copies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from strandline.corpus import Document, Location
from strandline.corpus.texts import nfc, sentences
from strandline.numeric_input import real_array, whole_number

CLASSES = ("exact", "whitespace", "citation_numbers", "edited", "mirror", "partial", "shuffled")
"""The ways in which copies of one text differ in real corpora."""

COVERED = ("exact", "whitespace", "citation_numbers", "edited", "mirror")
"""The classes whose copies stay within a distance of 0.2."""

MOST_COPIES = 100_000
"""Copies of one topic in one order: more than memory is meant to hold."""

_BOILERPLATE = "Home | About us | Contact | Log in\nYou are reading a copy of an article.\n"
"""What a mirror puts before a text; with `_FOOTER` under a fifth of the planted pages."""

# Boilerplate as copies on other sites carry it.
_FOOTER = "\nThis page was copied from another site. Terms of use. Privacy policy. Imprint."


@dataclass(frozen=True, slots=True)
class Planted:
    """A document and its truth: of which topic and month it is a version, and its class; None for other pages."""

    document: Document
    kind: str
    topic: str | None = None
    month: date | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """What to plant: so many copies of each chosen topic's version of a month, of one class, in one sub-corpus."""

    month: date
    kind: str
    subcorpus: str
    copies: int = 1
    crawled_on: date | None = None


@dataclass(frozen=True, slots=True)
class Recall:
    """How a class was found again: planted documents, those matched to their topic, those dated to their month."""

    kind: str
    n_planted: int
    n_matched: int
    n_dated: int


def altered(text: str, kind: str, rng: np.random.Generator) -> str:
    """A copy of a text that differs from it as copies of this class do. Raises ValueError for an unknown class."""
    nfc(text)
    if kind == "exact":
        return text
    if kind == "whitespace":
        return re.sub(r"(?<=[.;:]) ", lambda _: "\n" if rng.random() < 0.5 else "  ", text)
    if kind == "citation_numbers":
        first = int(rng.integers(2, 90))
        return _numbered(text, first)
    if kind == "edited":
        return _edited(text, rng)
    if kind == "mirror":
        return _BOILERPLATE + text + _FOOTER
    if kind == "partial":
        return text[: len(text) // 2]
    if kind == "shuffled":
        parts = sentences(text)
        return "\n".join(parts[place] for place in rng.permutation(len(parts)).tolist())
    raise ValueError(f"no class of copies named {kind!r}; there are {', '.join(CLASSES)}")


def plant(
    versions: Mapping[str, Mapping[date, str]],
    background: Iterable[Document],
    orders: Sequence[Order],
    rng: np.random.Generator,
) -> list[Planted]:
    """A shuffled corpus of other pages and planted copies, each with its truth.

    Args:
        versions: by topic and month, the text in force.
        background: the other pages.
        orders: what to plant of every topic that has a text in the order's month.
        rng: of the alterations and the order of the corpus.
    """
    made = [Planted(document, "background") for document in background]
    for order in orders:
        if whole_number(order.copies, "the copies of an order", 0) > MOST_COPIES:
            raise ValueError(f"an order plants at most {MOST_COPIES} copies of a topic, got {order.copies}")
        for topic, monthly in versions.items():
            if order.month in monthly:
                made += [_copy(topic, monthly[order.month], order, copy, rng) for copy in range(order.copies)]
    return [made[place] for place in rng.permutation(len(made)).tolist()]


def recalls(planted: Sequence[Planted], found: Mapping[tuple[str, str], Sequence[date]]) -> list[Recall]:
    """For each class how many of its documents were matched to their topic and dated to their month.

    Args:
        planted: the corpus.
        found: by topic and document id, the months that were attributed.
    """
    rows: dict[str, list[bool]] = {}
    matched: dict[str, int] = {}
    for each in planted:
        if each.topic is not None:
            months = found.get((each.topic, each.document.document_id), ())
            rows.setdefault(each.kind, []).append(each.month in months)
            matched[each.kind] = matched.get(each.kind, 0) + bool(months)
    return [Recall(kind, len(dated), matched[kind], sum(dated)) for kind, dated in sorted(rows.items())]


def histogram_error(truth: Sequence[float], mined: Sequence[float]) -> float:
    """Half the sum of absolute differences of two histograms as shares: 0 where equal, 1 where they have no month in
    common. Raises ValueError where one is empty."""
    shares = real_array(truth, "a histogram"), real_array(mined, "a histogram")
    if shares[0].ndim != 1 or shares[0].shape != shares[1].shape:
        raise ValueError("two histograms have one length")
    if not all(((each >= 0) & (each < 1e300)).all() for each in shares):
        raise ValueError("a histogram has finite weights, none negative")
    total, other = (float(each.sum()) for each in shares)
    if not total or not other:
        raise ValueError("a histogram without weight cannot be compared")
    return sum(abs(one / total - two / other) for one, two in zip(truth, mined, strict=True)) / 2


def _copy(topic: str, text: str, order: Order, copy: int, rng: np.random.Generator) -> Planted:
    name = f"{order.subcorpus}-{order.month:%Y-%m}-{order.kind}-{topic}-{copy}"
    document = Document(
        text=altered(text, order.kind, rng),
        location=Location(f"{order.subcorpus}.jsonl", "line", int(rng.integers(1, 1 << 40))),
        subcorpus=order.subcorpus,
        crawled_on=order.crawled_on,
        source_id=name,
        url=f"https://{'mirror' if order.kind == 'mirror' else order.subcorpus}.example/{topic}",
    )
    return Planted(document, order.kind, topic, order.month)


def _numbered(text: str, first: int) -> str:
    """The text with reference marks after its sentences, counted from `first`."""
    parts = sentences(text)
    return " ".join(f"{part}[{first + place}]" for place, part in enumerate(parts))


def _edited(text: str, rng: np.random.Generator) -> str:
    """The text with one in fifty words replaced."""
    words = text.split(" ")
    for place in rng.choice(len(words), size=max(1, len(words) // 50), replace=False).tolist():
        words[place] = "amended"
    return " ".join(words)
