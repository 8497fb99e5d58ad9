"""The model-free order check: exact level, detection of sorted files, real files that pass, bad input."""

import json
from pathlib import Path

import numpy as np
import pytest

from strandline.contamination.order_check import check_order
from strandline.contamination.orderings import PermutationGroup, Shard, make_shards

WORDS = ["river", "copper", "lantern", "quilt", "harbour", "maple", "engine", "violin", "glacier", "saddle"]


def invented(rng, n, topic=None):
    """Examples of words drawn at random, some of them from a topic's own words."""
    texts = []
    for k in range(n):
        own = [f"topic{topic[k]}word{i}" for i in rng.integers(0, 6, 3)] if topic is not None else []
        words = [*own, *(f"{WORDS[i]}{j}" for i, j in zip(rng.integers(0, 10, 6), rng.integers(0, 9, 6), strict=True))]
        texts.append(" ".join(rng.permutation(words)) + "." * int(rng.integers(0, 5)))
    return texts


def whole(texts):
    return [Shard(0, 0, len(texts))]


def test_the_combined_check_keeps_its_level_under_random_orders() -> None:
    rng = np.random.default_rng(0)
    texts = invented(rng, 24)
    p = []
    for run in range(300):
        order = rng.permutation(24)
        check = check_order([texts[i] for i in order], [Shard(0, 0, 12), Shard(1, 12, 24)], n_permutations=39, seed=run)
        p.append(check.p_value)
    for level in (0.05, 0.1, 0.25):
        assert abs(np.mean(np.array(p) <= level + 1e-12) - level) < 4 * np.sqrt(level * (1 - level) / 300)


@pytest.mark.parametrize("order", ["topic", "length", "near-duplicates", "label"])
def test_sorted_files_fail_the_check(order) -> None:
    rng = np.random.default_rng(1)
    topics = np.sort(rng.integers(0, 8, 120))
    texts = invented(rng, 120, topics)
    labels = None
    if order == "length":
        texts = sorted(invented(rng, 120), key=len)
    if order == "near-duplicates":
        texts = [f"What is next for {WORDS[k % 10]} {k} in place {k // 6}?" for k in range(120)]
    if order == "label":
        texts, labels = invented(rng, 120), list(np.sort(rng.integers(0, 4, 120)))
    shards = whole(texts) if order == "label" else make_shards([len(text) for text in texts])
    check = check_order(texts, shards, labels=labels, n_permutations=199)
    assert check.fails()
    assert check.p_value == 1 / 200
    assert "most telling" in check.summary()


@pytest.mark.parametrize(
    ("form", "telling"),
    [
        ("Question {k}: {text}", {"alphabet", "first number"}),
        ("{text} ({back})", {"last number"}),
        ("What happened in {year} to {text}?", {"alphabet", "first number"}),
        ("{letters} {text}", {"alphabet"}),
    ],
)
def test_numbered_dated_and_alphabetical_files_fail_though_no_neighbours_share_a_word(form, telling) -> None:
    """Any model expects 18 after 17: without training on the file it finds such an order likely."""
    texts = [
        form.format(k=k + 1, back=120 - k, year=1800 + k, letters=f"{chr(97 + k // 12)}{chr(97 + k % 12)}", text=text)
        for k, text in enumerate(invented(np.random.default_rng(6), 120))
    ]
    shards = make_shards([len(text) for text in texts])
    check = check_order(texts, shards, n_permutations=199)
    assert check.fails()
    assert telling <= {item.name for item in check.statistics if item.p_value == 1 / 200}
    shuffled = [texts[i] for i in np.random.default_rng(7).permutation(120)]
    assert not check_order(shuffled, shards, n_permutations=199).fails()


def test_numbers_of_any_length_have_an_order() -> None:
    texts = ["9" * 5000, "no number", "0", "007", "08", "1" + "0" * 400]
    statistics = check_order(texts, whole(texts), n_permutations=20).statistics
    assert all(np.isfinite(item.value) for item in statistics)


def test_the_same_file_shuffled_passes() -> None:
    rng = np.random.default_rng(2)
    texts = invented(rng, 120, np.sort(rng.integers(0, 8, 120)))
    shuffled = [texts[i] for i in rng.permutation(120)]
    assert not check_order(shuffled, make_shards([len(text) for text in shuffled]), n_permutations=199).fails()


def test_a_window_group_asks_about_its_own_windows_only() -> None:
    """Topics in blocks of exactly six: within a block any order is as good as another."""
    rng = np.random.default_rng(3)
    texts = invented(rng, 120, np.repeat(np.arange(20), 6))
    shards = [Shard(k, 24 * k, 24 * k + 24) for k in range(5)]
    assert check_order(texts, shards, n_permutations=199).fails()
    assert not check_order(texts, shards, group=PermutationGroup(6), n_permutations=199).fails()


def test_the_projects_own_benchmark_passes_and_fails_once_sorted(root: Path) -> None:
    lines = (root / "data" / "benchmarks" / "tideline.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["question"] for line in lines]
    shards = make_shards([len(text) for text in texts])
    check = check_order(texts, shards, n_permutations=199)
    assert not check.fails()
    assert check.p_value > 0.05
    by_first_word = sorted(texts, key=lambda text: text.split()[0])
    assert check_order(by_first_word, shards, n_permutations=199).fails()


def test_a_p_value_on_the_gate_fails() -> None:
    rng = np.random.default_rng(4)
    texts = sorted(invented(rng, 60), key=len)
    check = check_order(texts, whole(texts), n_permutations=99)
    assert check.p_value == 0.01
    assert check.fails("0.01")
    assert not check.fails("0.0099")


def test_the_check_is_reproducible_and_its_seed_matters_little() -> None:
    rng = np.random.default_rng(5)
    texts = invented(rng, 60)
    first, again = (check_order(texts, whole(texts), n_permutations=99, seed=1) for _ in range(2))
    assert first == again


def test_odd_texts_do_not_break_it() -> None:
    texts = ["", "...", "same", "same", "同じ 言葉", "same"]
    check = check_order(texts, whole(texts), labels=[1, 1, None, 2, 2, 2], n_permutations=50)
    assert 0 < check.p_value <= 1
    assert all(np.isfinite(item.value) for item in check.statistics)
    identical = check_order(["same"] * 8, whole(["same"] * 8), n_permutations=20)
    assert identical.p_value == 1.0
    assert all(item.z_score is None for item in identical.statistics)


@pytest.mark.parametrize(
    ("shards", "more", "words"),
    [
        ([], {}, "needs shards"),
        ([Shard(0, 0, 1)], {}, "fewer than two"),
        ([Shard(0, 0, 3)], {"labels": [1]}, "1 labels for 3 texts"),
        ([Shard(0, 0, 3)], {"n_permutations": 0}, "permutations"),
    ],
)
def test_bad_input_is_refused(shards, more, words) -> None:
    with pytest.raises(ValueError, match=words):
        check_order(["a", "b", "c"], shards, **more)
