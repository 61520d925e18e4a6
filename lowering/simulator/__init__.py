"""Runs kernel IR in NumPy for every thread of every block, and reports faults that a device would not report."""
