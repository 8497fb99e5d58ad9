"""Did a benchmark leak into training in its published order? Exact permutation tests on log-likelihoods.

The statistics here never call a model (checklist T26): they take log-likelihoods of orderings and give verdicts. What
belongs elsewhere: tokenizing and scoring (``resources``), tables and partitions (``assets``).
"""
