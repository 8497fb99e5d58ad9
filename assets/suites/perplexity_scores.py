"""What scores must satisfy beyond their DDL."""

from resources.warehouse.validation import Expect, Suite
from strandline.perplexity.plausible import LARGEST_MEAN_NLL, SCORE_STATUSES

SUITES: dict[str, Suite] = {
    "perplexity.scores": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=1),
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=[*SCORE_STATUSES]),
            # A model whose logits are not finite, or a server that sends stand-ins, is broken where it is no exception.
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=["ok", "too_short"], mostly=0.99),
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=["ok"], mostly=0.5),
            Expect("ExpectColumnValuesToBeBetween", column="mean_nll", min_value=0, max_value=LARGEST_MEAN_NLL),
            Expect("ExpectColumnMeanToBeBetween", column="mean_nll", min_value=0.01, max_value=20),
            Expect("ExpectColumnValuesToBeBetween", column="perplexity", min_value=1),
            Expect("ExpectColumnValuesToBeBetween", column="n_tokens", min_value=0, max_value=1_000_000),
            # One way of scoring a model: other weights, another context or other code make other numbers.
            Expect("ExpectColumnUniqueValueCountToBeBetween", column="weights_digest", min_value=1, max_value=1),
            Expect("ExpectColumnUniqueValueCountToBeBetween", column="scorer_version", min_value=1, max_value=1),
            Expect("ExpectColumnUniqueValueCountToBeBetween", column="n_tokens", max_value=1,
                   where={"is_context_limited": True, "status": "ok"}),
        )
    ),
}  # fmt: skip
