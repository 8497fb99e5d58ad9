"""Going on from a path computed earlier: nothing is computed twice, and no number changes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.perplexity.path_store import PathStore
from strandline.scoring.engine import Scorer, score_texts
from strandline.scoring.path_reuse import SHORTEST, KnownPath, PathReuse, starts
from strandline.scoring.prefix_tree import PrefixTree, Request
from tests.fakes.tiny_models import WORDS, tiny_language_model, with_bos

ANY_LENGTH = st.lists(st.integers(0, 2), min_size=2, max_size=9).map(tuple)


def known(ids):
    return KnownPath(ids, lambda: None)


def prefixes(sequences):
    return {ids[:n] for ids in sequences for n in range(1, len(ids) + 1)}


def tree_paths(start):
    """The full path of every row of a start's tree."""
    before = start.path.ids if start.path else ()
    tree = PrefixTree(start.requests, before=before)
    open_path, found = list(before), []
    for token, depth in zip(tree.tokens.tolist(), tree.depths.tolist(), strict=True):
        open_path = [*open_path[:depth], token]
        found.append(tuple(open_path))
    return found


@given(st.lists(ANY_LENGTH, min_size=1, max_size=12), st.lists(ANY_LENGTH, max_size=3))
def test_exactly_the_prefixes_that_no_known_path_has_are_computed(sequences, paths) -> None:
    """Those too short to be worth a start may be computed again."""
    found = list(starts([Request(ids) for ids in sequences], [known(ids) for ids in paths]))
    rows = [path for start in found if not start.is_on_path for path in tree_paths(start)]
    new = prefixes(sequences) - prefixes(paths)
    assert new <= set(rows)
    assert all(len(path) < SHORTEST for path in set(rows) - new)
    deep = [path for path in rows if len(path) >= SHORTEST]
    assert len(deep) == len(set(deep))
    assert {r.ids for s in found if s.is_on_path for r in s.requests} == set(sequences) & prefixes(paths)
    assert {r.ids for s in found for r in s.requests} == set(sequences)


@given(st.lists(ANY_LENGTH, min_size=1, max_size=12), st.lists(ANY_LENGTH, max_size=3), st.integers(1, 9))
def test_slices_of_a_tree_that_goes_on_know_their_whole_paths(sequences, paths, size) -> None:
    for start in starts([Request(ids) for ids in sequences], [known(ids) for ids in paths]):
        if start.is_on_path:
            continue
        before = start.path.ids if start.path else ()
        tree = PrefixTree(start.requests, before=before)
        buffer = [before[: n + 1] for n in range(int(tree.depths[0]))]
        row, ended = 0, set()
        while row < tree.n_rows:
            piece = tree.slice(row, size)
            assert piece.carried == len(buffer)
            buffer += [None] * (piece.end - piece.begin)
            for run in piece.runs:
                for n in range(run.length):
                    above = buffer[run.keys[run.depth + n - 1]] if run.depth + n else ()
                    buffer[piece.carried + run.start + n] = (*above, int(piece.tokens[run.start + n]))
            for n, parent in enumerate(piece.parents):
                assert (() if parent < 0 else buffer[parent]) == buffer[piece.carried + n][:-1]
            for index, last in tree.ends_within(piece.begin, piece.end):
                assert buffer[piece.carried + last - piece.begin] == tree.order[index]
                ended.add(tree.order[index])
            buffer = [buffer[place] for place in piece.next_path]
            row = piece.end
        assert ended == {request.ids for request in start.requests}


def test_sequences_on_both_sides_of_a_path_are_refused() -> None:
    for one, other in (((1, 1), (1, 3)), ((1, 2), (1, 3)), ((1, 2, 1), (1, 1))):
        with pytest.raises(ValueError, match="both sides"):
            PrefixTree([Request(one), Request(other)], before=(1, 2))


def versions(seed):
    """A text and ones that differ from it at some place, in both directions, or go on where it ends."""
    rng = np.random.default_rng(seed)
    words = list(rng.choice(WORDS, 30))
    texts = [" ".join(words)]
    for _ in range(6):
        cut = int(rng.integers(1, len(words)))
        texts.append(" ".join([*words[:cut], *rng.choice(WORDS, int(rng.integers(0, 30 - cut + 1)))]))
    return [*texts, texts[0] + " and a new end"]


