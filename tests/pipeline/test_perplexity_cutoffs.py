"""From stored scores to curves, tested references, cutoffs and warnings, through Dagster."""

from datetime import date
from pathlib import Path

import dagster as dg
import numpy as np
import polars as pl
import pytest

from assets import perplexity
from assets.asset_checks import judge
from assets.partitions import key_for
from assets.suites.perplexity import SUITES
from resources.configured import ModelListResource, ReferenceResource, WarehouseResource
from resources.perplexity.reference_scores import Encoder, ngram_reference, words_encoder
from resources.warehouse.store import Warehouse
from tests.fakes.spans import MAX_TOKENS, digest, remembered, store_articles, store_scores, store_span, written_span

MODEL = "house/small-1"
LISTED = f"models:\n  - name: {MODEL}\n    backend: openai\n    source: http://127.0.0.1:9/v1\n    served_name: x\n"
TRUTH = 15


@pytest.fixture
def house(tmp_path: Path) -> dict[str, object]:
    (tmp_path / "models.yaml").write_text(LISTED)
    return {
        "warehouse": WarehouseResource(
            path=str(tmp_path / "w.duckdb"), published=str(tmp_path / "p.duckdb"), reports=str(tmp_path / "reports")
        ),
        "model_list": ModelListResource(path=str(tmp_path / "models.yaml")),
        "references": ReferenceResource(path=str(tmp_path / "references.yaml")),
    }


def store_of(house: dict[str, object]) -> Warehouse:
    return house["warehouse"].open()  # type: ignore[attr-defined]


def run(house: dict[str, object], model: str = MODEL) -> dg.ExecuteInProcessResult:
    instance = dg.DagsterInstance.ephemeral()
    instance.add_dynamic_partitions("models", [key_for(model)])
    return dg.materialize(
        perplexity.ASSETS, resources=house, instance=instance, partition_key=key_for(model), raise_on_error=False
    )


def test_a_planted_month_is_found_with_the_n_gram_reference_and_every_table_meets_its_suite(
    house: dict[str, object],
) -> None:
    span, store = written_span(), store_of(house)
    store_span(store, span)
    store_scores(store, MODEL, remembered(span, TRUTH))
    assert run(house).success
    row = store.query("select * from perplexity.effective_cutoffs where is_default").row(0, named=True)
    assert (row["estimator"], row["status"], row["month"]) == ("panel", "found", span.months[TRUTH])
    assert row["reference"] == "ngram5-crossfit:span:words"
    assert (row["first_month"], row["last_month"], row["n_topics"]) == (span.months[0], span.months[-1], 30)
    for name, suite in SUITES.items():
        report = judge(store, name, suite, {"model": MODEL})
        assert report.passed, report.sentence
    curve = store.query("select * from perplexity.monthly_curves order by month")
    assert curve["n_documents"].to_list() == [30] * 24
    assert curve["relative_perplexity"].min() == 0
    found = store.query("select * from perplexity.dated_topics")
    assert found.height > 10
    assert (found["low95"] <= span.months[TRUTH]).sum() >= 0.9 * found.height


def test_a_model_without_memory_is_not_dated(house: dict[str, object]) -> None:
    span, store = written_span(seed=3), store_of(house)
    store_span(store, span)
    store_scores(store, MODEL, remembered(written_span(seed=3), None))
    assert run(house).success
    rows = store.query("select status, month, reason from perplexity.effective_cutoffs")
    assert rows["month"].null_count() == rows.height
    assert rows["reason"].null_count() == 0
    assert store.query("select count(*) from perplexity.topic_cutoffs where status = 'found'").item() == 0


def test_running_again_fits_nothing_and_changes_nothing(house: dict[str, object]) -> None:
    span, store = written_span(), store_of(house)
    store_span(store, span)
    store_scores(store, MODEL, remembered(span, TRUTH))
    run(house)
    tables = ["perplexity.scores", *SUITES]
    before = [store.digest(name) for name in tables]
    result = run(house)
    assert result.success
    assert [store.digest(name) for name in tables] == before
    assert store.query("select count(distinct model) from perplexity.scores").item() == 2


def test_changed_texts_are_fitted_again_and_old_reference_scores_go(house: dict[str, object]) -> None:
    store = store_of(house)
    for seed in (1, 2):
        span = written_span(seed=seed)
        store_span(store, span)
        store_scores(store, MODEL, remembered(span, TRUTH))
        assert run(house).success
    held = store.query("select count(*) from perplexity.scores where model = 'ngram5-crossfit:span:words'").item()
    assert held == len({text for versions in span.texts.values() for text in versions})
    assert store.query("select month from perplexity.effective_cutoffs where is_default").item() == span.months[TRUTH]


