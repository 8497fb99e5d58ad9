"""What curves, references and cutoffs must satisfy beyond their DDL."""

from resources.warehouse.validation import Expect, Suite
from strandline.perplexity.estimates import ESTIMATORS, STATUSES
from strandline.perplexity.rows import CURVE_REASONS
from strandline.perplexity.topic import STATUSES as TOPIC_STATUSES

SUITES: dict[str, Suite] = {
    "perplexity.monthly_curves": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=1),
            Expect("ExpectColumnValuesToBeBetween", column="mean_perplexity", min_value=1),
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=[*CURVE_REASONS], may_be_null=True),
            # Months without a single scored document are possible, a model full of them is broken.
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=["ok", "constant", "missing"], mostly=0.9,
                   may_be_null=True),
            Expect("ExpectColumnUniqueValueCountToBeBetween", column="complete_cases", max_value=1, may_be_null=True),
            Expect("ExpectColumnValuesToBeBetween", column="relative_perplexity", min_value=0, max_value=1,
                   may_be_null=True),
            Expect("ExpectColumnPairValuesAToBeGreaterThanB", column_A="high95", column_B="low95", or_equal=True,
                   ignore_row_if="either_value_is_missing", may_be_null=True),
        )
    ),
    "perplexity.reference_tests": Suite(
        (
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=[*STATUSES]),
            Expect("ExpectColumnValuesToBeBetween", column="rank", min_value=1),
            Expect("ExpectColumnValuesToBeBetween", column="n_texts", min_value=1, mostly=0.5),
        ),
        may_be_empty=True,
    ),
    "perplexity.effective_cutoffs": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=2),
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=[*STATUSES]),
            Expect("ExpectColumnValuesToBeInSet", column="estimator", value_set=sorted({e.name for e in ESTIMATORS})),
            Expect("ExpectColumnDistinctValuesToContainSet", column="estimator", value_set=["trimmed95_minmax"]),
            Expect("ExpectColumnDistinctValuesToContainSet", column="is_default", value_set=[True]),
            Expect("ExpectColumnPairValuesAToBeGreaterThanB", column_A="last_month", column_B="month", or_equal=True,
                   ignore_row_if="either_value_is_missing", may_be_null=True),
            Expect("ExpectColumnPairValuesAToBeGreaterThanB", column_A="month", column_B="low95", or_equal=True,
                   ignore_row_if="either_value_is_missing", may_be_null=True),
            Expect("ExpectColumnPairValuesAToBeGreaterThanB", column_A="high95", column_B="month", or_equal=True,
                   ignore_row_if="either_value_is_missing", may_be_null=True),
        )
    ),
    "perplexity.topic_cutoffs": Suite(
        (
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=[*TOPIC_STATUSES]),
            Expect("ExpectColumnPairValuesAToBeGreaterThanB", column_A="q_value", column_B="p_value", or_equal=True,
                   ignore_row_if="either_value_is_missing", may_be_null=True),
            Expect("ExpectColumnValuesToBeBetween", column="n_edits", min_value=0),
        ),
        may_be_empty=True,
    ),
}  # fmt: skip
