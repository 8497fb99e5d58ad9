"""Package registries: fetching what they list, and the rows that come of it."""
