"""The scoring engine: log-likelihoods of token sequences under a language model, sharing what sequences share.

The perplexity methods score document versions with it, contamination scores orderings, and the release probe reads
label probabilities. What a score means for a date belongs to those methods.
"""
