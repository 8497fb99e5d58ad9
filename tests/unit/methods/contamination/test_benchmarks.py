"""Benchmark files: the declared list, every format, the stated rules, and what is refused."""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from strandline.contamination.benchmark_formats import FORMATS, FileFormat
from strandline.contamination.benchmarks import COLUMNS, BenchmarkSpec, read_benchmark, read_specs

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


def test_the_committed_list_declares_at_least_a_dozen_public_benchmarks_and_our_own(root) -> None:
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


def test_our_own_benchmark_is_readable_and_distinct(root) -> None:
    ours = next(
        item for item in read_specs((root / "data" / "benchmarks.csv").read_text()) if item.benchmark == "tideline"
    )
    found = read_benchmark(ours, (root / ours.address).read_bytes())
    assert len(found.texts) == 200
    assert (found.n_empty, found.n_cut, found.n_duplicates) == (0, 0, 0)
    assert all(text.startswith("Question: ") and "\nAnswer: " in text for text in found.texts)


def test_public_files_read_as_declared(root: Path) -> None:
    """Rows as the published files of two listed benchmarks have them, with words of our own."""
    specs = {item.benchmark: item for item in read_specs((root / "data" / "benchmarks.csv").read_text())}
    rows = [{"question": f"How much is {k} and {k}?", "answer": f"{k} + {k} = {2 * k}\n#### {2 * k}"} for k in range(3)]
    payload = "\n".join(json.dumps(row) for row in rows).encode()
    gsm8k = read_benchmark(replace(specs["gsm8k_test"], sha256=None), payload)
    assert gsm8k.texts[1] == "How much is 1 and 1?\n1 + 1 = 2\n#### 2"
    mmlu = replace(specs["mmlu_sociology"], address="x", sha256=None)
    table = b'"Which, of these?",one,"two, or more",three,four,B\nAnd this?,a,b,c,d,D\n'
    made = read_benchmark(mmlu, table)
    assert len(made.texts) == 2
    assert made.labels == ("B", "D")
    assert "two, or more" in made.texts[0]


def test_every_format_keeps_the_published_order() -> None:
    table = pl.DataFrame({"q": [row["q"] for row in ROWS]})
    parquet = io.BytesIO()
    table.write_parquet(parquet)
    payloads = {
        "jsonl": (JSONL, "q"),
        "json": (json.dumps(ROWS).encode(), "{q}"),
        "csv": (table.write_csv().encode(), "q"),
        "csv-noheader": (b"one?,1\ntwo?,2\nthree?,3\n", "0"),
        "tsv": (table.write_csv(separator="\t").encode(), "q"),
        "tsv-noheader": (b"one?\t1\ntwo?\t2\nthree?\t3\n", "0"),
        "parquet": (parquet.getvalue(), "q"),
        "lines": (b"one?\r\ntwo?\n\nthree?\n", "0"),
    }
    assert set(payloads) == {kind.name for kind in FORMATS}
    for kind, (payload, text) in payloads.items():
        assert read_benchmark(spec(kind, text), payload).texts == ("one?", "two?", "three?")


def test_templates_reach_into_fields_and_lists() -> None:
    rows = [{"question": {"stem": "s", "choices": [{"text": "p"}, {"text": "q"}]}, "key": "A"}]
    payload = json.dumps(rows[0]).encode()
    found = read_benchmark(spec(text=r"{question.stem}\n{question.choices[].text}", label="key"), payload)
    assert found.texts == ("s\np\nq",)
    assert found.labels == ("A",)
    assert read_benchmark(spec(text="{q}: {a[]}"), JSONL).texts == ("one?: x\ny", "two?: z", "three?:")


def test_compressed_files_and_archive_members_are_opened_by_what_they_are() -> None:
    zst = zstandard.compress(JSONL)
    for packed in (gzip.compress(JSONL), bz2.compress(JSONL), lzma.compress(JSONL), zst):
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


def test_empty_long_and_repeated_examples_follow_the_stated_rules() -> None:
    payload = "\n".join(json.dumps({"q": text}) for text in ["a", " ", "b" * 5000, "a", ""]).encode()
    found = read_benchmark(spec(), payload)
    assert [len(text) for text in found.texts] == [1, 4000, 1]
    assert (found.n_empty, found.n_cut, found.n_duplicates) == (2, 1, 1)


def test_the_digest_follows_the_order() -> None:
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
def test_bad_files_are_refused_in_clear_words(declared, payload, words) -> None:
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
def test_faulty_lines_of_the_list_are_named(row, words) -> None:
    with pytest.raises(ValueError, match=f"line 2: .*{words}"):
        read_specs(csv_text(row))


