"""Shards: wherever they lie, known by content and way of reading, and the environment as a corpus."""

import gzip
import http.server
import os
import pickle
import threading
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

import fsspec
import pyarrow as pa
import pytest

from resources.corpus import environment as corpus_environment
from resources.corpus import readers
from resources.corpus.reader import Reader, Record
from resources.corpus.readers import reader_of
from resources.corpus.shards import Shard, read_shard, shards
from strandline.corpus import BrokenRecord, Document, Location
from strandline.corpus.layouts import LAYOUTS, Layout
from strandline.corpus.settings import CorpusPart, CorpusSpec
from tests.fakes.corpus_files import PAGE, ROWS, parquet_bytes, response, texts


class Ranged(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    def handler(*arguments: object) -> Ranged:
        return Ranged(*arguments, directory=str(tmp_path))

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_a_compressed_file_is_known_by_its_bytes_not_its_name(tmp_path: Path) -> None:
    (tmp_path / "misnamed.jsonl.gz").write_bytes(b'{"text": "plain after all"}\n')
    part = CorpusPart(files=(str(tmp_path / "misnamed.jsonl.gz"),))
    (shard,) = shards(CorpusSpec("c", parts=(part,), resources=("r",)))
    assert [record.text for record in read_shard(shard)] == ["plain after all"]


def test_a_corpus_is_read_over_http_and_from_an_object_store(served: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"\n".join(ROWS[:50]) + b"\n"))
    (tmp_path / "c.warc.gz").write_bytes(gzip.compress(response(PAGE)) + gzip.compress(response(PAGE)))
    (tmp_path / "d.parquet").write_bytes(parquet_bytes(pa.table({"text": ["row"]})))
    memory = fsspec.filesystem("memory")
    memory.pipe("/bucket/part/b.jsonl", ROWS[60] + b"\n")
    files = (*(f"{served}/{name}" for name in ("a.jsonl.gz", "c.warc.gz", "d.parquet")), "memory://bucket/part/*.jsonl")
    found = shards(CorpusSpec("c", parts=(CorpusPart(files=files, subcorpus="remote"),), resources=("r",)))
    assert len(found) == 4
    read = [record for shard in found for record in read_shard(shard)]
    assert len(texts(read)) == 54
    assert {record.subcorpus for record in read} == {"remote"}
    assert any(record.location.file == f"{served}/a.jsonl.gz" for record in read)


def test_a_file_on_a_server_that_only_tells_when_it_was_changed_is_read_again(served: str, tmp_path: Path) -> None:
    spec = CorpusSpec("c", parts=(CorpusPart(files=(f"{served}/a.jsonl",)),), resources=("r",))
    keys = []
    for row, changed in ((b'{"text": "one"}', 1_600_000_000), (b'{"text": "two"}', 1_600_000_060)):
        (tmp_path / "a.jsonl").write_bytes(row)
        os.utime(tmp_path / "a.jsonl", (changed, changed))
        keys += [shard.key for shard in shards(spec)]
    assert len(set(keys)) == 2


@pytest.mark.parametrize("name", ["*.jsonl", "absent.jsonl"])
def test_a_pattern_without_files_is_an_error_that_names_the_corpus(tmp_path: Path, served: str, name: str) -> None:
    for folder in (tmp_path, served):
        with pytest.raises(FileNotFoundError, match="corpus c: no file matches"):
            shards(CorpusSpec("c", parts=(CorpusPart(files=(f"{folder}/{name}",)),), resources=("r",)))


def test_a_file_of_an_unknown_format_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "notes.docx").write_bytes(b"x")
    (shard,) = shards(CorpusSpec("c", parts=(CorpusPart(files=(str(tmp_path / "notes.docx"),)),), resources=("r",)))
    (only,) = read_shard(shard)
    assert only.kind == "format"


