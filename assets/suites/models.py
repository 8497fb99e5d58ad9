"""What the model tables must satisfy beyond their DDL."""

from resources.warehouse.validation import Expect

SUITES: dict[str, tuple[Expect, ...]] = {
    "models.models": (
        Expect("ExpectTableRowCountToBeBetween", min_value=200),
        Expect("ExpectColumnValuesToMatchRegex", column="partition_key", regex=r"^[A-Za-z0-9._%-]+$"),
        Expect("ExpectColumnDistinctValuesToContainSet", column="is_listed", value_set=[True]),
        Expect("ExpectColumnValuesToNotBeNull", column="released_on", mostly=0.5),
    ),
    "models.declared_cutoffs": (
        Expect("ExpectColumnUniqueValueCountToBeBetween", column="model", min_value=200),
        Expect("ExpectColumnValuesToMatchRegex", column="url", regex=r"^https?://"),
        Expect("ExpectColumnValuesToNotBeNull", column="value", mostly=0.7),
        Expect("ExpectColumnMeanToBeBetween", column="is_valid", min_value=0.7),
    ),
    "models.training_corpora": (
        Expect(
            "ExpectColumnDistinctValuesToContainSet",
            column="model",
            value_set=["Pythia", "GPT-Neo", "GPT-J", "RedPajama", "Falcon", "FalconRW", "OLMo", "LLaMA"],
        ),
        Expect("ExpectColumnDistinctValuesToContainSet", column="corpus", value_set=["Pile", "C4", "RefinedWeb"]),
        Expect("ExpectColumnValuesToNotBeNull", column="dump_to", mostly=0.8),
    ),
}
"""What each table must satisfy: floors far under the 280 models and 347 claims that are committed, so that they fail
on a file that was cut and not on a fact that was removed."""