def test_a_list_without_its_columns_or_with_a_name_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks the column"):
        read_specs("benchmark,version\nx,1\n")
    with pytest.raises(ValueError, match="used twice"):
        read_specs(csv_text(line(), line()))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (csv_text(line()) + "\nb2,1,x,jsonl,q,,,,,more,cells\n", "line 3: 11 cells for 9 columns"),
        (csv_text(line()) + '\n"b2,1,x,jsonl,q\n', "the list of benchmarks"),
    ],
)
def test_lines_with_too_many_cells_or_an_open_quote_are_named(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_specs(text)


def test_a_list_saved_with_a_byte_order_mark_is_read() -> None:
    assert [item.benchmark for item in read_specs("\ufeff" + csv_text(line()))] == ["b"]


def test_one_line_adds_a_file() -> None:
    (only,) = read_specs(csv_text(line(address="my.jsonl", published_on="2024-02-03")))
    assert read_benchmark(only, JSONL).texts[0] == "one?"


@given(st.sampled_from([kind.name for kind in FORMATS]), st.binary(max_size=200), st.text(max_size=12))
def test_any_bytes_give_examples_or_an_error(kind, payload, text) -> None:
    try:
        found = read_benchmark(spec(kind, text or "q"), payload)
    except ValueError:
        return
    assert found.texts
    assert all(found.texts)


BBH = json.dumps({"canary": "do not train", "keywords": ["logic"], "examples": ROWS}).encode()
VIEWED = {
    "features": [{"feature_idx": 0, "name": "q"}],
    "rows": [{"row_idx": i, "row": row, "truncated_cells": []} for i, row in enumerate(ROWS)],
    "num_rows_total": 3,
}


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("json", BBH),
        ("json:examples", BBH),
        ("json:a.b", json.dumps({"a": {"b": ROWS, "c": ROWS}}).encode()),
        ("json", json.dumps(VIEWED).encode()),
        ("json:rows", json.dumps(VIEWED).encode()),
        ("json", json.dumps(VIEWED["rows"]).encode()),
    ],
)
def test_examples_in_a_list_under_a_key_are_found(kind: str, payload: bytes) -> None:
    assert read_benchmark(spec(kind), payload).texts == ("one?", "two?", "three?")


