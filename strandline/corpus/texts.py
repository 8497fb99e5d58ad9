"""How texts are normalised before they are compared: one place, so that every count can name its rule.

Pure string work. What counts as a duplicate is decided in `duplicates`, n-gram counting in `ngrams`.
"""

from __future__ import annotations

import re
import unicodedata

WORD_RULE = "NFC, lower case, runs of letters and digits"
"""The rule of `words`, stored beside every n-gram count: counts depend neither on case nor on a tokenizer's pieces."""

_WORD = re.compile(r"[^\W_]+")
_SPACE = re.compile(r"\s+")
_CITATION = re.compile(r"\s?\[(?:\d{1,4}|[a-z]|(?:note|nb|n|lower-alpha|citation)\s?\w*(?:\s\d+)?)\]", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?][\"')\]”’]*(?=\s)|[。！？]+[”’」』]*|\n+")


def nfc(text: str) -> str:
    """The text in Unicode NFC, so that composed and decomposed letters are the same character."""
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


def words(text: str) -> list[str]:
    """The words of a text by `WORD_RULE`, in order."""
    return _WORD.findall(nfc(text).lower())


def collapse_space(text: str) -> str:
    """The text with each run of white space as one space and none at its ends."""
    return _SPACE.sub(" ", text).strip()


def without_citations(text: str) -> str:
    """The text without reference marks such as `[147]`, `[a]` or `[citation needed]`, white space collapsed."""
    return collapse_space(_CITATION.sub("", text))


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with its white space collapsed; line breaks end a sentence too.

    A plain rule (end mark, closing marks, white space): abbreviations split a sentence, the same way in every copy. No
    character is lost: joined by spaces, the sentences are the text with its white space collapsed.
    """
    ends = [found.end() for found in _SENTENCE_END.finditer(text)]
    parts = (collapse_space(text[start:end]) for start, end in zip([0, *ends], [*ends, len(text)], strict=True))
    return [part for part in parts if part]


def paragraphs(text: str) -> list[str]:
    """The non-empty lines of a text, which is what crawl pipelines deduplicate as paragraphs."""
    lines = (collapse_space(line) for line in text.split("\n"))
    return [line for line in lines if line]
