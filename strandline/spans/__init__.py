"""Versioned documents: which text of a document was in force in which month.

Here belong the records that every source of versions shares. Sources (a wiki, package READMEs, a git repository, news)
are a module each; fetching is done in `resources`, and scoring in `strandline.perplexity`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from hashlib import sha256
from typing import Any

STATUSES = (
    "ok", "missing", "invalid", "duplicate", "redirect", "blank", "hidden", "suppressed", "not_created", "deleted",
    "unsupported", "unparsed", "unreadable", "no_text", "binary", "pointer", "empty", "too_short", "undated",
    "misdated", "truncated", "revisit", "garbled", "near_duplicate", "not_sampled", "failed", "deferred",
)  # fmt: skip
"""Every word that a version's status may be; the pages of the sources say what each means there."""
TRANSIENT = frozenset({"failed", "deferred"})
"""Statuses that another run may change; every other status is final and is not fetched again."""
RELATIVE = frozenset({"duplicate"})
"""Statuses that say nothing of the document itself but of others that are listed beside it: told anew by each run."""


class DeferredError(Exception):
    """A source stopped before the end, to spare a server or because it is gone; what it gave so far stands.

    months: those that are not complete for this reason; None for all that were asked for.
    """

    def __init__(self, reason: str, months: frozenset[date] | None = None) -> None:
        super().__init__(reason)
        self.months = months


@dataclass(frozen=True)
class Span:
    """A versioned resource as its user configured it.

    `months` are first days of months; `snapshot_day` is the day of the month, at 00:00 UTC, whose state a month label
    stands for. `options` belong to the source alone.
    """

    resource: str
    source: str
    kind: str
    months: tuple[date, ...]
    max_tokens: int
    snapshot_day: int = 1
    description: str = ""
    topics: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Version:
    """A document as it stood in a month, or why it has no text there.

    `revision` and `revised_at` name the version in force; `document` is the source's own name of the document then
    (page id, path, address); `content_id` is the source's own name of the content, so that the same content is never
    fetched twice. A version whose text is already stored carries `text_sha256` and `n_chars` but no `text`. Whatever a
    source gives, a version's words can be stored. `replaced_share` is the share of characters that could not be read.
    """

    topic: str
    month: date
    status: str = "ok"
    reason: str | None = None
    revision: str | None = None
    revised_at: datetime | None = None
    document: str | None = None
    content_id: str | None = None
    url: str | None = None
    text: str | None = None
    text_sha256: str | None = None
    n_chars: int | None = None
    replaced_share: float | None = None

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"{self.topic} {self.month}: {self.status!r} is no status of a version")
        if (self.status == "ok") == (self.text is None and self.text_sha256 is None):
            raise ValueError(f"{self.topic} {self.month}: the status {self.status!r} and its text do not fit")
        for name in ("topic", "reason", "document", "url", "text"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, storable(value))
        if self.text is not None:
            object.__setattr__(self, "text_sha256", text_digest(self.text))
            object.__setattr__(self, "n_chars", len(self.text))


def storable(text: str) -> str:
    """The text as UTF-8 can hold it: halves of a character (broken JSON gives them) are replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def text_digest(text: str) -> str:
    """The name of a text: sha256 of its UTF-8 bytes, in hexadecimal."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
