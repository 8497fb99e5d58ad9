"""News by month of publication: which articles make a month's sample.

The claim: the sample of a month (500 unless set otherwise) is a uniformly random, reproducible choice among its
distinct articles that depends on the seed and on which articles exist, never on the order in which they came. Articles
that are empty, too short, undated, misdated, or exact or near copies of another are flagged with a reason and not
sampled. Of copies the one published first stands (its name decides a tie), also across months.

What it cannot show: the buckets hold unrelated documents, so a curve over them has the spread of different texts in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from strandline.spans import Version, text_digest
from strandline.spans.commoncrawl import draw_order
from strandline.spans.months import month_start

SHINGLE_WORDS = 5
"""Words of a shingle: the usual length for news, at which two texts of one topic share few by chance."""
PERMUTATIONS = 128
"""Hashes of a sketch: only candidates depend on it, which are then compared exactly."""


@dataclass(frozen=True)
class NewsItem:
    """An article as a source found it. A `status` other than ok says why it cannot be used (`truncated`, …).

    `place` is where it was read, such as a file and a byte, for the counts of what belongs to no month.
    """

    name: str
    published_on: date | None
    text: str
    url: str | None = None
    captured_on: date | None = None
    stated_on: date | None = None
    status: str = "ok"
    reason: str | None = None
    content_id: str | None = None
    replaced_share: float | None = None
    place: str = ""


@dataclass(frozen=True)
class Rules:
    """What makes an article usable: enough words, no near copy (Jaccard similarity of 5-word shingles), one date."""

    per_month: int = 500
    seed: int = 0
    min_words: int = 200
    near: float = 0.8
    date_tolerance_days: int = 31


def sample(items: Iterable[NewsItem], months: Sequence[date], rules: Rules | None = None) -> list[Version]:
    """All articles of the wanted months as versions: those drawn are `ok`, the others say why they are not."""
    rules = rules or Rules()
    judged = [_judged(item, rules) for item in _one_each(items)]
    judged = without_copies(judged, rules)
    wanted = set(months)
    chosen: list[Version] = []
    buckets: dict[date, list[NewsItem]] = {}
    for item in judged:
        day = bucket_day(item)
        if day is not None and month_start(day) in wanted:
            buckets.setdefault(month_start(day), []).append(item)
    for month in sorted(buckets):
        chosen.extend(_drawn(buckets[month], month, rules))
    return chosen


def without_copies(items: Sequence[NewsItem], rules: Rules) -> list[NewsItem]:
    """The same articles, with exact copies flagged `duplicate` and similar ones `near_duplicate` of an earlier one."""
    ordered = sorted(items, key=lambda item: (item.published_on or date.max, item.name))
    kept: list[NewsItem] = []
    first: dict[str, str] = {}
    for item in ordered:
        if item.status != "ok":
            kept.append(item)
            continue
        owner = first.setdefault(text_digest(" ".join(words(item.text))), item.name)
        same = owner == item.name
        kept.append(item if same else replace(item, status="duplicate", reason=f"has the words of {owner}"))
    return _without_near_copies(kept, rules.near)


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation: what copies are compared by."""
    return re.findall(r"\w+", text.lower())


def shingles(text: str, size: int = SHINGLE_WORDS) -> frozenset[str]:
    """All runs of `size` words; the whole text where it is shorter."""
    tokens = words(text)
    return frozenset(" ".join(tokens[n : n + size]) for n in range(max(1, len(tokens) - size + 1)))


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    """Shared shingles over all shingles; 0 where there are none."""
    union = len(left | right)
    return len(left & right) / union if union else 0.0


def _one_each(items: Iterable[NewsItem]) -> list[NewsItem]:
    """One item a name; of several the one that sorts first, usable ones before others, so that no order matters."""
    best: dict[str, NewsItem] = {}
    for item in items:
        other = best.get(item.name)
        if other is None or _preference(item) < _preference(other):
            best[item.name] = item
    return [best[name] for name in sorted(best)]


