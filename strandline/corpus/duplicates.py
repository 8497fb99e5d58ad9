"""Copies of one text inside a corpus: pairs, their class, and where both stand.

Classes, strongest first; a pair is named by the first that holds:

* `exact`: the same text in NFC;
* `whitespace`: the same once white space is collapsed;
* `citation_numbers`: the same once bracketed reference marks are dropped too;
* `near`: Jaccard index of five-word shingles at or above the threshold (0.8), found through MinHash;
* `three_sentence_span`: three consecutive sentences in common.

The first three are equivalences, so a group of n copies is n - 1 pairs with its first document (one from a filtered
domain where there is one). Only that document goes on to the weaker classes: one pair is never reported twice. `mirror`
is a pair of any class of which exactly one document comes from a filtered domain: what a domain filter leaves behind.
Paraphrases and translations are not found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from strandline.corpus import Document
from strandline.corpus.signatures import (
    BANDS,
    Hashes,
    band_keys,
    candidate_pairs,
    equal_groups,
    group_pairs,
    jaccard,
    shingle_hashes,
    signatures,
)
from strandline.corpus.texts import collapse_space, nfc, sentences, without_citations
from strandline.numeric_input import real_number, whole_number

DUPLICATES_VERSION = "1"
"""Raise it when the same documents would give other pairs: tables made by it then show as stale."""

CLASSES = ("exact", "whitespace", "citation_numbers", "near", "three_sentence_span", "mirror")
"""The classes of pairs, strongest first, as stored in `corpus.duplicate_pairs.class`."""

THRESHOLD = 0.8
"""Jaccard index of a near duplicate: RefinedWeb's and the Pile's fuzzy deduplication remove pairs from there on."""

SPAN = 3
"""Sentences of a span: C4 keeps one of any three-sentence span."""

# The classes that equal forms decide: of those texts one stands for all, strongest class first.
_EQUIVALENCES = CLASSES[:3]
_BATCH = 2000
"""Documents whose signatures are computed together: array work costs little per document from some hundred on."""


@dataclass(frozen=True, slots=True)
class DuplicatePair:
    """Two copies of one text. `distance` is edits ÷ characters of the longer text for the first three classes, else
    one minus the Jaccard index."""

    left_id: str
    right_id: str
    kind: str
    distance: float
    left_location: str
    right_location: str


@dataclass(frozen=True, slots=True)
class Profile:
    """What is kept of each document to find its duplicates: about 250 bytes, 8 a sentence, and no text.

    `forms` are hashes of the text as it is, with white space collapsed, and without citations too (0 for no text);
    `keys` are the MinHash bands; `spans` the hashes of three-sentence spans, `span_counts` how many each document has.
    """

    ids: list[str]
    locations: list[str]
    urls: list[str | None]
    forms: Hashes
    keys: Hashes
    spans: Hashes
    span_counts: NDArray[np.int64]


def profile(documents: Iterable[Document]) -> Profile:
    """The profile of a stream of documents, whose texts are not kept."""
    parts = [_profile(batch) for batch in _batches(documents)]
    return joined(parts)


def joined(parts: Sequence[Profile]) -> Profile:
    """The profiles of several shards as one."""
    return Profile(
        ids=[name for part in parts for name in part.ids],
        locations=[place for part in parts for place in part.locations],
        urls=[url for part in parts for url in part.urls],
        forms=np.concatenate([part.forms for part in parts] or [np.empty((0, 3), dtype=np.uint64)]),
        keys=np.concatenate([part.keys for part in parts] or [np.empty((0, BANDS), dtype=np.uint64)]),
        spans=np.concatenate([part.spans for part in parts] or [np.empty(0, dtype=np.uint64)]),
        span_counts=np.concatenate([part.span_counts for part in parts] or [np.empty(0, dtype=np.int64)]),
    )


def duplicate_pairs(
    known: Profile,
    text_of: Callable[[str], str],
    threshold: float = THRESHOLD,
    filtered_domains: Sequence[str] = (),
) -> list[DuplicatePair]:
    """All pairs by class, in an order that does not depend on the order of the documents.

    Args:
        known: the profile of the corpus.
        text_of: gives the text of a document by its id, for the few pairs that are compared in full.
        threshold: least Jaccard index of a near duplicate.
        filtered_domains: domains that the corpus excludes or that hold the original, such as `wikipedia.org`.

    Raises:
        ValueError: a threshold that is not above 0 and at most 1.
    """
    _refuse_threshold(threshold)
    inside = [in_domains(url, filtered_domains) for url in known.urls]
    order = sorted(range(len(known.ids)), key=lambda row: (not inside[row], known.ids[row]))
    alive = [row for row in order if known.forms[row, 0]]
    texts = _Texts(known.ids, text_of)
    found: list[tuple[int, int, str, float]] = []
    for place, kind in enumerate(_EQUIVALENCES):
        alive, pairs = _merged(alive, known.forms[:, place])
        found += [(*pair, kind, 0.0 if kind == "exact" else texts.edits(*pair)) for pair in pairs]
    for left, right, shares_span in _candidates(known, alive):
        similarity = texts.similarity(left, right)
        if similarity >= threshold or shares_span:
            found.append((left, right, "near" if similarity >= threshold else "three_sentence_span", 1 - similarity))
    mirrors = [(left, right, "mirror", far) for left, right, _, far in found if inside[left] != inside[right]]
    named = [_pair(known, *pair) for pair in found + mirrors]
    return sorted(named, key=lambda pair: (CLASSES.index(pair.kind), pair.left_id, pair.right_id))


def classify(left: str, right: str, threshold: float = THRESHOLD) -> str | None:
    """The class of one pair of texts, or None where they are no duplicates. ValueError as `duplicate_pairs`."""
    _refuse_threshold(threshold)
    for kind, one, other in zip(_EQUIVALENCES, _forms(left), _forms(right), strict=True):
        if one and one == other:
            return kind
    if jaccard(shingle_hashes(left), shingle_hashes(right)) >= threshold:
        return "near"
    shared = np.intersect1d(span_hashes(left), span_hashes(right))
    return "three_sentence_span" if len(shared) else None


def _refuse_threshold(threshold: float) -> None:
    if not 0 < real_number(threshold, "the least Jaccard index") <= 1:
        raise ValueError(f"the least Jaccard index is {threshold}; it must lie above 0 and not above 1")


def span_hashes(text: str, span: int = SPAN) -> Hashes:
    """The distinct hashes of a text's runs of so many consecutive sentences, white space collapsed."""
    span = whole_number(span, "the sentences of a span", 1)
    parts = sentences(nfc(text))
    runs = {_digest(" ".join(parts[place : place + span])) for place in range(len(parts) - span + 1)}
    return np.fromiter(sorted(runs), dtype=np.uint64, count=len(runs))


