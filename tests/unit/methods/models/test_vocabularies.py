"""Words that stand in a column are listed once, in the methods; the DDL's checks and comments say the same."""

import re
from pathlib import Path
from typing import get_args

import pytest

from strandline.models import AskMode, Backend
from strandline.models.declared import KINDS, Precision

DDL = Path(__file__).parents[4] / "sql" / "schema" / "models.sql"


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("backend", get_args(Backend)),
        ("ask", get_args(AskMode)),
        ("kind", KINDS),
        ("released_precision", get_args(Precision)),
        ("precision", get_args(Precision)),
        ("dump_from_precision", get_args(Precision)),
        ("dump_to_precision", get_args(Precision)),
    ],
)
def test_a_column_allows_the_words_of_its_method(column: str, words: tuple[str, ...]) -> None:
    checks = re.findall(rf"check \({column} in \(([^)]*)\)\)", DDL.read_text(encoding="utf-8"))
    assert [tuple(re.findall(r"'([^']*)'", check)) for check in checks] == [words]
