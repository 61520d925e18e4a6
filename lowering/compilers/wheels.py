"""Locates the libraries, headers and programs in the wheels of the extra `[compilers]`."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path

INSTALL = "pip install 'tilelang-rtile[compilers]'"
CLANG = "pip install 'ziglang>=0.17,<0.18'"


def folders(package: str) -> Iterator[Path]:
    """The folders of an installed package: one, several for a namespace package, or none if it is absent."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield Path(folder)


def nvidia(pattern: str) -> list[Path]:
    """The files of NVIDIA's wheels that match a pattern in `nvidia/`, sorted by name."""
    return sorted(found for folder in folders("nvidia") for found in folder.glob(pattern))


def programs(name: str) -> list[Path]:
    """The programs of that name: those in NVIDIA's wheels, then the one on the search path."""
    path = shutil.which(name)
    return [*nvidia(f"*/bin/{name}"), *([Path(path)] if path is not None else [])]
