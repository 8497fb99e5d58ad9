"""Mining through Dagster: every table and exhibit of a small corpus, a second run that does nothing, a shard added."""

import json
import re
from datetime import date
from pathlib import Path

import dagster as dg
import polars as pl
import pytest
import yaml

from assets import corpus, corpus_exhibits
from assets.asset_checks import judge
from assets.partitions import corpora, key_for
from assets.suites.corpus import SUITES
from resources.configured import ComputeResource, CorpusListResource, WarehouseResource
from resources.corpus import mining as corpus_mining
from resources.corpus import search_index
from resources.warehouse.store import Warehouse
from strandline.corpus.attribution import VersionMatcher
from strandline.spans import text_digest
from strandline.spans.months import month_range

MONTHS = month_range(date(2020, 1, 1), date(2020, 12, 1))
TOPICS = ["Aruba", "Brazil", "Chad", "Denmark"]
KEY = key_for("small")


def version(topic: str, month: int) -> str:
    facts = [
        f"{topic} counted {1000 + 37 * n + month * (n % 3 == 0)} inhabitants in district {n}.[{n}]" for n in range(40)
    ]
    return f"{topic} is a country described in month {month}. " + " ".join(facts)


def fill(store: Warehouse) -> None:
    rows, texts = [], {}
    for topic in TOPICS:
        for number, month in enumerate(MONTHS):
            text = version(topic, number)
            texts[text_digest(text)] = text
            rows.append(
                {"resource": "facts", "topic": topic, "month": month, "status": "ok", "text_sha256": text_digest(text)}
            )
    unheard = {"resource": "facts", "topic": "Unheard", "month": MONTHS[11], "status": "ok"}
    texts[text_digest("zyx")] = "zyx"
    rows.append({**unheard, "text_sha256": text_digest("zyx")})
    store.merge("spans.texts", pl.DataFrame({"text_sha256": list(texts), "text": list(texts.values())}))
    store.merge("spans.revisions", pl.DataFrame(rows))
    curve = [{"model": "tiny", "resource": "facts", "month": month, "n_documents": 4, "n_excluded": 0,
              "relative_perplexity": abs(number - 3) / 8} for number, month in enumerate(MONTHS)]  # fmt: skip
    store.merge("perplexity.monthly_curves", pl.DataFrame(curve))


def lines(file: Path, texts: list[tuple[str, str]]) -> None:
    records = [json.dumps({"text": text, "url": url, "timestamp": "2020-11-20"}) for text, url in texts]
    file.write_text("\n".join(records) + "\n", encoding="utf-8")


def make_world(tmp_path: Path) -> dict[str, object]:
    old = [(version(topic, 3), f"https://mirror.example/{topic}") for topic in TOPICS for _ in range(3)]
    lines(
        tmp_path / "crawl-1.jsonl", [*old, ("An unrelated page about cooking rice and beans.", "https://food.example/")]
    )
    lines(tmp_path / "wiki-1.jsonl", [(version(topic, 11), f"https://en.wiki.example/{topic}") for topic in TOPICS])
    settings = {
        "corpora": [
            {
                "corpus": "small",
                "resources": ["facts"],
                "models": ["tiny"],
                "dedup_rule": "paragraph",
                "excluded_domains": ["original.example"],
                "parts": [
                    {"files": f"{tmp_path}/crawl-*.jsonl", "subcorpus": "crawl"},
                    {"files": f"{tmp_path}/wiki-*.jsonl", "subcorpus": "wikipedia", "is_crawl": False},
                ],
            }
        ]
    }
    (tmp_path / "corpora.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    found = {
        "warehouse": WarehouseResource(
            path=str(tmp_path / "w.duckdb"), published=str(tmp_path / "p.duckdb"), reports=str(tmp_path / "reports")
        ),
        "compute": ComputeResource(workers=1),
        "corpus_list": CorpusListResource(path=str(tmp_path / "corpora.yaml"), cache_dir=str(tmp_path / "cache")),
    }
    fill(found["warehouse"].open())
    return found


