"""A news page to its article: main text, title and date of publication.

Runs on hostile input, so it belongs in a child process with limits. Dates are read from the page's metadata first, then
from its text, and not from its address, so that the two can be held against each other; a page that names none has
none, which is never replaced by the date of the capture.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

CLEANER = "article-1"
"""Name and version of this extraction; a change of it makes stored texts be made anew."""


@dataclass(frozen=True)
class Article:
    """What a page says of itself; `text` is empty where no article was found on it."""

    text: str
    title: str | None = None
    published_on: date | None = None


def extract(html: str, latest: date) -> Article:
    """The article on a page. `latest` (the day of its capture) bounds the date: no page was published later."""
    from htmldate import find_date
    from trafilatura import bare_extraction

    if not html.strip():
        return Article("")
    found = bare_extraction(html, include_comments=False, include_tables=False, with_metadata=True)
    stated = find_date(html, original_date=True, max_date=latest.isoformat())
    return Article(
        text=(getattr(found, "text", None) or "").strip(),
        title=getattr(found, "title", None),
        published_on=date.fromisoformat(stated) if stated else None,
    )
