"""Exports a compiled program as files for C: source, header, launchers, libraries and an example main. They do not need Python."""
