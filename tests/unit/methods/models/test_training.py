"""Training corpora: Table 1 of the paper and its section 3.3 as rows."""

from datetime import date
from pathlib import Path

import pytest

from strandline.models.training import TrainingCorpus, read_training_corpora

MIX = "model,family,corpus,part_of,n_dumps,dump_from,dump_to,upsampling,is_verified,note,source\n"
CORPUS = (
    "corpus,kind,dump_from,dump_to,size_gb,n_tokens,n_documents_note,deduplication,excludes,is_public,note,source\n"
)
C4 = "C4,crawl,2019-04,2019-04,750,,one dump,three sentences,,true,,paper\n"


@pytest.fixture(scope="module")
def table(root: Path) -> dict[tuple[str, str], TrainingCorpus]:
    rows = read_training_corpora(root / "data" / "training_corpora.csv", root / "data" / "corpora.csv")
    return {(r.model, r.corpus): r for r in rows}


def test_the_eight_suites_of_table_1_have_their_marks(table: dict[tuple[str, str], TrainingCorpus]) -> None:
    marks = {(m, c) for m, c in table if c in ("Pile", "C4", "RefinedWeb")}
    assert marks == {
        ("Pythia", "Pile"),
        ("GPT-Neo", "Pile"),
        ("GPT-J", "Pile"),
        ("RedPajama", "C4"),
        ("Falcon", "RefinedWeb"),
        ("Falcon", "Pile"),
        ("FalconRW", "RefinedWeb"),
        ("OLMo", "C4"),
        ("LLaMA", "C4"),
    }


@pytest.mark.parametrize(
    ("model", "corpus", "dumps", "first", "last"),
    [
        ("RedPajama", "CommonCrawl", 5, date(2019, 1, 1), date(2023, 1, 31)),
        ("OLMo", "CommonCrawl", 20, date(2020, 1, 1), date(2023, 6, 30)),
        ("LLaMA", "CommonCrawl", 5, date(2017, 1, 1), date(2020, 12, 31)),
        ("FalconRW", "RefinedWeb", None, date(2008, 1, 1), date(2023, 2, 28)),
        ("Pythia", "Pile-CC", None, date(2013, 1, 1), date(2020, 12, 31)),
        ("RedPajama", "Wikipedia", 1, date(2023, 3, 1), date(2023, 3, 31)),
        ("LLaMA", "Wikipedia", 1, date(2022, 8, 1), date(2022, 8, 31)),
        ("Falcon", "Pile-Wikipedia", 1, date(2020, 3, 1), date(2020, 3, 31)),
    ],
)
def test_the_dumps_of_table_1(
    table: dict[tuple[str, str], TrainingCorpus], model: str, corpus: str, dumps: int | None, first: date, last: date
) -> None:
    row = table[model, corpus]
    assert (row.n_dumps, row.dump_from, row.dump_to) == (dumps, first, last)


def test_the_pile_holds_wikipedia_three_times_and_its_deduplicated_form_does_not(
    table: dict[tuple[str, str], TrainingCorpus],
) -> None:
    assert {table[m, "Pile-Wikipedia"].upsampling for m in ("Pythia", "GPT-Neo", "GPT-J")} == {3}
    assert ("Pythia-deduped", "Pile-Wikipedia") not in table
    assert table["Pythia-deduped", "Pile-deduplicated"].family == "Pythia"


def test_refinedweb_excludes_wikipedia_and_c4_is_one_dump(table: dict[tuple[str, str], TrainingCorpus]) -> None:
    assert "wikipedia.org" in str(table["FalconRW", "RefinedWeb"].excludes)
    assert {r.dump_from for (_, c), r in table.items() if c == "C4"} == {date(2019, 4, 1)}


def test_closed_models_are_rows_of_their_own_and_unverified(table: dict[tuple[str, str], TrainingCorpus]) -> None:
    assert {m for (m, _), r in table.items() if not r.is_verified} == {"Gemma", "LLaMA-2", "Mistral"}
    assert all(r.corpus == "undisclosed" for r in table.values() if not r.is_verified)


@pytest.mark.parametrize(
    ("mix", "message"),
    [
        ("A,A,Other,,,,,,true,,paper\n", "no corpus 'Other'"),
        ("A,A,C4,,,,,,true,,paper\n" * 2, "given twice"),
        ("A,A,C4,,,2020-13,,,true,,paper\n", "impossible date"),
        ("A,A,C4,,,2021,2020,,true,,paper\n", "end before they begin"),
        ("A,A,C4,,few,,,,true,,paper\n", "invalid literal"),
        ("A,A,C4,,,,,,maybe,,paper\n", "is_verified"),
        ("A,A,C4,Pile,,,,,true,,paper\n", "is part of Pile"),
        ("A,A,C4\n", "number of columns"),
    ],
)
def test_a_faulty_mix_is_refused_with_its_place(tmp_path: Path, mix: str, message: str) -> None:
    (tmp_path / "mix.csv").write_text(MIX + mix, encoding="utf-8")
    (tmp_path / "corpora.csv").write_text(CORPUS + C4, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as caught:
        read_training_corpora(tmp_path / "mix.csv", tmp_path / "corpora.csv")
    assert "mix.csv" in str(caught.value)


def test_dates_of_the_mix_stand_before_those_of_the_corpus(tmp_path: Path) -> None:
    (tmp_path / "mix.csv").write_text(MIX + "A,A,C4,,,2018,,,true,,paper\n", encoding="utf-8")
    (tmp_path / "corpora.csv").write_text(CORPUS + C4, encoding="utf-8")
    (row,) = read_training_corpora(tmp_path / "mix.csv", tmp_path / "corpora.csv")
    assert (row.dump_from, row.dump_from_precision, row.dump_to) == (date(2018, 1, 1), "year", date(2019, 4, 30))
