"""Scores are committed as they come, computed once, and survive being run again, extended or killed."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from assets.perplexity_scores import score_versions
from resources.compute.tasks import LocalCompute
from resources.configured import ComputeResource, ModelListResource, WarehouseResource
from resources.models import libraries
from resources.perplexity import scoring as text_scoring
from resources.perplexity.path_store import PathStore
from resources.perplexity.scoring import local_scoring, pending, score_pending
from resources.warehouse.store import Warehouse
from strandline.models import ModelSpec
from strandline.models.keys import partition_key
from strandline.scoring.engine import Scorer, score_texts
from strandline.scoring.language_model import LanguageModel
from strandline.scoring.scores import tokenized
from tests.fakes.completions_server import CompletionsServer
from tests.fakes.tiny_models import WORDS, saved_tiny_model, tiny_language_model, with_bos

NAME = "tiny/llama"
House = tuple[WarehouseResource, ModelListResource]
MONTHS = pl.date_range(pl.date(2021, 1, 1), pl.date(2021, 7, 1), "1mo", eager=True).to_list()


def text_of(topic: int, version: int) -> str:
    return " ".join([WORDS[topic], *WORDS[: 12 + topic], *WORDS[20 : 20 + version]])


def filled(store: Warehouse, months: list[date]) -> None:
    """Four topics by month, a new version every other month; one empty text, one missing document."""
    rows, texts = [], {}
    for number, month in enumerate(months):
        for topic in range(4):
            text = "" if topic == 3 and number == 0 else text_of(topic, number // 2)
            digest = sha256(text.encode()).hexdigest()
            texts[digest] = text
            rows.append(("docs", f"topic {topic}", month, "ok", None, digest, len(text)))
        rows.append(("docs", "absent", month, "missing", "there is no such page", None, None))
    names = ["resource", "topic", "month", "status", "reason", "text_sha256", "n_chars"]
    resource = {"resource": "docs", "kind": "panel", "max_tokens": 24}
    store.merge("spans.resources", pl.DataFrame([resource]))
    store.merge("spans.texts", pl.DataFrame({"text_sha256": list(texts), "text": list(texts.values())}))
    store.merge("spans.revisions", pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None))


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A warehouse with three months of a small span, and a list with one tiny model."""
    folder = saved_tiny_model(tmp_path / "tiny", "llama")
    listed = tmp_path / "models.yaml"
    listed.write_text(f"models:\n  - name: {NAME}\n    backend: transformers\n    source: folder:{folder}\n")
    warehouse = WarehouseResource(
        path=str(tmp_path / "w.duckdb"), published=str(tmp_path / "p.duckdb"), reports=str(tmp_path / "reports")
    )
    filled(warehouse.open(), MONTHS[:3])
    return warehouse, ModelListResource(path=str(listed))


def materialize(house: House, config: dict[str, object] | None = None) -> Mapping[str, dg.MetadataValue]:
    warehouse, model_list = house
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("models", [partition_key(NAME)])
        done = dg.materialize(
            [score_versions],
            partition_key=partition_key(NAME),
            instance=instance,
            resources={"warehouse": warehouse, "model_list": model_list, "compute": ComputeResource(workers=2)},
            run_config={"ops": {"score_versions": {"config": config or {}}}},
        )
        return done.asset_materializations_for_node("score_versions")[0].metadata


def test_every_distinct_text_gets_a_row_equal_to_a_plain_forward_pass(house: House) -> None:
    materialize(house)
    rows = house[0].open().query("select * from perplexity.scores")
    lm = tiny_language_model("llama")
    texts = dict(house[0].open().query("select * from spans.texts").iter_rows())
    assert set(rows["text_sha256"]) == set(texts)
    for row in rows.iter_rows(named=True):
        text = texts[row["text_sha256"]]
        assert (row["status"] == "too_short") == (text == "")
        if text:
            ids = lm.token_ids([text], 24)[0]
            request = tokenized("", ids, 24, lm.bos_id, lm.context_length).request
            alone = next(Scorer(lm).sequences([request]))
            assert row["mean_nll"] == pytest.approx(alone.mean_nll, abs=1e-4)
            assert row["n_tokens"] == len(ids)
            assert (row["prefix_token"], row["dtype"], row["method"]) == (lm.bos_id, "float32", "tree")
            assert row["tokens_computed"] + row["tokens_saved"] == len(ids) + 1


