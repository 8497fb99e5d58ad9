"""What the calibration tables must satisfy beyond their DDL."""

from resources.warehouse.validation import Expect, Suite

# What is expected of each table's rows.
SUITES: dict[str, Suite] = {
    "calibration.runs": Suite(
        (
            Expect("ExpectColumnValuesToNotBeNull", column="status"),
            Expect(
                "ExpectColumnPairValuesAToBeGreaterThanB",
                column_A="high95",
                column_B="low95",
                or_equal=True,
                ignore_row_if="either_value_is_missing",
            ),
        )
    ),
    "calibration.recoveries": Suite(
        (
            Expect("ExpectColumnValuesToBeBetween", column="n_runs", min_value=1),
            Expect("ExpectColumnValuesToBeBetween", column="coverage95", min_value=0, max_value=1, may_be_null=True),
        )
    ),
}
