"""Progress on the command line: the latest thing that a step has logged, on one line that is written over.

Steps write their own output to the run's files, which the UI shows, and not to the terminal.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from dagster._core.execution import compute_logs

from assets.loggers import HANDLER

RUN_CONFIG = {"loggers": {"progress": {}}}


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