def test_a_shard_is_known_by_its_content_and_reading(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(ROWS[0])

    def key(**settings: object) -> str:
        (shard,) = shards(CorpusSpec("c", parts=(CorpusPart(files=(str(file),), **settings),), resources=("r",)))
        return shard.key

    first = key()
    assert key() == first
    (tmp_path / "b.jsonl").write_bytes(ROWS[0])
    both = CorpusPart(files=(str(file), str(tmp_path / "b.jsonl")))
    assert first in {shard.key for shard in shards(CorpusSpec("c", parts=(both,), resources=("r",)))}
    assert key(layout=LAYOUTS["refinedweb"]) != first
    file.write_bytes(ROWS[1] + ROWS[2])
    assert key() != first


def test_the_environment_is_a_corpus_whose_versions_are_known() -> None:
    found = list(read_shard(shards(CorpusSpec("e", reader="environment", resources=("readme",)))[0]))
    known = {record.source_id: record for record in found if isinstance(record, Document)}
    assert known["polars"].revision == version("polars")
    assert "polars" in known["polars"].location.file
    assert len(known["polars"].text) > 500
    assert all(record.reason for record in found if isinstance(record, BrokenRecord))
    assert corpus_environment.fingerprint() == corpus_environment.fingerprint()


def test_shards_can_be_sent_to_another_process(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(ROWS[0])
    (shard,) = shards(CorpusSpec("c", parts=(CorpusPart(files=(str(tmp_path / "a.jsonl"),)),), resources=("r",)))
    assert pickle.loads(pickle.dumps(shard)) == shard
    assert isinstance(shard, Shard)


@pytest.mark.parametrize("ending", ["", ".gz", ".gzip", ".zst", ".zstd", ".xz", ".bz2", ".lz4", ".GZ"])
def test_every_ending_of_packed_files_is_known(ending: str) -> None:
    for name in ("a.jsonl", "a.json", "a.ndjson", "a.parquet", "a.warc", "a.wet", "a.arc", "a.warc.wet"):
        assert reader_of(f"https://b.example/{name}{ending}?token=1") is not None


def test_a_path_may_begin_with_the_users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.jsonl").write_bytes(ROWS[0])
    for pattern in ("~/mine/a.jsonl", "~/mine/*.jsonl"):
        (shard,) = shards(CorpusSpec("c", parts=(CorpusPart(files=(pattern,)),), resources=("r",)))
        assert len(texts(list(read_shard(shard)))) == 1


def test_a_name_with_signs_of_a_pattern_is_taken_as_it_is_where_there_is_such_a_file(tmp_path: Path) -> None:
    (tmp_path / "part[1].jsonl").write_bytes(ROWS[0])
    (shard,) = shards(CorpusSpec("c", parts=(CorpusPart(files=(f"{tmp_path}/part[1].jsonl",)),), resources=("r",)))
    assert shard.location.endswith("part[1].jsonl")


def test_a_reader_from_outside_is_one_record_and_a_place_in_the_tuple(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def paragraphs(file: BinaryIO, name: str, chosen: Layout, subcorpus: str | None) -> Iterator[Record]:
        for number, text in enumerate(file.read().decode().split("\n\n"), 1):
            yield Document(text, Location(name, "paragraph", number), subcorpus or "all")

    monkeypatch.setattr(readers, "READERS", (*readers.READERS, Reader("text", (".txt",), paragraphs)))
    (tmp_path / "notes.txt.gz").write_bytes(b"one\n\ntwo")
    (shard,) = shards(CorpusSpec("c", parts=(CorpusPart(files=(f"{tmp_path}/*.txt.gz",)),), resources=("r",)))
    assert texts(list(read_shard(shard))) == ["one", "two"]
    (tmp_path / "a.docx").write_bytes(b"x")
    (other,) = shards(CorpusSpec("c", parts=(CorpusPart(files=(f"{tmp_path}/a.docx",)),), resources=("r",)))
    assert ".txt" in next(iter(read_shard(other))).reason
