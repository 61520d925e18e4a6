"""Accumulators, partial results of threads, and the way of results back to memory."""
