"""A compiled program as files for C: its text, a header, launchers, libraries and a main; no Python is needed to use them."""
