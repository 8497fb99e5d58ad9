"""The environment variables that adapters read, each with a name and a sentence.

Not here: the registries' own (each stands in its registry's record in ``strandline/releases``), API keys (a model's
entry names its variable) and what belongs to other programs (pip, npm, git, OpenMP, Dagster).
"""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Variable:
    """An environment variable: its name, and what it says, for documents and errors."""

    name: str
    meaning: str

    def value(self) -> str | None:
        """What it is set to, blanks around it dropped; None where it is unset or empty."""
        return os.environ.get(self.name, "").strip() or None


# A setting that a user may give in the environment.
CONTACT = Variable("STRANDLINE_CONTACT", "who runs this client, as an e-mail address or URL, sent to servers")
# A setting that a user may give in the environment.
WIKIPEDIA_API = Variable("STRANDLINE_WIKIPEDIA_API", "the api.php of another wiki than the English Wikipedia")
# A setting that a user may give in the environment.
COMMONCRAWL_INDEX = Variable("STRANDLINE_COMMONCRAWL_INDEX", "another server of Common Crawl's index")
# A setting that a user may give in the environment.
COMMONCRAWL_DATA = Variable("STRANDLINE_COMMONCRAWL_DATA", "another server of Common Crawl's archives")
# A setting that a user may give in the environment.
BENCHMARK_MIRROR = Variable("STRANDLINE_BENCHMARK_MIRROR", "a mirror of benchmark files, asked as mirror/host/path")

VARIABLES = (CONTACT, WIKIPEDIA_API, COMMONCRAWL_INDEX, COMMONCRAWL_DATA, BENCHMARK_MIRROR)
"""All of them; a test compares the list with the code and with README."""
