"""The words that rows of the contamination tables may say of themselves, each once.

Suites, constraints and comments of the tables are compared with these; what the words mean to a reader stands in
``docs/methods/contamination-tests.md``.
"""

from typing import Literal, get_args

VerdictName = Literal[
    "order_memorised", "no_evidence", "order_not_exchangeable", "numerically_fragile", "inconclusive", "comparison"
]

# The status of a result that holds.
OK = "ok"
# The verdict where the order check fails, so that the test has no ground.
ORDER_NOT_EXCHANGEABLE: VerdictName = "order_not_exchangeable"
# The verdict of a row that is there for comparison only.
COMPARISON: VerdictName = "comparison"

VERDICTS: tuple[VerdictName, ...] = tuple(word for word in get_args(VerdictName) if word != COMPARISON)
"""What a test may end in."""

VERDICT_WORDS: tuple[VerdictName, ...] = (*VERDICTS, COMPARISON)
"""All words of the column ``verdict``; a named statistic beside a verdict is a comparison."""

COUNTED: tuple[VerdictName, ...] = ("order_memorised", "no_evidence")
"""Verdicts that decide something behind a passed order check: false discoveries are controlled over these."""

BENCHMARK_STATUSES = (OK, "failed")
"""Read, or could not be fetched or read."""

ORDER_CHECK_STATUSES = (OK, ORDER_NOT_EXCHANGEABLE)
"""Passed the gate, or did not."""

ORDERING_STATUSES = (OK, "nonfinite")
"""Has a log-likelihood, or none that may be used."""

SHARD_STATUSES = (OK, "nonfinite", "inconclusive")
"""Tested, left out for a value that may not be used, or not scored far enough."""
