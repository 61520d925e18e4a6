"""Innermost statements that are a single instruction of the device: matching, operand addresses, and results."""