@pytest.fixture
def world(tmp_path: Path) -> dict[str, object]:
    return make_world(tmp_path)


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], Path]:
    """A corpus that is mined once, for tests that only read."""
    folder = tmp_path_factory.mktemp("mined")
    world = make_world(folder)
    assert materialize(world, [*corpus.ASSETS, *corpus_exhibits.ASSETS]).success
    return world, folder


def materialize(world: dict[str, object], assets: list[dg.AssetsDefinition]) -> dg.ExecuteInProcessResult:
    instance = dg.DagsterInstance.ephemeral()
    instance.add_dynamic_partitions(corpora.name, [KEY])
    return dg.materialize(assets, partition_key=KEY, resources=world, instance=instance)


def test_a_corpus_is_mined_from_shards_to_sentence(mined):
    store = mined[0]["warehouse"].open()
    read = store.query("select subcorpus, sum(n_documents) as n from corpus.corpora group by all order by all")
    assert read.rows() == [("crawl", 13), ("wikipedia", 4)]
    counts = store.query(
        "select subcorpus, month, weight from corpus.version_counts "
        "where method = 'edit_distance' and weight > 0 order by 1"
    )
    assert counts.rows() == [("crawl", date(2020, 4, 1), 12.0), ("wikipedia", date(2020, 12, 1), 4.0)]
    ngrams = store.query("select month from corpus.version_counts where method = 'ngram' order by weight desc limit 1")
    assert ngrams.item() == date(2020, 4, 1)
    why = store.query("select * from corpus.explanations where model = 'tiny'").row(0, named=True)
    assert (why["gap_months"], why["reported_month"]) == (8, date(2020, 12, 1))
    assert (why["old_crawl_months"], why["duplicate_months"], why["remainder_months"]) == (7, 0, 1)
    assert why["correlation"] < 0
    assert "tiny" not in why["sentence"]
    assert "of a gap of 8 months" in why["sentence"]
    classes = dict(store.query("select class, count(*) from corpus.duplicate_pairs group by all").iter_rows())
    assert classes["exact"] == 8
    assert store.query("select count(*) from corpus.dedup_audit where rule = 'paragraph' and is_stated").item() >= 1
    missed = store.query("select n_caught, n_missed from corpus.dedup_audit where rule = 'domain' and class = 'mirror'")
    assert missed.row(0) == (0, 16)
    copies = store.query("from corpus.copies_of_my_resource").row(0, named=True)
    assert (copies["n_copies"], copies["n_exact_copies"]) == (16, 16)
    assert (copies["n_topics_with_copies"], copies["n_topics_searched"]) == (4, 5)
    versions = store.query("select topic, month, n_copies from corpus.versions_of_my_resource order by all")
    assert versions.rows()[0] == ("Aruba", date(2020, 4, 1), 3.0)
    assert store.query("select older_share from corpus.older_than_reported").item() == 0.75


def test_every_suite_passes_on_a_mined_corpus_and_fails_on_damage(mined):
    store = mined[0]["warehouse"].open()
    for table, suite in SUITES.items():
        report = judge(store, table, suite, {"corpus": "small"})
        assert report.passed, report.sentence
    assert not judge(store, "corpus.matches", SUITES["corpus.matches"], {"corpus": "no such"}).passed


def test_a_second_run_computes_nothing_and_changes_no_row(world, monkeypatch):
    assert materialize(world, corpus.ASSETS).success
    store = world["warehouse"].open()
    before = {table: store.digest(table) for table in SUITES}

    def refuse(*arguments: object) -> None:
        raise AssertionError("nothing is left to compute")

    monkeypatch.setattr(search_index, "_fill", refuse)
    monkeypatch.setattr(corpus_mining, "_topic_rows", refuse)
    monkeypatch.setattr(search_index.SearchIndex, "statistics", refuse)
    monkeypatch.setattr(corpus_mining, "profile", refuse)
    assert materialize(world, corpus.ASSETS).success
    assert {table: store.digest(table) for table in SUITES} == before


