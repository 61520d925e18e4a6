"""Targets: the dialects of C that kernels are emitted in, and their library functions."""