@pytest.mark.parametrize("kind", ["gpt2", "llama", "mistral", "gemma2"])
@pytest.mark.parametrize("slice_rows", [5, 1024])
def test_scores_that_go_on_from_a_kept_path_equal_those_that_do_not(kind, slice_rows, tmp_path) -> None:
    lm = tiny_language_model(kind)
    first, *others = versions(len(kind))
    files = PathStore(tmp_path, 10**9)
    list(score_texts(lm, {"0": first}, 50, slice_rows, paths=PathReuse([], {"0": ["topic"]}, files.keep)))
    path = files.find("topic", "cpu")
    texts = {str(n): text for n, text in enumerate(others, 1)}
    plain = {s.text_sha256: s for s in score_texts(lm, texts, 50, slice_rows)}
    resumed = {
        s.text_sha256: s for s in score_texts(lm, texts, 50, slice_rows, paths=PathReuse([path], {}, files.keep))
    }
    assert resumed.keys() == plain.keys()
    for digest, score in plain.items():
        assert resumed[digest].mean_nll == pytest.approx(score.mean_nll, abs=1e-5)
        assert resumed[digest].tokens_computed + resumed[digest].tokens_saved == score.n_tokens + (
            lm.bos_id is not None
        )
    computed = sum(s.tokens_computed for s in resumed.values())
    assert computed < sum(s.tokens_computed for s in plain.values())


def test_a_path_that_went_on_from_another_one_can_be_gone_on_from(tmp_path) -> None:
    """Chained over many versions, so that errors would add up."""
    lm = tiny_language_model("llama")
    files = PathStore(tmp_path, 10**9)
    words = list(WORDS[:20])
    for version in range(12):
        words[8 + version % 12] = WORDS[-1 - version]
        text = " ".join(words)
        known_paths = [path for path in [files.find("topic", "cpu")] if path]
        (score,) = score_texts(lm, {"v": text}, 50, paths=PathReuse(known_paths, {"v": ["topic"]}, files.keep))
        (alone,) = score_texts(lm, {"v": text}, 50)
        assert score.mean_nll == pytest.approx(alone.mean_nll, abs=1e-5)
        assert (score.tokens_saved > 0) == (version > 0)


def test_a_batch_method_ignores_paths(tmp_path) -> None:
    lm = tiny_language_model("mpt")
    files = PathStore(tmp_path / "none", 10**9)
    (score,) = score_texts(lm, {"v": versions(0)[0]}, 50, paths=PathReuse([], {"v": ["topic"]}, files.keep))
    assert score.status == "ok"
    assert files.find("topic", "cpu") is None


def test_what_is_not_finite_is_not_kept(tmp_path) -> None:
    lm = tiny_language_model("llama", seed=9)
    lm.model.base_model.layers[0].mlp.down_proj.weight.data[0, 0] = float("inf")
    kept = []
    (request,) = [Request(tuple(with_bos(lm, lm.token_ids([versions(0)[0]], 50)[0])))]
    paths = PathReuse([], {"v": ["topic"]}, lambda *found: kept.append(found))
    paths.see("v", request.ids)
    scores = list(Scorer(lm).sequences([request], paths))
    assert [score.status for score in scores] == ["nonfinite"]
    assert kept == []


@pytest.fixture
def state():
    """The state of a short path."""
    found = {}
    lm = tiny_language_model("llama")
    paths = PathReuse([], {"v": ["topic"]}, lambda topic, ids, state: found.update({topic: (ids, state)}))
    list(score_texts(lm, {"v": "tide water moon"}, 50, paths=paths))
    return found["topic"]


def test_a_damaged_file_is_no_path_and_goes_away(tmp_path, state) -> None:
    files = PathStore(tmp_path, 10**9)
    files.keep("topic", *state)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-3])
    assert files.find("topic", "cpu") is None
    assert list(tmp_path.iterdir()) == []


def test_a_full_folder_takes_no_new_topic_but_a_newer_path_of_one_that_it_has(tmp_path, state) -> None:
    files = PathStore(tmp_path, 10**9)
    files.keep("topic", *state)
    (file,) = tmp_path.iterdir()
    full = PathStore(tmp_path, file.stat().st_size)
    full.keep("other", *state)
    assert full.find("other", "cpu") is None
    ids = tuple(token + 1 for token in state[0])
    full.keep("topic", ids, state[1])
    assert full.find("topic", "cpu").ids == ids


def test_a_disk_that_cannot_take_a_path_does_not_stop_the_scoring(tmp_path, state) -> None:
    (tmp_path / "taken").write_text("a file, no folder")
    files = PathStore(tmp_path / "taken" / "paths", 10**9)
    files.keep("topic", *state)
    assert files.find("topic", "cpu") is None
    there = PathStore(tmp_path, 10**9)
    (tmp_path / there._path("topic", state[0]).name).mkdir()
    there.keep("topic", *state)
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["taken"]