def unplaced(items: Iterable[NewsItem]) -> list[str]:
    """What belongs to no month, as one sentence for each kind: how many there are and the first of them."""
    kinds: dict[str, list[NewsItem]] = {}
    for item in items:
        if bucket_day(item) is None:
            kinds.setdefault(item.status if item.status != "ok" else "undated", []).append(item)
    return [_counted(kind, found) for kind, found in sorted(kinds.items())]


def _counted(kind: str, items: Sequence[NewsItem]) -> str:
    first = items[0]
    place = first.place or first.name
    reason = first.reason or "it names no date of publication"
    return f"{len(items)} {kind}, the first {reason if reason.startswith(place) else f'{place}: {reason}'}"[:290]


def bucket_day(item: NewsItem) -> date | None:
    """The day whose month an article belongs to; a date that was refuted does not count."""
    if item.status == "misdated":
        return item.stated_on or item.captured_on
    return item.published_on or item.stated_on or item.captured_on


def _preference(item: NewsItem) -> tuple[bool, date, str]:
    return (item.status != "ok", item.captured_on or date.max, text_digest(item.text))


def _judged(item: NewsItem, rules: Rules) -> NewsItem:
    """The item with the first reason, if any, why it cannot be used."""
    if item.status != "ok":
        return item
    if item.published_on is None:
        return replace(item, status="undated", reason="the article names no date of publication")
    if item.captured_on and item.published_on > item.captured_on:
        return replace(
            item, status="misdated", reason=f"dated {item.published_on}, after its capture {item.captured_on}"
        )
    if item.stated_on and abs((item.stated_on - item.published_on).days) > rules.date_tolerance_days:
        reason = f"its address says {item.stated_on}, its page {item.published_on}"
        return replace(item, status="misdated", reason=reason)
    if not item.text.strip():
        return replace(item, status="empty", reason="no article was found on the page")
    count = len(words(item.text))
    if count < rules.min_words:
        return replace(item, status="too_short", reason=f"{count} words where {rules.min_words} are asked for")
    return item


def _without_near_copies(items: Sequence[NewsItem], near: float) -> list[NewsItem]:
    """Candidates come from locality-sensitive hashing, the verdict from the exact similarity."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=max(0.1, near - 0.1), num_perm=PERMUTATIONS)
    sets: dict[str, frozenset[str]] = {}
    kept: list[NewsItem] = []
    for item in items:
        if item.status != "ok":
            kept.append(item)
            continue
        grams = shingles(item.text)
        sketch = MinHash(num_perm=PERMUTATIONS, seed=1)
        sketch.update_batch([gram.encode("utf-8", "surrogatepass") for gram in sorted(grams)])
        alike = sorted(name for name in index.query(sketch) if jaccard(grams, sets[name]) >= near)
        if alike:
            kept.append(replace(item, status="near_duplicate", reason=f"is nearly the text of {alike[0]}"))
            continue
        index.insert(item.name, sketch)
        sets[item.name] = grams
        kept.append(item)
    return kept


def _drawn(items: Sequence[NewsItem], month: date, rules: Rules) -> Iterator[Version]:
    usable = sorted((i for i in items if i.status == "ok"), key=lambda i: draw_order(i.name, rules.seed))
    drawn = {item.name for item in usable[: rules.per_month]}
    for item in sorted(items, key=lambda i: i.name):
        found = Version(
            item.name, month, "not_sampled", f"{rules.per_month} of {len(usable)} articles were drawn", url=item.url,
            content_id=item.content_id, document=item.url, replaced_share=item.replaced_share,
        )  # fmt: skip
        if item.name in drawn:
            yield replace(found, status="ok", reason=None, text=item.text)
        else:
            yield found if item.status == "ok" else replace(found, status=item.status, reason=item.reason)
