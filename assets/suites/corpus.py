"""What the corpus tables must satisfy beyond their DDL."""

from resources.warehouse.validation import Expect, Suite
from strandline.corpus import READ, SHARD_STATUSES
from strandline.corpus.dedup_audit import rules
from strandline.corpus.duplicates import CLASSES
from strandline.corpus.explanation import GAP_STATUSES
from strandline.corpus.histograms import BY_NGRAMS, COUNT_METHODS
from strandline.corpus.truth import OUTCOMES

SUITES: dict[str, Suite] = {
    "corpus.corpora": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=1),
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=list(SHARD_STATUSES)),
            # A few unreadable files are told of and passed over; most of them unreadable is a wrong setting.
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=[READ], mostly=0.5),
            Expect("ExpectColumnSumToBeBetween", column="n_documents", min_value=1),
            Expect("ExpectColumnSumToBeBetween", column="n_bytes", min_value=1),
            Expect("ExpectColumnValuesToMatchRegex", column="shard_key", regex=r"^[0-9a-f]{24}$"),
        )
    ),
    "corpus.broken_records": Suite(
        (
            Expect("ExpectColumnValuesToBeBetween", column="position", min_value=1),
            Expect("ExpectColumnValueLengthsToBeBetween", column="reason", min_value=1),
        ),
        may_be_empty=True,
    ),
    "corpus.matches": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=1),
            Expect("ExpectColumnValuesToBeBetween", column="distance", min_value=0, max_value=1, may_be_null=True),
            Expect("ExpectColumnValuesToBeBetween", column="bm25_score", min_value=0),
            Expect("ExpectColumnValuesToBeBetween", column="n_months", min_value=1, may_be_null=True),
            Expect("ExpectColumnValuesToMatchRegex", column="document_id", regex=r"^[0-9a-f]{16}@.+:\d+$"),
        )
    ),
    "corpus.version_counts": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=1),
            Expect("ExpectColumnValuesToBeInSet", column="method", value_set=list(COUNT_METHODS)),
            Expect("ExpectColumnDistinctValuesToContainSet", column="method", value_set=[BY_NGRAMS]),
            Expect("ExpectColumnValuesToBeBetween", column="weight", min_value=0),
            Expect("ExpectColumnValuesToNotBeNull", column="normalisation"),
        )
    ),
    "corpus.truth_checks": Suite(
        (
            Expect("ExpectColumnValuesToBeInSet", column="outcome", value_set=list(OUTCOMES)),
            Expect("ExpectColumnValuesToNotBeInSet", column="outcome", value_set=["wrong"], mostly=0.95),
        ),
        may_be_empty=True,
    ),
    "corpus.duplicate_pairs": Suite(
        (
            Expect("ExpectColumnValuesToBeInSet", column="class", value_set=list(CLASSES)),
            Expect("ExpectColumnValuesToBeBetween", column="distance", min_value=0, max_value=1),
            Expect("ExpectColumnValuesToNotBeNull", column="left_location"),
            Expect("ExpectColumnValuesToNotBeNull", column="right_location"),
        ),
        may_be_empty=True,
    ),
    "corpus.dedup_audit": Suite(
        (
            Expect("ExpectColumnValuesToBeInSet", column="rule", value_set=list(rules())),
            Expect("ExpectColumnValuesToBeInSet", column="class", value_set=list(CLASSES)),
            Expect("ExpectColumnValuesToBeBetween", column="mean_removed", min_value=0, max_value=1),
            Expect("ExpectColumnValuesToBeBetween", column="n_pairs", min_value=1),
        ),
        may_be_empty=True,
    ),
    "corpus.explanations": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=1),
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=list(GAP_STATUSES)),
            Expect("ExpectColumnValueLengthsToBeBetween", column="sentence", min_value=20),
        )
    ),
    "corpus.reweightings": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=1),
            Expect("ExpectColumnDistinctValuesToContainSet", column="removed", value_set=["none"]),
        )
    ),
}
