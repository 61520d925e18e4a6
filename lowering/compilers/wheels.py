"""Where the wheels of the extra `[compilers]` put their libraries, headers and programs."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path

INSTALL = "pip install 'tilelang-rtile[compilers]'"
CLANG = "pip install 'ziglang>=0.17,<0.18'"


def folders(package: str) -> Iterator[Path]:
    """The folders of an installed package: one, or several of a name that many distributions share; none where it is absent."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield Path(folder)


def nvidia(pattern: str) -> list[Path]:
    """The files of NVIDIA's wheels that fit a pattern below `nvidia/`, in order of their names."""
    return sorted(found for folder in folders("nvidia") for found in folder.glob(pattern))


def programs(name: str) -> list[Path]:
    """The programs of that name in NVIDIA's wheels, then the one of the search path."""
    path = shutil.which(name)
    return [*nvidia(f"*/bin/{name}"), *([Path(path)] if path is not None else [])]
