"""The perplexity methods."""
