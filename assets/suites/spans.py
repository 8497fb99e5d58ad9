"""What the span tables must satisfy beyond their DDL."""

from collections.abc import Sequence

from resources.spans.sources import known_kinds
from resources.warehouse.validation import Expect, Suite
from strandline.spans import STATUSES
from strandline.spans.selection import COMPLETE

SHA256 = r"^[0-9a-f]{64}$"
"""How digests are written."""


def resources_suite(sources: Sequence[str]) -> Suite:
    """What the table of resources must satisfy where these kinds of sources are registered."""
    return Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=1),
            Expect("ExpectColumnValuesToNotBeNull", column="last_month"),
            Expect("ExpectColumnValuesToBeInSet", column="source", value_set=list(sources)),
            Expect("ExpectColumnValuesToMatchRegex", column="settings_sha256", regex=SHA256),
        )
    )


SUITES: dict[str, Suite] = {
    "spans.resources": resources_suite(list(known_kinds())),
    "spans.months": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=1),
            # One month that failed does not hold the others back, but more than a tenth of them failing is an outage.
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=sorted(COMPLETE), mostly=0.9),
            Expect("ExpectColumnValuesToBeBetween", column="n_documents", min_value=1, mostly=0.9),
            Expect("ExpectColumnValuesToBeBetween", column="n_ok", min_value=1, mostly=0.8),
            Expect("ExpectColumnValuesToNotBeNull", column="fetched_at"),
        )
    ),
    "spans.revisions": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=2),
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=list(STATUSES)),
            # News keeps every article that was looked at, and most of them are not drawn; so the share of texts is low.
            Expect("ExpectColumnProportionOfNonNullValuesToBeBetween", column="text_sha256", min_value=0.05),
            Expect("ExpectColumnValuesToMatchRegex", column="text_sha256", regex=SHA256),
            Expect("ExpectColumnValuesToBeBetween", column="n_chars", min_value=1),
            Expect("ExpectColumnValuesToNotBeInSet", column="topic", value_set=[""]),
            Expect("ExpectColumnValuesToNotBeNull", column="cleaned_by"),
        )
    ),
    "spans.texts": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=1),
            Expect("ExpectColumnValuesToMatchRegex", column="text_sha256", regex=SHA256),
            Expect("ExpectColumnValueLengthsToBeBetween", column="text", min_value=1),
            Expect("ExpectColumnUniqueValueCountToBeBetween", column="text", min_value=1),
        )
    ),
}
