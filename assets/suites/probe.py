"""What the probe tables must satisfy beyond their DDL.

A model that answers nothing, or has no boundary, is an honest outcome and passes; answers that are not answers do not.
"""

from datetime import date
from typing import get_args

from resources.warehouse.validation import Expect, Suite
from strandline.probe import ROUND_STATUSES, Kind
from strandline.probe.boundaries import ESTIMATORS, STATUSES
from strandline.probe.modelclock import VARIANTS

WEIGHTS = sorted({1.0, *(rules.noisy_weight for rules in VARIANTS.values())})
"""What an answer can weigh: all, or a noisy day's part."""


def _ordered(smaller: str, larger: str) -> Expect:
    return Expect(
        "ExpectColumnPairValuesAToBeGreaterThanB",
        column_A=larger,
        column_B=smaller,
        or_equal=True,
        ignore_row_if="either_value_is_missing",
    )


# What is expected of each table's rows.
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
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=list(ROUND_STATUSES)),
            Expect("ExpectColumnValuesToNotBeNull", column="messages"),
            Expect("ExpectColumnValuesToNotBeNull", column="asked_at"),
        )
    ),
    "probe.answers": Suite(
        (
            Expect("ExpectColumnDistinctValuesToEqualSet", column="kind", value_set=list(get_args(Kind))),
            Expect("ExpectColumnValuesToBeInSet", column="weight", value_set=WEIGHTS, may_be_null=True),
            Expect("ExpectColumnValuesToBeBetween", column="position", min_value=0),
            Expect("ExpectColumnValuesToBeBetween", column="released_on", min_value=date(2000, 1, 1)),
        )
    ),
    "probe.posteriors": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=10),
            Expect("ExpectColumnValuesToBeInSet", column="estimator", value_set=list(ESTIMATORS)),
            Expect("ExpectColumnValuesToBeBetween", column="probability", min_value=0, max_value=1.000000001),
            Expect("ExpectColumnMaxToBeBetween", column="probability", min_value=0, strict_min=True),
        )
    ),
    "probe.boundaries": Suite(
        (
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=list(STATUSES)),
            Expect("ExpectColumnValuesToBeInSet", column="estimator", value_set=list(ESTIMATORS)),
            Expect("ExpectColumnValuesToNotBeNull", column="reason"),
            _ordered("low95", "low80"),
            _ordered("high80", "high95"),
            _ordered("low95", "estimate_from"),
            _ordered("real_yes", "real_total"),
            _ordered("decoy_yes", "decoy_total"),
        )
    ),
}