def test_a_listed_reference_comes_first_and_one_with_a_cutoff_is_refused(
    house: dict[str, object], tmp_path: Path
) -> None:
    (tmp_path / "references.yaml").write_text("references:\n  - model: timeless\n  - model: absent\n    of: [other]\n")
    span, store = written_span(), store_of(house)
    store_span(store, span)
    scores = remembered(span, TRUTH)
    store_scores(store, MODEL, scores)
    store_scores(store, "timeless", remembered(span, None))
    assert run(house).success
    tests = store.query("select reference, rank, kind, is_usable from perplexity.reference_tests order by rank")
    assert tests.rows() == [("timeless", 1, "model", True), ("ngram5-crossfit:span:words", 2, "ngram", True)]
    reported = store.query("select reference, month from perplexity.effective_cutoffs where is_default").row(0)
    assert reported == ("timeless", span.months[TRUTH])


def test_a_listed_reference_without_scores_is_named_and_skipped(house: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "references.yaml").write_text("references:\n  - model: absent\n")
    span, store = written_span(), store_of(house)
    store_span(store, span)
    store_scores(store, MODEL, remembered(span, TRUTH))
    assert run(house).success
    row = store.query("select * from perplexity.reference_tests where reference = 'absent'").row(0, named=True)
    assert (row["status"], row["is_usable"], row["n_texts"]) == ("missing", False, 0)
    assert store.query("select count(*) from perplexity.effective_cutoffs where reference = 'absent'").item() == 0


def test_a_resource_older_than_advertised_is_a_warning_and_resources_are_compared(house: dict[str, object]) -> None:
    store = store_of(house)
    for name, truth in (("tax code", 8), ("handbook", 13)):
        span = written_span(name, seed=truth)
        store_span(store, span)
        store_scores(store, MODEL, remembered(span, truth))
    claim = {"model": MODEL, "kind": "reported", "precision": "month", "is_valid": True, "is_conflicting": False}
    store.replace(
        "models.declared_cutoffs",
        pl.DataFrame([claim | {"source": "maker", "value": date(2022, 6, 1), "value_to": date(2022, 6, 30)}]),
    )
    known = {"model": MODEL, "partition_key": key_for(MODEL), "name": "Small", "is_listed": True}
    store.replace("models.models", pl.DataFrame([known | {"backend": "transformers"}]))
    result = run(house)
    assert result.success
    warnings = store.query("select * from perplexity.warnings")
    assert warnings["resource"].to_list() == ["tax code", "handbook"]
    assert "advertised with knowledge up to 2022-06" in warnings["warning"][0]
    assert "2021-09" in warnings["warning"][0]
    assert "9 months older" in warnings["warning"][0]
    answer = store.query("select is_cutoff_the_same from perplexity.cutoff_agreement").item()
    assert answer == "no: resources end at different times, from 2021-09 to 2022-02"
    shown = result.asset_materializations_for_node("estimate_cutoffs")[0].metadata
    assert len(shown["warnings"].value) == 2


def test_topics_that_lack_a_month_are_counted_as_excluded(house: dict[str, object]) -> None:
    span, store = written_span(), store_of(house)
    store_span(store, span)
    scores = remembered(span, TRUTH)
    store_scores(store, MODEL, scores)
    gone = store.query("select text_sha256 from spans.revisions where topic = 'topic 07' limit 1").item()
    key = ("model", "text_sha256", "max_tokens", "dtype")
    empty = store.query("select * from perplexity.scores limit 0").select(key)
    store.replace("perplexity.scores", empty, {"text_sha256": gone})
    assert run(house).success
    curve = store.query("select n_documents, n_excluded from perplexity.monthly_curves")
    assert set(curve.rows()) == {(29, 1)}
    assert store.query("select n_topics from perplexity.effective_cutoffs where is_default").item() == 29


def test_a_model_without_scores_fails_with_what_to_do(house: dict[str, object]) -> None:
    store_span(store_of(house), written_span())
    result = run(house)
    assert not result.success
    failure = result.failure_data_for_node("average_months")
    assert "materialize perplexity.scores" in str(failure)


def test_documents_that_all_begin_later_fail_with_the_setting_to_change_and_hold_no_other_resource_back(
    house: dict[str, object],
) -> None:
    span, store = written_span(), store_of(house)
    store_span(store, span)
    store_scores(store, MODEL, remembered(span, TRUTH))
    begun = {"status": "not_created", "reason": "the document did not exist yet", "text_sha256": None, "n_chars": None}
    first = store.query("select * from spans.revisions where month = (select min(month) from spans.revisions)")
    fresh = first.with_columns(pl.lit(value).cast(first.schema[name]).alias(name) for name, value in begun.items())
    store.merge("spans.revisions", fresh)
    result = run(house)
    assert not result.success
    assert "begin `months` in data/spans.yaml later" in str(result.failure_data_for_node("average_months"))
    curves = pl.DataFrame({"resource": ["a", "a", "b"], "n_documents": [0, 0, 3]})
    kept, why = perplexity._with_documents(curves)
    assert kept["resource"].to_list() == ["b"]
    assert "every month of a (2 months)" in str(why)


