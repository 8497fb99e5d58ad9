"""Wikitext to the plain text that is scored: the claim is that only prose remains, with the title first.

References, tables, file links, categories and templates go; headings lose their marks; links keep their label.
Templates that only wrap text (a language tag, an abbreviation, a unit conversion) give their text back, and those that
stand for a dash or a blank that, which `strip_code` of mwparserfromhell alone would lose. A tag that ends a line or a
block (`<br>`, `<p>`) leaves a blank, so that it glues no words. What `strip_code` leaves behind (image options,
category names, unclosed markup) is removed afterwards. Fetching is not done here, nor is the limit of time and memory
under which `clean` should run.

What it cannot show: text that only a rendering wiki computes (transcluded articles, infoboxes, Lua output) is absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

CLEANER = "wikitext-3"
"""Name and version of this cleaning; a change of it makes stored texts of the old version be cleaned anew."""

BLOCKS = "br|hr|p|div|li|ul|ol|dl|dt|dd|blockquote|center|h[1-6]|table|tr|td|th|caption|section|article|pre|poem|option"
"""Tags after and before which a browser begins a new line or cell."""
GLUING = re.compile(rf"</?(?:{BLOCKS})(?:\s[^<>]*)?/?>|(?:</ref\s*>|<ref\b[^<>]*/>)(?=\w)", re.IGNORECASE)
"""Tags that separate words which no blank separates; a reference only where a word follows it at once."""
DROPPED_TAGS = (
    "ref", "references", "gallery", "imagemap", "timeline", "math", "chem", "score", "syntaxhighlight", "source",
    "graph", "table", "templatestyles", "mapframe", "maplink", "hiero", "inputbox", "categorytree", "includeonly",
    "indicator",
)  # fmt: skip
"""Tags whose content is no prose of the article."""
TEXT_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "lang": ("2",), "transl": ("3", "2"), "transliteration": ("3", "2"), "nowrap": ("1",), "nobr": ("1",),
    "nobold": ("1",),     "small": ("1",), "smaller": ("1",), "big": ("1",), "abbr": ("1",), "tooltip": ("1",),
    "visible anchor": ("1",),
    "vanchor": ("1",), "sortname": ("1", "2"), "ill": ("1",), "interlanguage link": ("1",), "convert": ("1", "2"),
    "cvt": ("1", "2"), "quote": ("1",), "blockquote": ("1",), "cquote": ("1",), "as of": ("1",),
}  # fmt: skip
"""Templates that wrap text: which parameters hold it. Of `transl` the first that is there; others are joined."""
MARK_TEMPLATES: Mapping[str, str] = {
    **dict.fromkeys(("br", "break", "clear", "-", "pb", "paragraph break", "crlf", "nbsp", "spaces", "space"), " "),
    **dict.fromkeys(("snd", "spnd", "spaced ndash", "spaced en dash", "sndash"), " – "),
    **dict.fromkeys(("ndash", "en dash", "endash"), "–"),
    **dict.fromkeys(("mdash", "em dash", "emdash"), "—"),
    **dict.fromkeys(("·", "dot", "middot", "•", "bull", "bullet"), " · "),
}
"""Templates that stand for a blank, a dash or a dot, under the names that English Wikipedia redirects to them."""
ALTERNATIVES = frozenset({"transl", "transliteration"})
"""Templates of which the first parameter that is there holds the text."""
MAGIC_WORD = re.compile(r"__[A-Z]{3,}__")
"""Switches of a page, such as `__NOTOC__`."""
OPTION_LINE = re.compile(
    r"^\s*(?:(?:thumb|thumbnail|frame|frameless|border|left|right|center|centre|none|upright(?:=[\d.]+)?|alt=[^|\n]*"
    r"|link=[^|\n]*|\d+(?:x\d+)?px|x\d+px)\s*\|)+[^\n]*$",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that is the options and the caption of a picture whose link was broken."""
LOOSE_OPTION = re.compile(r"\b(?:thumb|thumbnail|frameless)\||\|?\d+(?:x\d+)?px\||\|\d+(?:x\d+)?px\b")
"""An option of a picture within a line; a size only where a bar shows that it is one."""
OPEN_REFERENCE = re.compile(
    r"<ref\b[^>/]*>[^\n]*?(?:</ref\s*>|$)|<ref\b[^>]*/?>|<ref\b[^>\n]*$|</ref\s*>", re.IGNORECASE | re.MULTILINE
)
"""A reference whose tag the parser could not close."""
LOOSE_TAG = re.compile(r"</?[a-zA-Z][a-zA-Z0-9]*(?:\s[^<>\n]*)?/?>")
"""A tag that the parser did not understand."""
TABLE_LINE = re.compile(r"^\s*(?:\{\||\|\}|\|-|\||!).*$", re.MULTILINE)
"""A line of a table that the parser could not close."""
BRACES = re.compile(r"\{\{|\}\}|\[\[|\]\]|\{\||\|\}")
"""Braces and brackets of markup that the parser could not close."""
LIST_MARKS = re.compile(r"^[ \t*#:;]+$", re.MULTILINE)
"""A line of list marks alone."""
EMPTY_BRACKETS = re.compile(r" ?\([\s,;:/]*\)")
"""Brackets whose content was a template that went."""
BLANK_LINES = re.compile(r"\n{3,}")
"""More than one blank line."""