def test_a_new_shard_costs_only_itself(world, tmp_path, monkeypatch):
    assert materialize(world, corpus.ASSETS).success
    lines(tmp_path / "crawl-2.jsonl", [(version("Chad", 5), "https://late.example/")])
    indexed, compared = [], []
    fill_index, attribute = search_index._fill, VersionMatcher.attribute
    monkeypatch.setattr(search_index, "_fill", lambda *a: indexed.append(a) or fill_index(*a))
    monkeypatch.setattr(VersionMatcher, "attribute", lambda self, text: compared.append(text) or attribute(self, text))
    assert materialize(world, corpus.ASSETS).success
    assert len(indexed) == 1
    assert set(compared) == {version("Chad", 5)}
    store = world["warehouse"].open()
    found = store.query("select months from corpus.matches where location like '%crawl-2%' and weight = 1").item()
    assert list(found) == [date(2020, 6, 1)]


def test_a_file_that_cannot_be_reached_is_a_row_and_the_rest_is_mined(world, tmp_path):
    (tmp_path / "crawl-9.jsonl").mkdir()
    (tmp_path / "crawl-3.jsonl").write_bytes(b'{"text": "half a rec')
    assert materialize(world, corpus.ASSETS).success
    broken = world["warehouse"].open().query("select location, position, kind from corpus.broken_records")
    assert [(Path(location).name, position, kind) for location, position, kind in broken.iter_rows()] == [
        ("crawl-3.jsonl", 1, "json")
    ]


def test_an_empty_corpus_has_no_rows_and_fails_its_check(world, tmp_path):
    for file in tmp_path.glob("*.jsonl"):
        file.write_bytes(b"")
    assert materialize(world, [*corpus.ASSETS, *corpus_exhibits.ASSETS]).success
    store = world["warehouse"].open()
    assert store.query("select distinct status from corpus.corpora").item() == "empty"
    assert store.query("select count(*) from corpus.matches").item() == 0
    assert store.query("select status from corpus.explanations where model = 'none'").item() == "missing"
    assert not judge(store, "corpus.corpora", SUITES["corpus.corpora"], {"corpus": "small"}).passed


def test_a_resource_without_texts_is_searched_for_nothing(world):
    store = world["warehouse"].open()
    store.replace("spans.revisions", store.query("select * from spans.revisions").clear())
    store.replace("spans.resources", pl.DataFrame({"resource": ["facts"], "kind": ["panel"], "max_tokens": [512]}))
    assert materialize(world, corpus.ASSETS).success
    assert store.query("select count(*) from corpus.version_counts").item() == 0
    assert "no copy" in store.query("select sentence from corpus.explanations where model = 'none'").item()


def test_a_resource_that_was_never_read_is_named_beside_those_that_were(world):
    settings = Path(world["corpus_list"].path)
    settings.write_text(settings.read_text().replace("- facts", "- fatcs"))
    with pytest.raises(dg.Failure, match="the resource fatcs has not been read; those that were are facts"):
        materialize(world, corpus.ASSETS)


def test_the_exhibits_are_pictures_and_coloured_pairs(mined):
    reports = mined[1] / "reports" / "corpus" / KEY
    page = (reports / "duplicates.html").read_text(encoding="utf-8")
    assert "background:#" in page
    assert "crawl-1.jsonl:line " in page
    mirrors = page.split("outside the domains that the corpus leaves out")[1]
    assert re.search(r"(Aruba|Brazil|Chad|Denmark) 2020-(04|12)</b>", mirrors)
    assert "background:#" in mirrors
    assert (reports / "versions_by_subcorpus_facts.png").stat().st_size > 5000
    assert (reports / "ngrams_behind_curves_facts.png").stat().st_size > 5000
