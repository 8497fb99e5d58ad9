"""Progress on the command line: the latest thing that a step has logged, on one line that is written over.

Steps write their own output to the run's files, which the UI shows, and not to the terminal.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from assets.loggers import HANDLER

RUN_CONFIG: dict[str, Any] = {"loggers": {"progress": {}}}
"""Run configuration that switches the logger of the command line on."""

STDOUT, STDERR = 1, 2
"""The process's own descriptors: what is written to them is seen also where `sys.stdout` has been replaced."""

CLEAR_LINE = "\r\x1b[K"
"""Back to the first column, and erase to the end of the line (ECMA-48)."""


@contextmanager
def shown() -> Iterator[TextIO]:
    """Show progress on standard error if it is a terminal; gives the stream for what must be said meanwhile.

    Dagster mirrors what a step prints with two helper processes a stream, which end in tracebacks at Ctrl-C. While
    progress is shown the process's own output leads nowhere, so that neither the mirrored lines nor the helpers' last
    words reach the terminal; the run's files keep all of it.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    said = os.fdopen(os.dup(STDERR), "w")
    kept = {stream: os.dup(stream) for stream in (STDOUT, STDERR)}
    nowhere = os.open(os.devnull, os.O_WRONLY)
    HANDLER.stream = said if said.isatty() else None
    try:
        for stream in kept:
            os.dup2(nowhere, stream)
        yield said
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for stream, descriptor in kept.items():
            os.dup2(descriptor, stream)
            os.close(descriptor)
        os.close(nowhere)
        if HANDLER.stream is not None:
            said.write(CLEAR_LINE)
        HANDLER.stream = None
        said.close()
