"""`python -m tilelang` is the command line."""

from __future__ import annotations

from tilelang.cli import main

if __name__ == "__main__":
    main(prog_name="tilelang")
