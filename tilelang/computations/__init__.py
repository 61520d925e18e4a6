"""Computations: tensors, definitions, functions for use in definitions, and bounds checks of reads."""
