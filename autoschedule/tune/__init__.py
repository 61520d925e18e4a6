"""Candidates timed on the device, and the database of those that were the fastest."""
