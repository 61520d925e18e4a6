"""Statements that are one instruction of the device: matching, addresses of operands, and results."""
