"""Runs kernel IR in NumPy for every thread of every block, and reports what a device would not."""
