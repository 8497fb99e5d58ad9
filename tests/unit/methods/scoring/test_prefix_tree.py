"""The stream of tree tokens is the set of distinct prefixes, whatever is cut where."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.scoring.prefix_tree import PrefixTree, Request

IDS = st.lists(st.integers(0, 2), min_size=2, max_size=9).map(tuple)
SEQUENCES = st.lists(IDS, min_size=1, max_size=12)


def prefixes(sequences):
    return {ids[:n] for ids in sequences for n in range(1, len(ids) + 1)}


def paths(tree, size):
    """The full path of every row, rebuilt from slices and what is carried between them."""
    carried, found, row = [], [], 0
    while row < tree.n_rows:
        piece = tree.slice(row, size)
        assert piece.carried == len(carried)
        buffer = [*carried, *([None] * (piece.end - piece.begin))]
        for run in piece.runs:
            for n in range(run.length):
                place = piece.carried + run.start + n
                above = buffer[run.keys[run.depth + n - 1]] if run.depth + n else ()
                buffer[place] = (*above, int(piece.tokens[run.start + n]))
                assert run.keys[run.depth + n] == place
                assert len(buffer[place]) == piece.depths[run.start + n] + 1
        found += buffer[piece.carried :]
        for n, parent in enumerate(piece.parents):
            assert (() if parent < 0 else buffer[parent]) == buffer[piece.carried + n][:-1]
        carried = [buffer[place] for place in piece.next_path]
        row = piece.end
    return found


@given(SEQUENCES, st.integers(1, 12))
def test_every_distinct_prefix_is_one_row_however_the_stream_is_cut(sequences, size) -> None:
    tree = PrefixTree([Request(ids) for ids in sequences])
    rows = paths(tree, size)
    assert len(rows) == len(set(rows)) == tree.n_rows
    assert set(rows) == prefixes(sequences)


@given(SEQUENCES, st.integers(1, 12))
def test_every_distinct_sequence_ends_exactly_once(sequences, size) -> None:
    tree = PrefixTree([Request(ids) for ids in sequences])
    ends = [index for start in range(0, tree.n_rows, size) for index, _ in tree.ends_within(start, start + size)]
    assert sorted(ends) == list(range(len(set(sequences))))


@given(st.lists(st.tuples(IDS, st.integers(1, 8)), min_size=1, max_size=8))
def test_rows_are_scored_where_a_sequence_asks_and_their_parents_are_marked(pairs) -> None:
    requests = [Request(ids, min(first, len(ids) - 1)) for ids, first in pairs]
    tree = PrefixTree(requests)
    wanted = {r.ids[: n + 1] for r in requests for n in range(r.score_from, len(r.ids))}
    rows = paths(tree, 5)
    assert {row for row, scored in zip(rows, tree.is_scored, strict=True) if scored} == wanted
    assert {row for row, parent in zip(rows, tree.is_parent, strict=True) if parent} == {row[:-1] for row in wanted}


@given(SEQUENCES)
def test_without_sharing_every_sequence_is_whole_and_in_order(sequences) -> None:
    tree = PrefixTree([Request(ids) for ids in sequences], share=False)
    assert tree.order == sequences
    assert tree.tokens.tolist() == [i for ids in sequences for i in ids]
    assert tree.depths.tolist() == [n for ids in sequences for n in range(len(ids))]


def test_versions_of_a_text_cost_little_more_than_one() -> None:
    rng = np.random.default_rng(0)
    base = rng.integers(0, 1000, 512).tolist()
    versions = [tuple(base[: 512 - n] + rng.integers(0, 1000, n).tolist()) for n in range(60)]
    assert PrefixTree([Request(ids) for ids in versions]).n_rows <= 512 + sum(range(60))


def test_a_sequence_needs_a_token_before_the_first_scored() -> None:
    for ids, first in (((), 1), ((5,), 1), ((5, 6), 0), ((5, 6), 2)):
        with pytest.raises(ValueError, match="cannot be scored"):
            Request(ids, first)


def test_no_sequences_are_no_rows() -> None:
    assert PrefixTree([]).n_rows == 0
