"""Compilers that need no device: sources to machine code for a named architecture, with what each kernel uses, and its text."""
