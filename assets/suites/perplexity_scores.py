"""What scores must satisfy beyond their DDL."""

from resources.warehouse.validation import Expect, Suite

SUITES: dict[str, Suite] = {
    "perplexity.scores": Suite(
        (
            Expect("ExpectTableRowCountToBeBetween", min_value=1),
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=["ok", "too_short", "nonfinite"]),
            # Texts too short for a token to score are few; a model whose logits are not finite is broken.
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=["ok", "too_short"], mostly=0.99),
            Expect("ExpectColumnValuesToBeInSet", column="status", value_set=["ok"], mostly=0.5),
            Expect("ExpectColumnValuesToBeBetween", column="mean_nll", min_value=0, max_value=50),
            Expect("ExpectColumnMeanToBeBetween", column="mean_nll", min_value=0.01, max_value=20),
            Expect("ExpectColumnValuesToBeBetween", column="perplexity", min_value=1),
            Expect("ExpectColumnValuesToBeBetween", column="n_tokens", min_value=0, max_value=1_000_000),
            Expect("ExpectColumnUniqueValueCountToBeBetween", column="weights_digest", min_value=1, max_value=3),
        )
    ),
}
