"""Loggers: the one by which the command line shows what a step is doing, on one line that is written over."""

import logging
from typing import TextIO

import dagster as dg

WIDTH = 110
"""Characters of a message that are shown: a line that wraps could not be written over."""


class OneLine(logging.Handler):
    """Shows what steps log, and none of Dagster's own events, where somebody watches a terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__(logging.INFO)
        self.stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record's own words over the line."""
        meta = getattr(record, "dagster_meta", {})
        if self.stream is None or getattr(record, "dagster_event", None) or not meta.get("orig_message"):
            return
        words = str(meta["orig_message"]).splitlines()[0][:WIDTH]
        self.stream.write(f"\r\x1b[K  {words}")
        self.stream.flush()


# One handler for the whole process.
HANDLER = OneLine()


def _on_one_line(_: dg.InitLoggerContext) -> logging.Logger:
    """The logger of the command line, whose only handler writes over one line of the terminal."""
    logger = logging.getLogger("strandline.progress")
    logger.setLevel(logging.INFO)
    logger.handlers = [HANDLER]
    logger.propagate = False
    return logger


progress = dg.LoggerDefinition(
    _on_one_line, description="What steps log, on one line of the terminal from which they were started."
)
