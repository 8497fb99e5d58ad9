"""Progress on the command line: the latest thing that a step has logged, on one line that is written over.

Steps write their own output to the run's files, which the UI shows, and not to the terminal.
"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TextIO

import dagster as dg
from dagster._core.execution import compute_logs

WIDTH = 110
RUN_CONFIG = {"loggers": {"progress": {}}}


class OneLine(logging.Handler):
    """Shows what steps log, and none of Dagster's own events, where somebody watches a terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__(logging.INFO)
        self.stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record's own words over the line."""
        told = getattr(record, "dagster_meta", {})
        if self.stream is None or getattr(record, "dagster_event", None) or not told.get("orig_message"):
            return
        words = str(told["orig_message"]).splitlines()[0][:WIDTH]
        self.stream.write(f"\r\x1b[K  {words}")
        self.stream.flush()


HANDLER = OneLine()


@dg.logger(description="What steps log, on one line of the terminal from which they were started.")
def progress(_: dg.InitLoggerContext) -> logging.Logger:
    """The logger of the command line."""
    logger = logging.getLogger("strandline.progress")
    logger.setLevel(logging.INFO)
    logger.handlers = [HANDLER]
    logger.propagate = False
    return logger


@contextmanager
def shown() -> Iterator[None]:
    """Show progress on the terminal that standard error is now, if it is one; afterwards the line is clear again.

    Dagster mirrors what a step prints with two helper processes a stream, which end in tracebacks at Ctrl-C; with the
    progress shown nothing is mirrored.
    """
    mirrored = compute_logs.tail_to_stream
    compute_logs.tail_to_stream = lambda path, stream: nullcontext((None, None))
    terminal = os.fdopen(os.dup(sys.stderr.fileno()), "w") if sys.stderr.isatty() else None
    HANDLER.stream = terminal
    try:
        yield
    finally:
        compute_logs.tail_to_stream = mirrored
        HANDLER.stream = None
        if terminal:
            terminal.write("\r\x1b[K")
            terminal.close()
