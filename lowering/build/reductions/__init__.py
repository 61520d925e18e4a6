"""Accumulators, the combination of threads' partial results, and the stores of results."""
