"""What the release tables must satisfy beyond their DDL."""

from datetime import date

from resources.warehouse.validation import Expect, Suite
from strandline.releases import FAILED_STATUSES, SOURCE_STATUSES

SUITES: dict[str, Suite] = {
    "releases.sources": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=200),
            Expect("ExpectColumnValuesToBeUnique", column="project"),
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=list(SOURCE_STATUSES)),
            Expect("ExpectColumnProportionOfNonNullValuesToBeBetween", column="salience_rank", min_value=1),
            # A refresh in which a tenth of the sources fails is broken, not unlucky.
            Expect(
                "ExpectColumnValuesToNotBeInSet",
                column="status",
                value_set=list(FAILED_STATUSES),
                mostly=0.9,
            ),
            Expect("ExpectColumnValuesToBeBetween", column="n_releases", min_value=1, mostly=0.99),
        )
    ),
    "releases.releases": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=30_000),
            Expect("ExpectColumnUniqueValueCountToBeBetween", column="project", min_value=200),
            Expect("ExpectColumnValuesToNotBeNull", column="released_on", mostly=0.9),
            Expect("ExpectColumnMaxToBeBetween", column="released_on", min_value=date(2026, 6, 1)),
            Expect("ExpectColumnMinToBeBetween", column="released_on", max_value=date(2016, 1, 1)),
            Expect("ExpectColumnValuesToMatchRegex", column="version", regex=r"\d"),
            Expect("ExpectColumnValuesToBeInSet", column="is_stable", value_set=[True], mostly=0.5),
        )
    ),
    "releases.probe_items": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=3_000),
            Expect("ExpectColumnUniqueValueCountToBeBetween", column="dataset_version", min_value=1, max_value=1),
            Expect("ExpectColumnUniqueValueCountToBeBetween", column="released_on", min_value=300),
            Expect("ExpectColumnUniqueValueCountToBeBetween", column="project", min_value=100),
            Expect("ExpectColumnValuesToNotBeNull", column="decoy_version", mostly=0.9),
            Expect("ExpectColumnValuesToMatchRegex", column="version", regex=r"^\d+(?:\.\d+){1,3}$"),
            Expect("ExpectColumnValuesToMatchRegex", column="decoy_version", regex=r"^\d+(?:\.\d+){1,3}$"),
            Expect("ExpectColumnValuesToMatchRegex", column="prompt", regex=r"^Had .+ released version \S+ yet\?$"),
            Expect("ExpectColumnMinToBeBetween", column="position", min_value=0, max_value=0),
        )
    ),
}
