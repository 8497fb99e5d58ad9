"""ARC, the format of web archives before WARC (Common Crawl until 2012): what its records mean.

A record is a line (address, host, time, type, …, length) and so many bytes. Addresses may hold blanks, so the line is
read from its end. Finding records is done in `archives`; offsets are into the unpacked stream.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from resources.corpus.archives import LONGEST, Damage, Found, Head
from resources.corpus.archives import records as archive_records
from resources.corpus.warc import page_of
from strandline.web_archives import closes_itself, http_message

_BEGINS = re.compile(
    rb"((?:https?|ftp|dns|filedesc|whois|gopher|news):[^\r\n]{1,8192}?)[ \t]+(\S{1,256})[ \t]+(\d{8,17})"
    rb"[ \t]+[^\r\n]{1,1024}?[ \t](\d{1,15})[ \t]*\r?\n"
)
"""The line before a record: address, host, day, more fields, and the bytes that follow."""


class Arc:
    """The ARC format, of version 1 and 2."""

    begins = _BEGINS
    begins_later = re.compile(rb"(?<=\n)" + _BEGINS.pattern)
    line_ends_after = 1 << 30
    """Never: one line end, of which pages are full, separates records."""
    has_stored_offsets = False

    def head(self, data: bytearray) -> Head | None:
        """The line that begins a record."""
        line = _BEGINS.match(data)
        return Head(line.end(), int(line[4]), (line[1].decode("utf-8", "replace"), line[3].decode())) if line else None

    def record(self, told: tuple[str, str], block: bytes, offset: int, in_doubt: bool) -> Found | Damage:
        """The record; what is no page of the web holds no document."""
        url, day = told[0], told[1]
        if not url.startswith("http"):
            return Found(offset, None, url, day, "", None)
        try:
            content_type, body, cut = page_of(http_message(block))
        except ValueError as error:
            return Damage(offset, "http", str(error))
        if body is not None and in_doubt and not cut and not closes_itself(body):
            cut = "no record follows where this one should end"
        return (
            Damage(offset, "cut", cut)
            if body is not None and cut
            else Found(offset, None, url, day[:8], content_type, body)
        )


def records(file: BinaryIO, longest: int = LONGEST) -> Iterator[Found | Damage]:
    """All records of an ARC file, plain or packed, and every damage between them, in order."""
    return archive_records(file, Arc(), longest)
