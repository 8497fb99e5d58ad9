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
from strandline.perplexity.reference import crossfit_scores
from tests.fakes.spans import (
    MAX_TOKENS,
    WrittenSpan,
    digest,
    remembered,
    store_articles,
    store_scores,
    store_span,
    written_span,
)

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
    other = written_span("other", seed=4)
    store_span(store, other)
    store_scores(store, MODEL, remembered(other, None))
    assert run(house).success
    curves = store.query("select resource, status, reason from perplexity.monthly_curves").unique().sort("resource")
    assert curves["status"].to_list() == ["ok", "missing"]
    assert "every month of span (24 months)" in str(curves["reason"][1])


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


def test_a_resource_that_was_not_scored_has_rows_with_a_reason_and_holds_no_other_back(
    house: dict[str, object],
) -> None:
    span, store = written_span(), store_of(house)
    store_span(store, span)
    store_span(store, written_span("unscored", seed=9))
    store_scores(store, MODEL, remembered(span, TRUTH))
    assert run(house).success
    curve = store.query("select status, reason from perplexity.monthly_curves where resource = 'unscored'").unique()
    assert curve.rows() == [("missing", "no text of this resource has a score under the model")]
    cutoff = store.query("select status, is_default from perplexity.effective_cutoffs where resource = 'unscored'")
    assert cutoff.rows() == [("missing", True)]
    assert store.query("select count(*) from perplexity.curve_points where resource = 'unscored'").item() == 0
    for name, suite in SUITES.items():
        report = judge(store, name, suite, {"model": MODEL})
        assert report.passed, report.sentence


def test_scores_of_two_ways_of_scoring_are_never_mixed_in_a_curve(house: dict[str, object]) -> None:
    span, store = written_span(), store_of(house)
    store_span(store, span)
    store_scores(store, MODEL, remembered(span, TRUTH))
    rows = store.query("select * from perplexity.scores order by text_sha256")
    other = rows.head(5)
    for changed in (
        {"weights_digest": "other"},
        {"scorer_version": "other"},
        {"is_context_limited": True, "n_tokens": 20},
        {"dtype": "bfloat16"},
    ):
        values = [pl.lit(value).cast(rows.schema[name]).alias(name) for name, value in changed.items()]
        store.replace("perplexity.scores", pl.concat([rows.slice(5), other.with_columns(values)]))
        held = store.query(
            "select distinct text_sha256 from perplexity.versions_of(?) where mean_nll is not null", [MODEL]
        )
        assert held.height == rows.height - 5, changed


def test_it_is_said_in_views_pictures_and_rows_that_fewer_tokens_were_scored(house: dict[str, object]) -> None:
    span, store = written_span(), store_of(house)
    store_span(store, span)
    store_scores(store, MODEL, remembered(span, TRUTH))
    rows = store.query("select * from perplexity.scores")
    store.replace("perplexity.scores", rows.with_columns(is_context_limited=True, n_tokens=pl.lit(15, dtype=pl.Int32)))
    assert run(house).success
    note = "only the first 15 of 60 tokens were scored: the model's context ends there"
    for view in ("advertised_and_effective", "curve_points"):
        assert store.query(f"select distinct tokens_note from perplexity.{view}").rows() == [(note,)]
    for table in ("monthly_curves", "effective_cutoffs"):
        limits = store.query(f"select distinct max_tokens, context_tokens from perplexity.{table}")
        assert limits.rows() == [(60, 15)]


def test_models_of_one_tokenizer_and_two_first_tokens_have_references_of_their_own(house: dict[str, object]) -> None:
    span, store = written_span(), store_of(house)
    store_span(store, span)
    encoder = words_encoder()
    own = Encoder("shared", encoder.ids)
    references = []
    for model, bos in (("a", 1), ("b", 2), ("a", 1), ("b", 2)):
        scores = remembered(span, TRUTH)
        store_scores(store, model, scores)
        stored = store.query("select * from perplexity.scores where model = ?", [model])
        store.merge("perplexity.scores", stored.with_columns(prefix_token=pl.lit(bos, dtype=pl.Int32)))
        fitted = ngram_reference(store, model, "span", own)
        assert fitted is not None
        references.append((fitted.name, fitted.is_new))
        test = {"model": model, "resource": "span", "reference": fitted.name, "rank": 1, "kind": "ngram",
                "texts_digest": fitted.texts_digest, "n_texts": fitted.n_texts, "is_usable": True,
                "status": "flat-or-unclear"}  # fmt: skip
        store.merge("perplexity.reference_tests", [test])
    plain = "ngram5-crossfit:span:shared"
    assert references == [(plain, True), (f"{plain}-prefix-2", True), (plain, False), (f"{plain}-prefix-2", False)]


def test_a_fit_that_was_killed_halfway_is_never_taken_for_the_one_before(
    house: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline.perplexity.reference.BLOCK", 10)
    store, first, second = store_of(house), written_span(seed=1), written_span(seed=2, months=90)
    encoder = words_encoder()

    def fitted(span: WrittenSpan) -> dict[str, float]:
        store_span(store, span)
        store_scores(store, MODEL, remembered(span, TRUTH))
        assert run(house).success
        return dict(store.query("select text_sha256, mean_nll from perplexity.scores where model like 'ngram%'").rows())

    calm = fitted(first)
    store_span(store, second)
    calls = iter([crossfit_scores, None])
    monkeypatch.setattr("resources.perplexity.reference_scores.crossfit_scores", lambda *a, **k: next(calls)(*a, **k))
    with pytest.raises(TypeError):
        ngram_reference(store, MODEL, "span", encoder)
    monkeypatch.setattr("resources.perplexity.reference_scores.crossfit_scores", crossfit_scores)
    assert fitted(first) == calm
