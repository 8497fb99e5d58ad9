"""How texts are normalised before they are compared: one place, so that every count can name its rule.

Pure string work. What counts as a duplicate is decided in `duplicates`, n-gram counting in `ngrams`.
"""

from __future__ import annotations

import re
import unicodedata

WORD_RULE = "NFC, lower case, runs of letters and digits"
"""The rule of `words`, stored beside every n-gram count: counts depend neither on case nor on a tokenizer's pieces."""

LONGEST_WORD = 39
"""Bytes of a word that is searched for; longer ones are addresses and digests, of which each occurs once. It is the
limit of the search engine's default analysis."""

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0002fa1f]"
)
"""Letters of scripts that put no blanks between words: Thai, Lao, Burmese, Khmer, kana and Chinese."""

# A run of letters and digits of any script, without the underscore.
_WORD = re.compile(r"[^\W_]+")
_MARKS = "".join(chr(point) for point in range(0x300, 0x20000) if unicodedata.category(chr(point))[0] == "M")
"""All combining marks of the scripts in use."""

# A word together with the combining marks inside it, which Python does not count as letters.
_SEARCH_WORD = re.compile(rf"[^\W_]+(?:[{_MARKS}]+[^\W_]*)*")
# Any run of white space.
_SPACE = re.compile(r"\s+")
_CITATION = re.compile(r"\s?\[(?:\d{1,4}|[a-z]|(?:note|nb|n|lower-alpha|citation)\s?\w*(?:\s\d+)?)\]", re.IGNORECASE)
"""Reference marks of wikis: numbers, single letters and notes in brackets."""

# A closing mark before a space, a full-width closing mark, or a line end; abbreviations may match too.
_SENTENCE_END = re.compile(r"[.!?][\"')\]”’]*(?=\s)|[。！？]+[”’」』]*|\n+")


def nfc(text: str) -> str:
    """The text in Unicode NFC, so that composed and decomposed letters are the same. ValueError for what is no text."""
    _refuse_other_than_text(text)
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


def words(text: str) -> list[str]:
    """The words of a text by `WORD_RULE`, in order."""
    return _WORD.findall(nfc(text).lower())


def search_words(text: str) -> list[str]:
    """The words by which a text is searched: runs of letters, digits and marks in NFC and lower case, up to 39 bytes.

    Marks (vowel signs of Indian scripts, accents that no letter has of its own) do not end a word, as they do in
    `words`. Runs of scripts that put no blanks between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) are taken
    as all pairs of neighbouring letters, so that they are found wherever a copy breaks its lines.
    """
    found: list[str] = []
    for word in _SEARCH_WORD.findall(nfc(text).lower()):
        if word.isascii() or not _UNSPACED.search(word):
            if len(word) <= LONGEST_WORD // 4 or len(word.encode("utf-8", "surrogatepass")) <= LONGEST_WORD:
                found.append(word)
            continue
        found += [word[place : place + 2] for place in range(max(1, len(word) - 1))]
    return found


def _refuse_other_than_text(text: object) -> None:
    if not isinstance(text, str):
        raise ValueError(f"a text is a string, got {type(text).__name__}")


def collapse_space(text: str) -> str:
    """The text with each run of white space as one space and none at its ends."""
    _refuse_other_than_text(text)
    return _SPACE.sub(" ", text).strip()


def without_citations(text: str) -> str:
    """The text without reference marks such as `[147]`, `[a]` or `[citation needed]`, white space collapsed."""
    _refuse_other_than_text(text)
    return collapse_space(_CITATION.sub("", text))


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with its white space collapsed; line breaks end a sentence too.

    A plain rule (end mark, closing marks, white space): abbreviations split a sentence, the same way in every copy. No
    character is lost: joined by spaces, the sentences are the text with its white space collapsed.
    """
    _refuse_other_than_text(text)
    ends = [found.end() for found in _SENTENCE_END.finditer(text)]
    parts = (collapse_space(text[start:end]) for start, end in zip([0, *ends], [*ends, len(text)], strict=True))
    return [part for part in parts if part]


def paragraphs(text: str) -> list[str]:
    """The non-empty lines of a text, which is what crawl pipelines deduplicate as paragraphs."""
    _refuse_other_than_text(text)
    lines = (collapse_space(line) for line in text.split("\n"))
    return [line for line in lines if line]
