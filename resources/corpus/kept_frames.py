"""Results kept as files: a frame is there only when it is whole, and one that was damaged since is not there."""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO
from pathlib import Path
from uuid import uuid4

import polars as pl

_DIGEST = 32
"""Bytes of the digest before a frame's own: Parquet has checksums for some of its bytes only."""


def kept(file: Path) -> pl.DataFrame | None:
    """The frame that is kept in a file, None where there is none or where its bytes have changed."""
    try:
        data = file.read_bytes()
    except OSError:
        return None
    if len(data) <= _DIGEST or sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
        return None
    return pl.read_parquet(BytesIO(data[_DIGEST:]))


def keep(file: Path, frame: pl.DataFrame) -> pl.DataFrame:
    """Keep a frame, and give it back. Where the disk is full nothing is left behind."""
    sink = BytesIO()
    frame.write_parquet(sink)
    data = sink.getvalue()
    file.parent.mkdir(parents=True, exist_ok=True)
    making = file.with_name(f".{file.name}.{uuid4().hex}")
    try:
        making.write_bytes(sha256(data).digest() + data)
        making.replace(file)
    finally:
        making.unlink(missing_ok=True)
    return frame
