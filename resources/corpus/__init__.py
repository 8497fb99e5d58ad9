"""Training corpora: reading their shards, searching and matching them, and the rows that come of it."""
