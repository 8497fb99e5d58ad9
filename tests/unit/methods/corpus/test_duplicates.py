"""Duplicate classes, their display, and what deduplication rules do about them."""

import re
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.corpus import Document, Location
from strandline.corpus.dedup_audit import Side, audit
from strandline.corpus.duplicates import DuplicatePair, classify, clusters, in_domains
from strandline.corpus.pairs_display import as_html, as_markdown, as_text, compare
from strandline.corpus.signatures import jaccard, shingle_hashes
from strandline.corpus.texts import collapse_space, sentences
from tests.fakes.documents import find_duplicates

QING = (
    "By the end of the century the economy had recovered from the wars.[147] Markets went on growing in the next one, "
    "with more trade between the regions.[148] Land was given back to small owners who could not pay the tax.[149] The "
    "canal was run better and transport was opened to merchants.[150] Grain prices were watched and rose smoothly.[151]"
)
RENUMBERED = re.sub(r"\[(\d+)\]", lambda mark: f"[{int(mark[1]) + 1}]", QING)
PORTMAN = (
    "She is an actress with two citizenships. Her first role was as an orphan in a film of 1994. Wider success came "
    "with a trilogy that began in 1999. In that year she enrolled at a university. She finished her degree in 2003. "
    "In 2001 she opened in a play in a public theatre. In 2005 she won an award for a supporting part."
)
REFLOWED = PORTMAN.replace("2003. In", "2003.\nIn")
FOX = "Quite another page about foxes. They live in woods and near towns. They eat mice, berries and much else."
MIRROR = f"Home | About | Contact\n{QING}\nRetrieved from the old server."


def document(text, position, url=None):
    return Document(text, Location("shard.jsonl", "line", position), "crawl", url=url)


def kinds(documents, **settings):
    return {pair.kind for pair in find_duplicates(documents, **settings)}


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        (QING, QING, "exact"),
        ("Caf\u00e9 au lait", "Cafe\u0301 au lait", "exact"),
        (PORTMAN, REFLOWED, "whitespace"),
        (QING, RENUMBERED, "citation_numbers"),
        (QING, re.sub(r"\[\d+\]", "", QING), "citation_numbers"),
        (QING, QING.replace("smoothly", "slowly"), "near"),
        (FOX + " " + PORTMAN, "A long and different beginning of a page. " * 12 + PORTMAN, "three_sentence_span"),
        (QING, PORTMAN, None),
        (FOX, "", None),
        ("", "", None),
    ],
)
def test_a_pair_has_the_strongest_class_that_holds(left, right, kind):
    assert classify(left, right) == kind
    assert kinds([document(left, 1), document(right, 2)]) == ({kind} if kind else set())


def test_ten_copies_are_nine_pairs_with_both_locations():
    pairs = find_duplicates([document(QING, line) for line in range(1, 11)] + [document(FOX, 11)])
    assert [pair.kind for pair in pairs] == ["exact"] * 9
    assert {pair.left_location for pair in pairs} | {pair.right_location for pair in pairs} == {
        f"shard.jsonl:line {line}" for line in range(1, 11)
    }
    assert {pair.distance for pair in pairs} == {0.0}


def test_a_stronger_class_is_not_repeated_as_a_weaker_one():
    documents = [
        document(QING, 1),
        document(QING, 2),
        document(RENUMBERED, 3),
        document(QING.replace("wars", "war"), 4),
    ]
    assert [pair.kind for pair in find_duplicates(documents)] == ["exact", "citation_numbers", "near"]


def test_the_order_of_the_documents_does_not_matter():
    documents = [
        document(QING, 1),
        document(RENUMBERED, 2),
        document(PORTMAN, 3),
        document(REFLOWED, 4),
        document(FOX, 5),
    ]
    found = find_duplicates(documents)
    assert len(found) == 2
    assert all(find_duplicates(list(order)) == found for order in permutations(documents))


