"""A written span: topics whose texts are edited month by month, and scores of a model that remembers one month."""

from dataclasses import dataclass
from datetime import date
from hashlib import sha256

import numpy as np
import polars as pl

from resources.perplexity.reference_scores import words_encoder
from resources.warehouse.store import Replace, Warehouse
from strandline.perplexity.reference import Document, crossfit_scores
from strandline.perplexity.rows import edit_path

MAX_TOKENS = 60


@dataclass(frozen=True)
class WrittenSpan:
    """Texts by topic and month, and the months."""

    resource: str
    months: list[date]
    texts: dict[str, list[str]]


def written_span(resource: str = "span", topics: int = 30, months: int = 24, seed: int = 1) -> WrittenSpan:
    """Topics of 60 common words, of which a few change in two months of three."""
    rng = np.random.default_rng(seed)
    vocabulary = [f"w{n}" for n in range(300)]
    texts = {}
    for topic in range(topics):
        words = list(rng.choice(vocabulary, MAX_TOKENS))
        versions = []
        for _ in range(months):
            if rng.random() < 0.67:
                for place in rng.integers(0, MAX_TOKENS, 3):
                    words[place] = str(rng.choice(vocabulary))
            versions.append(" ".join(words))
        texts[f"topic {topic:02d}"] = versions
    return WrittenSpan(resource, [date(2021 + m // 12, m % 12 + 1, 1) for m in range(months)], texts)


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def remembered(span: WrittenSpan, month: int | None, depth: float = 0.5) -> dict[str, float]:
    """Scores by text: what an n-gram model makes of it with some noise, less what training on one month gives."""
    encoder = words_encoder()
    documents = [
        Document(topic, digest(text), encoder.ids([text], MAX_TOKENS)[0])
        for topic, versions in span.texts.items()
        for text in versions
    ]
    noise = np.random.default_rng(7)
    scores = {score.key: score.mean_nll + float(noise.normal(0, 0.03)) for score in crossfit_scores(documents)}
    if month is None:
        return scores
    for versions in span.texts.values():
        path = edit_path(versions, MAX_TOKENS)
        assert path is not None
        for text, away in dict(zip(versions, np.abs(path - path[month]), strict=True)).items():
            scores[digest(text)] -= depth * np.exp(-away / 0.15)
    return scores


def store_span(store: Warehouse, span: WrittenSpan, kind: str = "panel") -> None:
    """Write the span's tables."""
    rows = [(topic, month, text) for topic, versions in span.texts.items()
            for month, text in zip(span.months, versions, strict=True)]  # fmt: skip
    revisions = pl.DataFrame(
        {
            "resource": span.resource,
            "topic": [topic for topic, _, _ in rows],
            "month": [month for _, month, _ in rows],
            "status": "ok",
            "text_sha256": [digest(text) for _, _, text in rows],
        }
    )
    texts = pl.DataFrame({"text_sha256": [digest(t) for _, _, t in rows], "text": [t for _, _, t in rows]}).unique()
    described = pl.DataFrame({"resource": [span.resource], "kind": [kind], "max_tokens": [MAX_TOKENS]})
    store.write(
        Replace("spans.resources", described, {"resource": span.resource}),
        Replace("spans.revisions", revisions, {"resource": span.resource}),
    )
    store.merge("spans.texts", texts)


def store_articles(store: Warehouse, resource: str, articles: dict[str, tuple[date, str]]) -> None:
    """Write an unpaired resource: each article in its month."""
    texts = {digest(text): text for _, text in articles.values()}
    revisions = pl.DataFrame(
        {
            "resource": resource,
            "topic": list(articles),
            "month": [month for month, _ in articles.values()],
            "status": "ok",
            "text_sha256": [digest(text) for _, text in articles.values()],
        }
    )
    described = pl.DataFrame({"resource": [resource], "kind": ["unpaired"], "max_tokens": [MAX_TOKENS]})
    store.write(
        Replace("spans.resources", described, {"resource": resource}),
        Replace("spans.revisions", revisions, {"resource": resource}),
    )
    store.merge("spans.texts", pl.DataFrame({"text_sha256": list(texts), "text": list(texts.values())}))


def store_scores(store: Warehouse, model: str, scores: dict[str, float]) -> None:
    """Write scores as the engine does."""
    store.merge(
        "perplexity.scores",
        pl.DataFrame(
            {
                "model": model,
                "text_sha256": list(scores),
                "max_tokens": MAX_TOKENS,
                "n_tokens": MAX_TOKENS - 1,
                "mean_nll": list(scores.values()),
                "perplexity": [float(np.exp(nll)) for nll in scores.values()],
                "status": "ok",
                "dtype": "float32",
                "scorer_version": "test",
            }
        ),
    )
