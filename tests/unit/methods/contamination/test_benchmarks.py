"""Benchmark files: the declared list, every format, the stated rules, and what is refused."""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import tarfile
import zipfile

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.contamination.benchmarks import COLUMNS, FORMATS, BenchmarkSpec, read_benchmark, read_specs

ROWS = [{"q": "one?", "a": ["x", "y"]}, {"q": "two?", "a": ["z"]}, {"q": "three?", "a": []}]
JSONL = "\n".join(json.dumps(row) for row in ROWS).encode()


def spec(kind="jsonl", text="q", **more):
    return BenchmarkSpec("b", "1", more.pop("address", "x"), kind, text, **more)


def line(**values):
    base = dict.fromkeys(COLUMNS, "")
    base.update(benchmark="b", version="1", address="x", format="jsonl", text="q")
    return base | values


def csv_text(*rows):
    return "\n".join([",".join(COLUMNS), *(",".join(row[name] for name in COLUMNS) for row in rows)])


def test_the_committed_list_declares_at_least_a_dozen_public_benchmarks_and_our_own(root):
    specs = read_specs((root / "data" / "benchmarks.csv").read_text(encoding="utf-8"))
    public = [item for item in specs if item.address.startswith("https://")]
    assert len(public) >= 12
    assert all(item.licence and item.published_on for item in public)
    named = " ".join(item.benchmark for item in specs)
    families = [
        "gsm8k",
        "truthfulqa",
        "humaneval",
        "mmlu",
        "boolq",
        "arc",
        "piqa",
        "openbookqa",
        "hellaswag",
        "lambada",
    ]
    assert [name for name in families if name not in named] == []


def test_our_own_benchmark_is_readable_and_distinct(root):
    ours = next(
        item for item in read_specs((root / "data" / "benchmarks.csv").read_text()) if item.benchmark == "tideline"
    )
    found = read_benchmark(ours, (root / ours.address).read_bytes())
    assert len(found.texts) == 200
    assert (found.n_empty, found.n_cut, found.n_duplicates) == (0, 0, 0)
    assert all(text.startswith("Question: ") and "\nAnswer: " in text for text in found.texts)


def test_the_shared_copies_read_as_declared(root, shared):
    specs = {item.benchmark: item for item in read_specs((root / "data" / "benchmarks.csv").read_text())}
    gsm8k = read_benchmark(specs["gsm8k_test"], (shared / "data" / "bench" / "gsm8k_test.jsonl").read_bytes())
    assert len(gsm8k.texts) == 1319
    mmlu = specs["mmlu_sociology"]
    alone = BenchmarkSpec(mmlu.benchmark, "1", "x", mmlu.format, mmlu.text, mmlu.label)
    found = read_benchmark(alone, (shared / "data" / "bench" / "mmlu_sociology_test.csv").read_bytes())
    assert len(found.texts) == 201
    assert set(found.labels) == set("ABCD")


def test_every_format_keeps_the_published_order():
    table = pl.DataFrame({"q": [row["q"] for row in ROWS]})
    parquet = io.BytesIO()
    table.write_parquet(parquet)
    payloads = {
        "jsonl": (JSONL, "q"),
        "json": (json.dumps(ROWS).encode(), "{q}"),
        "csv": (table.write_csv().encode(), "q"),
        "csv-noheader": (b"one?,1\ntwo?,2\nthree?,3\n", "0"),
        "parquet": (parquet.getvalue(), "q"),
        "lines": (b"one?\r\ntwo?\n\nthree?\n", "0"),
    }
    assert set(payloads) == set(FORMATS)
    for kind, (payload, text) in payloads.items():
        assert read_benchmark(spec(kind, text), payload).texts == ("one?", "two?", "three?")


def test_templates_reach_into_fields_and_lists():
    rows = [{"question": {"stem": "s", "choices": [{"text": "p"}, {"text": "q"}]}, "key": "A"}]
    payload = json.dumps(rows[0]).encode()
    found = read_benchmark(spec(text=r"{question.stem}\n{question.choices[].text}", label="key"), payload)
    assert found.texts == ("s\np\nq",)
    assert found.labels == ("A",)
    assert read_benchmark(spec(text="{q}: {a[]}"), JSONL).texts == ("one?: x\ny", "two?: z", "three?:")


