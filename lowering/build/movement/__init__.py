"""Loads, copies and stages: which elements of a tensor are needed, and where they are kept."""