def test_a_mirror_is_a_copy_outside_the_filtered_domain():
    documents = [
        document(QING, 1, "https://en.wikipedia.org/wiki/Qing"),
        document(QING, 2, "https://wiki-mirror.example/Qing"),
        document(PORTMAN, 3, "https://en.wikipedia.org/wiki/Portman"),
        document(PORTMAN, 4, "http://de.wikipedia.org/wiki/Portman"),
    ]
    pairs = find_duplicates(documents, filtered_domains=["wikipedia.org"])
    assert [(pair.kind, pair.right_location, pair.left_location) for pair in pairs if pair.kind == "mirror"] in (
        [("mirror", "shard.jsonl:line 1", "shard.jsonl:line 2")],
        [("mirror", "shard.jsonl:line 2", "shard.jsonl:line 1")],
    )
    assert [pair.kind for pair in pairs].count("exact") == 2


@pytest.mark.parametrize(
    ("url", "inside"),
    [
        ("https://en.wikipedia.org/wiki/A", True),
        ("https://wikipedia.org:443/", True),
        ("en.wikipedia.org/wiki/A", True),
        ("https://notwikipedia.org/", False),
        ("https://wikipedia.org.example.com/", False),
        ("https://example.com/?wikipedia.org", False),
        ("http://[broken", False),
        ("", False),
        (None, False),
    ],
)
def test_a_domain_holds_its_subdomains_and_nothing_that_looks_like_it(url, inside):
    assert in_domains(url, ["wikipedia.org"]) is inside


@settings(max_examples=200, deadline=None)
@given(st.text('ab. )!?"\n', max_size=60))
def test_splitting_into_sentences_loses_no_character(text):
    assert " ".join(sentences(text)) == collapse_space(text)


def test_sentences_end_at_marks_and_line_breaks():
    assert sentences('One (est.) Two? "Three!" Four\nFive') == ["One (est.)", "Two?", '"Three!"', "Four", "Five"]
    assert sentences("第一。第二！third") == ["第一。", "第二！", "third"]


def test_clusters_join_pairs_that_share_a_document():
    assert clusters([("a", "b"), ("c", "b"), ("x", "y")]) == {"a": "a", "b": "a", "c": "a", "x": "x", "y": "x"}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text("ab .[1]\n", max_size=40), max_size=6))
def test_every_pair_found_is_of_the_class_that_it_says(texts):
    documents = [document(text, line) for line, text in enumerate(texts, 1)]
    by_location = {str(each.location): each.text for each in documents}
    for pair in find_duplicates(documents):
        assert classify(by_location[pair.left_location], by_location[pair.right_location]) == pair.kind
        assert 0 <= pair.distance <= 1


@settings(max_examples=200, deadline=None)
@given(st.text("ab <&\n[1]", max_size=40), st.text("ab <&\n[1]", max_size=40))
def test_the_pieces_of_a_display_are_the_texts_and_matches_agree(left, right):
    display = compare(left, right, least=3)
    assert "".join(piece.text for piece in display.left) == left
    assert "".join(piece.text for piece in display.right) == right
    ours = [piece.text for piece in display.left if piece.match is not None]
    assert ours == [piece.text for piece in display.right if piece.match is not None]


def test_the_display_colours_what_is_equal_and_leaves_the_citation_numbers():
    display = compare(QING, RENUMBERED)
    assert display.shared > 0.9
    html = as_html(display, "left", "right")
    plain = re.sub(r'<span style="background[^>]*>[^<]*</span>', "", html)
    assert "147" in plain
    assert "economy" not in plain
    assert "⟦147⟧" in as_text(display)
    assert "**147**" in as_markdown(display, "left", "right")


def test_a_display_never_lets_a_page_inject_markup():
    display = compare("<script>alert(1)</script> same words here", "<img onerror=x> same words here")
    html = as_html(display, "<b>", "right")
    assert "<script>" not in html
    assert "<img" not in html
    assert "&lt;b&gt;" in html