@pytest.mark.parametrize(
    ("kind", "payload", "words"),
    [
        ("json", {"train": ROWS, "test": ROWS}, "holds train, test; name one as format json:key"),
        ("json", {"keywords": ["a", "b"]}, "not a list of examples, and holds none under a key"),
        ("json:nowhere", {"examples": ROWS}, "no key 'nowhere'"),
        ("json", 3, "not a list of examples"),
        ("json", {"rows": [{"row_idx": 0, "row": ROWS[0], "truncated_cells": ["q"]}]}, "row 0: column 'q': the dataset "
         "viewer has cut it"),
    ],
)  # fmt: skip
def test_a_json_file_without_one_list_of_examples_says_what_it_holds(kind: str, payload: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_benchmark(spec(kind), json.dumps(payload).encode())


def test_a_cut_cell_that_is_not_taken_harms_nothing() -> None:
    row = {"row_idx": 0, "row": {"q": "one?", "long": "x"}, "truncated_cells": ["long"]}
    assert read_benchmark(spec("json"), json.dumps({"rows": [row]}).encode()).texts == ("one?",)


@pytest.mark.parametrize(
    ("kind", "payload", "words"),
    [
        ("csv", b"q,a\none?,1\ntwo?\n", "line 3 has 1 cell"),
        ("csv", b"q,a\none?,1\ntwo?,2,3\n", "line 3 has 3 cell"),
        ("csv-noheader", b"one?,1\ntwo?,2,3\n", "line 2 has 3 cell"),
        ("csv", b'q\n"one?\ntwo?\n', "unexpected end of data"),
        ("csv", b'q\n"one?" he said\n', "not readable as csv"),
        ("tsv", b"q\ta\none?\t1\t2\n", "line 2 has 3 cell"),
        ("csv", b"q,q\none?,two?\n", "column 'q': the header names it twice"),
        ("jsonl", b'{"q": "one?"}\n{"q": \n', "line 2: Expecting value"),
        ("jsonl", '{"q": "caf\u00e9"}'.encode("latin-1"), "convert the file to UTF-8"),
        ("jsonl", b'{"q": {"stem": "one?"}}', "holds an object; name what to take of it, such as {q.stem}"),
        ("jsonl", b'{"q": "one?"}\n{"q": "a \\ud83d b"}', r"row 1 holds \\ud83d, half of a character, at 2"),
        ("jsonl", b"[" * 100_000, "not readable as jsonl"),
        ("jsonl", zstandard.compress(JSONL)[:-4], "zstd: the file ends early"),
        ("jsonl", zstandard.compress(JSONL)[:8] + b"xxxxxxxxxxxxx", "not readable as zstd"),
        ("jsonl", gzip.compress(JSONL, mtime=0)[:-9], "not readable as jsonl"),
    ],
)
def test_what_would_be_taken_wrongly_in_silence_is_refused(kind: str, payload: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_benchmark(spec(kind), payload)


def test_a_repeated_name_in_a_header_harms_nothing_where_it_is_not_taken() -> None:
    assert read_benchmark(spec("csv"), b"q,x,x\none?,1,2\n").texts == ("one?",)


def test_an_encrypted_archive_is_refused_in_words() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("x", JSONL)
    content = bytearray(packed.getvalue())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(ValueError, match="encrypted"):
        read_benchmark(spec(address="a#x"), bytes(content))


def test_cells_longer_than_the_libraries_limit_are_read_and_cut_as_stated() -> None:
    found = read_benchmark(spec("csv"), b"q,a\n" + b"x" * 200_000 + b",1\ntwo?,2\n")
    assert ([len(text) for text in found.texts], found.n_cut) == ([4000, 4], 1)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("jsonl", '{"q": "caf\u00e9"}\r\n{"q": "two?"}\r\n'),
        ("json", '[{"q": "caf\u00e9"}, {"q": "two?"}]'),
        ("csv", "q,a\r\ncaf\u00e9,1\r\ntwo?,2\r\n"),
        ("tsv", "q\ta\r\ncaf\u00e9\t1\r\ntwo?\t2\r\n"),
        ("lines", "caf\u00e9\r\ntwo?\r\n"),
    ],
)
def test_every_unicode_encoding_is_read_with_and_without_its_mark(encoding: str, kind: str, text: str) -> None:
    found = read_benchmark(spec(kind, "0" if kind == "lines" else "q"), text.encode(encoding))
    assert found.texts == ("caf\u00e9", "two?")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{a.b}", "dotted"),
        ("{c.d.e}", "half dotted"),
        ("{f.g}", "nested"),
        ("{h[]}", "bracketed"),
        ("{k[].l.m}", "one\ntwo"),
        ("{n.1.o}", "by number"),
    ],
)
def test_names_with_dots_and_brackets_come_before_paths(text: str, expected: str) -> None:
    row = {
        "a.b": "dotted", "a": {"b": "nested"}, "c.d": {"e": "half dotted"}, "f": {"g": "nested"}, "h[]": "bracketed",
        "k": [{"l.m": "one"}, {"l": {"m": "two"}}], "n": [0, {"o": "by number"}],
    }  # fmt: skip
    assert read_benchmark(spec(text=text), json.dumps(row).encode()).texts == (expected,)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b'q\ta\n"one"\t1\n"two ""x"""\t2\n', ("one", 'two "x"')),
        (b'q\ta\n"one\ttab"\t1\ntwo\t2\n', ("one\ttab", "two")),
        (b'q\ta\n"one\t1\ntwo"\t2\n', ('"one', 'two"')),
        (b'q\ta\n1" pipe\t1\n"Go," he said\t2\n', ('1" pipe', '"Go," he said')),
        (b'a\tq\n1\t"one\n2\ttwo"\n', ('"one', 'two"')),
    ],
)
def test_quotes_between_tabs_are_removed_only_where_no_line_is_lost(payload: bytes, expected: tuple[str, ...]) -> None:
    assert read_benchmark(spec("tsv"), payload).texts == expected


@pytest.mark.parametrize(
    ("kind", "words"), [("jsonl:x", "jsonl takes no key"), ("json:", "names no key"), ("xml:x", "is not one of")]
)
def test_a_format_that_makes_no_sense_is_named_in_the_list(kind: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"line 2: .*{words}"):
        read_specs(csv_text(line(format=kind)))
    assert read_specs(csv_text(line(format="json:data.rows")))[0].format == "json:data.rows"


def test_a_format_is_one_record_more(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = FileFormat("blocks", lambda payload, _: [[block] for block in payload.decode().split("\n\n")])
    monkeypatch.setattr("strandline.contamination.benchmark_formats.FORMATS", (*FORMATS, blocks))
    [listed] = read_specs(csv_text(line(format="blocks", text="0")))
    assert read_benchmark(listed, b"one?\n\ntwo?\nlines").texts == ("one?", "two?\nlines")