@dataclass(frozen=True)
class Names:
    """What one language's wiki calls its file and category namespaces and its redirects, compared without case."""

    file: frozenset[str] = frozenset({"file", "image", "media"})
    category: frozenset[str] = frozenset({"category"})
    redirect: frozenset[str] = frozenset({"#redirect"})
    interlanguage: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        file: Iterable[str] = (),
        category: Iterable[str] = (),
        redirect: Iterable[str] = (),
        interlanguage: Iterable[str] = (),
    ) -> Names:
        """English names, which every wiki understands, and those given."""
        base = cls()
        return cls(
            base.file | {name.lower() for name in file},
            base.category | {name.lower() for name in category},
            base.redirect | {name.lower() for name in redirect},
            frozenset(name.lower() for name in interlanguage),
        )


ENGLISH = Names()
"""The names that every wiki understands."""


def is_redirect(wikitext: str, names: Names = ENGLISH) -> bool:
    """Whether a page only points to another: its text begins with the wiki's redirect word and a link."""
    head = wikitext.lstrip()[:400]
    return any(head.lower().startswith(word) and "[[" in head for word in names.redirect)


def clean(wikitext: str, title: str, names: Names = ENGLISH) -> str:
    """The plain text of a page with its title first; only the title where nothing remains.

    Deterministic, and total on any string: broken markup gives text, never an exception. It may be slow or large on
    hostile input (the parser backtracks), so run it where time and memory are capped.
    """
    import mwparserfromhell

    code = mwparserfromhell.parse(GLUING.sub(r" \g<0> ", wikitext.replace("\r\n", "\n").replace("\x00", "")))
    _drop(code, names)
    body = _tidy(code.strip_code(normalize=True, collapse=True), names)
    return f"{title}\n\n{body}" if body else title


def _drop(code: Any, names: Names) -> None:
    """Take out of the parsed page, in place, all that is no prose; replace text-bearing templates by their text."""
    for tag in code.filter_tags(matches=lambda node: str(node.tag).strip().lower() in DROPPED_TAGS):
        _remove(code, tag)
    for link in code.filter_wikilinks():
        label = _label(link, names)
        if label is None:
            _remove(code, link)
        elif label != str(link):
            _replace(code, link, label)
    for template in reversed(code.filter_templates()):
        _replace(code, template, _template_text(template))


def _remove(code: Any, node: Any) -> None:
    """Remove a node unless it went with an outer one already."""
    try:
        code.remove(node)
    except ValueError:
        return


def _replace(code: Any, node: Any, text: str) -> None:
    try:
        code.replace(node, text)
    except ValueError:
        return


def _label(link: Any, names: Names) -> str | None:
    """What a link shows: None for files, categories and other languages; the page name where it has no label."""
    target = str(link.title).strip()
    prefix, colon, rest = target.lstrip(":").partition(":")
    space = prefix.strip().lower()
    if not colon or space not in names.file | names.category | names.interlanguage:
        return str(link)
    if not target.startswith(":"):
        return None
    return str(link.text) if link.text is not None else rest.strip()


def _template_text(template: Any) -> str:
    """What a template shows: the text it wraps, the mark it stands for, else nothing."""
    name = str(template.name).strip().lower().replace("_", " ")
    if name in MARK_TEMPLATES:
        return MARK_TEMPLATES[name]
    texts = [
        str(template.get(key).value).strip()
        for key in TEXT_TEMPLATES.get(name, ())
        if template.has(key, ignore_empty=True)
    ]
    return (texts[0] if name in ALTERNATIVES else " ".join(texts)) if texts else ""


def _tidy(text: str, names: Names) -> str:
    """Remove what a broken or unusual page leaves after stripping, until no removal makes anything new to remove."""
    before = None
    while text != before:
        before, text = text, _tidied_once(text, names)
    return text


def _tidied_once(text: str, names: Names) -> str:
    """One pass, line by line where a line is markup as a whole; it only ever shortens."""
    spaces = "|".join(re.escape(name) for name in sorted(names.file | names.category))
    text = OPEN_REFERENCE.sub("", text)
    text = OPTION_LINE.sub("", text)
    text = re.sub(rf"\[\[\s*(?:{spaces})\s*:[^\n]*", "", text, flags=re.IGNORECASE)
    text = re.sub(rf"^\s*(?:{spaces})\s*:[^\n]*$", "", text, flags=re.IGNORECASE | re.MULTILINE)
    text = MAGIC_WORD.sub("", LOOSE_TAG.sub("", TABLE_LINE.sub("", text)))
    text = LOOSE_OPTION.sub("", BRACES.sub("", text))
    text = LIST_MARKS.sub("", EMPTY_BRACKETS.sub("", text))
    lines = (re.sub(r"[ \t]+", " ", line).strip() for line in text.split("\n"))
    return BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()
