"""Emits kernel IR as source text in dialects of C."""
