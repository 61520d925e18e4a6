"""Accumulators, partial results of threads, and the stores of results."""
