"""Limits that a compiler pass and a driver have in common."""

MOST_SCRATCH_BYTES = 64 << 20  # per block on a CPU: its shared memory, and what its threads keep across barriers
