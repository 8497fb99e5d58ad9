"""Contamination through Dagster: verdicts on planted memories, resumed runs, gates, and bad input in clear words."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

from assets.asset_checks import checks
from assets.contamination import ASSETS
from assets.suites.contamination import SUITES
from console.plans import estimated_plan
from resources.configured import BenchmarkListResource, ContaminationResource, NetworkResource, OrderScoringResource
from resources.contamination.rows import verdict_rows
from resources.warehouse.validation import validate
from strandline.contamination.benchmarks import read_benchmark
from strandline.contamination.verdict import ShardScores, judge
from tests.fakes.completions_server import POISON, CompletionsServer
from tests.fakes.contamination_house import House, Scripted, invented
from tests.fakes.order_scorer import ScriptedScorer
from tests.fakes.web import Answer, WebServer

CLEAN, KNOWN = invented(96, 1), invented(96, 2)
SORTED = [f"About topic {k // 4}, and topic {k // 4} again: {text}" for k, text in enumerate(invented(96, 3))]
TABLES = ("benchmarks", "order_checks", "order_logliks", "shard_tests", "tests")
FILES = {"clean": CLEAN, "known": KNOWN, "sorted": SORTED}

SETTINGS = (ContaminationResource(), NetworkResource())


def remembers(texts: list[str], bonus: float = 4.0, **more: Any) -> ScriptedScorer:
    return ScriptedScorer(remembered="\n\n".join(texts), bonus=bonus, **more)


def said(result: dg.ExecuteInProcessResult) -> str:
    """The error of the step that failed."""
    [event] = [event for event in result.all_events if event.is_step_failure]
    error = event.step_failure_data.error
    while error.cause:
        error = error.cause
    return str(error.message)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path, FILES, order_permutations=199)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[House, list[dg.ExecuteInProcessResult]]:
    """A house in which a remembered and a clean benchmark were tested, with all checks."""
    folder = tmp_path_factory.mktemp("finished")
    house = House(folder, FILES, order_permutations=199)
    runs = [house.read(name, checked=True) for name in ("known", "clean")]
    runs += [house.score(name, Scripted(remembers(KNOWN)), checked=True) for name in ("known", "clean")]
    return house, runs


def test_a_remembered_order_is_found_and_a_clean_one_is_not(finished: tuple[House, Any]) -> None:
    house, runs = finished
    assert all(run.success for run in runs)
    assert all(e.passed for run in runs for e in run.get_asset_check_evaluations())
    known, clean = house.verdict("known"), house.verdict("clean")
    assert (known["verdict"], clean["verdict"]) == ("order_memorised", "no_evidence")
    assert known["p_value"] <= known["alpha"] == 0.05
    assert known["stopped_early"]
    assert clean["n_permutations"] in (2, 5, 19)
    assert "no proof of a clean model" in clean["summary"]
    assert "smallest reachable p" in clean["plan"]


def test_every_ordering_is_a_row_with_its_seed_and_equal_tokens(finished: tuple[House, Any]) -> None:
    house, _ = finished
    rows = house.rows("select * from contamination.order_logliks where benchmark = 'clean'")
    shards = {row["shard"] for row in rows}
    assert len(shards) == 8
    for shard in shards:
        mine = [row for row in rows if row["shard"] == shard]
        assert {row["permutation"] for row in mine} >= {0, 1, 2}
        assert len({row["n_tokens"] for row in mine}) == 1
        assert all((row["seed"] is None) == (row["permutation"] <= 0) for row in mine)
    seeds = [row["seed"] for row in rows if row["seed"] is not None]
    assert len(set(seeds)) == len(seeds)
    assert {row["status"] for row in rows} == {"ok"}


def test_the_reversed_order_is_scored_only_where_the_design_has_rejected(finished: tuple[House, Any]) -> None:
    house, _ = finished
    turned = house.rows(
        "select benchmark, count(*) as n from contamination.order_logliks where permutation = -1 group by 1"
    )
    assert turned == [{"benchmark": "known", "n": 8}]
    shown = house.rows("select benchmark, count(reversed_z) as n from contamination.shard_tests group by 1 order by 1")
    assert shown == [{"benchmark": "clean", "n": 0}, {"benchmark": "known", "n": 8}]


def test_named_statistics_stand_beside_the_verdict_and_q_values_over_all_of_them(finished: tuple[House, Any]) -> None:
    house, _ = finished
    named = house.rows("select distinct method from contamination.tests where not is_verdict order by method")
    assert [row["method"] for row in named] == ["fisher_chi2", "lattice_fisher", "oren_t", "rank_sum"]
    known, clean = house.verdict("known"), house.verdict("clean")
    assert known["q_value"] == pytest.approx(min(1.0, 2 * known["p_value"]))
    assert clean["q_value"] == pytest.approx(clean["p_value"])
    view = {row["benchmark"]: row["q_value"] for row in house.rows("select * from contamination.verdicts")}
    assert view == pytest.approx({"known": known["q_value"], "clean": clean["q_value"]})


def test_the_report_is_a_picture_and_a_text(finished: tuple[House, Any]) -> None:
    _, runs = finished
    [event] = [
        e for e in runs[2].asset_materializations_for_node("judge_orders")
        if e.asset_key == dg.AssetKey(["contamination", "tests"])
    ]  # fmt: skip
    assert Path(str(event.metadata["picture_file"].value)).is_file()
    assert "contamination test of" in str(event.metadata["report"].value)
    assert event.metadata["verdict"].value == "order_memorised"


def test_views_answer_the_usual_questions(finished: tuple[House, Any]) -> None:
    house, _ = finished
    assert len(house.rows("select * from contamination.comparisons")) == 8
    assert house.rows("select * from contamination.unusable_orders") == []
    top = house.rows("select * from contamination.telling_shards limit 1")[0]
    assert top["benchmark"] == "known"
    spent = {row["benchmark"]: row["n_orders"] for row in house.rows("select * from contamination.spending")}
    assert spent["known"] == house.verdict("known")["n_orders"]


def test_a_file_sorted_by_topic_gets_no_verdict_however_small_its_p_value(house: House) -> None:
    row = house.test("sorted", Scripted(remembers(SORTED)))
    assert row["verdict"] == "order_not_exchangeable"
    assert row["p_value"] <= row["alpha"]
    assert row["q_value"] is None
    assert "order preference" in row["summary"]
    [unusable] = house.rows("select * from contamination.unusable_orders")
    assert unusable["benchmark"] == "sorted"
    assert "tfidf" in unusable["telling_statistics"]


def test_a_second_run_scores_nothing_and_changes_no_row(house: House) -> None:
    house.test("clean", Scripted(ScriptedScorer()))
    before = [house.store.digest(f"contamination.{name}") for name in ("order_logliks", "shard_tests", "tests")]
    again = ScriptedScorer()
    house.test("clean", Scripted(again))
    assert (again.tokenized, again.batches) == (0, [])
    assert before == [house.store.digest(f"contamination.{name}") for name in ("order_logliks", "shard_tests", "tests")]


def test_a_kill_in_the_middle_loses_nothing_that_was_finished(
    house: House, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resources.contamination.order_scoring.COMMIT_SECONDS", 0.0)
    undisturbed = House(tmp_path_factory.mktemp("whole"), FILES, order_permutations=199)
    undisturbed.test("clean", Scripted(ScriptedScorer()))
    assert house.read("clean").success
    killed, resumed = ScriptedScorer(dies_at=5), ScriptedScorer()
    result = house.score("clean", Scripted(killed))
    assert not result.success
    assert "the process died" in said(result)
    kept = house.rows("select count(*) as n from contamination.order_logliks")[0]["n"]
    assert kept == 15
    assert house.rows("select * from contamination.tests") == []
    assert house.score("clean", Scripted(resumed)).success
    assert resumed.orders == sum_of_orders(house) - kept + sentinels(house)
    for name in ("order_logliks", "shard_tests", "tests"):
        assert house.store.digest(f"contamination.{name}") == undisturbed.store.digest(f"contamination.{name}")


def sum_of_orders(house: House) -> int:
    return int(house.rows("select count(*) as n from contamination.order_logliks")[0]["n"])


def sentinels(house: House) -> int:
    """Published orders scored again: one a shard at each look after the first."""
    deepest = house.rows("select max(permutation) as m from contamination.order_logliks")[0]["m"]
    return 8 * {2: 0, 5: 1, 19: 2}[deepest]


def test_other_settings_drop_the_old_rows(house: House) -> None:
    house.test("clean", Scripted(ScriptedScorer()))
    first = house.rows("select distinct settings_digest from contamination.order_logliks")
    house.test("clean", Scripted(ScriptedScorer()), run_seed=5)
    second = house.rows("select distinct settings_digest from contamination.order_logliks")
    assert len(first) == len(second) == 1
    assert first != second


def test_a_half_precision_score_that_moves_has_its_shard_scored_again_in_fp32(house: House) -> None:
    drifting = remembers(KNOWN, bonus=0.35, dtype="bfloat16", drifts=True)
    row = house.test("known", Scripted(drifting))
    assert row["n_permutations"] > 2
    assert {batch.dtype for batch in drifting.batches} == {"bfloat16", "float32"}
    kinds = house.rows(
        "select shard, count(distinct dtype) as kinds, any_value(dtype) as dtype "
        "from contamination.order_logliks group by shard"
    )
    assert all(kind["kinds"] == 1 for kind in kinds)
    assert any(kind["dtype"] == "float32" for kind in kinds)


def test_shards_whose_scores_are_not_finite_are_left_out_and_named(house: House) -> None:
    row = house.test("clean", Scripted(ScriptedScorer(nonfinite_if=CLEAN[14])))
    assert row["n_shards"] == 7
    assert "left out" in row["summary"]
    [bad] = house.rows("select * from contamination.shard_tests where status = 'nonfinite'")
    assert (bad["shard"], bad["p_value"]) == (1, None)


def test_a_shard_that_is_not_finite_stops_no_verdict_and_a_model_that_is_not_finite_does(house: House) -> None:
    assert house.read("clean").success
    partly, wholly = ScriptedScorer(nonfinite_if=CLEAN[14]), ScriptedScorer(nonfinite_if="a", weights="other")
    assert house.score("clean", Scripted(partly), checked=True).success
    result = house.score("clean", Scripted(wholly), checked=True)
    assert not result.success
    assert "every value of loglik is NULL" in str([e.description for e in result.get_asset_check_evaluations()])


def test_three_examples_cannot_reach_the_level_and_the_verdict_says_so(house: House) -> None:
    house.list_benchmarks({"three": CLEAN[:3]})
    row = house.test("three", Scripted(ScriptedScorer()))
    assert row["verdict"] == "inconclusive"
    assert row["resolution"] == pytest.approx(1 / 6)
    assert "cannot reach the level" in row["plan"]


def test_the_only_finite_shard_of_two_is_drawn_to_the_end(house: House) -> None:
    texts = invented(16, 5)
    house.list_benchmarks({"two": texts})
    row = house.test("two", Scripted(ScriptedScorer(nonfinite_if=texts[1])), examples_per_shard=8)
    assert (row["method"], row["verdict"], row["n_shards"]) == ("Besag-Clifford", "no_evidence", 1)


def test_a_window_group_has_its_own_order_check(house: House) -> None:
    row = house.test("clean", Scripted(ScriptedScorer()), group="window:3")
    assert row["permutation_group"] == "window:3"
    gates = house.rows("select permutation_group from contamination.order_checks where is_gate order by 1")
    assert [gate["permutation_group"] for gate in gates] == ["all", "window:3"]


def test_no_verdict_without_an_order_check(house: House) -> None:
    assert house.score("clean", Scripted(ScriptedScorer())).success
    row = house.verdict("clean")
    assert row["verdict"] == "inconclusive"
    assert "order check" in row["reason"]


def test_the_order_check_of_an_earlier_file_lets_no_verdict_pass(house: House) -> None:
    house.test("clean", Scripted(ScriptedScorer()))
    house.list_benchmarks({"clean": SORTED})
    assert house.score("clean", Scripted(remembers(SORTED))).success
    row = house.verdict("clean")
    assert (row["verdict"], row["order_check_p"]) == ("inconclusive", None)
    assert house.test("clean", Scripted(remembers(SORTED)))["verdict"] == "order_not_exchangeable"


def test_a_verdict_names_the_group_that_its_orderings_were_drawn_from(house: House) -> None:
    first = house.test("clean", Scripted(ScriptedScorer()))
    assert house.judge("clean", group="window:3").success
    assert house.verdict("clean") == first
    assert first["permutation_group"] == "all"


def test_one_shard_draws_until_besag_and_clifford_are_content(house: House) -> None:
    row = house.test("clean", Scripted(ScriptedScorer()), examples_per_shard=96)
    assert row["method"] == "Besag-Clifford"
    assert row["verdict"] == "no_evidence"
    assert row["n_permutations"] < 999


def test_a_small_budget_tests_fewer_shards_spread_over_the_file(house: House) -> None:
    house.test("clean", Scripted(ScriptedScorer()), token_budget=3000)
    shards = [row["shard"] for row in house.rows("select distinct shard from contamination.order_logliks order by 1")]
    assert 1 <= len(shards) < 8
    assert "shards" in house.verdict("clean")["plan"]


def test_the_plan_is_told_before_anything_is_scored(house: House, capfd: pytest.CaptureFixture[str]) -> None:
    assert house.read("clean").success
    house.score("clean", Scripted(ScriptedScorer(dies_at=0)))
    told = capfd.readouterr().err
    assert "tokens/s" in told
    assert "expected where the benchmark is clean" in told
    assert house.rows("select * from contamination.order_logliks") == []


def test_the_plan_can_be_had_before_any_model_is_loaded(house: House) -> None:
    plan = estimated_plan(BenchmarkListResource(), *SETTINGS)
    assert plan
    assert plan.startswith("contamination by tideline")
    assert "8 shards of up to 25 examples" in plan
    assert "smallest reachable p: 4.6e-11" in plan
    assert "tokens: " in plan
    assert "power by total effect" in plan
    assert "tokens/s" not in plan
    house.list_benchmarks({"one": ["only one"]})
    assert "no plan: a permutation test needs at least two examples" in str(estimated_plan(house.listed, *SETTINGS))
    house.list_benchmarks({})
    assert estimated_plan(house.listed, *SETTINGS) is None


def test_identical_examples_are_inconclusive_because_no_order_can_reach_the_level(house: House) -> None:
    house.list_benchmarks({"same": ["one and the same"] * 40})
    row = house.test("same", Scripted(ScriptedScorer()))
    assert (row["verdict"], row["p_value"], row["resolution"]) == ("inconclusive", 1.0, 1.0)
    assert "smallest reachable p: 1" in row["plan"]
    [benchmark] = house.rows("select * from contamination.benchmarks")
    assert benchmark["n_duplicates"] == 39


def test_examples_that_are_alike_do_not_lower_what_the_others_can_reach(house: House) -> None:
    """One shard of equal examples has one order; the other seven still reach the level."""
    house.list_benchmarks({"partly": ["one and the same"] * 12 + CLEAN[12:]})
    row = house.test("partly", Scripted(remembers(CLEAN, bonus=9.0)))
    orders = house.rows("select distinct shard, n_distinct_orders as n from contamination.order_logliks order by shard")
    assert [item["n"] for item in orders] == [1] + [1_000_000] * 7
    assert row["resolution"] == pytest.approx(20.0**-7 / 0.85)
    assert "cannot reach" not in row["plan"]


def test_stand_ins_for_log_probabilities_make_no_verdict(house: House) -> None:
    class StandsIn(ScriptedScorer):
        def _score(self, request: Any, dtype: str, noise: int) -> Any:
            score = super()._score(request, dtype, noise)
            return replace(score, sum_nll=9999.0 * len(request.ids)) if CLEAN[14] in text_of(request) else score

    row = house.test("clean", Scripted(StandsIn(dtype="served")))
    assert row["n_shards"] == 7
    [bad] = house.rows("select distinct loglik, status, reason from contamination.order_logliks where shard = 1")
    assert (bad["loglik"], bad["status"]) == (None, "nonfinite")
    assert "stand-ins, no log-probabilities" in bad["reason"]


def text_of(request: Any) -> str:
    return "".join(map(chr, request.ids))


def test_a_row_says_its_context_and_a_verdict_what_it_would_have_found(finished: tuple[House, Any]) -> None:
    house, _ = finished
    assert house.rows("select distinct context_length from contamination.order_logliks") == [{"context_length": None}]
    effects = house.rows("select needed_effect from contamination.verdicts")
    assert [row["needed_effect"] for row in effects] == pytest.approx([2.625, 2.625], abs=0.01)


def test_a_benchmark_that_is_fetched_is_parsed_once(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    body, parsed = (house.folder / "clean.jsonl").read_bytes(), []

    def counted(spec: Any, payload: bytes) -> Any:
        parsed.append(spec.benchmark)
        return read_benchmark(spec, payload)

    monkeypatch.setattr("resources.contamination.benchmark_files.read_benchmark", counted)
    with WebServer(lambda _: Answer(body=body)) as web:
        monkeypatch.setenv("STRANDLINE_BENCHMARK_MIRROR", web.url)
        house.list_benchmarks({"clean": CLEAN}, address="https://benchmarks.example/clean.jsonl")
        network = NetworkResource(cache_dir=str(house.folder / "cache"))
        listed = house.listed.find("clean")
        assert house.listed.load(listed, network) == house.listed.load(listed, network)
    assert (parsed, len(web.asked)) == (["clean", "clean"], 1)


@pytest.mark.parametrize(
    ("texts", "columns", "words"),
    [
        (["only one"], {}, "at least two examples"),
        ([*CLEAN, "half \ud83d"], {}, "half of a character"),
        (CLEAN, {"text": "answer"}, "has no column 'answer'; it has text"),
        (CLEAN, {"address": "nowhere.jsonl"}, "cannot be opened"),
        (CLEAN, {"sha256": "0" * 64}, "sha256"),
    ],
)
def test_a_bad_benchmark_is_a_row_that_says_why_and_stops_what_follows(
    house: House, texts: list[str], columns: dict[str, str], words: str
) -> None:
    house.list_benchmarks({"bad": texts}, **columns)
    result = house.read("bad", checked=True)
    [row] = house.rows("select * from contamination.benchmarks")
    assert row["status"] == "failed"
    assert words in row["reason"]
    assert not result.success
    assert house.rows("select * from contamination.order_checks") == []


def test_settings_that_make_no_sense_are_refused_in_clear_words(house: House) -> None:
    benchmark = _benchmark(house)
    for wrong, words in [
        ({"alpha": "2"}, "between 0 and 1"),
        ({"group": "windows"}, "window:w"),
        ({"design": "some"}, "is not one of"),
        ({"gate": "0.001"}, "never reaches the gate"),
        ({"examples_per_shard": 1}, "at least two"),
    ]:
        settings = ContaminationResource(**wrong)
        with pytest.raises(ValueError, match=words):
            settings.open().shards(benchmark)


def _benchmark(house: House) -> Any:
    from resources.contamination.benchmark_files import load_benchmark

    return load_benchmark(house.listed.find("clean"), None, None)  # type: ignore[arg-type]


def test_a_public_benchmark_is_fetched_through_the_mirror_once(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    body = (house.folder / "clean.jsonl").read_bytes()
    with WebServer(lambda _: Answer(body=body)) as web:
        monkeypatch.setenv("STRANDLINE_BENCHMARK_MIRROR", web.url)
        house.list_benchmarks({"clean": CLEAN}, address="https://benchmarks.example/sets/clean.jsonl")
        house.test("clean", Scripted(ScriptedScorer()))
        assert [asked.raw_path for asked in web.asked] == ["/benchmarks.example/sets/clean.jsonl"]
    [row] = house.rows("select * from contamination.benchmarks")
    assert row["url"] == "https://benchmarks.example/sets/clean.jsonl"
    assert house.read("clean").success


def test_a_fetched_file_that_is_not_what_the_list_says_is_not_kept(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = [b"<html>moved</html>", (house.folder / "clean.jsonl").read_bytes()]
    with WebServer(lambda _: Answer(body=bodies.pop(0))) as web:
        monkeypatch.setenv("STRANDLINE_BENCHMARK_MIRROR", web.url)
        house.list_benchmarks({"clean": CLEAN}, address="https://benchmarks.example/clean.jsonl")
        assert not house.read("clean", checked=True).success
        [row] = house.rows("select status, reason from contamination.benchmarks")
        assert row["status"] == "failed"
        assert "not readable as jsonl" in row["reason"]
        assert house.read("clean", checked=True).success


@pytest.mark.parametrize("fault", ["ignored", "unstable"])
def test_an_endpoint_without_usable_prompt_log_probabilities_is_refused_by_name(house: House, fault: str) -> None:
    with CompletionsServer(fault=fault) as server:
        house.list_models(f'backend: openai, source: "{server.base_url}", served_name: big')
        assert house.read("clean").success
        result = house.score("clean", OrderScoringResource())
    assert not result.success
    assert "prompt log-probabilities" in said(result)
    assert house.rows("select * from contamination.order_logliks") == []


def test_an_endpoint_with_prompt_log_probabilities_gives_a_verdict(house: House) -> None:
    with CompletionsServer() as server:
        house.list_models(f'backend: openai, source: "{server.base_url}", served_name: big, context_length: 64')
        assert house.read("clean").success
        assert house.score("clean", OrderScoringResource(), token_budget=2500).success
    row = house.verdict("clean")
    assert row["verdict"] in ("no_evidence", "order_memorised")
    assert {r["dtype"] for r in house.rows("select * from contamination.order_logliks")} == {"served"}


@pytest.mark.parametrize("stand_in", [-9999.5, -1e30])
def test_a_stand_in_from_an_endpoint_leaves_its_shard_out_and_the_others_go_on(house: House, stand_in: float) -> None:
    texts = [*CLEAN[:14], f"{CLEAN[14]} {POISON}", *CLEAN[15:32]]
    house.list_benchmarks({"poisoned": texts})
    with CompletionsServer(poison=stand_in) as server:
        house.list_models(f'backend: openai, source: "{server.base_url}", served_name: big')
        assert house.read("poisoned").success
        assert house.score("poisoned", OrderScoringResource()).success
    [bad] = house.rows("select distinct shard, status, reason from contamination.order_logliks where loglik is null")
    assert (bad["shard"], bad["status"]) == (3, "nonfinite")
    assert "stand-ins for log-probabilities" in bad["reason"]
    row = house.verdict("poisoned")
    assert row["n_shards"] == 7
    assert "left out" in row["summary"]


def test_a_smallest_p_below_the_smallest_double_is_not_stored_as_zero() -> None:
    shards = [ShardScores(k, (0.0, -1.0, -2.0)) for k in range(300)]
    verdict = judge("m", "b", shards, order_p=1.0)
    main = verdict_rows(verdict, shards, pl.DataFrame(), None)[0]
    assert main["resolution"] is None
    assert "1e-390" in main["summary"]


def test_every_table_has_a_suite() -> None:
    assert set(SUITES) == {f"contamination.{name}" for name in TABLES}
    assert len(checks(ASSETS, SUITES)) == len(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_suites_pass_on_good_rows_and_fail_on_none_on_nothing_and_on_infinity(
    finished: tuple[House, Any], name: str
) -> None:
    house, _ = finished
    table, suite = f"contamination.{name}", SUITES[f"contamination.{name}"]
    rows = house.store.query(f"select * from {table} where benchmark = 'known'")
    assert validate(table, rows, suite).passed
    assert not validate(table, rows.clear(), suite).passed
    judged = [item.column for item in suite.expectations if item.column and not item.may_be_null]
    for column in judged:
        emptied = rows.with_columns(pl.lit(None, rows.schema[column]).alias(column))
        assert not validate(table, emptied, suite).passed, column
    numbers = [column for column in judged if rows.schema[column].is_float()]
    for column in numbers:
        infinite = rows.with_columns(pl.lit(float("inf")).alias(column))
        assert not validate(table, infinite, suite).passed, column


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("settings_digest", "another"),
        ("order_digest", "another"),
        ("scorer_version", "another"),
        ("context_length", 63),
    ],
)
def test_orderings_of_two_ways_of_scoring_are_refused(finished: tuple[House, Any], column: str, value: Any) -> None:
    house, _ = finished
    rows = house.store.query("select * from contamination.order_logliks where benchmark = 'known'")
    rows = rows.with_columns(context_length=pl.lit(511, rows.schema["context_length"]))
    suite = SUITES["contamination.order_logliks"]
    assert validate("order_logliks", rows, suite).passed
    other = rows.with_columns(pl.when(pl.col("shard") == 0).then(pl.lit(value)).otherwise(column).alias(column))
    assert not validate("order_logliks", other.cast({column: rows.schema[column]}), suite).passed


@pytest.mark.parametrize(
    ("name", "column", "value"),
    [
        ("benchmarks", "status", "failed"),
        ("benchmarks", "sha256", "abc"),
        ("benchmarks", "n_examples", 1),
        ("order_checks", "n_permutations", 9),
        ("order_logliks", "loglik", 3.0),
        ("order_logliks", "n_tokens", 1),
        ("order_logliks", "status", "odd"),
        ("shard_tests", "status", "odd"),
        ("shard_tests", "p_value", 0.0001),
        ("tests", "verdict", "contaminated"),
        ("tests", "alpha", 0.0),
        ("tests", "q_value", 1e-9),
    ],
)
def test_suites_notice_a_wrong_value(finished: tuple[House, Any], name: str, column: str, value: Any) -> None:
    house, _ = finished
    rows = house.store.query(f"select * from contamination.{name} where benchmark = 'known'")
    wrong = rows.with_columns(pl.lit(value, rows.schema[column]).alias(column))
    assert not validate(name, wrong, SUITES[f"contamination.{name}"]).passed


def test_a_list_of_benchmarks_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the list of benchmarks .*none\.csv cannot be opened: No such file"):
        BenchmarkListResource(path=str(tmp_path / "none.csv")).read()
