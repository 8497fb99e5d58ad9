"""What the probe tables must satisfy beyond their DDL.

A model that answers nothing, or has no boundary, is an honest outcome and passes; answers that are not answers do not.
"""

from datetime import date

from resources.warehouse.validation import Expect, Suite

ROUNDS = ["ok", "partial", "empty", "refused", "truncated", "unparsed", "prompt_truncated", "error"]
BOUNDARIES = ["ok", "right_censored", "left_censored", "no_boundary", "drift", "inconclusive", "unanswered", "wide"]
ESTIMATORS = ["calibrated", "modelclock", "modelclock_reference"]


def _ordered(smaller: str, larger: str) -> Expect:
    return Expect(
        "ExpectColumnPairValuesAToBeGreaterThanB",
        column_A=larger,
        column_B=smaller,
        or_equal=True,
        ignore_row_if="either_value_is_missing",
    )


SUITES: dict[str, Suite] = {
    "probe.runs": Suite(
        (
            Expect("ExpectColumnValuesToBeBetween", column="rounds", min_value=1),
            Expect("ExpectColumnValuesToBeBetween", column="questions", min_value=0),
            _ordered("started_at", "chosen_at"),
        )
    ),
    "probe.rounds": Suite(
        (
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=ROUNDS),
            Expect("ExpectColumnValuesToNotBeNull", column="messages"),
            Expect("ExpectColumnValuesToNotBeNull", column="asked_at"),
        )
    ),
    "probe.answers": Suite(
        (
            Expect("ExpectColumnDistinctValuesToEqualSet", column="kind", value_set=["real", "decoy"]),
            Expect("ExpectColumnValuesToBeInSet", column="weight", value_set=[0.25, 1.0], may_be_null=True),
            Expect("ExpectColumnValuesToBeBetween", column="position", min_value=0),
            Expect("ExpectColumnValuesToBeBetween", column="released_on", min_value=date(2000, 1, 1)),
        )
    ),
    "probe.posteriors": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=10),
            Expect("ExpectColumnValuesToBeInSet", column="estimator", value_set=ESTIMATORS),
            Expect("ExpectColumnValuesToBeBetween", column="probability", min_value=0, max_value=1.000000001),
            Expect("ExpectColumnMaxToBeBetween", column="probability", min_value=0, strict_min=True),
        )
    ),
    "probe.boundaries": Suite(
        (
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=BOUNDARIES),
            Expect("ExpectColumnValuesToBeInSet", column="estimator", value_set=ESTIMATORS),
            Expect("ExpectColumnValuesToNotBeNull", column="reason"),
            _ordered("low95", "low80"),
            _ordered("high80", "high95"),
            _ordered("low95", "estimate_from"),
            _ordered("real_yes", "real_total"),
            _ordered("decoy_yes", "decoy_total"),
        )
    ),
}
