"""Benchmark files, the scoring of their orders, and the rows of the permutation tests."""
