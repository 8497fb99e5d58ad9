"""What the contamination tables must satisfy beyond their DDL.

A failed order check, an inconclusive budget and a clean model are honest outcomes and pass; so are a few shards whose
log-likelihoods are not finite, which the verdict leaves out and names. Where most are not, the model is at fault.
"""

from resources.warehouse.validation import Expect, Suite

VERDICTS = ["order_memorised", "no_evidence", "order_not_exchangeable", "numerically_fragile", "inconclusive"]
METHODS = ["lattice_fisher", "rank_sum", "fisher_chi2", "oren_t"]


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
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=["ok"]),
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
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=["ok", "order_not_exchangeable"]),
            Expect("ExpectColumnValuesToNotBeNull", column="p_value"),
            Expect("ExpectColumnValuesToBeBetween", column="n_permutations", min_value=99),
        )
    ),
    "contamination.order_logliks": Suite(
        (
            Expect("ExpectColumnDistinctValuesToContainSet", column="permutation", value_set=[0, 1, 2]),
            Expect("ExpectColumnValuesToBeBetween", column="loglik", max_value=0),
            Expect("ExpectColumnValuesToBeBetween", column="n_tokens", min_value=2),
            Expect("ExpectColumnUniqueValueCountToBeBetween", column="settings_digest", max_value=1),
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=["ok"], mostly=0.5),
        )
    ),
    "contamination.shard_tests": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=1),
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=["ok", "nonfinite"]),
            Expect("ExpectColumnValuesToNotBeNull", column="p_value", mostly=0.5),
            _at_least("p_value", "resolution"),
            _at_least("exceedances", "greater"),
        )
    ),
    "contamination.tests": Suite(
        (
            Expect("ExpectColumnValuesToBeInSet", column="verdict", value_set=[*VERDICTS, "comparison"]),
            Expect("ExpectColumnDistinctValuesToContainSet", column="is_verdict", value_set=[True]),
            Expect("ExpectColumnValuesToBeBetween", column="ln_p", max_value=0, mostly=0.5),
            Expect("ExpectColumnValuesToBeBetween", column="alpha", strict_min=True, min_value=0, max_value=0.5),
            _at_least("q_value", "p_value"),
        )
    ),
}
