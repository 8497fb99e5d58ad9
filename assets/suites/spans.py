"""What the span tables must satisfy beyond their DDL."""

from resources.warehouse.validation import Expect, Suite

STATUSES = [
    "ok", "missing", "invalid", "duplicate", "redirect", "blank", "hidden", "suppressed", "not_created", "deleted",
    "unsupported", "unparsed", "unreadable", "no_text", "binary", "pointer", "empty", "too_short", "undated",
    "misdated", "truncated", "revisit", "garbled", "near_duplicate", "not_sampled", "failed", "deferred",
]  # fmt: skip
SHA256 = r"^[0-9a-f]{64}$"

SUITES: dict[str, Suite] = {
    "spans.resources": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=1),
            Expect("ExpectColumnValuesToNotBeNull", column="last_month"),
            Expect("ExpectColumnValuesToBeInSet", column="source", value_set=["wikipedia", "readme", "git", "news"]),
            Expect("ExpectColumnValuesToMatchRegex", column="settings_sha256", regex=SHA256),
        )
    ),
    "spans.months": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=1),
            # A month that failed stays out of no one's way, but most months failing is an outage.
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=["ok", "short"], mostly=0.9),
            Expect("ExpectColumnValuesToBeBetween", column="n_documents", min_value=1, mostly=0.9),
            Expect("ExpectColumnValuesToBeBetween", column="n_ok", min_value=1, mostly=0.8),
            Expect("ExpectColumnValuesToNotBeNull", column="fetched_at"),
        )
    ),
    "spans.revisions": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=2),
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=STATUSES),
            # News keeps every article that was looked at, most of them not drawn: a floor, not a target.
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
