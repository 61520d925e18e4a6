"""Compilers from source text to machine code, and readers of its assembly."""
