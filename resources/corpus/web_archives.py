"""Web archives: WARC, WET and ARC, told apart by how they begin, whatever their names say."""

from collections.abc import Callable, Iterator
from typing import BinaryIO

from resources.corpus.arc import records as arc_records
from resources.corpus.archives import Damage, Found
from resources.corpus.reader import Reader, Record, document
from resources.corpus.streams import pieces, unpacked_name
from resources.corpus.warc import records as warc_records
from strandline.corpus import BrokenRecord, Location
from strandline.corpus.layouts import DocumentParts, Layout, as_day
from strandline.spans.commoncrawl import decode

UNREADABLE_SHARE = 0.01
"""Share of characters that an encoding could not read, from which on a page counts as broken: under it a few stray
bytes of a page are replaced, over it the encoding is a wrong guess."""

_ARC_BEGINS = b"filedesc:"
"""How every ARC file begins."""


def archive(file: BinaryIO, name: str, layout: Layout, subcorpus: str | None) -> Iterator[Record]:
    """The documents of an archive, plain or packed: converted text, and the main text of successful pages.

    Requests, revisits, metadata and failed or non-text responses hold no document; a page that was cut when it was
    captured is a broken record. After damage the next record that can be read is sought.
    """
    for number, found in enumerate(_records_of(file, name)(file), 1):
        location = Location(name, "record", number, found.offset)
        if isinstance(found, Damage):
            yield BrokenRecord(location, found.kind, found.reason)
        elif found.body is not None:
            yield _page(found, location, subcorpus)


def _records_of(file: BinaryIO, name: str) -> Callable[[BinaryIO], Iterator[Found | Damage]]:
    """What reads this archive: by its first bytes, and by its name where these are damaged."""
    start = next((part for part in pieces(file) if isinstance(part, bytes)), b"").lstrip()
    file.seek(0)
    if start.startswith((b"WARC/", _ARC_BEGINS)):
        return arc_records if start.startswith(_ARC_BEGINS) else warc_records
    return arc_records if unpacked_name(name).endswith(".arc") else warc_records


def _page(found: Found, location: Location, subcorpus: str | None) -> Record:
    text, encoding, replaced = decode(found.body or b"", found.content_type)
    if replaced > UNREADABLE_SHARE:
        reason = f"{replaced:.1%} of the page's characters cannot be read as {encoding}"
        return BrokenRecord(location, "encoding", reason)
    if found.is_html:
        text = main_text(text)
    if not text.strip():
        return BrokenRecord(location, "no_text", "no main text was found on the page")
    whole = DocumentParts(text, found.record_id, found.url, None, as_day(found.date))
    return document(whole, location, subcorpus, replaced)


def main_text(html: str) -> str:
    """The main text of a page, empty where there is none."""
    from trafilatura import extract

    try:
        return extract(html, include_comments=False, favor_recall=True) or ""
    except (ValueError, AssertionError, RecursionError):
        return ""


# The entry of this format: its name, the endings of its files and its reading function.
READER = Reader("archive", (".warc", ".wet", ".arc"), archive)
