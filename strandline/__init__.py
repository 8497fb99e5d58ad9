"""Strandline dates what a language model knows.

This package holds the methods, free of orchestration, storage and networking, so that each can be used as a library:
the release probe, effective cutoffs from perplexity over versioned documents, exact contamination tests and corpus
mining. Anything that talks to the world belongs in ``resources``; anything that is materialized belongs in ``assets``.
"""

__version__ = "0.1.0"
