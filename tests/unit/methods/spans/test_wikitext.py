"""Wikitext to prose: nothing but text is left, whatever the page looks like."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.spans.wikitext import ENGLISH, Names, clean, is_redirect

GERMAN = Names.of(
    file=["Datei", "Bild"], category=["Kategorie"], redirect=["#WEITERLEITUNG"], interlanguage=["en", "fr"]
)
PAGE = """{{Short description|a city}}
{{Infobox city|name=Port|image=[[File:Port.jpg|thumb|135px|A caption]]|area={{convert|3|km2}}}}
'''Port''' ({{IPA|en|pɔːt}}) is a [[city]] in [[North Country|the north]].<ref name=a>{{cite|title=A source body}}</ref>
[[File:Dock.jpg|thumb|left|200px|The [[dock]] in {{nowrap|1999}}<ref>Another source body</ref>]]
{| class="wikitable"
|-
! Head !! Head
|-
| cell || cell
|}
== History ==
It lies {{convert|5|km|mi}} away, {{lang|fr|''à côté''}}.<!-- hidden --><ref name=a />
=== Early ===
<gallery>
File:X.jpg|135px|in a gallery
</gallery>
See [[:Category:Ports|ports]] and [[:File:Map.png|the map]]. __NOTOC__
{{Reflist|30em}}
{{notelist}}
[[Category:Cities|*]]
[[fr:Port]]
"""


def leftovers(text: str, names: Names = ENGLISH) -> list[str]:
    """Which kinds of markup a cleaned text still holds; empty for every output of `clean`."""
    spaces = "|".join(re.escape(name) for name in sorted(names.file | names.category))
    patterns = {
        "image option": r"\bthumb\||\d+px\|",
        "namespace": rf"(?i)\[\[\s*(?:{spaces})\s*:",
        "category": r"(?im)^\s*(?:" + "|".join(map(re.escape, sorted(names.category))) + r"):",
        "braces": r"\{\{|\}\}",
        "reference": r"(?i)<ref\b",
        "table": r"\{\||\|\}",
    }
    return [kind for kind, pattern in patterns.items() if re.search(pattern, text)]


def test_a_page_becomes_its_prose_with_the_title_first() -> None:
    text = clean(PAGE, "Port", Names.of(interlanguage=["fr"]))
    assert text.split("\n") == [
        "Port", "", "Port is a city in the north.", "", "History", "It lies 5 km away, à côté.", "Early", "",
        "See ports and the map.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "leftover",
    ["thumb|", "px|", "Category:", "{{", "}}", "[[", "File:", "source body", "cell", "hidden", "caption", "=="],
)
def test_nothing_of_the_markup_is_left(leftover: str) -> None:
    assert leftover not in clean(PAGE, "Port", Names.of(interlanguage=["fr"]))


@pytest.mark.parametrize(
    "page",
    [
        "[[File:x.jpg|thumb|135px|A caption]]",
        "[[Category:X]]",
        "[[File:broken.jpg|thumb|135px|never closed",
        "{{never closed|a=b",
        "<ref>never closed",
        "{|\n|-\n| never closed",
        "thumb|135px|A caption",
        "{{{{{{",
        "]]}}|}",
        "<!-- never closed",
    ],
)
def test_markup_alone_leaves_only_the_title(page: str) -> None:
    text = clean(page, "T")
    assert leftovers(text) == []
    assert "thumb|" not in text


def test_sizes_in_the_prose_stay_and_sizes_of_images_go() -> None:
    assert (
        clean("An icon is 16px or 32x32px wide. 20px|left over|40px", "T")
        == "T\n\nAn icon is 16px or 32x32px wide. left over"
    )
    assert leftovers(clean("a5p{{x|b {|3px|{ c", "T")) == []


def test_names_of_another_language_are_known_where_they_are_given() -> None:
    page = "[[Datei:a.jpg|mini|B]] Ein [[Ort]].\n[[Kategorie:Orte]]\n[[:Kategorie:Orte]] [[en:Place]]"
    assert clean(page, "Ort", GERMAN) == "Ort\n\nEin Ort.\n\nOrte"
    assert "Kategorie" in clean(page, "Ort")


def test_redirects_are_seen_in_any_case_and_language() -> None:
    assert is_redirect("  #redirect [[Other page]]")
    assert is_redirect("#Weiterleitung [[Andere]]", GERMAN)
    assert not is_redirect("#WEITERLEITUNG [[Andere]]")
    assert not is_redirect("The word #REDIRECT [[x]] in a sentence")
    assert not is_redirect("#REDIRECT to nowhere")


def test_an_unknown_template_goes_and_empty_brackets_with_it() -> None:
    assert clean("Born ({{birth date|1999|1|1}}) here.", "A") == "A\n\nBorn here."


@given(st.text(alphabet=st.sampled_from("[]{}|=<>!-'\n ab:/ref#*Filethumb;&_"), max_size=120))
@settings(max_examples=300, deadline=None)
def test_any_string_gives_a_text_without_markup(page: str) -> None:
    text = clean(page, "T")
    assert text.startswith("T")
    assert leftovers(text) == []


PIECES = ["5", "px", "|", "thumb", "{", "}", "[", "]", "File:", "Category:", "\n", "a", " ", "<ref", "<ref>", "</ref>",
          ">", "/", "!", "-", "==", "3px|", "frameless|"]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@settings(max_examples=400, deadline=None)
def test_what_one_removal_leaves_together_is_removed_too(wikitext: str) -> None:
    assert leftovers(clean(wikitext, "T")) == []


def test_leftovers_would_be_seen() -> None:
    raw = "a thumb|x {{b}} [[File:c]]\nCategory:d <ref>e {|"
    kinds = ["image option", "namespace", "category", "braces", "reference", "table"]
    assert leftovers(raw) == kinds


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("one<br>two", "one two"),
        ("one<br/>two<BR />three<br clear=all>four", "one two three four"),
        ("one <br> two", "one two"),
        ("one<br>\ntwo", "one\ntwo"),
        ("<p>one</p><p>two</p>", "one two"),
        ("<div class='x'>one</div><div>two</div>", "one two"),
        ("<ul><li>one</li><li>two</li></ul>", "one two"),
        ("one<hr>two<p>three", "one two three"),
        ("one.<ref>x</ref>Two", "one. Two"),
        ("one.<ref name=a/>Two", "one. Two"),
        ("one<ref>x</ref>, two", "one, two"),
        ("un<b>break</b>able and<wbr>more", "unbreakable andmore"),
        ("one{{br}}two{{clear}}three", "one two three"),
        ("1990{{ndash}}1995{{snd}}six{{nbsp}}years", "1990–1995 – six years"),
    ],
)
def test_what_ends_a_line_glues_no_words(wikitext: str, text: str) -> None:
    assert clean(wikitext, "T") == f"T\n\n{text}"
