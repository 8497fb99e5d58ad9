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

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from strandline.corpus import Document
from strandline.corpus.signatures import (
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

CLASSES = ("exact", "whitespace", "citation_numbers", "near", "three_sentence_span", "mirror")
THRESHOLD = 0.8
SPAN = 3
_EQUIVALENCES = ("exact", "whitespace", "citation_numbers")
_BATCH = 2000


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


@dataclass(slots=True)
class DuplicateFinder:
    """Collects what is needed of each document, about 250 bytes and 8 a sentence, and finds the pairs.

    Args:
        text_of: gives the text of the n-th document added back, for the few pairs that are compared in full.
        threshold: least Jaccard index of a near duplicate.
        filtered_domains: domains that the corpus excludes or that hold the original, such as `wikipedia.org`.
    """

    text_of: Callable[[int], str]
    threshold: float = THRESHOLD
    filtered_domains: tuple[str, ...] = ()
    _ids: list[tuple[str, str]] = field(default_factory=list)
    _inside: list[bool] = field(default_factory=list)
    _forms: list[tuple[int, int, int]] = field(default_factory=list)
    _keys: list[Hashes] = field(default_factory=list)
    _spans: list[Hashes] = field(default_factory=list)

    def add(self, documents: Iterable[Document]) -> None:
        """Take documents in; their texts are not kept."""
        batch: list[Document] = []
        for document in documents:
            batch.append(document)
            if len(batch) == _BATCH:
                self._take(batch)
                batch = []
        self._take(batch)

    def pairs(self) -> list[DuplicatePair]:
        """All pairs by class, in an order that does not depend on the order of the documents."""
        order = sorted(range(len(self._ids)), key=lambda row: (not self._inside[row], self._ids[row]))
        alive = [row for row in order if self._forms[row][0]]
        found: list[tuple[int, int, str]] = []
        for place, kind in enumerate(_EQUIVALENCES):
            alive, pairs = self._merged(alive, place)
            found += [(left, right, kind) for left, right in pairs]
        distances = {(left, right): self._edit_distance(left, right, kind) for left, right, kind in found}
        close = self._candidates(alive)
        for left, right, spans in close:
            similarity = self._similarity(left, right)
            if similarity >= self.threshold or spans:
                found.append((left, right, "near" if similarity >= self.threshold else "three_sentence_span"))
                distances[left, right] = 1.0 - similarity
        mirrors = [(left, right, "mirror") for left, right, _ in found if self._inside[left] != self._inside[right]]
        named = [self._pair(left, right, kind, distances[left, right]) for left, right, kind in found + mirrors]
        return sorted(named, key=lambda pair: (CLASSES.index(pair.kind), pair.left_id, pair.right_id))

    def _take(self, batch: Sequence[Document]) -> None:
        if not batch:
            return
        self._keys.append(band_keys(signatures([document.text for document in batch])))
        for document in batch:
            self._ids.append((document.document_id, str(document.location)))
            self._inside.append(in_domains(document.url, self.filtered_domains))
            self._forms.append(_forms(document.text))
            self._spans.append(span_hashes(document.text))

    def _merged(self, rows: list[int], place: int) -> tuple[list[int], list[tuple[int, int]]]:
        """One representative of each group with an equal form, and the pairs of the others with it."""
        first: dict[int, int] = {}
        pairs = []
        for row in rows:
            representative = first.setdefault(self._forms[row][place], row)
            if representative != row:
                pairs.append((representative, row))
        return list(first.values()), pairs

    def _candidates(self, rows: list[int]) -> list[tuple[int, int, bool]]:
        """Pairs of representatives that share a band or a span, and whether they share a span."""
        if not rows:
            return []
        keys = np.concatenate(self._keys)[rows]
        near = {(rows[left], rows[right]) for left, right in candidate_pairs(keys)}
        spans = _sharing([self._spans[row] for row in rows])
        shared = {(rows[left], rows[right]) for left, right in spans}
        return [(*pair, pair in shared) for pair in sorted(near | shared)]

    def _similarity(self, left: int, right: int) -> float:
        return jaccard(shingle_hashes(self.text_of(left)), shingle_hashes(self.text_of(right)))

    def _edit_distance(self, left: int, right: int, kind: str) -> float:
        if kind == "exact":
            return 0.0
        texts = nfc(self.text_of(left)), nfc(self.text_of(right))
        return float(Levenshtein.distance(*texts)) / max(map(len, texts))

    def _pair(self, left: int, right: int, kind: str, distance: float) -> DuplicatePair:
        (left_id, left_at), (right_id, right_at) = sorted([self._ids[left], self._ids[right]])
        return DuplicatePair(left_id, right_id, kind, distance, left_at, right_at)


def find_duplicates(
    documents: Sequence[Document], threshold: float = THRESHOLD, filtered_domains: Sequence[str] = ()
) -> list[DuplicatePair]:
    """All duplicate pairs of documents that are held in memory."""
    finder = DuplicateFinder(lambda row: documents[row].text, threshold, tuple(filtered_domains))
    finder.add(documents)
    return finder.pairs()


def classify(left: str, right: str, threshold: float = THRESHOLD) -> str | None:
    """The class of one pair of texts, or None where they are no duplicates."""
    for kind, one, other in zip(_EQUIVALENCES, _forms(left), _forms(right), strict=True):
        if one and one == other:
            return kind
    if jaccard(shingle_hashes(left), shingle_hashes(right)) >= threshold:
        return "near"
    shared = np.intersect1d(span_hashes(left), span_hashes(right))
    return "three_sentence_span" if len(shared) else None


def span_hashes(text: str, span: int = SPAN) -> Hashes:
    """The distinct hashes of a text's runs of three consecutive sentences, white space collapsed."""
    found = sentences(nfc(text))
    runs = {_digest(" ".join(found[place : place + span])) for place in range(len(found) - span + 1)}
    return np.fromiter(sorted(runs), dtype=np.uint64, count=len(runs))


def in_domains(url: str | None, domains: Sequence[str]) -> bool:
    """Whether an address lies in one of the domains or below it. No address lies in none."""
    if not url or not domains:
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


def _forms(text: str) -> tuple[int, int, int]:
    normal = nfc(text)
    if not normal.strip():
        return 0, 0, 0
    return _digest(normal), _digest(collapse_space(normal)), _digest(without_citations(normal))


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _sharing(spans: Sequence[NDArray[np.uint64]]) -> set[tuple[int, int]]:
    if not spans:
        return set()
    owners = np.repeat(np.arange(len(spans)), [len(span) for span in spans])
    pairs: set[tuple[int, int]] = set()
    for group in equal_groups(np.concatenate(spans)):
        pairs.update(group_pairs(sorted(set(owners[group].tolist()))))
    return pairs