def test_titles_that_differ_only_in_dash_and_underscore_stay_apart(house: dict[str, object]) -> None:
    span, store = written_span(topics=26), store_of(house)
    span.texts["A-B"], span.texts["A_B"] = list(span.texts.values())[:2]
    del span.texts["topic 00"], span.texts["topic 01"]
    store_span(store, span)
    store_scores(store, MODEL, remembered(span, TRUTH))
    assert run(house).success
    topics = store.query("select topic from perplexity.topic_cutoffs where topic like 'A%' order by 1")["topic"]
    assert topics.to_list() == ["A-B", "A_B"]


def test_the_reference_counts_the_tokens_that_the_model_scored(house: dict[str, object]) -> None:
    span, store = written_span(), store_of(house)
    store_span(store, span)
    store_scores(store, MODEL, remembered(span, TRUTH))
    words = words_encoder()
    own = Encoder("own", words.ids)
    context = store.query("select * from perplexity.scores").with_columns(prefix_token=pl.lit(299, dtype=pl.Int32))
    store.merge("perplexity.scores", context)
    whole = ngram_reference(store, MODEL, "span", own)
    store.merge("perplexity.scores", context.with_columns(n_tokens=pl.lit(20), is_context_limited=pl.lit(True)))
    cut = ngram_reference(store, MODEL, "span", own)
    stand_in = ngram_reference(store, MODEL, "span", words)
    assert whole is not None
    assert cut is not None
    assert stand_in is not None
    counts = dict(
        store.query(
            "select model, any_value((n_tokens, prefix_token)) from perplexity.scores group by model"
        ).iter_rows()
    )
    assert list(counts[whole.name].values()) == [MAX_TOKENS, 299]
    assert list(counts[cut.name].values()) == [20, 299]
    assert list(counts[stand_in.name].values()) == [MAX_TOKENS - 1, None]
    assert [whole.name[-3:], cut.name[-6:], stand_in.name[-5:]] == ["own", "own-21", "words"]


def test_versions_with_the_same_tokens_have_one_score_whichever_batch_they_came_from(house: dict[str, object]) -> None:
    span, store = written_span(topics=2), store_of(house)
    store_span(store, span)
    store_scores(store, MODEL, remembered(span, TRUTH))
    scores = store.query("select * from perplexity.scores where model = ?", [MODEL])
    nearly = scores.with_columns(token_digest=pl.lit("same"), mean_nll=pl.lit(2.0) + pl.int_range(pl.len()) * 1e-9)
    store.merge("perplexity.scores", nearly.with_columns(perplexity=pl.col("mean_nll").exp()))
    assert store.query("select distinct mean_nll from perplexity.versions_of(?)", [MODEL]).height == 1


def test_number_formats_are_never_mixed_in_a_resource(house: dict[str, object]) -> None:
    span, store = written_span(topics=2), store_of(house)
    store_span(store, span)
    scores = remembered(span, TRUTH)
    store_scores(store, MODEL, scores)
    first, second = list(scores)[:2]
    rows = store.query("select * from perplexity.scores where text_sha256 in (?, ?)", [first, second])
    other = rows.with_columns(dtype=pl.lit("bfloat16"), mean_nll=pl.lit(9.0), perplexity=pl.lit(9.0).exp())
    key = ("model", "text_sha256", "max_tokens", "dtype")
    store.merge("perplexity.scores", other)
    store.replace("perplexity.scores", rows.select(key).clear(), {"text_sha256": first, "dtype": "float32"})
    held = dict(store.query("select text_sha256, mean_nll from perplexity.versions_of(?)", [MODEL]).iter_rows())
    assert held[first] is None
    assert held[second] == scores[second]
    store.replace("perplexity.scores", rows.select(key).clear(), {"dtype": "float32"})
    held = dict(store.query("select text_sha256, mean_nll from perplexity.versions_of(?)", [MODEL]).iter_rows())
    assert held[first] == held[second] == 9.0


def test_news_is_dated_by_the_rise_above_its_own_n_gram_reference(house: dict[str, object]) -> None:
    store, rng = store_of(house), np.random.default_rng(5)
    written = written_span("news", topics=208, months=1, seed=5)
    months = [date(2019 + m // 12, m % 12 + 1, 1) for m in range(26)]
    articles = {topic: (months[number // 8], texts[0]) for number, (topic, texts) in enumerate(written.texts.items())}
    store_articles(store, "news", articles)
    known = remembered(written, None)
    late = {digest(text): 0.5 for month, text in articles.values() if month >= months[14]}
    scores = {key: nll + late.get(key, 0.0) + float(rng.normal(0, 0.05)) for key, nll in known.items()}
    store_scores(store, MODEL, scores)
    assert run(house).success
    row = store.query("select * from perplexity.effective_cutoffs where is_default").row(0, named=True)
    assert (row["estimator"], row["reference"]) == ("rise", "ngram5-crossfit:news:words")
    assert (row["status"], row["month"], row["n_topics"]) == ("found", months[13], 8)
    curve = store.query("select n_documents, relative_perplexity from perplexity.monthly_curves order by month")
    assert curve["n_documents"].to_list() == [8] * 26
    assert store.query("select count(*) from perplexity.topic_cutoffs").item() == 0