def in_domains(url: str | None, domains: Sequence[str]) -> bool:
    """Whether an address lies in one of the domains or below it. No address lies in none."""
    if not isinstance(url, str) or not url or not domains:
        return False
    try:
        host = (urlsplit(url if "//" in url else f"//{url}").hostname or "").rstrip(".")
    except ValueError:
        return False
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)


def clusters(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The group of each document that occurs in a pair, named by its first document."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for left, right in pairs:
        first, second = sorted((root(left), root(right)))
        parent[second] = first
    return {name: root(name) for name in list(parent)}


class _Texts:
    """Texts of documents by row, and the shingles of those compared last."""

    def __init__(self, ids: Sequence[str], text_of: Callable[[str], str]) -> None:
        self._ids = ids
        self._text_of = text_of
        self._shingles: dict[int, Hashes] = {}

    def edits(self, left: int, right: int) -> float:
        texts = nfc(self._text_of(self._ids[left])), nfc(self._text_of(self._ids[right]))
        return float(Levenshtein.distance(*texts)) / max(map(len, texts))

    def similarity(self, left: int, right: int) -> float:
        return jaccard(self._hashes(left), self._hashes(right))

    def _hashes(self, row: int) -> Hashes:
        if row not in self._shingles:
            if len(self._shingles) >= _BATCH:
                self._shingles.clear()
            self._shingles[row] = shingle_hashes(self._text_of(self._ids[row]))
        return self._shingles[row]


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    source = iter(documents)
    while batch := list(islice(source, _BATCH)):
        yield batch


def _profile(batch: Sequence[Document]) -> Profile:
    spans = [span_hashes(document.text) for document in batch]
    return Profile(
        ids=[document.document_id for document in batch],
        locations=[str(document.location) for document in batch],
        urls=[document.url for document in batch],
        forms=np.array([_forms(document.text) for document in batch], dtype=np.uint64),
        keys=band_keys(signatures([document.text for document in batch])),
        spans=np.concatenate(spans),
        span_counts=np.array([len(span) for span in spans], dtype=np.int64),
    )


def _merged(rows: list[int], forms: Hashes) -> tuple[list[int], list[tuple[int, int]]]:
    """One representative of each group with an equal form, and the pairs of the others with it."""
    first: dict[int, int] = {}
    pairs = []
    for row in rows:
        representative = first.setdefault(int(forms[row]), row)
        if representative != row:
            pairs.append((representative, row))
    return list(first.values()), pairs


def _candidates(known: Profile, rows: list[int]) -> list[tuple[int, int, bool]]:
    """Pairs of representatives that share a band or a span, and whether they share a span."""
    near = {(rows[left], rows[right]) for left, right in candidate_pairs(known.keys[rows])}
    rank = np.full(len(known.ids), -1, dtype=np.int64)
    rank[rows] = np.arange(len(rows))
    owners = rank[np.repeat(np.arange(len(known.ids)), known.span_counts)]
    spans, owners = known.spans[owners >= 0], owners[owners >= 0]
    shared: set[tuple[int, int]] = set()
    for group in equal_groups(spans):
        pairs = group_pairs(sorted(set(owners[group].tolist())))
        shared.update((rows[left], rows[right]) for left, right in pairs)
    return [(*pair, pair in shared) for pair in sorted(near | shared)]


def _pair(known: Profile, left: int, right: int, kind: str, distance: float) -> DuplicatePair:
    first, second = sorted((left, right), key=lambda row: known.ids[row])
    return DuplicatePair(
        known.ids[first], known.ids[second], kind, distance, known.locations[first], known.locations[second]
    )


def _forms(text: str) -> tuple[int, int, int]:
    normal = nfc(text)
    if not normal.strip():
        return 0, 0, 0
    return _digest(normal), _digest(collapse_space(normal)), _digest(without_citations(normal))


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