def test_compressed_files_and_archive_members_are_opened_by_what_they_are():
    for packed in (gzip.compress(JSONL), bz2.compress(JSONL), lzma.compress(JSONL)):
        assert len(read_benchmark(spec(), packed).texts) == 3
    zipped, tarred = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("in/x.jsonl", JSONL)
    with tarfile.open(fileobj=tarred, mode="w:gz") as archive:
        info = tarfile.TarInfo("in/x.jsonl")
        info.size = len(JSONL)
        archive.addfile(info, io.BytesIO(JSONL))
    for payload in (zipped.getvalue(), tarred.getvalue()):
        assert len(read_benchmark(spec(address="a#in/x.jsonl"), payload).texts) == 3
        with pytest.raises(ValueError, match="holds no"):
            read_benchmark(spec(address="a#in/y.jsonl"), payload)
    assert spec(address="https://h/a.zip#m").location == "https://h/a.zip"


def test_empty_long_and_repeated_examples_follow_the_stated_rules():
    payload = "\n".join(json.dumps({"q": text}) for text in ["a", " ", "b" * 5000, "a", ""]).encode()
    found = read_benchmark(spec(), payload)
    assert [len(text) for text in found.texts] == [1, 4000, 1]
    assert (found.n_empty, found.n_cut, found.n_duplicates) == (2, 1, 1)


def test_the_digest_follows_the_order():
    turned = "\n".join(reversed(JSONL.decode().split("\n"))).encode()
    assert read_benchmark(spec(), JSONL).digest != read_benchmark(spec(), turned).digest
    assert read_benchmark(spec(), JSONL).sha256 == hashlib.sha256(JSONL).hexdigest()


@pytest.mark.parametrize(
    ("declared", "payload", "words"),
    [
        (spec(text="answer"), JSONL, "row 0 has no column 'answer'; it has q, a"),
        (spec(text="{a[].x}"), JSONL, "no column"),
        (spec("csv-noheader", "{4}"), b"1,2\n", "2 column"),
        (spec(), b"{broken", "not readable as jsonl"),
        (spec("parquet"), b"PAR1nonsense", "parquet"),
        (spec("json"), b'{"a": 1}', "not a list"),
        (spec(), b"\xff\xfe\x00", "not readable"),
        (spec(), b"", "no example is left"),
        (spec(), b'{"q": " "}', "no example is left of 1"),
        (spec(sha256="0" * 64), JSONL, "sha256"),
        (spec(address="a#b"), b"PK\x03\x04broken", "not readable"),
        (spec(address="a#b"), b"no archive", "not readable"),
        (spec("lines", "q"), b"abc", "no column"),
        (spec(), b"3", "it is a int"),
    ],
)
def test_bad_files_are_refused_in_clear_words(declared, payload, words):
    with pytest.raises(ValueError, match=words):
        read_benchmark(declared, payload)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (line(text=""), "nothing under text"),
        (line(format="xml"), "format 'xml'"),
        (line(published_on="2021"), "not a date"),
        (line(sha256="abc"), "not a sha256"),
    ],
)
def test_faulty_lines_of_the_list_are_named(row, words):
    with pytest.raises(ValueError, match=f"line 2: .*{words}"):
        read_specs(csv_text(row))


def test_a_list_without_its_columns_or_with_a_name_twice_is_refused():
    with pytest.raises(ValueError, match="lacks the column"):
        read_specs("benchmark,version\nx,1\n")
    with pytest.raises(ValueError, match="used twice"):
        read_specs(csv_text(line(), line()))


def test_one_line_adds_a_file():
    (only,) = read_specs(csv_text(line(address="my.jsonl", published_on="2024-02-03")))
    assert read_benchmark(only, JSONL).texts[0] == "one?"


@given(st.sampled_from(sorted(FORMATS)), st.binary(max_size=200), st.text(max_size=12))
def test_any_bytes_give_examples_or_an_error(kind, payload, text):
    try:
        found = read_benchmark(spec(kind, text or "q"), payload)
    except ValueError:
        return
    assert found.texts
    assert all(found.texts)
