"""Rolling windows score every token once, with as much context as was promised."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.scoring.windows import rolling_windows, window_requests

SIZES = st.integers(2, 12).flatmap(lambda context: st.tuples(st.just(context), st.integers(1, context - 1)))


@given(st.integers(0, 60), SIZES, st.booleans())
def test_every_token_is_scored_exactly_once(n_ids, sizes, has_bos) -> None:
    context, stride = sizes
    windows = rolling_windows(n_ids, context, stride, has_bos=has_bos)
    scored = [place for window in windows for place in range(window.score, window.stop)]
    assert scored == list(range(0 if has_bos else 1, n_ids))


@given(st.integers(2, 60), SIZES, st.booleans())
def test_windows_fit_and_leave_the_promised_context(n_ids, sizes, has_bos) -> None:
    context, stride = sizes
    for place, window in enumerate(rolling_windows(n_ids, context, stride, has_bos=has_bos)):
        assert window.stop - window.start + has_bos <= context
        if place:
            assert window.score - window.start + has_bos >= context - stride


@pytest.mark.parametrize("n_ids", [6, 7, 8, 9])
def test_a_sequence_of_the_context_or_less_is_one_window(n_ids) -> None:
    assert len(rolling_windows(n_ids, 8, 4, has_bos=True)) == (1 if n_ids <= 7 else 2)
    assert len(rolling_windows(n_ids, 8, 4, has_bos=False)) == (1 if n_ids <= 8 else 2)


def test_the_drawing_in_the_module_is_true() -> None:
    windows = rolling_windows(10, 8, 4, has_bos=True)
    assert [(w.start, w.score, w.stop) for w in windows] == [(0, 0, 7), (3, 7, 10)]


@given(st.integers(2, 60), SIZES, st.sampled_from([None, 99]))
def test_requests_carry_bos_once_each_and_score_every_id_once(n_ids, sizes, bos_id) -> None:
    context, stride = sizes
    requests = window_requests(list(range(n_ids)), context, stride, bos_id)
    scored = [i for request in requests for i in request.ids[request.score_from :]]
    assert scored == list(range(0 if bos_id is not None else 1, n_ids))
    for request in requests:
        assert request.ids.count(99) == (bos_id is not None)
        assert len(request.ids) <= context


def test_without_a_limit_all_is_one_window() -> None:
    assert len(window_requests(list(range(5000)), None, None, 1)) == 1


def test_a_stride_without_room_is_an_error() -> None:
    for stride in (0, 8, 9):
        with pytest.raises(ValueError, match="stride"):
            rolling_windows(20, 8, stride, has_bos=True)
