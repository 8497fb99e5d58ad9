"""The settings of corpora: defaults, and mistakes that are named with their corpus."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from strandline.corpus.settings import corpora_of

GOOD = {"corpus": "a", "resources": ["r"], "parts": [{"files": "x.jsonl"}]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"corpus": ""}, "a corpus without a name"),
        ({"parts": []}, "corpus a: no parts"),
        ({"resources": []}, "corpus a: no resources"),
        ({"colour": 1}, "corpus a: unknown setting colour"),
        ({"reader": "tape"}, "reader is 'tape'"),
        ({"dedup_rule": "magic"}, "dedup_rule is 'magic'"),
        ({"reported": {"other": "2020-01"}}, "other, which is not among"),
        ({"reported": {"r": "soon"}}, "'soon' is not a month"),
        ({"mining": {"limit": 0}}, "limit is 0"),
        ({"mining": {"top": 1.5}}, "top is 1.5"),
        ({"mining": {"topp": 1}}, "unknown setting topp"),
        ({"parts": [{"layout": "c4"}]}, "a part without files"),
        ({"parts": [{"files": "x", "layout": "c9"}]}, "no layout named 'c9'"),
        ({"models": [1]}, "models is"),
    ],
)
def test_a_wrong_setting_is_named_with_its_corpus(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        corpora_of({"corpora": [{**GOOD, **change}]})


def test_settings_are_read_with_their_defaults() -> None:
    (spec,) = corpora_of(
        {"corpora": [{**GOOD, "reported": {"r": "2020-03"}}, {**GOOD, "corpus": "b", "enabled": False}]}
    )
    assert (spec.mining.limit, spec.mining.top, spec.mining.query_words) == (0.2, 10, 512)
    assert spec.reported == {"r": date(2020, 3, 1)}
    assert spec.parts[0].is_crawl
    with pytest.raises(ValueError, match="set twice"):
        corpora_of({"corpora": [GOOD, GOOD]})
    with pytest.raises(ValueError, match="a list under `corpora`"):
        corpora_of([])


def test_the_committed_settings_are_valid_in_full(root: Path) -> None:
    raw = yaml.safe_load((root / "data" / "corpora.yaml").read_text(encoding="utf-8"))
    assert [spec.corpus for spec in corpora_of(raw)] == ["environment"]
    everything = {"corpora": [{**entry, "enabled": True} for entry in raw["corpora"]]}
    assert len(corpora_of(everything)) == len(raw["corpora"])
