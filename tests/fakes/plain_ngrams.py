"""Algorithm 2 as printed: the reference that the fast counts are compared with."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date

from strandline.corpus import TopicVersions
from strandline.corpus.ngrams import HIT_WORDS, SIZE
from strandline.corpus.texts import words


def count_ngrams_plainly(
    topics: Sequence[TopicVersions], hits: Iterable[tuple[str, str]], size: int = SIZE, hit_words: int = HIT_WORDS
) -> dict[tuple[str, date], float]:
    """The counts with counters of word tuples."""
    months = sorted({month for topic in topics for month in topic.months})
    ngrams: dict[date, Counter[tuple[str, ...]]] = {month: Counter() for month in months}
    for topic in topics:
        for version in topic.versions:
            for month in version.months:
                ngrams[month].update(_word_tuples(words(version.text), size))
    common = Counter(ngrams[months[0]]) if months else Counter()
    for month in months:
        common &= ngrams[month]
    counts: dict[tuple[str, date], float] = {}
    for subcorpus, text in hits:
        for month in months:
            counts.setdefault((subcorpus, month), 0.0)
        for ngram in _word_tuples(words(text)[:hit_words], size):
            for month in months:
                if ngram in ngrams[month]:
                    counts[subcorpus, month] += ngrams[month][ngram] - common[ngram]
    return counts


def _word_tuples(found: Sequence[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(found[place : place + size]) for place in range(len(found) - size + 1)]
