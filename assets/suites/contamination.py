"""What the contamination tables must satisfy beyond their DDL.

A failed order check, an inconclusive budget and a clean model are honest outcomes and pass; so are a few shards whose
log-likelihoods are not finite, which the verdict leaves out and names. Where most are not, the model is at fault.
"""

from resources.warehouse.validation import Expect, Suite
from strandline.contamination.settings import FEWEST_PERMUTATIONS
from strandline.contamination.statuses import (
    OK,
    ORDER_CHECK_STATUSES,
    ORDERING_STATUSES,
    SHARD_STATUSES,
    VERDICT_WORDS,
)

HALF = 0.5
"""Where more than half of the values cannot be used, the model is at fault, and not an example."""


def _at_least(larger: str, smaller: str) -> Expect:
    return Expect(
        "ExpectColumnPairValuesAToBeGreaterThanB",
        column_A=larger,
        column_B=smaller,
        or_equal=True,
        ignore_row_if="either_value_is_missing",
        may_be_null=True,
    )


SUITES: dict[str, Suite] = {
    "contamination.benchmarks": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=1),
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=[OK]),
            Expect("ExpectColumnValuesToBeBetween", column="n_examples", min_value=2),
            Expect("ExpectColumnValuesToMatchRegex", column="sha256", regex=r"^[0-9a-f]{64}$"),
            Expect("ExpectColumnValuesToMatchRegex", column="order_digest", regex=r"^[0-9a-f]{64}$"),
            _at_least("n_examples", "n_duplicates"),
        )
    ),
    "contamination.order_checks": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=6),
            Expect("ExpectColumnDistinctValuesToContainSet", column="is_gate", value_set=[True]),
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=[*ORDER_CHECK_STATUSES]),
            Expect("ExpectColumnValuesToNotBeNull", column="p_value"),
            Expect("ExpectColumnValuesToBeBetween", column="n_permutations", min_value=FEWEST_PERMUTATIONS),
        )
    ),
    "contamination.order_logliks": Suite(
        (
            Expect("ExpectColumnDistinctValuesToContainSet", column="permutation", value_set=[0, 1, 2]),
            Expect("ExpectColumnValuesToBeBetween", column="loglik", max_value=0),
            Expect("ExpectColumnValuesToBeBetween", column="n_tokens", min_value=2),
            # Values of other settings, weights or code, or of another context, are never compared.
            Expect("ExpectColumnUniqueValueCountToBeBetween", column="settings_digest", max_value=1),
            Expect("ExpectColumnUniqueValueCountToBeBetween", column="order_digest", max_value=1),
            Expect("ExpectColumnUniqueValueCountToBeBetween", column="scorer_version", max_value=1),
            Expect("ExpectColumnUniqueValueCountToBeBetween", column="context_length", max_value=1, may_be_null=True),
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=[*ORDERING_STATUSES]),
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=[OK], mostly=HALF),
        )
    ),
    "contamination.shard_tests": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=1),
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=[*SHARD_STATUSES]),
            Expect("ExpectColumnValuesToNotBeNull", column="p_value", mostly=HALF),
            _at_least("p_value", "resolution"),
            _at_least("exceedances", "greater"),
        )
    ),
    "contamination.tests": Suite(
        (
            Expect("ExpectColumnValuesToBeInSet", column="verdict", value_set=[*VERDICT_WORDS]),
            Expect("ExpectColumnDistinctValuesToContainSet", column="is_verdict", value_set=[True]),
            Expect("ExpectColumnValuesToBeBetween", column="ln_p", max_value=0, mostly=HALF),
            Expect("ExpectColumnValuesToBeBetween", column="alpha", strict_min=True, min_value=0, max_value=0.5),
            _at_least("q_value", "p_value"),
        )
    ),
}