def audited(left, right, kind, **urls):
    sides = {"l": Side(left, urls.get("left_url")), "r": Side(right, urls.get("right_url"))}
    pair = DuplicatePair("l", "r", kind, 0.0, "a:line 1", "b:line 2")
    return {row.rule: row for row in audit([pair], sides.__getitem__, ["wikipedia.org"])}


def test_renumbered_citations_escape_every_rule_but_the_fuzzy_one():
    caught = {rule for rule, row in audited(QING, RENUMBERED, "citation_numbers").items() if row.n_caught}
    assert caught <= {"fuzzy"}
    row = audited(QING, RENUMBERED, "citation_numbers")["exact"]
    assert (row.escaped_left, row.escaped_right, row.n_missed) == ("a:line 1", "b:line 2", 1)


def test_the_three_sentence_rule_as_stated_removes_a_reflowed_copy():
    rows = audited(PORTMAN, REFLOWED, "whitespace")
    assert rows["three_sentence_span"].n_caught == 1
    assert rows["exact"].n_caught == 0
    assert rows["document"].n_caught == 1


def test_paragraph_deduplication_removes_an_exact_copy_and_the_domain_rule_only_the_domain():
    inside, outside = "https://en.wikipedia.org/x", "https://mirror.example/"
    rows = audited(QING, QING, "exact", right_url=outside)
    assert rows["paragraph"].mean_removed == 1.0
    assert rows["domain"].n_caught == 0
    assert audited(QING, QING, "exact", left_url=inside, right_url=inside)["domain"].n_caught == 1
    for left, right in ((inside, outside), (outside, inside)):
        assert audited(QING, QING, "mirror", left_url=left, right_url=right)["domain"].n_missed == 1


def test_a_mirror_of_a_text_that_is_not_in_the_corpus_is_what_the_domain_rule_misses():
    mirror = DuplicatePair("l", "wiki:Qing:2020-01", "mirror", 0.1, "a:line 1", "Qing 2020-01")
    (row,) = audit([], {}.__getitem__, ["wikipedia.org"], [mirror])
    assert (row.rule, row.kind, row.n_pairs, row.n_missed, row.escaped_left) == ("domain", "mirror", 1, 1, "a:line 1")


@pytest.mark.parametrize(
    ("removed", "caught"),
    [(0.0, 0), (0.49, 0), (0.5, 0), (0.51, 1), (1.0, 1)],
    ids=["none", "under", "half", "over", "all"],
)
def test_a_pair_is_caught_where_more_than_half_goes_and_half_is_not_enough(removed: float, caught: int) -> None:
    lines = [f"{n:02d} words of a line" for n in range(100)]
    left = Side("\n".join(lines[: round(100 * removed)]))
    right = Side("\n".join(lines))
    pair = DuplicatePair("a", "b", "near", 0.1, "here", "there")
    (row,) = [each for each in audit([pair], {"a": left, "b": right}.__getitem__) if each.rule == "paragraph"]
    assert row.mean_removed == pytest.approx(removed)
    assert (row.n_caught, row.n_missed) == (caught, 1 - caught)
    assert (row.escaped_left, row.escaped_right) == ((None, None) if caught else ("here", "there"))


@pytest.mark.parametrize(("shared", "kind"), [(8, "near"), (7, None)])
def test_a_near_duplicate_has_a_jaccard_index_of_at_least_the_threshold(shared: int, kind: str | None) -> None:
    left = " ".join(f"a{n}" for n in range(shared + 4))
    right = f"{left} b c" if shared == 8 else f"{left} b c d"
    index = jaccard(shingle_hashes(left), shingle_hashes(right))
    assert classify(left, right, threshold=0.8) == kind
    assert classify(left, right, threshold=index) == "near"
    assert index == shared / (shared + (2 if shared == 8 else 3))