def test_a_second_run_computes_no_token_and_loads_no_model(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    first = materialize(house)
    assert first["tokens_now"].value > 0
    monkeypatch.setattr("resources.perplexity.worker.text_worker", None)
    again = materialize(house)
    assert again["tokens_now"].value == again["scored_now"].value == 0
    assert again["tokens_computed"].value == first["tokens_now"].value


def test_another_month_is_scored_alone(house: House) -> None:
    materialize(house)
    store = house[0].open()
    filled(store, MONTHS[:5])
    new = pending(store, local_scoring(house[1].find(NAME)))
    before = store.query("select count(*) from perplexity.scores").item()
    assert 0 < new.height < before
    assert materialize(house)["scored_now"].value == new.height


def prefixes(store: Warehouse, lm: LanguageModel) -> set[tuple[int, ...]]:
    """The distinct prefixes of all texts as the model reads them."""
    texts = store.query("select text from spans.texts where text != ''")["text"].to_list()
    return {tuple(with_bos(lm, ids)[:n]) for ids in lm.token_ids(texts, 24) for n in range(1, len(ids) + 2)}


def test_another_month_computes_only_its_new_prefixes(house: House) -> None:
    lm, store = tiny_language_model("llama"), house[0].open()
    assert materialize(house)["tokens_now"].value == len(old := prefixes(store, lm))
    for count in (4, 5, 7):
        filled(store, MONTHS[:count])
        computed = materialize(house)["tokens_now"].value
        assert computed == len(prefixes(store, lm) - old)
        assert (computed > 0) == (count != 4)
        old = prefixes(store, lm)
    for text, mean in store.query(
        "select text, mean_nll from perplexity.scores join spans.texts using (text_sha256)"
    ).rows():
        if text:
            (alone,) = score_texts(lm, {"": text}, 24)
            assert mean == pytest.approx(alone.mean_nll, abs=1e-4)


def test_nothing_is_kept_on_disk_where_that_is_not_wanted(house: House) -> None:
    materialize(house, {"kept_gigabytes": 0})
    assert not (house[0].open().path.parent / "paths").exists()
    lm, store = tiny_language_model("llama"), house[0].open()
    old = prefixes(store, lm)
    filled(store, MONTHS[:5])
    assert materialize(house, {"kept_gigabytes": 0})["tokens_now"].value > len(prefixes(store, lm) - old)


def test_what_other_versions_of_the_libraries_computed_is_not_gone_on_from(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    materialize(house)
    lm, store = tiny_language_model("llama"), house[0].open()
    old = prefixes(store, lm)
    filled(store, MONTHS[:5])
    held = {path.parent for path in (store.path.parent / "paths").rglob("*.safetensors")}
    monkeypatch.setattr(libraries, "version", lambda name: "another")
    assert materialize(house)["tokens_now"].value > len(prefixes(store, lm) - old)
    now = {path.parent for path in (store.path.parent / "paths").rglob("*.safetensors")}
    assert len(held) == len(now) == 1
    assert not now & held


def test_articles_that_never_change_leave_nothing_on_disk(house: House) -> None:
    store = house[0].open()
    store.merge("spans.resources", pl.DataFrame([{"resource": "docs", "kind": "unpaired", "max_tokens": 24}]))
    assert materialize(house)["tokens_now"].value > 0
    assert not (store.path.parent / "paths").exists()


def test_other_weights_under_the_same_name_are_scored_again(house: House, tmp_path: Path) -> None:
    materialize(house)
    store = house[0].open()
    before = store.query("select text_sha256, mean_nll from perplexity.scores where status = 'ok'")
    saved_tiny_model(tmp_path / "tiny", "llama", seed=1)
    assert materialize(house)["scored_now"].value == pending_all(store)
    after = store.query("select text_sha256, mean_nll as now from perplexity.scores where status = 'ok'")
    assert before.join(after, on="text_sha256").filter(pl.col("mean_nll") == pl.col("now")).is_empty()


def test_another_context_is_another_way_of_scoring_and_never_stands_beside_the_old_one(
    house: House, tmp_path: Path
) -> None:
    listed = tmp_path / "models.yaml"
    whole = listed.read_text()
    store, lengths = house[0].open(), []
    for text in (whole, whole + "    context_length: 12\n", whole + "    context_length: 9\n", whole):
        listed.write_text(text)
        assert materialize(house)["scored_now"].value == pending_all(store)
        assert store.query("select count(distinct weights_digest) from perplexity.scores").item() == 1
        lengths.append(store.query("select max(n_tokens) from perplexity.scores").item())
    assert lengths == [17, 11, 8, 17]
    assert materialize(house)["scored_now"].value == 0


def test_scores_of_a_shorter_context_that_an_older_version_left_are_made_again(house: House) -> None:
    materialize(house)
    store = house[0].open()
    rows = store.query("select * from perplexity.scores where status = 'ok' order by text_sha256")
    cut = rows.head(2).with_columns(
        is_context_limited=True, n_tokens=pl.lit(5, dtype=pl.Int32), mean_nll=9.0, perplexity=pl.lit(9.0).exp()
    )
    store.merge("perplexity.scores", cut)
    assert materialize(house)["scored_now"].value == 2
    again = store.query("select * from perplexity.scores where status = 'ok' order by text_sha256")
    assert again["n_tokens"].to_list() == rows["n_tokens"].to_list()
    assert again["mean_nll"].to_list() == pytest.approx(rows["mean_nll"].to_list(), abs=1e-4)


def test_a_score_that_no_model_gives_is_a_row_with_its_reason_and_the_others_go_on(
    house: House, tmp_path: Path
) -> None:
    store = house[0].open()
    scoring = local_scoring(house[1].find(NAME), cache=tmp_path / "cache")

    class StandIns:
        def run(self, worker, tasks):
            for task, rows in LocalCompute(1).run(worker, tasks):
                spoilt = next(row["text_sha256"] for row in rows if row["status"] == "ok")
                yield task, [row | {"mean_nll": 9999.5} if row["text_sha256"] == spoilt else row for row in rows]

    score_pending(store, scoring, StandIns())
    counts = dict(store.query("select status, count(*) from perplexity.scores group by 1").iter_rows())
    assert counts["impossible"] > 0
    assert counts["ok"] > 0
    reasons = store.query("select distinct reason from perplexity.scores where status = 'impossible'")["reason"]
    assert reasons.to_list() == ["a mean of 1e+04 nats a token is no model's: over 50 is a stand-in"]
    assert pending(store, scoring).is_empty()


def test_other_weights_leave_gaps_and_no_mixture_where_scoring_is_cut_short(house: House, tmp_path: Path) -> None:
    materialize(house)
    store = house[0].open()
    other = replace(local_scoring(house[1].find(NAME), cache=tmp_path / "cache"), weights_digest="other")
    with pytest.raises(RuntimeError, match="cut short"):
        score_pending(store, other, CutShort())
    assert store.query("select count(*) from perplexity.scores").item() == 0


def test_no_finished_task_waits_for_the_next_one_where_tasks_are_slow(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, clock, texts, committed = house[0].open(), [0.0], [], []
    scoring = local_scoring(house[1].find(NAME), cache=tmp_path / "cache")
    monkeypatch.setattr(text_scoring, "monotonic", lambda: clock[0])
    monkeypatch.setattr(text_scoring, "TEXTS_A_TASK", 1)
    facts = {"model": NAME, "max_tokens": 24, "dtype": scoring.dtype, "weights_digest": scoring.weights_digest}
    facts |= {"scorer_version": "1", "status": "too_short", "reason": "none", "tokens_computed": 0}

    class TwoAtATime:
        def run(self, worker, tasks):
            for number, task in enumerate(tasks):
                clock[0] += 0.1 if number % 2 else 60.0
                texts.append(len(task.payload["texts"]))
                yield task, [{"text_sha256": digest, **facts} for digest in task.payload["texts"]]
                committed.append(store.query("select count(*) from perplexity.scores").item())

    score_pending(store, scoring, TwoAtATime())
    assert len(committed) > 2
    assert committed == list(accumulate(texts))


class KilledAfter:
    """Compute that dies like a killed process: with results that were computed and never stored."""

    def __init__(self, tasks: int) -> None:
        self.tasks = tasks

    def run(self, worker, tasks):
        for done, result in enumerate(LocalCompute(1).run(worker, tasks)):
            if done == self.tasks:
                raise KeyboardInterrupt
            yield result


@pytest.mark.parametrize(("months", "tasks"), [(3, 1), (3, 2), (7, 1)])
def test_a_killed_run_that_goes_on_stores_the_scores_of_an_undisturbed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, months: int, tasks: int
) -> None:
    """Also a month later, when scores go on from the paths that were kept."""
    monkeypatch.setattr(text_scoring, "TEXTS_A_TASK", 2)
    spec = ModelSpec(NAME, "transformers", f"folder:{saved_tiny_model(tmp_path / 'tiny', 'llama')}")
    scores, commit = {}, text_scoring._commit
    for name in ("undisturbed", "killed"):
        folder = tmp_path / name
        store = Warehouse(folder / "w.duckdb", folder / "p.duckdb")
        scoring = local_scoring(spec, cache=folder, kept=PathStore(folder / "paths", 10**9))
        for count in range(3, months + 1, 2):
            filled(store, MONTHS[:count])
            if name == "killed" and count == months:
                monkeypatch.setattr(text_scoring, "_commit", lambda *_: None)
                with pytest.raises(KeyboardInterrupt):
                    score_pending(store, scoring, KilledAfter(tasks))
                monkeypatch.setattr(text_scoring, "_commit", commit)
            score_pending(store, scoring, LocalCompute(1))
        scores[name] = store.query("select * from perplexity.scores order by text_sha256").rows()
        paths = list((folder / "paths").rglob("*.safetensors"))
        assert len(paths) == len({path.name.split(".")[0] for path in paths})
    assert scores["killed"] == scores["undisturbed"]


class CutShort:
    def run(self, worker, tasks):
        raise RuntimeError("cut short")
        yield


def pending_all(store: Warehouse) -> int:
    return store.query("select count(distinct text_sha256) from spans.revisions").item()


def test_number_formats_are_separate_scores(house: House) -> None:
    materialize(house)
    materialize(house, {"dtype": "bfloat16"})
    counts = house[0].open().query("select dtype, count(*) as n from perplexity.scores group by 1 order by 1")
    assert dict(counts.iter_rows()).keys() == {"bfloat16", "float32"}
    assert len(set(counts["n"])) == 1


def test_what_was_saved_is_told(house: House) -> None:
    metadata = materialize(house)
    rows = house[0].open().query("select sum(tokens_saved) as saved from perplexity.scores")
    assert metadata["tokens_saved_by_prefixes"].value == rows.item() > 0
    assert metadata["times_fewer_tokens"].value > 1


def test_a_version_that_differs_only_beyond_the_limit_costs_nothing(house: House) -> None:
    materialize(house)
    store = house[0].open()
    old = " ".join([text_of(1, 0)] * 4)
    new = old + " with a new end"
    for month, content in ((MONTHS[3], old), (MONTHS[4], new)):
        digest = sha256(content.encode()).hexdigest()
        row = {"resource": "docs", "topic": "topic 1", "month": month, "status": "ok", "text_sha256": digest}
        store.merge("spans.texts", pl.DataFrame({"text_sha256": [digest], "text": [content]}))
        store.merge("spans.revisions", pl.DataFrame([row]))
        done = materialize(house)
        assert done["scored_now"].value == 1
    assert done["tokens_now"].value == 0
    means = store.query("select mean_nll from perplexity.scores where text_sha256 in (?, ?)", digests(old, new))
    assert means["mean_nll"].n_unique() == 1


def digests(*texts: str) -> list[str]:
    return [sha256(text.encode()).hexdigest() for text in texts]


def test_a_model_that_cannot_be_had_fails_with_one_sentence(house: House, tmp_path: Path) -> None:
    (tmp_path / "tiny" / "config.json").unlink()
    with pytest.raises(dg.Failure, match="no transformers model") as failed:
        materialize(house)
    assert not failed.value.allow_retries


def test_a_served_model_is_scored_like_any_other(tmp_path: Path, house: House) -> None:
    with CompletionsServer() as server:
        listed = tmp_path / "served.yaml"
        listed.write_text(f"models:\n  - name: {NAME}\n    backend: openai\n    source: {server.base_url}\n")
        first = materialize((house[0], ModelListResource(path=str(listed))))
        asked = len(server.requests)
        again = materialize((house[0], ModelListResource(path=str(listed))))
        assert len(server.requests) == asked
    assert (first["scored_now"].value, again["scored_now"].value) == (pending_all(house[0].open()), 0)
    rows = house[0].open().query("select distinct method, dtype from perplexity.scores where status = 'ok'")
    assert rows.rows() == [("remote", "served")]
