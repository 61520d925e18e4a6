"""Statements that are one instruction of the device: matched, their operands addressed, their results brought back."""
